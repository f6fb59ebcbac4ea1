//! Prints the Python stacks of a process: `cargo run --example stacks -- PID`.

use std::error::Error;

use vramscope_python::{Process, calibrate_tsd, find, read_code, threads, walk_thread};

fn main() -> Result<(), Box<dyn Error>> {
    let pid = std::env::args()
        .nth(1)
        .ok_or("usage: stacks PID")?
        .parse()?;
    let process = Process::open(pid)?;
    let python = find(&process)?;
    println!("CPython {} from {}", python.version, python.path.display());
    println!(
        "layout: {:?}, tested: {}",
        python.offsets_source, python.tested
    );
    println!(
        "key: {:?}, {:?}",
        python.tss_key,
        calibrate_tsd(&process, &python)?
    );
    println!("code_dealloc: {:?}", python.code_dealloc);
    for thread in threads(&process, &python)? {
        println!(
            "thread {:?} (pthread {:#x})",
            thread.native_id, thread.pthread
        );
        let stack = walk_thread(&process, &python, thread.state)?;
        for frame in &stack.frames {
            let code = read_code(&process, &python, frame.code)?;
            match code.line(frame.offset) {
                Some(line) => println!("    {}:{line} {}", code.file, code.qualname),
                None => println!("    {}:? {}", code.file, code.qualname),
            }
        }
        if !stack.is_complete {
            println!("    ... (the rest could not be read)");
        }
    }
    Ok(())
}
