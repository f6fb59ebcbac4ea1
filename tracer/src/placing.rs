//! Placing probes on processes, and taking them off.

use std::{mem, num::NonZeroU32, path::PathBuf};

use aya::programs::{
    ProgramError, UProbe,
    uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeScope},
};
use vramscope_bpf::{Cookie, program};
use vramscope_events::{ProbeState, ProbeView};

use crate::{
    closing::{self, Link},
    loader::{Loaded, chain},
    multi::Place,
    plan::{Attachment, Probe},
};

/// What was placed, by the index of the process.
#[derive(Debug, Default)]
pub struct Links {
    /// What every block passes.
    hot: Vec<(u16, Link)>,
    /// The driver's calls.
    driver: Vec<(u16, Link)>,
    others: Vec<(u16, Link)>,
}

/// Places of one program in one file.
struct Group {
    program: &'static str,
    file: PathBuf,
    places: Vec<Place>,
}

impl Loaded {
    /// Places the planned probes on process `pid`, and says of each how it went.
    pub fn place(&mut self, pid: NonZeroU32, index: u16, probes: &[Probe]) -> Vec<ProbeView> {
        let all = probes.iter().flat_map(|probe| &probe.attachments);
        if self.many.is_some() && self.place_all(pid, index, all).is_ok() {
            return probes.iter().map(|probe| probe.view.clone()).collect();
        }
        // Each by itself: the one that the kernel refuses does not stand in the others' way.
        let placed = probes.iter().map(|probe| {
            let mut view = probe.view.clone();
            if let Err(reason) = self.place_all(pid, index, &probe.attachments) {
                view.state = ProbeState::Failed {
                    reason: format!("{reason}: {}", probe.consequence),
                };
            }
            view
        });
        placed.collect()
    }

    /// Places all of these, or none: an entry without its return would leave calls open.
    fn place_all<'a>(
        &mut self,
        pid: NonZeroU32,
        index: u16,
        attachments: impl IntoIterator<Item = &'a Attachment>,
    ) -> Result<(), String> {
        let mut links = Vec::new();
        for group in groups(index, attachments) {
            self.link(pid, &group, &mut links)?;
        }
        for (program, link) in links {
            let among = match program {
                program::TENSOR_MEMORY => &mut self.links.hot,
                program::DRIVER_ENTER | program::DRIVER_LEAVE => &mut self.links.driver,
                _ => &mut self.links.others,
            };
            among.push((index, link));
        }
        Ok(())
    }

    fn link(
        &mut self,
        pid: NonZeroU32,
        group: &Group,
        links: &mut Vec<(&'static str, Link)>,
    ) -> Result<(), String> {
        if let Some(many) = &self.many {
            let link = many.attach(group.program, &group.file, &group.places, pid.get())?;
            links.push((group.program, Link::Many(link)));
            return Ok(());
        }
        let found = self.bpf.program_mut(group.program);
        let found = found.ok_or_else(|| format!("no program {}", group.program))?;
        let loaded: &mut UProbe = found
            .try_into()
            .map_err(|error: ProgramError| chain(&error))?;
        for place in &group.places {
            let point = UProbeAttachPoint {
                location: UProbeAttachLocation::AbsoluteOffset(place.offset),
                cookie: Some(place.cookie),
            };
            let link = loaded
                .attach(point, &group.file, UProbeScope::OneProcess(pid))
                .and_then(|id| loaded.take_link(id))
                .map_err(|error| chain(&error))?;
            links.push((group.program, Link::One(link)));
        }
        Ok(())
    }

    /// Takes the probes off that every block passes: from here on nothing comes but the driver's
    /// calls. The others can go while the user reads the report.
    pub fn silence(&mut self) {
        closing::close(self.links.hot.drain(..).map(|(_, link)| link).collect());
    }

    /// Takes the probes on the driver off process `index`.
    pub fn leave_driver(&mut self, index: u16) {
        closing::close(take_of(&mut self.links.driver, index).collect());
    }

    /// The probes of process `index`, to be taken off by closing them; it has none from here on.
    pub fn take_links(&mut self, index: u16) -> Vec<Link> {
        let Links {
            hot,
            driver,
            others,
        } = &mut self.links;
        [hot, driver, others]
            .into_iter()
            .flat_map(|links| take_of(links, index))
            .collect()
    }

    /// Takes all probes off.
    pub fn detach(&mut self) {
        let Links {
            hot,
            driver,
            others,
        } = mem::take(&mut self.links);
        let all = hot.into_iter().chain(driver).chain(others);
        closing::close(all.map(|(_, link)| link).collect());
    }
}

/// Takes out those of process `index`.
fn take_of(links: &mut Vec<(u16, Link)>, index: u16) -> impl Iterator<Item = Link> {
    let (its, others): (Vec<_>, _) = mem::take(links)
        .into_iter()
        .partition(|(of, _)| *of == index);
    *links = others;
    its.into_iter().map(|(_, link)| link)
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Attachments by program and file, in the order in which they are to be made: what invalidates
/// first, then what closes (it does nothing where nothing was opened), then what opens, and last
/// what every block passes.
fn groups<'a>(index: u16, attachments: impl IntoIterator<Item = &'a Attachment>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for attachment in attachments {
        let place = Place {
            offset: attachment.file_offset,
            cookie: Cookie {
                process: index,
                function: attachment.function,
                stack_delta: attachment.stack_delta,
            }
            .bits(),
        };
        let known = groups
            .iter_mut()
            .find(|group| group.program == attachment.program && group.file == attachment.file);
        match known {
            Some(group) => group.places.push(place),
            None => groups.push(Group {
                program: attachment.program,
                file: attachment.file.clone(),
                places: vec![place],
            }),
        }
    }
    groups.sort_by_key(|group| match group.program {
        program::CODE_FREED => 0,
        program::BACKWARD_LEAVE | program::DRIVER_LEAVE => 1,
        program::TENSOR_MEMORY => 3,
        _ => 2,
    });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_closes_is_placed_before_what_opens() {
        let attachment = |program, file: &str, file_offset| Attachment {
            program,
            file: file.into(),
            file_offset,
            function: 3,
            stack_delta: 8,
        };
        let planned = [
            attachment(program::DRIVER_ENTER, "/libcuda.so", 16),
            attachment(program::DRIVER_LEAVE, "/libcuda.so", 16),
            attachment(program::TENSOR_MEMORY, "/libc10.so", 64),
            attachment(program::DRIVER_ENTER, "/libcuda.so", 32),
            attachment(program::CODE_FREED, "/python", 48),
        ];
        let made = groups(5, &planned);
        let names: Vec<_> = made.iter().map(|group| group.program).collect();
        assert_eq!(
            names,
            [
                program::CODE_FREED,
                program::DRIVER_LEAVE,
                program::DRIVER_ENTER,
                program::TENSOR_MEMORY
            ]
        );
        let offsets: Vec<_> = made[2].places.iter().map(|place| place.offset).collect();
        assert_eq!(offsets, [16, 32]);
        assert_eq!(made[2].places[0].cookie, 5 | 3 << 16 | 8 << 32);
    }
}
