//! Sessions of the injected backend.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use crossbeam_channel::bounded;
use vramscope_events::ProcessInfo;

use super::{Injected, Listener, Wishes, library, runtime_directory};
use crate::{
    error::AttachError,
    plan::StepOn,
    session::{Hold, Injection, Options, Session, WAITING_BATCHES},
};

impl Session {
    /// Listens for programs that are started with [`Session::environment`] set, and for their
    /// children.
    ///
    /// # Errors
    /// [`AttachError::NoLibrary`], [`AttachError::StepOn`], [`AttachError::Injection`].
    pub fn listen(options: &Options) -> Result<Session, AttachError> {
        let library = library::find(options.library.as_deref()).map_err(AttachError::NoLibrary)?;
        let directory = runtime_directory();
        let listener = Listener::new(&directory, None).map_err(|error| AttachError::Injection {
            what: format!("listening in {}", directory.display()),
            cause: error.to_string(),
            instead: "let XDG_RUNTIME_DIR name a folder that you can write to".into(),
        })?;
        let wishes = wishes(options)?;
        let mut session = Session::injected(listener, wishes)?;
        if let Hold::Library(injection) = &mut session.hold {
            injection.library = Some(library);
        }
        Ok(session)
    }

    /// What a program's environment needs for the library to find us. Empty unless the session was
    /// made by [`Session::listen`].
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let Hold::Library(injection) = &self.hold else {
            return Vec::new();
        };
        injection.library.as_ref().map_or_else(Vec::new, |library| {
            vec![
                ("CUDA_INJECTION64_PATH", library.clone()),
                ("VRAMSCOPE_SOCKET", injection.injected.path().to_owned()),
            ]
        })
    }

    /// Waits for a process that has its hooks in place; why one has not, in words.
    pub fn next_process(&mut self, patience: Duration) -> Option<Result<ProcessInfo, String>> {
        let Hold::Library(injection) = &self.hold else {
            return None;
        };
        let found = injection.injected.next_process(patience)?;
        self.take_news();
        if let Ok(info) = &found
            && self.info.pid.0 == 0
        {
            self.info = info.clone();
        }
        Some(found)
    }

    pub(super) fn injected(listener: Listener, wishes: Wishes) -> Result<Session, AttachError> {
        let (sender, records) = bounded(WAITING_BATCHES);
        let stop = Arc::new(AtomicBool::new(false));
        let started = Injected::start(listener, wishes, sender, Arc::clone(&stop));
        let (injected, threads) = started.map_err(|error| AttachError::Injection {
            what: "starting threads".into(),
            cause: error.to_string(),
            instead: "sudo vramscope attach PID uses probes of the kernel".into(),
        })?;
        let board = Arc::clone(&injected.board);
        Ok(Session {
            info: ProcessInfo::default(),
            probes: Vec::new(),
            notes: Vec::new(),
            tensor_layer: false,
            troubles: Vec::new(),
            hold: Hold::Library(Box::new(Injection {
                injected,
                library: None,
                loaded_into: None,
            })),
            board,
            seen: 0,
            records,
            stop,
            threads,
            watch: None,
        })
    }
}

pub(super) fn wishes(options: &Options) -> Result<Wishes, AttachError> {
    let step_symbol = match &options.step_on {
        None => None,
        Some(StepOn::Symbol(symbol)) => Some(symbol.clone()),
        Some(StepOn::Nvtx(_)) => {
            return Err(AttachError::StepOn {
                reason: "NVTX ranges are seen by probes of the kernel only, not by injection"
                    .into(),
            });
        }
    };
    Ok(Wishes {
        ring_bytes: options.ring_bytes as usize,
        watch_devices: options.watch_devices,
        cupti: options.cupti,
        native: options.native,
        step_symbol,
    })
}
