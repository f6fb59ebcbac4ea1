//! Into a process that already runs, and out again.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use vramscope_ptrace::{Argument, Tracee};

use super::{Listener, Parted, library, runtime_directory, session::wishes};
use crate::{
    error::AttachError,
    prospect::{inspect, or_inside},
    session::{Hold, Options, Session},
};

/// The exported function of the library that is called after loading it.
const ENTRY: &str = "vramscope_attach";
/// The one that says whether it can be unloaded.
const AT_REST: &str = "vramscope_at_rest";
/// How long the process may take to load the library, and to call it.
const LOADING: Duration = Duration::from_secs(10);
/// How long the library may take to connect and to place its hooks.
const GREETING: Duration = Duration::from_secs(30);
/// How long threads may take to leave the library's code.
const LEAVING: Duration = Duration::from_secs(5);
/// Between two looks at them.
const REST: Duration = Duration::from_millis(20);

/// A library that we loaded and are to unload.
pub struct Loaded {
    tracee: Tracee,
    handle: u64,
    library: PathBuf,
    range: std::ops::Range<u64>,
    /// Somebody else has it loaded too, and goes on using it.
    shared: bool,
    /// Where the file was copied to, for a process that does not see ours.
    copy: Option<PathBuf>,
}

/// Whether a library can be loaded into a process; asks without touching it.
///
/// # Errors
/// [`AttachError::Ptrace`] with the reason and what to do.
pub fn can_inject(pid: u32) -> Result<(), AttachError> {
    Tracee::open(pid)?;
    Ok(())
}

impl Session {
    /// Loads the library into a process that runs.
    ///
    /// # Errors
    /// Any [`AttachError`]; the process is then as it was.
    pub fn inject(pid: u32, options: &Options) -> Result<Session, AttachError> {
        let looked_at = inspect(pid).and_then(|prospect| {
            prospect.check()?;
            Ok(prospect)
        });
        let prospect = looked_at.map_err(|error| or_inside(pid, error))?;
        let library = library::find(options.library.as_deref()).map_err(AttachError::NoLibrary)?;
        let tracee = Tracee::open(pid)?;
        let root = prospect.info.root.as_deref();
        let (directory, seen_as) = meeting_place(root);
        let listener = Listener::new(&directory, owner(pid)).map_err(|error| {
            failed(
                format!("listening in {}", directory.display()),
                &error,
                "let XDG_RUNTIME_DIR name a folder that you can write to",
            )
        })?;
        let (library, copy) = match root {
            Some(_) => {
                let folder = listener.path().parent().unwrap_or(&directory);
                let copy = folder.join(library::NAME);
                let copied = std::fs::copy(&library, &copy);
                copied.map_err(|error| {
                    failed(
                        format!("copying the library to {}", copy.display()),
                        &error,
                        &format!("sudo vramscope attach {pid}"),
                    )
                })?;
                (inside(&copy, &directory, &seen_as), Some(copy))
            }
            None => (library, None),
        };
        let mut socket = inside(listener.path(), &directory, &seen_as)
            .into_os_string()
            .into_encoded_bytes();
        socket.push(0);
        let mut session = Session::injected(listener, wishes(options)?)?;
        let loaded = tracee.load(&library, LOADING)?;
        let mut loaded = Loaded {
            tracee,
            handle: loaded.handle,
            library: loaded.path,
            range: loaded.range,
            shared: false,
            copy,
        };
        let answered = loaded.call(&socket);
        let greeted = match answered {
            Ok(()) => match session.next_process(GREETING) {
                Some(Ok(_)) => Ok(()),
                Some(Err(why)) => Err(why),
                None => Err(format!("the library did not connect within {GREETING:?}")),
            },
            Err(why) => Err(why),
        };
        if let Err(cause) = greeted {
            let Hold::Library(injection) = &mut session.hold else {
                unreachable!("made above");
            };
            let parted = injection.injected.part();
            loaded.unload(&parted);
            return Err(failed(
                format!("starting the library in process {pid}"),
                &cause,
                &format!("sudo vramscope attach {pid}"),
            ));
        }
        if let Hold::Library(injection) = &mut session.hold {
            injection.loaded_into = Some(loaded);
        }
        session.require_tensor_hook(pid)?;
        Ok(session)
    }

    /// The hook that everything stands on must be there if PyTorch's allocator is.
    fn require_tensor_hook(&self, pid: u32) -> Result<(), AttachError> {
        use vramscope_events::ProbeState;
        for probe in &self.probes {
            if let ProbeState::Failed { reason } = &probe.state
                && probe.name.contains("reportMemoryUsage")
            {
                return Err(AttachError::Probe {
                    pid,
                    probe: probe.name.clone(),
                    reason: reason.clone(),
                });
            }
        }
        Ok(())
    }
}

impl Loaded {
    /// Tells the library where we listen.
    fn call(&mut self, socket: &[u8]) -> Result<(), String> {
        let entry = self
            .tracee
            .symbol(&self.library, ENTRY)
            .map_err(|error| error.to_string())?;
        let answer = self.tracee.call(entry, &[Argument::Bytes(socket)], LOADING);
        match answer.map_err(|error| error.to_string())? as i32 {
            0 => Ok(()),
            libc::EBUSY => {
                self.shared = true;
                Err("another vramscope watches this process already".into())
            }
            number => Err(std::io::Error::from_raw_os_error(number).to_string()),
        }
    }

    /// Unloads it if nobody is in it; what to tell where that could not be.
    pub fn unload(mut self, parted: &[Parted]) -> Option<String> {
        let note = self.try_unload(parted).err().map(|why| {
            format!(
                "the library stays loaded in process {}, without any effect: {why}",
                self.tracee.pid()
            )
        });
        if let Some(copy) = self.copy.take() {
            // A file in somebody else's /tmp; nothing depends on it.
            let _ = std::fs::remove_file(copy);
        }
        note
    }

    fn try_unload(&self, parted: &[Parted]) -> Result<(), String> {
        if !self.tracee.process().is_running() {
            return Ok(());
        }
        for one in parted {
            match one.inside {
                Some(0) => {}
                Some(count) => {
                    return Err(format!("{count} threads are in the middle of its code"));
                }
                None => return Err("it did not answer".into()),
            }
        }
        if self.shared {
            return self.close();
        }
        let at_rest = self.tracee.symbol(&self.library, AT_REST);
        let at_rest = at_rest.map_err(|error| error.to_string())?;
        let until = Instant::now() + LEAVING;
        loop {
            let answer = self.tracee.call(at_rest, &[], LOADING);
            let rests = answer.map_err(|error| error.to_string())? as i32 == 1;
            let empty = || self.tracee.nobody_inside(&self.range);
            if rests && empty().map_err(|error| error.to_string())? {
                break;
            }
            if Instant::now() >= until {
                return Err("a thread does not leave its code".into());
            }
            std::thread::sleep(REST);
        }
        self.close()
    }

    fn close(&self) -> Result<(), String> {
        let unloaded = self.tracee.unload(self.handle, LOADING);
        unloaded.map_err(|error| error.to_string())
    }
}

fn failed(what: String, cause: &impl std::fmt::Display, instead: &str) -> AttachError {
    AttachError::Injection {
        what,
        cause: cause.to_string(),
        instead: instead.to_owned(),
    }
}

/// A folder that both sides can reach: as we see it, and as the process does.
fn meeting_place(root: Option<&Path>) -> (PathBuf, PathBuf) {
    match root {
        Some(root) => (root.join("tmp"), PathBuf::from("/tmp")),
        None => {
            let directory = runtime_directory();
            (directory.clone(), directory)
        }
    }
}

/// A path in our `directory` as the process sees it.
fn inside(path: &Path, directory: &Path, seen_as: &Path) -> PathBuf {
    path.strip_prefix(directory)
        .map_or_else(|_| path.to_owned(), |rest| seen_as.join(rest))
}

/// User and group of a process that is not ours.
fn owner(pid: u32) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    let status = std::fs::metadata(format!("/proc/{pid}")).ok()?;
    let ours = nix::unistd::geteuid().as_raw();
    (status.uid() != ours).then(|| (status.uid(), status.gid()))
}
