//! The demo in tmux, as most people will see it over ssh: the captures are the pictures of the
//! documentation. `UPDATE_DOCS=1 cargo test -p vramscope-tui --test tmux` takes them anew.

mod common;

use std::{
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use common::pty::demo;

const PATIENCE: Duration = Duration::from_secs(60);

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

    /// The picture, once it holds `text` and stands still.
    fn capture(&self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut last = String::new();
        loop {
            let picture = self.run(&["capture-pane", "-p", "-t", ":0"]);
            if picture.contains(text) && picture == last {
                return picture;
            }
            last.clone_from(&picture);
            assert!(Instant::now() < deadline, "no {text} in tmux:\n{picture}");
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
    for (size, name) in [((120, 40), "120x40"), ((80, 24), "80x24")] {
        // The shell around it shows that the screen before comes back.
        let command = format!("sh -c 'echo the screen before; {demo}; exec cat'");
        let Some(tmux) = Tmux::start(name, size, &command) else {
            return;
        };
        for (view, keys, text) in [
            ("sites", &["1"][..], "SOURCE"),
            ("site", &["Enter"], "born in"),
            ("tree", &["2"], "CALLERS FIRST"),
            ("memory", &["3"], "live tensors"),
            ("timeline", &["4"], "comes and goes"),
            ("processes", &["5"], "SKEW"),
            ("log", &["6"], "Probes"),
            ("help", &["?"], "everywhere"),
        ] {
            tmux.capture("LEAK");
            tmux.keys(keys);
            let picture = tmux.capture(text);
            let path = screens.join(format!("{view}-{name}.txt"));
            if update {
                std::fs::create_dir_all(&screens).expect("writable");
                std::fs::write(&path, &picture).expect("writable");
            } else {
                let known = std::fs::read_to_string(&path).unwrap_or_default();
                assert!(
                    known == picture,
                    "{} is not what tmux shows; UPDATE_DOCS=1 takes it anew:\n{picture}",
                    path.display()
                );
            }
        }
        tmux.keys(&["?", "q"]);
        let after = tmux.capture("the live view ended: Left");
        assert!(after.contains("the screen before"), "{after}");
        assert!(!after.contains("LEAK"), "{after}");
    }
}
