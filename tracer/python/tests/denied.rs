//! Another user's process. Alone in its binary: it gives up its own rights.

mod common;

use std::path::Path;

use common::{Target, note};
use nix::unistd::{Uid, geteuid, seteuid};
use vramscope_python::{FindError, Process, ReadError, find};

#[test]
fn another_users_process_is_refused_with_the_reason() {
    if !geteuid().is_root() {
        note("SKIP: denied: only root can start a process as one user and look as another");
        return;
    }
    let target = Target::cat(Path::new("/bin/cat"));
    seteuid(Uid::from_raw(65534)).unwrap();
    let error = find(&Process::open(target.pid()).unwrap()).unwrap_err();
    assert!(
        matches!(error, FindError::Read(ReadError::Denied { .. })),
        "{error}"
    );
    let text = error.to_string();
    for part in [
        "belongs to uid 0",
        "we run as uid 65534",
        "ptrace_scope",
        "sudo vramscope attach",
    ] {
        assert!(text.contains(part), "{text}");
    }
    seteuid(Uid::from_raw(0)).unwrap();
}
