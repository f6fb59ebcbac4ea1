//! Where CPython's structures keep what a stack walk needs.

use crate::lines::LineFormat;
use crate::python_version::Version;
use crate::tables;

/// How a frame says where it is in its bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstructionKind {
    /// 3.8 and 3.9: `f_lasti`, a 32-bit number of bytes; -1 before the first
    /// instruction.
    Bytes,
    /// 3.10: `f_lasti`, a 32-bit number of 2-byte code units; -1 before the
    /// first instruction.
    Units,
    /// 3.11 and later: a pointer into `co_code_adaptive` of the code object.
    Pointer,
}

macro_rules! offsets {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// Every offset that a walk needs, for one layout of CPython; in bytes
        /// from the start of the structure named in the field's text.
        ///
        /// The numbers of 3.8 to 3.13 are generated from CPython's own headers
        /// (`offsets/layout.c` beside this crate's sources, and a test that
        /// compiles it again for every CPython at hand).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Offsets {
            $($(#[$doc])* pub $name: $kind,)*
            /// How `frame_instruction` is to be read.
            pub instruction_kind: InstructionKind,
            /// How the bytes at `code_line_table` are to be read.
            pub line_format: LineFormat,
        }

        impl Offsets {
            /// The table of a version; None where there is none. What
            /// [`find`](crate::find()) gives can differ from it, since 3.13
            /// and later tell their own layout.
            pub fn for_version(version: Version) -> Option<Self> {
                tables::layout(version).map(|layout| layout.offsets)
            }

            /// Every number by its field's name; None where the layout has no
            /// such field.
            pub fn fields(&self) -> Vec<(&'static str, Option<u32>)> {
                vec![$((stringify!($name), self.$name.into()),)*]
            }
        }
    };
}

offsets! {
    /// `_PyRuntimeState.interpreters.head`: pointer to the newest interpreter.
    runtime_interpreters: u32,
    /// `_PyRuntimeState.[gilstate.]autoTSSkey._key`: the 32-bit pthread key of
    /// the thread state. The 32-bit `_is_initialized` is 4 bytes before it.
    /// None where no table knows it.
    runtime_tss_key: Option<u32>,
    /// `PyInterpreterState.next`.
    interpreter_next: u32,
    /// `PyInterpreterState.threads.head` (`tstate_head` before 3.11).
    interpreter_threads: u32,
    /// `PyThreadState.next`.
    thread_next: u32,
    /// `PyThreadState.thread_id`: `pthread_self()` as 64 bits, which on x86-64
    /// glibc and musl is the thread's FS base.
    thread_pthread: u32,
    /// `PyThreadState.native_thread_id` (3.11+): the thread id in the pid
    /// namespace of the process, as 64 bits.
    thread_native_id: Option<u32>,
    /// `PyThreadState.frame` (before 3.11), `.cframe` (3.11, 3.12) or
    /// `.current_frame` (3.13+): pointer.
    thread_frame: u32,
    /// `_PyCFrame.current_frame` (3.11, 3.12): the frame pointer is here in
    /// what `thread_frame` points to. None: `thread_frame` is the frame.
    cframe_frame: Option<u32>,
    /// `PyThreadState.datastack_chunk` (3.11+): pointer to the chunk of memory
    /// that holds the newest frames.
    thread_chunk: Option<u32>,
    /// `PyThreadState.datastack_top` (3.11+): end of what is used of it.
    thread_chunk_top: Option<u32>,
    /// `PyFrameObject.f_code` or `_PyInterpreterFrame.f_code`/`f_executable`:
    /// pointer, with `frame_code_tag_bits` to be cleared.
    frame_code: u32,
    /// Low bits of the code pointer that are tags: 3 in 3.14, else 0.
    frame_code_tag_bits: u32,
    /// `f_back` or `previous`: pointer to the caller's frame.
    frame_previous: u32,
    /// `f_lasti`, `prev_instr` or `instr_ptr`; see `instruction_kind`.
    frame_instruction: u32,
    /// `_PyInterpreterFrame.owner` (3.11+): one byte.
    frame_owner: Option<u32>,
    /// Bytes of a frame that hold all of the above.
    frame_size: u32,
    /// `PyCodeObject.co_filename`: pointer to a `str`.
    code_filename: u32,
    /// `co_qualname` (3.11+), else `co_name`: pointer to a `str`.
    code_qualname: u32,
    /// `co_name`: pointer to a `str`.
    code_name: u32,
    /// `co_lnotab` or `co_linetable`: pointer to a `bytes`.
    code_line_table: u32,
    /// `co_firstlineno`: 32 bits.
    code_first_line: u32,
    /// `_co_firsttraceable` (3.11+): 32 bits, in 2-byte code units. A frame
    /// that has not come so far is not shown by Python.
    code_first_traceable: Option<u32>,
    /// `co_code_adaptive` (3.11+): the bytecode begins here, in the object.
    code_instructions: Option<u32>,
    /// Bytes of a code object that hold all of the above.
    code_size: u32,
    /// `PyASCIIObject.length`: 64 bits, in code points.
    str_length: u32,
    /// `PyASCIIObject.state`: 32 bits.
    str_state: u32,
    /// First of the bits in `state`: kind (3 bits), compact (1), ascii (1).
    str_kind_shift: u32,
    /// Size of `PyASCIIObject`: the data of a compact ASCII `str` begin here.
    str_ascii_data: u32,
    /// Size of `PyCompactUnicodeObject`: the data of any other compact `str`.
    str_compact_data: u32,
    /// `PyBytesObject.ob_size`: 64 bits.
    bytes_length: u32,
    /// `PyBytesObject.ob_sval`: the bytes begin here.
    bytes_data: u32,
    /// `PyTypeObject.tp_dealloc`: pointer to a function.
    type_dealloc: u32,
}
