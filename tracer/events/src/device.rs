//! Who else is on a device.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Pid};

/// A process that has memory on a device, as the driver lists it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceUser {
    /// Its id, as the driver tells it.
    pub pid: Pid,
    /// Its command line; empty where it cannot be read (another pid namespace). Foreign text.
    pub command: Arc<str>,
    /// What it has taken, where the driver tells that.
    pub bytes: Option<Bytes>,
}
