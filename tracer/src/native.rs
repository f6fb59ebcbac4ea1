//! When machine code is unwound.

use vramscope_wire as wire;

/// When the machine code of an allocation's stack is unwound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Native {
    /// Not at all.
    Never,
    /// At every allocation up to the interpreter, which tells two stacks apart; the rest of it for
    /// stacks that were not seen before.
    #[default]
    New,
    /// All of it at every allocation.
    Always,
}

impl Native {
    /// As the producers are told.
    pub fn mode(self) -> wire::vs_native_mode {
        match self {
            Native::Never => wire::vs_native_mode_VS_NATIVE_NEVER,
            Native::New => wire::vs_native_mode_VS_NATIVE_NEW,
            Native::Always => wire::vs_native_mode_VS_NATIVE_ALWAYS,
        }
    }
}
