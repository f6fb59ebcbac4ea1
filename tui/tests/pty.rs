//! The demo on a real pseudo terminal: every view by its keys, and the terminal as before whatever
//! ends the live view.

mod common;

use common::pty::{Session, demo, orders};
use portable_pty::CommandBuilder;

#[test]
fn every_view_and_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_str().expect("a plain path");
    let mut demo = Session::start(&["leak", "--directory", path], &[]);
    demo.wait_for("LEAK");
    demo.wait_for("train.py:27");
    for (keys, text) in [
        ("2", "CALLERS FIRST"),
        ("b", "ALLOCATING LINES FIRST"),
        ("3", "live tensors"),
        ("4", "last minute or whole session"),
        ("5", "HEALTHY or LEAK"),
        ("6", "Probes"),
        ("?", "forget the mark"),
        // At once, as a terminal may send them.
        ("\x1b1", "SOURCE"),
        ("\r", "born in"),
        ("\x1b", "SOURCE"),
        ("/score\r", "/score"),
        ("\x1b", "optimizer.step()"),
        ("g", "by function"),
        (" ", "FROZEN"),
        (" ", "enter open"),
        ("m", "marked at step"),
        ("w", "report written to"),
        ("f", "flamegraph written to"),
    ] {
        demo.keys(keys);
        match text {
            "last minute or whole session" => demo.wait_for("memory, whole session"),
            "HEALTHY or LEAK" => demo.wait_for("SKEW"),
            text => demo.wait_for(text),
        }
    }
    let written = std::fs::read_dir(directory.path())
        .expect("readable")
        .count();
    assert_eq!(written, 2);
    let report = std::fs::read_to_string(directory.path().join("vramscope-4121-step1482.txt"));
    assert!(report.expect("the name it said").contains("LEAK"));
    demo.keys("q");
    demo.wait_for("the live view ended: Left");
    demo.assert_restored(Some(0));
}

#[test]
fn ctrl_c_leaves() {
    let mut demo = Session::start(&["healthy"], &[]);
    demo.wait_for("HEALTHY");
    demo.keys("\x03");
    demo.wait_for("the live view ended: Left");
    demo.assert_restored(Some(0));
}

#[test]
fn stays_when_the_process_has_ended() {
    let mut demo = Session::start(&["leak", "--ends"], &[]);
    demo.wait_for("process exited: q leaves");
    demo.keys("q");
    demo.wait_for("the live view ended: Ended");
    demo.assert_restored(Some(0));
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let mut demo = Session::start(&["leak", "--panic"], &[]);
    demo.wait_for("the demo was asked to panic");
    demo.assert_restored(Some(101));
    let screen = demo.picture();
    assert!(screen.contains("the demo was asked to panic"), "{screen}");
}

/// The message is on the shell's screen, the live view goes on.
#[test]
fn a_panic_elsewhere_is_survived() {
    let mut demo = Session::start(&["leak", "--thread-panics"], &[]);
    demo.wait("the live view", |screen| {
        screen.alternate_screen() && screen.contents().contains("train.py:27")
    });
    demo.keys("3");
    demo.wait_for("live tensors");
    demo.keys("q");
    demo.wait_for("the live view ended: Left");
    demo.wait_for("a thread of the demo was asked to panic");
    demo.assert_restored(Some(0));
}

#[test]
fn signals_end_it_in_order() {
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3)] {
        let mut demo = Session::start(&["leak"], &[]);
        demo.wait_for("LEAK");
        demo.signal(signal);
        demo.wait_for(&format!("the live view ended: Signal({number})"));
        demo.assert_restored(Some(0));
    }
}

#[test]
fn stops_and_goes_on() {
    let mut demo = Session::start(&["leak"], &[]);
    demo.wait_for("LEAK");
    for by_key in [false, true] {
        match by_key {
            true => demo.keys("\x1a"),
            false => demo.signal("TSTP"),
        }
        demo.wait("the shell's screen", |screen| !screen.alternate_screen());
        demo.wait_for_state('T');
        demo.signal("CONT");
        demo.wait("the live view", |screen| {
            screen.alternate_screen() && screen.contents().contains("train.py:27")
        });
    }
    // Stopped without being asked: the picture comes back whole.
    demo.signal("STOP");
    demo.wait_for_state('T');
    demo.resize(90, 28);
    demo.signal("CONT");
    demo.keys("3");
    demo.wait_for("live tensors");
    demo.keys("q");
    demo.wait_for("the live view ended: Left");
    demo.assert_restored(Some(0));
}

#[test]
fn follows_the_size() {
    let mut demo = Session::start(&["leak"], &[]);
    demo.wait_for("enter open");
    for (columns, lines) in [(120, 40), (40, 10), (8, 3), (80, 24)] {
        demo.resize(columns, lines);
        demo.wait("a picture of the new size", |screen| {
            let (height, width) = screen.size();
            let verdict = screen.contents().contains("LEA");
            (height.get(), width.get()) == (lines, columns) && verdict
        });
    }
    demo.wait_for("? help  q quit");
    demo.keys("q");
    demo.assert_restored(Some(0));
}

/// A signal may come before anybody listens for it; a lost one is as good as a blocked one.
#[test]
fn follows_a_size_that_nobody_tells_of() {
    let mut command = CommandBuilder::new("env");
    command.arg("--block-signal=WINCH");
    command.arg(demo());
    command.arg("leak");
    let mut demo = Session::start_command(command, &[]);
    demo.wait_for("enter open");
    demo.resize(120, 40);
    demo.wait_for("? help  q quit");
    assert_eq!(demo.picture().lines().count(), 40, "{}", demo.picture());
    demo.keys("q");
    demo.assert_restored(Some(0));
}

/// Whoever waits for something after the live view can be ended as ever.
#[test]
fn signals_are_their_own_again_afterwards() {
    let mut demo = Session::start(&["leak", "--lingers"], &[]);
    demo.wait_for("LEAK");
    demo.keys("q");
    demo.wait_for("the live view ended: Left");
    demo.signal("TERM");
    let status = demo.child.wait().expect("it ends");
    assert!(!status.success());
}

/// Only cursor, erase, look and mode orders, whatever the names say; no title, no reply asked for.
#[test]
fn hostile_names_give_no_orders() {
    let mut demo = Session::start(&["hostile"], &[]);
    demo.wait_for("\\x1b]0;owned");
    for (key, text) in [
        ("2", "CALLERS FIRST"),
        ("3", "Books"),
        ("5", "STATE"),
        ("6", "Probes"),
        ("1", "SOURCE"),
        ("\r", "born in"),
    ] {
        demo.keys(key);
        demo.wait_for(text);
    }
    demo.keys("q");
    demo.wait_for("the live view ended");
    demo.assert_restored(Some(0));
    for order in orders(&demo.raw) {
        let known = order.strip_prefix("\x1b[").is_some_and(|rest| {
            let parameters = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let ends = rest.ends_with(['m', 'H', 'J', 'K', 'h', 'l', 'A', 'B', 'C', 'D']);
            let plain = |c: char| c.is_ascii_digit() || ";:?".contains(c);
            ends && parameters.chars().all(plain)
        });
        assert!(known || order == "\r" || order == "\n", "{order:?}");
    }
}

#[test]
fn without_utf8_only_seven_bits_leave() {
    let environment = [("LANG", "C"), ("NO_COLOR", "1")];
    let mut demo = Session::start(&["hostile"], &environment);
    demo.wait_for("LEAK");
    demo.keys("2");
    demo.wait_for("CALLERS FIRST");
    demo.keys("4");
    demo.wait_for("memory, whole session");
    demo.keys("q");
    demo.wait_for("the live view ended");
    demo.assert_restored(Some(0));
    assert!(demo.raw.is_ascii());
    // Bold, dim, reversed and back, but no colour.
    for order in orders(&demo.raw) {
        let look = order
            .strip_prefix("\x1b[")
            .and_then(|rest| rest.strip_suffix('m'));
        for number in look.into_iter().flat_map(|look| look.split(';')) {
            let number: u8 = number.parse().unwrap_or(0);
            assert!(!matches!(number, 30..=38 | 40..=48 | 90..=107), "{order:?}");
        }
    }
}
