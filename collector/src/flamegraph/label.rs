//! The text and the origin of one frame.

use vramscope_events::FrameKind;

use crate::{
    escape,
    report::paths,
    view::{FrameView, ProcessInfo},
};

/// Stands for the stack of a thread of which no frame is known.
pub const UNKNOWN: &str = "[unknown thread]";

/// Longer names are cut: a frame has no room for them, and a file should not either.
const COLUMNS: usize = 160;

/// Whose code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The user's own.
    Own,
    /// PyTorch.
    Torch,
    /// Another installed package or the standard library.
    Library,
    /// Machine code.
    Native,
    /// Not a function: autograd at work for a `backward()` call.
    Backward,
}

impl Origin {
    /// All, in the order of a legend.
    pub const ALL: [Origin; 5] = [
        Origin::Own,
        Origin::Torch,
        Origin::Library,
        Origin::Native,
        Origin::Backward,
    ];

    /// What it is called in a legend.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Own => "your code",
            Origin::Torch => "PyTorch",
            Origin::Library => "other libraries",
            Origin::Native => "native",
            Origin::Backward => "backward",
        }
    }

    /// Its colour: red, green, blue.
    pub fn color(self) -> [u8; 3] {
        match self {
            Origin::Own => [245, 150, 60],
            Origin::Torch => [158, 190, 222],
            Origin::Library => [186, 196, 206],
            Origin::Native => [168, 204, 158],
            Origin::Backward => [204, 160, 214],
        }
    }
}

/// Whose code a frame is.
pub fn origin(frame: &FrameView) -> Origin {
    match frame.kind {
        FrameKind::Backward => Origin::Backward,
        FrameKind::Native => Origin::Native,
        FrameKind::Python if frame.user => Origin::Own,
        FrameKind::Python if frame.file.contains("-packages/torch/") => Origin::Torch,
        FrameKind::Python => Origin::Library,
    }
}

/// A frame as folded stacks name it: `Linear.forward (torch/nn/modules/linear.py:125)`.
///
/// It holds no `;` and no line break, does not begin with `#` (a comment) or a space, and always
/// ends in a bracket: a name that ended in a bare number would read as a second weight.
pub fn label(frame: &FrameView, process: &ProcessInfo) -> String {
    if frame.kind == FrameKind::Backward {
        return "[backward]".into();
    }
    let function = escape::line(&frame.function, COLUMNS);
    let function = match function.trim() {
        "" => "?",
        trimmed => trimmed,
    };
    let place = match paths::place(frame, process, COLUMNS) {
        place if place.is_empty() => "?".into(),
        place => place,
    };
    let text = format!("{function} ({place})").replace(';', "\\x3b");
    match text.strip_prefix('#') {
        Some(rest) => format!("\\x23{rest}"),
        None => text,
    }
}
