/*
 * Prints where this CPython's structures keep what a stack walk needs: one
 * "name: value," line for each field of `Offsets` in ../src/offsets.rs, which
 * explains them. Compile against the headers of one CPython; see README.md.
 */
#define Py_BUILD_CORE 1
#include "Python.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#else
#include "frameobject.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe_structs.h"
#include "internal/pycore_runtime_structs.h"
#endif

#define SHOW(name, value) printf("    " name ": %zu,\n", (size_t)(value))
#define SOME(name, value) printf("    " name ": Some(%zu),\n", (size_t)(value))
#define NONE(name) printf("    " name ": None,\n")
#define WORD(name, word) printf("    " name ": %s,\n", word)
#define END(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* Bit fields have no offset: set one and see which bit of the state it is. */
static size_t str_kind_shift(void) {
    PyASCIIObject text;
    unsigned int state;
    size_t shift = 0;
    memset(&text, 0, sizeof text);
    text.state.kind = 1;
    memcpy(&state, (char *)&text + offsetof(PyASCIIObject, state), sizeof state);
    while (state > 1) {
        state >>= 1;
        shift++;
    }
    return shift;
}

int main(void) {
    SHOW("runtime_interpreters", offsetof(_PyRuntimeState, interpreters.head));
#if PY_VERSION_HEX >= 0x030c0000
    SOME("runtime_tss_key", offsetof(_PyRuntimeState, autoTSSkey._key));
#else
    SOME("runtime_tss_key", offsetof(_PyRuntimeState, gilstate.autoTSSkey._key));
#endif
    SHOW("interpreter_next", offsetof(PyInterpreterState, next));
#if PY_VERSION_HEX >= 0x030b0000
    SHOW("interpreter_threads", offsetof(PyInterpreterState, threads.head));
#else
    SHOW("interpreter_threads", offsetof(PyInterpreterState, tstate_head));
#endif
    SHOW("thread_next", offsetof(PyThreadState, next));
    SHOW("thread_pthread", offsetof(PyThreadState, thread_id));

#if PY_VERSION_HEX >= 0x030b0000
    SOME("thread_native_id", offsetof(PyThreadState, native_thread_id));
#if PY_VERSION_HEX >= 0x030d0000
    SHOW("thread_frame", offsetof(PyThreadState, current_frame));
    NONE("cframe_frame");
#else
    SHOW("thread_frame", offsetof(PyThreadState, cframe));
    SOME("cframe_frame", offsetof(_PyCFrame, current_frame));
#endif
    SOME("thread_chunk", offsetof(PyThreadState, datastack_chunk));
    SOME("thread_chunk_top", offsetof(PyThreadState, datastack_top));
#if PY_VERSION_HEX >= 0x030d0000
    SHOW("frame_code", offsetof(_PyInterpreterFrame, f_executable));
#else
    SHOW("frame_code", offsetof(_PyInterpreterFrame, f_code));
#endif
    SHOW("frame_code_tag_bits", PY_VERSION_HEX >= 0x030e0000 ? 3 : 0);
    SHOW("frame_previous", offsetof(_PyInterpreterFrame, previous));
#if PY_VERSION_HEX >= 0x030d0000
    SHOW("frame_instruction", offsetof(_PyInterpreterFrame, instr_ptr));
#else
    SHOW("frame_instruction", offsetof(_PyInterpreterFrame, prev_instr));
#endif
    SOME("frame_owner", offsetof(_PyInterpreterFrame, owner));
    SHOW("frame_size", END(_PyInterpreterFrame, owner));
#else /* before 3.11 */
    NONE("thread_native_id");
    SHOW("thread_frame", offsetof(PyThreadState, frame));
    NONE("cframe_frame");
    NONE("thread_chunk");
    NONE("thread_chunk_top");
    SHOW("frame_code", offsetof(PyFrameObject, f_code));
    SHOW("frame_code_tag_bits", 0);
    SHOW("frame_previous", offsetof(PyFrameObject, f_back));
    SHOW("frame_instruction", offsetof(PyFrameObject, f_lasti));
    NONE("frame_owner");
    SHOW("frame_size", END(PyFrameObject, f_lasti));
#endif

    SHOW("code_filename", offsetof(PyCodeObject, co_filename));
#if PY_VERSION_HEX >= 0x030b0000
    SHOW("code_qualname", offsetof(PyCodeObject, co_qualname));
#else
    SHOW("code_qualname", offsetof(PyCodeObject, co_name));
#endif
    SHOW("code_name", offsetof(PyCodeObject, co_name));
#if PY_VERSION_HEX >= 0x030a0000
    SHOW("code_line_table", offsetof(PyCodeObject, co_linetable));
#else
    SHOW("code_line_table", offsetof(PyCodeObject, co_lnotab));
#endif
    SHOW("code_first_line", offsetof(PyCodeObject, co_firstlineno));
#if PY_VERSION_HEX >= 0x030b0000
    SOME("code_first_traceable", offsetof(PyCodeObject, _co_firsttraceable));
    SOME("code_instructions", offsetof(PyCodeObject, co_code_adaptive));
    SHOW("code_size", END(PyCodeObject, _co_firsttraceable));
#else
    NONE("code_first_traceable");
    NONE("code_instructions");
#if PY_VERSION_HEX >= 0x030a0000
    SHOW("code_size", END(PyCodeObject, co_linetable));
#else
    SHOW("code_size", END(PyCodeObject, co_lnotab));
#endif
#endif

    SHOW("str_length", offsetof(PyASCIIObject, length));
    SHOW("str_state", offsetof(PyASCIIObject, state));
    SHOW("str_kind_shift", str_kind_shift());
    SHOW("str_ascii_data", sizeof(PyASCIIObject));
    SHOW("str_compact_data", sizeof(PyCompactUnicodeObject));
    SHOW("bytes_length", offsetof(PyVarObject, ob_size));
    SHOW("bytes_data", offsetof(PyBytesObject, ob_sval));
    SHOW("type_dealloc", offsetof(PyTypeObject, tp_dealloc));

#if PY_VERSION_HEX >= 0x030b0000
    WORD("instruction_kind", "InstructionKind::Pointer");
    WORD("line_format", "LineFormat::Pep657");
#elif PY_VERSION_HEX >= 0x030a0000
    WORD("instruction_kind", "InstructionKind::Units");
    WORD("line_format", "LineFormat::Pep626");
#else
    WORD("instruction_kind", "InstructionKind::Bytes");
    WORD("line_format", "LineFormat::Lnotab");
#endif
    return 0;
}
