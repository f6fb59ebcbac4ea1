//! From a process of the tree to one that is probed.

use std::{num::NonZeroU32, sync::Arc};

use vramscope_events::{Pid, ProbeState, ProbeView, ProcessInfo};
use vramscope_python::{FindError, Mapping, Process, ReadError};

use super::{Member, Part, Probed, Recipe, Tree};
use crate::{
    decode::Traced,
    error::AttachError,
    native::Native,
    plan::{self, plan, step_probe},
    prospect::{Prospect, inspect},
    python::{no_python, walk_configuration},
    reader::Notice,
    target,
    unwind::{code::CodeMap, loader},
};

impl Tree {
    /// Looks at a process: whether there is something to probe by now, or something more.
    pub(super) fn look_at(&mut self, pid: u32) {
        let Some(member) = self.members.get(&pid) else {
            return;
        };
        let Ok(mappings) = member.process.mappings() else {
            return;
        };
        let libraries = plan::libraries(&mappings);
        match &member.part {
            Part::Nothing if libraries > 0 => {
                let process = member.process.clone();
                let probed = match self.original(pid, libraries) {
                    Some(recipe) => self.probe_copy(process, recipe),
                    None => inspect(pid).and_then(|prospect| self.probe(prospect)),
                };
                match probed {
                    Ok(probed) => self.admit(pid, probed),
                    Err(AttachError::Process(ReadError::Gone { .. })) => {}
                    Err(error) => self.refuse(pid, &error),
                }
            }
            Part::Probed(probed) if probed.libraries() != libraries || self.step_on.is_some() => {
                self.probe_more(pid, &mappings);
            }
            _ => {}
        }
    }

    /// What was found in the process that this one is a copy of: all of it is here too, at the same
    /// addresses.
    fn original(&self, pid: u32, libraries: usize) -> Option<Arc<Recipe>> {
        let original = self.members.get(&pid)?.copy_of?;
        match &self.members.get(&original)?.part {
            Part::Probed(probed) if probed.again.is_none() && probed.libraries() == libraries => {
                Some(Arc::clone(&probed.recipe))
            }
            _ => None,
        }
    }

    fn probe_copy(&mut self, process: Process, recipe: Arc<Recipe>) -> Result<Probed, AttachError> {
        let pid = process.pid();
        let info = ProcessInfo {
            pid: Pid(pid),
            command: target::command(pid),
            ..recipe.info.clone()
        };
        self.place(process, info, recipe)
    }

    /// Places all probes on one process.
    pub(super) fn probe(&mut self, prospect: Prospect) -> Result<Probed, AttachError> {
        let process = prospect.process.clone();
        let (recipe, notes) = self.recipe(prospect)?;
        let probed = self.place(process, recipe.info.clone(), Arc::new(recipe))?;
        for note in notes {
            self.tell(note);
        }
        Ok(probed)
    }

    /// What to do with a process, and what its user should know.
    fn recipe(&self, prospect: Prospect) -> Result<(Recipe, Vec<String>), AttachError> {
        let Prospect {
            process,
            python,
            plan,
            info,
        } = prospect;
        let mut notes = Vec::new();
        let python = match python {
            Ok(python) => Some(python),
            // Without PyTorch's Python the driver layer is still worth seeing.
            Err(error @ FindError::NotPython { .. }) => {
                notes.push(format!("{error}: allocations have no Python lines"));
                None
            }
            Err(error) => return Err(error.into()),
        };
        let mut probes = plan.probes;
        if let Some(on) = &self.step_on {
            let probe = step_probe(&process, &process.mappings()?, on);
            if let ProbeState::Absent { consequence } = &probe.view.state
                && process.pid() == self.root
            {
                return Err(AttachError::StepOn {
                    reason: consequence.clone(),
                });
            }
            probes.insert(0, probe);
        }
        let mut code = (0..0, 0);
        if self.native != Native::Never {
            let mappings = process.mappings()?;
            let (probe, state) = loader::probe(&process, &mappings);
            probes.insert(0, probe);
            code = (CodeMap::interpreter(&mappings, python.as_ref()), state);
        }
        let mut walk = no_python();
        if let Some(python) = &python {
            let (configuration, quick) = walk_configuration(&process, python)?;
            walk = configuration;
            if !quick {
                notes.push(
                    "thread states are looked up in the interpreter's list: a few microseconds \
                     more an allocation with many threads"
                        .into(),
                );
            }
            if !python.tested {
                notes.push(target::untested_note(python));
            }
        }
        if target::uses_async_backend(&target::environment(process.pid())) {
            notes.push(target::ASYNC_NOTE.into());
        }
        let recipe = Recipe {
            python,
            walk,
            code,
            probes,
            tensor_layer: plan.tensor_layer,
            libraries: plan.libraries,
            driver_file: plan.driver_file,
            _ahead: plan.ahead,
            info,
        };
        Ok((recipe, notes))
    }

    fn place(
        &mut self,
        process: Process,
        mut info: ProcessInfo,
        recipe: Arc<Recipe>,
    ) -> Result<Probed, AttachError> {
        let pid = process.pid();
        let nonzero = NonZeroU32::new(pid).ok_or(ReadError::Gone { pid })?;
        let index = self.indices.take().ok_or(AttachError::TooMany { pid })?;
        let told = self.loaded.set_python(index, recipe.walk).and_then(|()| {
            let (interpreter, state) = recipe.code.clone();
            self.loaded
                .set_native(index, self.native, interpreter, state)
        });
        if let Err(error) = told {
            self.indices.free.push(index);
            return Err(error);
        }
        let environment = target::environment(pid);
        if let Some(watched) = &self.watched {
            watched.add(Pid(pid), &environment);
        }
        if let Some(member) = self.members.get(&pid) {
            info.role = target::role(pid, &info.command, member.copy_of, &environment);
        }
        // Known to the reader before the first record of it can come.
        let _ = self.notices.send(Notice::Began {
            index,
            info: Box::new(info),
            traced: Box::new(Traced::new(process, recipe.python.clone())),
        });
        let probes = self.loaded.place(nonzero, index, &recipe.probes);
        if recipe.tensor_layer
            && let Some(error) = tensor_probe_failed(pid, &probes)
        {
            self.end(pid, index);
            return Err(error);
        }
        self.began = true;
        Ok(Probed {
            index,
            probes,
            driver_file: recipe.driver_file,
            recipe,
            again: None,
        })
    }

    /// Places probes on libraries that a process has loaded since it was looked at.
    fn probe_more(&mut self, pid: u32, mappings: &[Mapping]) {
        let Some(Member {
            process,
            part: Part::Probed(probed),
            ..
        }) = self.members.get_mut(&pid)
        else {
            return;
        };
        let Some(pid) = NonZeroU32::new(pid) else {
            return;
        };
        let mut plan = plan(process, mappings, None);
        if let Some(on) = &self.step_on {
            plan.probes.push(step_probe(process, mappings, on));
        }
        // The driver was expected in another file.
        let elsewhere = plan.driver_layer && plan.driver_file != probed.driver_file;
        if elsewhere && probed.driver_file.is_some() {
            self.loaded.leave_driver(probed.index);
        }
        let news: Vec<_> = plan
            .probes
            .into_iter()
            .filter(|probe| {
                let missing = probed.probes.iter().any(|known| {
                    known.name == probe.view.name && !matches!(known.state, ProbeState::Attached)
                });
                !probe.attachments.is_empty() && (missing || elsewhere && probe.is_driver())
            })
            .collect();
        if elsewhere || probed.driver_file.is_none() {
            probed.driver_file = plan.driver_file;
        }
        for view in self.loaded.place(pid, probed.index, &news) {
            let known = probed.probes.iter_mut();
            if let Some(known) = known.into_iter().find(|known| known.name == view.name) {
                *known = view;
            }
        }
        probed.again = Some((plan.libraries, plan.tensor_layer));
    }

    fn refuse(&mut self, pid: u32, error: &AttachError) {
        if let AttachError::TooMany { .. } = error {
            self.unheard.processes += 1;
            // It may have its turn when others have ended; there may be thousands of them.
            self.tell_count(
                "places",
                format!(
                    "{error}; such processes were looked at {} times",
                    self.unheard.processes
                ),
            );
            return;
        }
        let command = target::short_command(pid);
        self.tell(format!("process {pid} ({command}) is not watched: {error}"));
        if let Some(member) = self.members.get_mut(&pid) {
            member.part = Part::Refused;
        }
        self.copies.remove(&pid);
    }
}

/// What the session stands on must be in place where the library is.
fn tensor_probe_failed(pid: u32, probes: &[ProbeView]) -> Option<AttachError> {
    probes.iter().find_map(|probe| match &probe.state {
        ProbeState::Failed { reason } if probe.name.contains("reportMemoryUsage") => {
            Some(AttachError::Probe {
                pid,
                probe: probe.name.clone(),
                reason: reason.clone(),
            })
        }
        _ => None,
    })
}
