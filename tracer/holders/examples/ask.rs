//! `ask PID ADDRESS…`: what holds these blocks.

use vramscope_holders::{Asker, Request};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments
        .next()
        .and_then(|pid| pid.parse().ok())
        .unwrap_or(0);
    let addresses: Vec<u64> = arguments
        .filter_map(|address| u64::from_str_radix(address.trim_start_matches("0x"), 16).ok())
        .collect();
    let request = Request {
        sizes: Vec::new(),
        addresses,
        budget_ms: 2000,
        slice_ms: 25,
        memory: 200 << 20,
    };
    match Asker::attach(pid) {
        Err(error) => println!("{error}"),
        Ok(mut asker) => {
            let answer = asker.ask(&request);
            println!("{answer:#?}");
            println!("unloaded: {}", asker.leave());
        }
    }
}
