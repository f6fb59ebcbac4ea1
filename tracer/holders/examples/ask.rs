//! `ask PID TIMES ADDRESS…`: asks so often what holds these blocks, the library loaded and taken out
//! each time, and prints how long the process had to wait.

use vramscope_holders::{Asker, Error, Request, words};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = || {
        arguments
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0)
    };
    let (pid, times) = (number(), number());
    let request = Request {
        sizes: Vec::new(),
        addresses: arguments
            .filter_map(|address| u64::from_str_radix(address.trim_start_matches("0x"), 16).ok())
            .collect(),
        budget_ms: 2000,
        slice_ms: 10,
        memory: 160 << 20,
    };
    let (mut longest, mut said) = (Vec::new(), String::new());
    for time in 0..times {
        match once(pid, &request) {
            Ok((answer, unloaded)) => {
                longest.push(answer.cost.longest_us);
                if !unloaded {
                    println!("{time}: the library stays loaded");
                }
                said = answer
                    .holders
                    .iter()
                    .map(|one| format!("{} x {}\n", one.members.len(), words::holder(one)))
                    .collect();
                said.push_str(&format!("{:?} {:?}", answer.cost, answer.partial));
            }
            Err(error) => println!("{time}: {error}"),
        }
    }
    println!("{said}");
    longest.sort_unstable();
    if let (Some(middle), Some(last)) = (longest.get(longest.len() / 2), longest.last()) {
        println!(
            "{} answers; longest time with the GIL in one: median {middle} us, worst {last} us",
            longest.len()
        );
    }
}

fn once(pid: u32, request: &Request) -> Result<(vramscope_holders::Answer, bool), Error> {
    let mut asker = Asker::attach(pid)?;
    let answer = asker.ask(request);
    let unloaded = asker.leave();
    Ok((answer?, unloaded))
}
