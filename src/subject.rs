//! What a subcommand is about: a running process, or a recording at a moment.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::cli::parse_duration;

/// A process or a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A running process.
    Process(u32),
    /// A file.
    Recording(Place),
}

/// A moment of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The moment.
    pub at: At,
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The last one.
    End,
    /// So long after the beginning of the session.
    Time(Duration),
    /// When this step began.
    Step(u64),
}

/// A number is a process, all else a file.
pub fn parse_subject(text: &str) -> Result<Subject, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.parse() {
            Ok(pid) if pid > 0 => Ok(Subject::Process(pid)),
            _ => Err(format!(
                "{text} is no process number; a file of this name is ./{text}"
            )),
        };
    }
    parse_place(text).map(Subject::Recording)
}

/// `FILE`, `FILE@10m` or `FILE@step:200`; a file whose name is all of it comes first.
pub fn parse_place(text: &str) -> Result<Place, String> {
    if text.is_empty() || text.starts_with('-') {
        return Err("a process number or a file is needed".into());
    }
    let whole = Place {
        path: text.into(),
        at: At::End,
    };
    let Some((path, at)) = text.rsplit_once('@') else {
        return Ok(whole);
    };
    if path.is_empty() || Path::new(text).exists() {
        return Ok(whole);
    }
    let at = match at.strip_prefix("step:") {
        Some(step) => At::Step(
            step.parse()
                .map_err(|_| format!("`{step}` is no step; use FILE@step:200"))?,
        ),
        None => At::Time(
            parse_duration(at)
                .map_err(|error| format!("{error}; a moment is FILE@10m or FILE@step:200"))?,
        ),
    };
    Ok(Place {
        path: path.into(),
        at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, at: At) -> Subject {
        Subject::Recording(Place {
            path: path.into(),
            at,
        })
    }

    #[test]
    fn numbers_are_processes_and_all_else_is_a_file() {
        assert_eq!(parse_subject("4121"), Ok(Subject::Process(4121)));
        assert_eq!(parse_subject("run.vrs"), Ok(place("run.vrs", At::End)));
        assert_eq!(parse_subject("./4121"), Ok(place("./4121", At::End)));
        let ten = At::Time(Duration::from_secs(600));
        assert_eq!(parse_subject("run.vrs@10m"), Ok(place("run.vrs", ten)));
        let step = place("a@b.vrs", At::Step(200));
        assert_eq!(parse_subject("a@b.vrs@step:200"), Ok(step));
        for wrong in ["", "0", "99999999999", "-x", "run.vrs@later", "run@step:x"] {
            assert!(parse_subject(wrong).is_err(), "{wrong}");
        }
    }
}
