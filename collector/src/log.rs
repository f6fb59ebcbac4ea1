//! What happened, in lines, bounded.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use vramscope_events::{Pid, Time};

use crate::view::{LogEntry, LogLevel};

/// Lines kept; beyond it the oldest go.
const MAX_LINES: usize = 500;

/// The event log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    lines: VecDeque<LogEntry>,
}

impl Log {
    pub fn add(
        &mut self,
        time: Time,
        process: Pid,
        step: Option<u64>,
        level: LogLevel,
        text: String,
    ) {
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(LogEntry {
            time,
            step,
            process,
            level,
            text,
        });
    }

    pub fn entries(&self) -> Vec<LogEntry> {
        self.lines.iter().cloned().collect()
    }
}
