//! Python's frames in their places among those of machine code.
//!
//! One call of the interpreter's C function runs one Python frame or, since 3.11, several. Both
//! walks tell where such a call begins: machine code has that function in it, and Python's frames
//! are marked. So the n-th function takes the n-th group of frames. Where the numbers differ, nobody
//! knows which belong together, and the frames of machine code before the interpreter are put above
//! all of Python's.

use vramscope_events::FrameId;

/// What an address stands for in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ours, or of the library that calls us: not the program's doing.
    Observer,
    /// The function that runs Python frames.
    Evaluation,
    /// Another one of the interpreter's: how it calls, which Python's frames say as well.
    Interpreter,
    /// The C library's.
    System,
    /// The program's.
    Program,
}

/// A frame of machine code.
pub type Native = (FrameId, Role);

/// Python's part of a stack.
#[derive(Clone, Copy, Debug)]
pub struct PythonPart<'a> {
    /// Its frames, innermost first.
    pub frames: &'a [FrameId],
    /// How many of them each call of the interpreter's function runs.
    pub calls: &'a [u32],
    /// Whether nothing of it is missing.
    pub complete: bool,
}

/// Puts both together, innermost first. `cut`: something is missing of the machine code's outer part;
/// the frame that says so.
pub fn merge(native: &[Native], cut: Option<FrameId>, python: PythonPart<'_>) -> Vec<FrameId> {
    let begin = native
        .iter()
        .position(|(_, role)| *role != Role::Observer)
        .unwrap_or(native.len());
    let native = &native[begin..];
    if python.frames.is_empty() && python.calls.is_empty() {
        return native.iter().map(|(id, _)| *id).chain(cut).collect();
    }
    let evaluations = native
        .iter()
        .filter(|(_, role)| *role == Role::Evaluation)
        .count();
    if cut.is_none() && python.complete && evaluations == python.calls.len() {
        interleave(native, python)
    } else {
        above(native, cut, python.frames)
    }
}

fn interleave(native: &[Native], python: PythonPart<'_>) -> Vec<FrameId> {
    let mut out = Vec::with_capacity(native.len() + python.frames.len());
    let (mut rest, mut calls) = (python.frames, python.calls.iter());
    // How much of `out` remains when nothing but the C library's start of a thread follows.
    let mut meaningful = 0;
    for (id, role) in native {
        match role {
            Role::Interpreter | Role::Observer => continue,
            Role::Evaluation => {
                let count = calls.next().map_or(0, |count| *count as usize);
                let (group, behind) = rest.split_at(count.min(rest.len()));
                out.extend(group);
                rest = behind;
                meaningful = out.len();
            }
            Role::System => out.push(*id),
            Role::Program => {
                out.push(*id);
                meaningful = out.len();
            }
        }
    }
    out.truncate(meaningful);
    out
}

fn above(native: &[Native], cut: Option<FrameId>, python: &[FrameId]) -> Vec<FrameId> {
    let before = native
        .iter()
        .position(|(_, role)| matches!(role, Role::Interpreter | Role::Evaluation));
    native[..before.unwrap_or(native.len())]
        .iter()
        .map(|(id, _)| *id)
        .chain(cut)
        .chain(python.iter().copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: [(char, Role); 5] = [
        ('o', Role::Observer),
        ('e', Role::Evaluation),
        ('i', Role::Interpreter),
        ('s', Role::System),
        ('p', Role::Program),
    ];

    /// Machine code by the letters of its roles, numbered from 1; Python's frames from 101.
    fn merged(native: &str, complete: bool, calls: &[u32]) -> Vec<u32> {
        let native: Vec<Native> = native
            .chars()
            .zip(1..)
            .map(|(letter, id)| {
                let (_, role) = ROLES.iter().find(|(known, _)| *known == letter).unwrap();
                (FrameId(id), *role)
            })
            .collect();
        let frames: Vec<FrameId> = (101..101 + calls.iter().sum::<u32>())
            .map(FrameId)
            .collect();
        let python = PythonPart {
            frames: &frames,
            calls,
            complete: true,
        };
        let cut = (!complete).then_some(FrameId(999));
        merge(&native, cut, python)
            .into_iter()
            .map(|id| id.0)
            .collect()
    }

    #[test]
    fn each_call_takes_its_frames() {
        assert_eq!(
            merged("oppiepieiss", true, &[2, 1]),
            [2, 3, 101, 102, 6, 103]
        );
        // A program that has Python inside it.
        assert_eq!(merged("peips", true, &[1]), [1, 101, 4]);
        // A call that runs no frame that Python shows.
        assert_eq!(merged("pepe", true, &[0, 2]), [1, 3, 101, 102]);
    }

    #[test]
    fn what_does_not_fit_is_not_guessed() {
        assert_eq!(merged("pie", true, &[1, 1]), [1, 101, 102]);
        assert_eq!(merged("piepe", true, &[3]), [1, 101, 102, 103]);
        assert_eq!(merged("piepe", false, &[1, 1]), [1, 999, 101, 102]);
        assert_eq!(merged("pp", false, &[2]), [1, 2, 999, 101, 102]);
    }

    #[test]
    fn without_python_all_is_shown() {
        assert_eq!(merged("oppss", true, &[]), [2, 3, 4, 5]);
        assert_eq!(merged("pp", false, &[]), [1, 2, 999]);
        assert_eq!(merged("", true, &[2]), [101, 102]);
    }
}
