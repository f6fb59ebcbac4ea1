//! The demo in tmux, as most people will see it over ssh: the captures are the pictures of the
//! documentation. `UPDATE_DOCS=1 cargo test -p vramscope-tui --test tmux` takes them anew.

mod common;

use std::{
    cell::RefCell,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use common::pty::demo;

const PATIENCE: Duration = Duration::from_secs(30);

/// A server of our own, which ends with the test.
struct Tmux {
    socket: String,
}

impl Tmux {
    fn start(name: &str, size: (u16, u16), command: &str) -> Option<Tmux> {
        let socket = format!("vramscope-test-{}-{name}", std::process::id());
        let tmux = Tmux { socket };
        let (columns, lines) = (size.0.to_string(), size.1.to_string());
        let started = tmux.try_run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &lines,
            command,
        ]);
        match started {
            Ok(output) => {
                assert!(output.status.success(), "{output:?}");
                Some(tmux)
            }
            Err(error) => {
                println!("SKIP: tmux does not run here: {error}");
                None
            }
        }
    }

    fn try_run(&self, arguments: &[&str]) -> std::io::Result<Output> {
        Command::new("tmux")
            .args(["-u", "-L", &self.socket])
            .args(arguments)
            .output()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments).expect("it ran before");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys", "-t", ":0"];
        arguments.extend(keys);
        self.run(&arguments);
    }

    /// The picture, once it is as `wanted`, or the last one when patience is at its end.
    fn capture(&self, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let picture = self.run(&["capture-pane", "-p", "-t", ":0"]);
            if wanted(&picture) || Instant::now() > deadline {
                return picture;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.try_run(&["kill-server"]);
    }
}

#[test]
fn pictures_of_the_documentation() {
    let screens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/screens");
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let demo = demo().display().to_string();
    let ranks = format!("{demo} four_ranks");
    for (size, name, story) in [
        ((120, 40), "120x40", "leak"),
        ((80, 24), "80x24", "leak"),
        ((120, 40), "120x40", "ranks"),
        ((80, 24), "80x24", "ranks"),
    ] {
        let demo = if story == "ranks" { &ranks } else { &demo };
        // The shell around it shows that the screen before comes back.
        let command = format!("sh -c 'echo the screen before; {demo}; exec cat'");
        let Some(tmux) = Tmux::start(&format!("{story}-{name}"), size, &command) else {
            return;
        };
        for (view, keys, text) in [
            ("sites", &["1"][..], "SOURCE"),
            ("site", &["Enter"], "born in"),
            ("tree", &["2"], "CALLERS FIRST"),
            ("memory", &["3"], "live tensors"),
            ("timeline", &["4"], "comes and goes"),
            ("processes", &["5"], "the other 3 are healthy"),
            ("log", &["6"], "Probes"),
            ("help", &["?"], "everywhere"),
        ] {
            if (view == "processes") != (story == "ranks") {
                continue;
            }
            tmux.capture(|picture| picture.contains("q quit"));
            tmux.keys(keys);
            let path = screens.join(format!("{view}-{name}.txt"));
            if update {
                let last = RefCell::new(String::new());
                // What stands still with the right text in it is the whole picture.
                let picture = tmux.capture(|picture| {
                    let same = *last.borrow() == picture;
                    last.replace(picture.to_owned());
                    same && picture.contains(text)
                });
                std::fs::create_dir_all(&screens).expect("writable");
                std::fs::write(&path, &picture).expect("writable");
            }
            let known = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(known.contains(text), "{}: no {text}", path.display());
            let picture = tmux.capture(|picture| picture == known);
            assert!(
                known == picture,
                "{} is not what tmux shows; UPDATE_DOCS=1 takes it anew:\n{picture}",
                path.display()
            );
        }
        // The last picture of the one story is the help, which is closed first.
        tmux.keys(if story == "ranks" {
            &["q"]
        } else {
            &["?", "q"]
        });
        let after = tmux.capture(|picture| picture.contains("the live view ended: Left"));
        assert!(after.contains("the screen before"), "{after}");
        assert!(!after.contains("LEAK"), "{after}");
    }
}
