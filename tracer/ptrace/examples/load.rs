//! `load PID LIBRARY [FUNCTION [NUMBER…]]`: loads a library into a process, calls a function of it,
//! and gives the library back. `load --again …` does so until it is killed.

use std::{path::Path, time::Duration};

use vramscope_ptrace::{Argument, Error, Tracee};

const DEADLINE: Duration = Duration::from_secs(10);

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let again = arguments.first().is_some_and(|first| first == "--again");
    if again {
        arguments.remove(0);
    }
    let [pid, library, rest @ ..] = &arguments[..] else {
        eprintln!("usage: load [--again] PID LIBRARY [FUNCTION [NUMBER...]]");
        std::process::exit(2);
    };
    loop {
        match once(pid.parse().unwrap_or(0), Path::new(library), rest) {
            Ok(answer) => println!("{answer}"),
            Err(error) => {
                println!("{error}");
                std::process::exit(3);
            }
        }
        if !again {
            return;
        }
    }
}

fn once(pid: u32, library: &Path, rest: &[String]) -> Result<String, Error> {
    let tracee = Tracee::open(pid)?;
    let loaded = tracee.load(library, DEADLINE)?;
    let mut answer = String::from("loaded");
    if let [function, numbers @ ..] = rest {
        let words: Vec<_> = numbers
            .iter()
            .map(|number| Argument::Word(number.parse().unwrap_or(0)))
            .collect();
        let function = tracee.symbol(&loaded.path, function)?;
        answer = format!("{:#x}", tracee.call(function, &words, DEADLINE)?);
    }
    tracee.unload(loaded.handle, DEADLINE)?;
    Ok(answer)
}
