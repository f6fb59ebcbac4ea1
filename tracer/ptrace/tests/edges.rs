//! What is refused, what hangs, what crashes, and containers.

mod support;

use std::{
    os::unix::process::ExitStatusExt as _,
    process::Command,
    time::{Duration, Instant},
};

use nix::{
    sys::{
        ptrace,
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};
use support::{DEADLINE, Target, compile, library, skip, until_nobody_is_inside};
use vramscope_ptrace::{Argument, Error, Tracee};

const SHORT: Duration = Duration::from_millis(150);

fn odd(directory: &std::path::Path, what: &str) -> Target {
    Target::start(Command::new(compile(directory, "odd.c", "odd", &[])).arg(what))
}

fn id(target: &Target) -> Pid {
    Pid::from_raw(target.pid().cast_signed())
}

#[test]
fn a_thread_that_does_not_wait_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    for what in ["computes", "handler", "mutex"] {
        let target = odd(directory.path(), what);
        let tracee = Tracee::open(target.pid()).unwrap();
        let getpid = tracee.function("getpid").unwrap();
        let error = tracee.call(getpid, &[], SHORT).unwrap_err();
        assert!(
            matches!(error, Error::NoThread { threads: 1, .. }),
            "{what}: {error}"
        );
        println!("{what}: {error}");
    }
}

#[test]
fn signals_wait_and_are_delivered_once() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path(), "mine.so");
    let mut target = odd(directory.path(), "reads");
    let tracee = Tracee::open(target.pid()).unwrap();
    let loaded = tracee.load(&library, DEADLINE).unwrap();
    let blocks = tracee.symbol(&loaded.path, "blocks").unwrap();
    for signal in [Signal::SIGUSR1 as u64, 40] {
        let answer = tracee.call(blocks, &[Argument::Word(signal)], DEADLINE);
        assert_eq!(answer.unwrap(), 1);
    }
    let nap = tracee.symbol(&loaded.path, "nap").unwrap();
    std::thread::scope(|scope| {
        let napping = scope.spawn(|| tracee.call(nap, &[Argument::Word(200)], DEADLINE));
        // Whether it comes before, during or after the nap: it is told once.
        kill(id(&target), Signal::SIGUSR1).unwrap();
        assert_eq!(napping.join().unwrap().unwrap(), 200);
    });
    target.say("one");
    assert_eq!(target.line(), "signals 1 after one");
    tracee.unload(loaded.handle, DEADLINE).unwrap();
    target.say("two");
    assert_eq!(target.line(), "signals 1 after two");
    assert!(target.finish().0.success());
}

#[test]
fn what_hangs_is_left_to_come_back_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path(), "mine.so");
    let mut target = odd(directory.path(), "reads");
    let tracee = Tracee::open(target.pid()).unwrap();
    let loaded = tracee.load(&library, DEADLINE).unwrap();
    until_nobody_is_inside(&tracee, &loaded);
    let nap = tracee.symbol(&loaded.path, "nap").unwrap();
    let error = tracee
        .call(nap, &[Argument::Word(1500)], SHORT)
        .unwrap_err();
    assert!(matches!(error, Error::Hangs { .. }), "{error}");
    // It returns into the library: that must not be unloaded now.
    assert!(!tracee.nobody_inside(&loaded.range).unwrap());
    target.say("meanwhile");
    assert_eq!(target.line(), "signals 0 after meanwhile");
    until_nobody_is_inside(&tracee, &loaded);
    tracee.unload(loaded.handle, DEADLINE).unwrap();
    assert!(target.finish().0.success());
}

#[test]
fn what_crashes_is_put_back() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path(), "mine.so");
    let mut target = odd(directory.path(), "reads");
    let tracee = Tracee::open(target.pid()).unwrap();
    let loaded = tracee.load(&library, DEADLINE).unwrap();
    let crash = tracee.symbol(&loaded.path, "crash").unwrap();
    for address in [crash, 0, 16] {
        let error = tracee.call(address, &[], DEADLINE).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Crashed {
                    signal: "SIGSEGV",
                    ..
                }
            ),
            "{error}"
        );
    }
    target.say("still here");
    assert_eq!(target.line(), "signals 0 after still here");
    assert!(target.finish().0.success());
}

#[test]
fn a_missing_library_is_told_in_the_loaders_words() {
    let directory = tempfile::tempdir().unwrap();
    let target = odd(directory.path(), "reads");
    let tracee = Tracee::open(target.pid()).unwrap();
    let path = directory.path().join("nowhere.so");
    let error = tracee.load(&path, DEADLINE).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    assert!(matches!(
        tracee.function("no_such_function"),
        Err(Error::NoSymbol { .. })
    ));
    let error = tracee.symbol(&path, "answer").unwrap_err();
    assert!(error.to_string().contains("not mapped"), "{error}");
    let words = [Argument::Word(0); 7];
    assert!(matches!(
        tracee.call(1, &words, SHORT),
        Err(Error::Arguments { count: 7 })
    ));
    let long = vec![0; 100_000];
    let error = tracee
        .call(1, &[Argument::Bytes(&long)], SHORT)
        .unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
}

/// Whoever started the program waits for it while another thread traces it: stops are no end, and the
/// end is told with its status, also when it comes in the middle of a call.
#[test]
fn a_child_that_is_traced_ends_once_and_for_its_parent() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path(), "mine.so");
    for round in 0..15 {
        let mut target = odd(directory.path(), "reads");
        let pid = target.pid();
        let tracee = Tracee::open(pid).unwrap();
        let loaded = tracee.load(&library, DEADLINE).unwrap();
        let nap = tracee.symbol(&loaded.path, "nap").unwrap();
        std::thread::scope(|scope| {
            let naps = scope.spawn(|| {
                // Until it is gone.
                while tracee.call(nap, &[Argument::Word(1)], DEADLINE).is_ok() {}
            });
            // The end comes at another moment of a call each time.
            let until = Instant::now() + Duration::from_micros(20_000 + 700 * round);
            while Instant::now() < until {
                assert!(!vramscope_ptrace::has_ended(pid).unwrap(), "round {round}");
            }
            kill(id(&target), Signal::SIGKILL).unwrap();
            while !vramscope_ptrace::has_ended(pid).unwrap() {}
            naps.join().unwrap();
        });
        let status = target.child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "round {round}: {status}");
    }
}

#[test]
fn processes_that_cannot_be_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut target = odd(directory.path(), "reads");
    kill(id(&target), Signal::SIGSTOP).unwrap();
    let stopped = waitpid(id(&target), Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert!(matches!(stopped, WaitStatus::Stopped(..)));
    let error = Tracee::open(target.pid()).unwrap_err();
    assert!(error.to_string().contains("kill -CONT"), "{error}");
    kill(id(&target), Signal::SIGCONT).unwrap();
    waitpid(id(&target), Some(WaitPidFlag::WCONTINUED)).unwrap();

    ptrace::seize(id(&target), ptrace::Options::empty()).unwrap();
    let error = Tracee::open(target.pid()).unwrap_err();
    // The kernel names the thread that traces.
    let ours = nix::unistd::gettid().to_string();
    assert!(matches!(error, Error::Traced { .. }), "{error}");
    assert!(error.to_string().contains(&ours), "{error}");
    ptrace::interrupt(id(&target)).unwrap();
    waitpid(id(&target), Some(WaitPidFlag::__WALL)).unwrap();
    ptrace::detach(id(&target), None).unwrap();

    target.say("x");
    assert_eq!(target.line(), "signals 0 after x");
    kill(id(&target), Signal::SIGKILL).unwrap();
    // Ended, and not waited for.
    let mut options = WaitPidFlag::WEXITED;
    options.insert(WaitPidFlag::WNOWAIT);
    nix::sys::wait::waitid(nix::sys::wait::Id::Pid(id(&target)), options).unwrap();
    let error = Tracee::open(target.pid()).unwrap_err();
    assert!(matches!(error, Error::Zombie { .. }), "{error}");
    let pid = target.pid();
    target.finish();
    let error = Tracee::open(pid).unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
}

#[test]
fn a_static_program_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), "odd.c", "static", &["-static"]);
    let target = Target::start(Command::new(program).arg("reads"));
    let error = Tracee::open(target.pid()).unwrap_err();
    assert!(error.to_string().contains("linked statically"), "{error}");
}

#[test]
fn another_pid_and_mount_namespace() {
    let directory = tempfile::tempdir().unwrap();
    // A file system of its own, in which the library lies at a path that we do not have.
    let inside = "/mnt/vramscope-test";
    let program = compile(directory.path(), "odd.c", "odd", &[]);
    let library = library(directory.path(), "mine.so");
    let script = format!(
        "mount -t tmpfs none /mnt && mkdir {inside} && cp {} {} {inside}/ && exec {inside}/odd reads",
        program.display(),
        library.display()
    );
    let unshare = ["--pid", "--mount", "--fork", "--kill-child", "--mount-proc"];
    let works = Command::new("unshare")
        .args(unshare)
        .args(["mount", "-t", "tmpfs", "none", "/mnt"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        return skip(
            "another_pid_and_mount_namespace",
            "no right to make namespaces",
        );
    }
    let mut front = Target::start(
        Command::new("unshare")
            .args(unshare)
            .args(["sh", "-c", &script]),
    );
    let children = format!("/proc/{0}/task/{0}/children", front.pid());
    let pid: u32 = std::fs::read_to_string(children)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let tracee = Tracee::open(pid).unwrap();
    let path = std::path::Path::new(inside).join("mine.so");
    assert!(!path.exists());
    let loaded = tracee.load(&path, DEADLINE).unwrap();
    let getpid = tracee.function("getpid").unwrap();
    assert_eq!(tracee.call(getpid, &[], DEADLINE).unwrap(), 1);
    let length = tracee.symbol(&path, "length").unwrap();
    assert_eq!(
        tracee
            .call(length, &[Argument::Bytes(b"four\0")], DEADLINE)
            .unwrap(),
        4
    );
    tracee.unload(loaded.handle, DEADLINE).unwrap();
    front.say("x");
    assert_eq!(front.line(), "signals 0 after x");
    front.finish();
}
