//! The Firefox profiler's command line.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

/// A file that the Firefox profiler's command line has open.
///
/// Its command `load` gives its own server half a second to answer, and any command that finds no
/// answer yet takes the session for a dead one and removes its files. So the server is started here,
/// and nothing is asked before it has written that it is ready.
pub struct FirefoxSession {
    tool: PathBuf,
    folder: tempfile::TempDir,
    server: Child,
}

impl FirefoxSession {
    /// Opens a file.
    pub fn open(tool: &Path, file: &Path) -> FirefoxSession {
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("server.txt")).unwrap();
        let server = Command::new("node")
            .arg(tool)
            .arg("--daemon")
            .arg(file)
            .args(["--session", "a"])
            .env("PROFILER_CLI_SESSION_DIR", folder.path())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut session = FirefoxSession {
            tool: tool.to_owned(),
            folder,
            server,
        };
        let started = Instant::now();
        loop {
            let said = |file| fs::read_to_string(session.folder.path().join(file));
            let log = said("a.log").unwrap_or_default();
            if log.contains("Profile loaded successfully") {
                return session;
            }
            let ended = session.server.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {log} {:?}", said("server.txt"));
            let patient = started.elapsed() < Duration::from_secs(120);
            assert!(patient, "{log} {:?}", said("server.txt"));
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A command of the tool's about that file.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("node");
        command
            .arg(&self.tool)
            .args(arguments)
            .args(["--session", "a"])
            .env("PROFILER_CLI_SESSION_DIR", self.folder.path());
        command
    }
}

impl Drop for FirefoxSession {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
