//! A process looked at, before anything is changed.

use vramscope_events::ProcessInfo;
use vramscope_python::{FindError, Process, Python};

use crate::{
    error::{AttachError, Child},
    plan::{Plan, plan},
    target,
};

/// What is known of a process that is not traced yet.
pub struct Prospect {
    /// It.
    pub process: Process,
    /// Its interpreter, or why there is none that can be walked.
    pub python: Result<Python, FindError>,
    /// What would be probed.
    pub plan: Plan,
    /// Who it is.
    pub info: ProcessInfo,
}

/// Looks at a process without touching it.
///
/// # Errors
/// [`AttachError::Process`] when it is gone or may not be read.
pub fn inspect(pid: u32) -> Result<Prospect, AttachError> {
    let process = Process::open(pid)?;
    let mappings = process.mappings()?;
    let python = vramscope_python::find(&process);
    let plan = plan(&process, &mappings, python.as_ref().ok());
    let info = target::info(pid, &mappings, python.as_ref().ok());
    Ok(Prospect {
        process,
        python,
        plan,
        info,
    })
}

impl Prospect {
    /// Whether there is something to trace; if not, the most helpful reason.
    ///
    /// # Errors
    /// [`AttachError::Launcher`], [`AttachError::NothingToTrace`], [`AttachError::Python`].
    pub fn check(&self) -> Result<(), AttachError> {
        if self.plan.tensor_layer || self.plan.driver_layer {
            return Ok(());
        }
        let pid = self.process.pid();
        let children = likely_children(pid);
        let launcher = children.first().is_some_and(|child| child.torch) || self.python.is_err();
        if launcher && !children.is_empty() {
            return Err(AttachError::Launcher {
                pid,
                command: self.info.command.clone(),
                children,
            });
        }
        match vramscope_python::find(&self.process) {
            Err(error @ FindError::NotPython { .. }) => Err(error.into()),
            _ => Err(AttachError::NothingToTrace {
                pid,
                command: self.info.command.clone(),
                torch: self.info.torch.is_some(),
            }),
        }
    }
}

/// Adds to an error whom the number may mean instead: a process that has it in a container.
pub fn or_inside(pid: u32, error: AttachError) -> AttachError {
    let may_be_another = matches!(
        error,
        AttachError::Process(_)
            | AttachError::NothingToTrace { .. }
            | AttachError::Launcher { .. }
            | AttachError::Python(FindError::NotPython { .. })
    );
    if !may_be_another {
        return error;
    }
    let inside: Vec<Child> = likely(target::numbered_inside(pid));
    match inside.is_empty() {
        true => error,
        false => AttachError::Inside {
            source: Box::new(error),
            pid,
            inside,
        },
    }
}

/// The descendants that run Python: only those with PyTorch if there are any.
fn likely_children(pid: u32) -> Vec<Child> {
    likely(target::descendants(pid))
}

/// Those of some processes that run Python: only those with PyTorch if there are any.
fn likely(pids: Vec<u32>) -> Vec<Child> {
    let mut children: Vec<_> = pids
        .into_iter()
        .filter_map(|pid| {
            let process = Process::open(pid).ok()?;
            let torch = process
                .mappings()
                .ok()?
                .iter()
                .any(|mapping| mapping.file_name() == Some("libc10.so"));
            (torch || vramscope_python::find(&process).is_ok()).then(|| Child {
                pid,
                command: target::command(pid),
                torch,
            })
        })
        .collect();
    if children.iter().any(|child| child.torch) {
        children.retain(|child| child.torch);
    }
    children
}
