//! A collector as a checkpoint, and back: going on from one gives the same views, bit for bit.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use vramscope_events::{DeviceId, Layer, LostCause, Pid, Tid, Time};
use vramscope_recording::{Block, Checkpoint, FORMAT, SessionInfo};

use super::{Collector, is_gap};
use crate::{
    book::{Book, SiteIds},
    config::Config,
    log::Log,
    process::Process,
    view::ProbeView,
};

/// Changes with every change of what is saved: state of another version is not read.
pub const STATE_VERSION: u32 = 4;

/// Why a checkpoint cannot be gone on from.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// Another version wrote it.
    #[error("its checkpoints have state {found}, this program knows {STATE_VERSION}")]
    Version {
        /// The version of the state.
        found: u32,
    },
    /// It contradicts itself.
    #[error("a checkpoint contradicts itself: {0}")]
    Inconsistent(String),
}

/// All but what a checkpoint has in a form of its own: definitions and live blocks.
#[derive(Serialize, Deserialize)]
struct State {
    processes: Vec<Process>,
    site_ids: SiteIds,
    lost: Vec<(LostCause, u64)>,
    probes: Vec<ProbeView>,
    log: Log,
    /// Of the marker of `--step-on FILE:LINE`.
    threads: Option<FxHashMap<Tid, bool>>,
}

/// The same, borrowed.
#[derive(Serialize)]
struct StateRef<'a> {
    processes: &'a [Process],
    site_ids: &'a SiteIds,
    lost: Vec<(LostCause, u64)>,
    probes: &'a [ProbeView],
    log: &'a Log,
    threads: Option<&'a FxHashMap<Tid, bool>>,
}

impl Collector {
    /// Everything known, to go on from later. `time`: of the last event.
    pub fn checkpoint(&self, time: Time) -> Checkpoint {
        let mut lost: Vec<_> = self.lost.iter().map(|(cause, n)| (*cause, *n)).collect();
        lost.sort();
        let state = StateRef {
            processes: &self.processes,
            site_ids: &self.site_ids,
            lost,
            probes: &self.probes,
            log: &self.log,
            threads: self.step_line.as_ref().map(|line| line.threads()),
        };
        let state = match postcard::to_stdvec(&state) {
            Ok(state) => state,
            Err(error) => unreachable!("every part of the state can be saved: {error}"),
        };
        let pid = self
            .processes
            .first()
            .map_or(Pid(0), |first| first.info.pid);
        Checkpoint {
            time,
            definitions: self.stacks.definitions(pid),
            blocks: self.processes.iter().flat_map(blocks).collect(),
            state_version: STATE_VERSION,
            state,
        }
    }

    /// The head of this session's recording, made by `program`.
    pub fn session_info(&self, program: &str) -> SessionInfo {
        let processes = self.processes.iter();
        SessionInfo {
            format: FORMAT,
            program: program.to_owned(),
            started: self.config.started,
            started_unix: self.config.started_unix,
            backend: self.config.backend,
            processes: processes.map(|process| (*process.info).clone()).collect(),
            probes: self.probes.clone(),
            settings: self.config.settings(),
        }
    }

    /// The collector that `checkpoint` was made of.
    ///
    /// # Errors
    /// The state is of another version, or contradicts itself.
    pub fn restore(config: Config, checkpoint: &Checkpoint) -> Result<Collector, RestoreError> {
        if checkpoint.state_version != STATE_VERSION {
            let found = checkpoint.state_version;
            return Err(RestoreError::Version { found });
        }
        let wrong = |what: &str| RestoreError::Inconsistent(what.to_owned());
        let state: State = postcard::from_bytes(&checkpoint.state)
            .map_err(|error| RestoreError::Inconsistent(error.to_string()))?;
        let mut collector = Collector::new(config);
        for record in &checkpoint.definitions {
            collector.define(record);
        }
        if let (Some(line), Some(threads)) = (&mut collector.step_line, state.threads) {
            line.restore_threads(threads);
        }
        collector.processes = state.processes;
        collector.site_ids = state.site_ids;
        collector.lost = state.lost.into_iter().collect();
        collector.probes = state.probes;
        collector.log = state.log;
        let processes = collector.processes.iter().enumerate();
        collector.by_pid = processes
            .map(|(index, process)| (process.info.pid, index))
            .collect();
        let owner = |block: &Block| (block.process, block.layer, block.device);
        let mut given: FxHashMap<_, &[Block]> = FxHashMap::default();
        for run in checkpoint.blocks.chunk_by(|a, b| owner(a) == owner(b)) {
            if given.insert(owner(&run[0]), run).is_some() {
                return Err(wrong("blocks of one book are in two places"));
            }
        }
        for process in &mut collector.processes {
            let pid = process.info.pid;
            for (layer, device, book) in books_mut(process) {
                let blocks = given.remove(&(pid, layer, device)).unwrap_or_default();
                book.restore(blocks)
                    .ok_or_else(|| wrong("blocks and sites do not fit"))?;
            }
        }
        if !given.is_empty() {
            return Err(wrong("blocks of a book that is not there"));
        }
        if collector.lost.keys().any(|cause| is_gap(*cause)) {
            for process in &mut collector.processes {
                process.look_for_unseen_frees();
            }
        }
        Ok(collector)
    }
}

/// The books of a process.
fn books(process: &Process) -> impl Iterator<Item = (Layer, DeviceId, &Book)> {
    let devices = process.devices.iter().flat_map(|device| {
        [
            (Layer::Tensor, device.id, &device.tensor),
            (Layer::Driver, device.id, &device.driver),
        ]
    });
    std::iter::once((Layer::Host, DeviceId(0), &process.host)).chain(devices)
}

/// The same, to be changed.
fn books_mut(process: &mut Process) -> impl Iterator<Item = (Layer, DeviceId, &mut Book)> {
    let devices = process.devices.iter_mut().flat_map(|device| {
        [
            (Layer::Tensor, device.id, &mut device.tensor),
            (Layer::Driver, device.id, &mut device.driver),
        ]
    });
    std::iter::once((Layer::Host, DeviceId(0), &mut process.host)).chain(devices)
}

/// The live blocks of a process, by book and address.
fn blocks(process: &Process) -> Vec<Block> {
    let mut all = Vec::new();
    for (layer, device, book) in books(process) {
        let start = all.len();
        all.extend(book.ledger.iter().map(|(address, block)| Block {
            process: process.info.pid,
            layer,
            device,
            address,
            size: block.size(),
            stack: book.site_of(block).stack,
            born: block.time,
            step: block.step,
            segment: block.is_segment(),
            graph: block.is_graph(),
        }));
        all[start..].sort_unstable_by_key(|block: &Block| block.address);
    }
    all
}
