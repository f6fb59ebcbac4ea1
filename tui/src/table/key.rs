//! What sites of a group share, as [`vramscope_collector::grouping`] sees it, owned so that it
//! outlives the view it was found in.

use std::sync::Arc;

use vramscope_collector::view::{Grouping, SiteId, SiteView};
use vramscope_events::FrameKind;

/// Names a group over the whole session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// No frame is known.
    Unknown,
    /// One stack.
    Stack(SiteId),
    /// A place in a file.
    Line(FrameKind, Arc<str>, u32),
    /// A function.
    Function(FrameKind, Arc<str>, Arc<str>),
    /// A file.
    Module(FrameKind, Arc<str>),
}

impl Key {
    /// The group of `site` at `grouping`.
    pub fn of(site: &SiteView, grouping: Grouping) -> Key {
        if grouping == Grouping::Stack {
            return Key::Stack(site.id);
        }
        let Some(frame) = site.own_frame() else {
            return Key::Unknown;
        };
        let file = Arc::clone(&frame.file);
        match grouping {
            // Without a line number the function is the finest that is known.
            Grouping::Line if frame.line > 0 => Key::Line(frame.kind, file, frame.line),
            Grouping::Module => Key::Module(frame.kind, file),
            _ => Key::Function(frame.kind, file, Arc::clone(&frame.function)),
        }
    }
}
