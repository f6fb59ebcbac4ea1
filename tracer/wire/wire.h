/* The one definition of the records that a tracer's producer (BPF programs, the injected library)
 * hands to its reader, and of the tables that the reader hands to the producer.
 *
 * Read by clang for the BPF target and by bindgen for Rust. Fixed-width fields, explicit padding,
 * little endian. A change here changes both sides at once; the sizes are asserted on both.
 */
#pragma once

#ifndef VS_U64
typedef unsigned char vs_u8;
typedef unsigned short vs_u16;
typedef unsigned int vs_u32;
typedef unsigned long long vs_u64;
typedef long long vs_s64;
typedef int vs_s32;
#define VS_U64
#endif

/* Most Python frames of a stack that are kept, innermost first. Deeper ones are cut and the stack
 * is flagged. CPython's default recursion limit is 1,000; training loops stay below 100. */
#define VS_MAX_FRAMES 128
/* Bytes of a code object's file name, name and line table that travel with it. What is longer is
 * read by the reader from the process. */
#define VS_FILE_BYTES 512
#define VS_NAME_BYTES 256
#define VS_LINES_BYTES 8192
/* Most machine-code frames of a stack that are kept, innermost first. */
#define VS_MAX_NATIVE 256
/* Bytes of a thread's stack that travel when an address on it has no unwind rule yet. */
#define VS_STACK_BYTES 32768

enum vs_kind {
	VS_TENSOR = 1,   /* struct vs_tensor */
	VS_OOM = 2,      /* struct vs_oom */
	VS_BACKWARD = 3, /* struct vs_mark: Engine::execute was entered */
	VS_DRIVER = 4,   /* struct vs_driver */
	VS_STACK = 5,    /* struct vs_stack */
	VS_CODE = 6,     /* struct vs_code */
	VS_USER = 7,     /* struct vs_mark: a place that the user named was passed */
	VS_CODE_WHOLE = 8, /* struct vs_code_whole */
	VS_STACK_NATIVE = 9, /* struct vs_stack_native */
	VS_STACK_MIXED = 10, /* struct vs_stack_mixed */
	VS_STACK_COPY = 11,  /* struct vs_stack_copy */
};

enum vs_flag {
	/* The stack is that of the thread which called backward(); the allocation was made for it on
	 * a thread without Python frames. */
	VS_FLAG_BACKWARD = 1,
	/* No stack could be taken: the thread's frames could not be read. */
	VS_FLAG_UNREADABLE = 2,
	/* The stack is deeper than VS_MAX_FRAMES. */
	VS_FLAG_TRUNCATED = 4,
	/* A nested call: Engine::execute from within a backward. */
	VS_FLAG_NESTED = 8,
};

struct vs_header {
	vs_u16 kind;    /* enum vs_kind */
	vs_u16 device;  /* number of the CUDA device, where the record is about one */
	vs_u16 process; /* index that the reader gave the process */
	vs_u16 flags;   /* enum vs_flag */
	vs_u64 time;    /* CLOCK_MONOTONIC, ns; or the time stamp counter, see VS_SETUP_TSC */
	vs_u32 tid;     /* kernel thread id, root pid namespace */
	vs_u32 stack;   /* id of a vs_stack, 0: none */
};

/* c10::reportMemoryUsageToProfiler */
struct vs_tensor {
	struct vs_header head;
	vs_u64 address;
	vs_s64 size; /* bytes, negative: a free */
	vs_u64 allocated;
	vs_u64 reserved;
};

/* c10::reportOutOfMemoryToProfiler */
struct vs_oom {
	struct vs_header head;
	vs_u64 requested;
	vs_u64 allocated;
	vs_u64 reserved;
};

struct vs_mark {
	struct vs_header head;
};

/* A function of libcuda. */
enum vs_driver_function {
	VS_MEM_ALLOC = 1,   /* address, size */
	VS_MEM_FREE = 2,    /* address */
	VS_ALLOC_ASYNC = 3, /* address, size */
	VS_FREE_ASYNC = 4,  /* address */
	VS_ALLOC_POOL = 5,  /* address, size */
	VS_ALLOC_MANAGED = 6,
	VS_ALLOC_PITCH = 7, /* size: pitch times height */
	VS_HOST_ALLOC = 8,
	VS_HOST_FREE = 9,
	VS_VMM_CREATE = 10,  /* address: handle, size, device */
	VS_VMM_RELEASE = 11, /* address: handle */
	VS_VMM_MAP = 12,     /* address, size, extra: handle */
	VS_VMM_UNMAP = 13,   /* address, size */
	VS_VMM_RETAIN = 14,  /* address: handle, which has to be released once more */
	/* These neither take memory nor give it back; told by the injected library only. */
	VS_ADDRESS_RESERVE = 15, /* address, size */
	VS_ADDRESS_FREE = 16,    /* address, size */
	VS_POOL_CREATE = 17,     /* address: handle, device */
	VS_POOL_DESTROY = 18,    /* address: handle */
	VS_POOL_TRIM = 19,       /* address: handle, size: bytes that it may keep */
	VS_IPC_OPEN = 20,        /* address: another process's memory, mapped */
	VS_IPC_CLOSE = 21,       /* address */
	VS_GRAPH_ALLOC_NODE = 22, /* address, size, extra: graph; taken when the graph runs */
	VS_GRAPH_FREE_NODE = 23,  /* address, extra: graph */
	VS_MULTICAST_CREATE = 24, /* address: handle, size */
	VS_MULTICAST_BIND = 25,   /* address: handle, size, extra: memory's handle or address */
	VS_MULTICAST_UNBIND = 26, /* address: handle, size, device */
	/* These say what memory is taken for. */
	VS_CAPTURE_BEGIN = 27, /* address: stream */
	VS_CAPTURE_END = 28,   /* address: stream */
	VS_POOL_THRESHOLD = 29, /* address: pool, size: bytes that it may keep at a synchronisation */
	/* These say which device a thread's calls are about. Of the first three no record comes. */
	VS_CONTEXT_SET = 30,
	VS_CONTEXT_PUSH = 31,
	VS_CONTEXT_POP = 32,
	VS_CONTEXT_RETAIN = 33, /* address: context, device: its second argument */
	VS_CONTEXT_CREATE = 34, /* address: context, device: its third argument */
	VS_CONTEXT_CREATE_3 = 35, /* the same, device: its fifth argument */
	VS_CONTEXT_CREATE_4 = 36, /* the same, device: its fourth argument */
};

struct vs_driver {
	struct vs_header head;
	vs_u64 address;
	vs_u64 size;
	vs_u64 extra;
	vs_u32 function; /* enum vs_driver_function */
	vs_s32 result;   /* CUresult */
	vs_s32 device;   /* -1: not told by the arguments */
	vs_u32 pad;
	vs_u64 context; /* the thread's, 0: not known */
};

struct vs_frame {
	vs_u32 code; /* id of a vs_code, 0: its table was full or it was unreadable */
	vs_u32 lasti; /* as the interpreter stores it: bytes, or code units where vs_python says so */
};

/* In vs_frame.lasti: the C function that runs this frame was called for it; the frames inside it,
 * up to the one before with this bit, are run by the same call of that function. */
#define VS_FRAME_ENTRY 0x80000000u
/* vs_frame.lasti of a frame that Python itself would not show, but that is an entry. */
#define VS_FRAME_HIDDEN 0xffffffffu

/* The body of a stack that was not seen before: head.stack is its id. `count` frames follow. */
struct vs_stack {
	struct vs_header head;
	vs_u32 count;
	vs_u32 pad;
	struct vs_frame frames[VS_MAX_FRAMES];
};

struct vs_text {
	vs_u32 bytes; /* size in the process; what is stored is at most the field's room */
	vs_u32 width; /* bytes a character: 1, 2 or 4 */
};

/* A code object that was not seen before. The part after `lines` is cut to lines_bytes. */
struct vs_code {
	struct vs_header head;
	vs_u64 address;
	vs_u32 id;
	vs_u32 first_line;
	struct vs_text file;
	struct vs_text name;
	vs_u32 lines_bytes; /* size in the process */
	vs_u32 unreadable;  /* non-zero: some part could not be read */
	vs_u8 file_data[VS_FILE_BYTES];
	vs_u8 name_data[VS_NAME_BYTES];
	vs_u8 lines[VS_LINES_BYTES];
};

/* The same, from a producer that can send all of it: the bytes of file, name and lines follow one
 * another behind the record. None of them is cut. */
struct vs_code_whole {
	struct vs_header head;
	vs_u64 address;
	vs_u32 id;
	vs_u32 first_line;
	struct vs_text file;
	struct vs_text name;
	vs_u32 lines_bytes;
	vs_u32 unreadable;
};

/* The body of a stack with machine code: `count` Python frames follow as in vs_stack, then
 * `native_count` addresses of 8 bytes, innermost first. */
struct vs_stack_native {
	struct vs_header head;
	vs_u32 count;
	vs_u32 native_count;
	vs_u32 caller; /* id of the stack that called backward() for it, 0: none */
	vs_u32 state;  /* enum vs_walk_state */
};

/* The same from the kernel: the Python part is a stack of its own. `count` addresses are sent. */
struct vs_stack_mixed {
	struct vs_header head;
	vs_u32 python; /* id of a vs_stack, 0: no Python frames */
	vs_u32 caller; /* id of the stack that called backward() for it, 0: none */
	vs_u64 epoch;  /* which code the process had, see vs_native.epoch */
	vs_u32 count;
	vs_u32 state;  /* enum vs_walk_state */
	vs_u64 native[VS_MAX_NATIVE];
};

/* How a walk through machine code ended. */
enum vs_walk_state {
	VS_WALK_END = 0,       /* at the outermost function, or where unwind information ends */
	VS_WALK_BROKEN = 1,    /* at memory that is no stack */
	VS_WALK_TRUNCATED = 2, /* after VS_MAX_NATIVE frames */
	VS_WALK_MISSING = 3,   /* at an address without a rule */
	VS_WALK_STOPPED = 4,   /* at the interpreter, further out is not wanted */
};

/* A walk that met an address without a rule: the frames before it, and a copy of the stack from
 * there on. */
struct vs_stack_copy {
	struct vs_stack_mixed before;
	vs_u64 pc; /* an address to return to, in the function without a rule */
	vs_u64 sp; /* after that return: where `stack` begins */
	vs_u64 bp;
	vs_u32 bytes;
	vs_u32 pad;
	vs_u8 stack[VS_STACK_BYTES];
};

/* When machine code is unwound. */
enum vs_native_mode {
	VS_NATIVE_NEVER = 0,
	VS_NATIVE_NEW = 1,    /* up to the interpreter; beyond it for stacks not seen before */
	VS_NATIVE_ALWAYS = 2, /* all of it at every allocation */
};

/* What unwinding one process's machine code needs. */
struct vs_native {
	vs_u64 interpreter_start; /* the interpreter's code; both 0 where there is none */
	vs_u64 interpreter_end;
	/* Rises when code is unloaded: what was known of addresses is forgotten. The reader gives each
	 * process its first one, so that no two processes ever have the same; stacks carry the sum of
	 * it and of how often code was replaced otherwise. */
	vs_u64 epoch;
	vs_u64 loader_state; /* address of r_debug.r_state of the dynamic loader, 0: not known */
	vs_u32 mode;         /* enum vs_native_mode */
	vs_u32 unloading;    /* the loader is at it */
};

/* Unwind rules: a table of sets, by the address mixed with the epoch. A rule is packed as
 * vramscope_unwind::Rule says; `check` ties it to its address. */
#define VS_RULE_SETS 32768
#define VS_RULE_WAYS 4
struct vs_rules {
	vs_u64 rule[VS_RULE_WAYS];
	vs_u64 check[VS_RULE_WAYS];
};
#define VS_RULE_SPREAD 0x9e3779b97f4a7c15ull /* 2^64 / golden ratio */
#define VS_RULE_CHECK 0xf1357aea2e62a9c5ull  /* the factor in vramscope_unwind::mix */

/* How to walk one process's Python, given by the reader. Offsets in bytes. */
enum vs_instr_kind {
	VS_INSTR_POINTER = 0, /* 3.11+: a pointer into the code */
	VS_INSTR_INDEX = 1,   /* 3.8-3.10: an int, bytes or code units */
};

#define VS_NONE 0xffffffffu

/* How the frames that a call of the interpreter's C function began with are known. */
enum vs_entries {
	VS_ENTRY_EVERY = 0, /* every frame has a call of its own: up to 3.10 */
	VS_ENTRY_FLAG = 1,  /* a byte before frame_owner: 3.11 */
	VS_ENTRY_SHIM = 2,  /* a frame that is no function follows: from 3.12 */
};

struct vs_python {
	vs_u64 runtime;     /* address of _PyRuntime, 0: no Python in this process */
	vs_u64 code_mask;   /* and-mask that takes the tag off the frame's code pointer */
	vs_u32 tss_slot;    /* offset from fsbase of the thread state pointer, VS_NONE: walk the list */
	vs_u32 interp_head;
	vs_u32 interp_next;
	vs_u32 threads_head;
	vs_u32 ts_next;
	vs_u32 ts_thread_id;
	vs_u32 ts_frame;
	vs_u32 cframe_frame; /* VS_NONE: ts_frame is the frame itself */
	vs_u32 frame_code;
	vs_u32 frame_previous;
	vs_u32 frame_instr;
	vs_u32 frame_owner; /* VS_NONE: frames have no owner */
	vs_u32 instr_kind;  /* enum vs_instr_kind */
	vs_u32 ts_chunk;    /* VS_NONE: frames are not on a data stack */
	vs_u32 ts_top;
	vs_u32 ts_bytes; /* bytes of a thread state that hold ts_frame, ts_chunk and ts_top */
	vs_u32 code_size; /* bytes of a code object that hold all fields below */
	vs_u32 co_code;
	vs_u32 co_first_traceable;
	vs_u32 co_filename;
	vs_u32 co_name;
	vs_u32 co_linetable;
	vs_u32 co_firstlineno;
	vs_u32 str_length;
	vs_u32 str_state;
	vs_u32 str_kind_shift;
	vs_u32 str_ascii;
	vs_u32 str_compact;
	vs_u32 bytes_size;
	vs_u32 bytes_data;
	vs_u32 tss_key; /* pthread key of the thread state pointer, VS_NONE: not known */
	vs_u32 entries; /* enum vs_entries */
	vs_u32 generation; /* differs from that of whoever had the same place before */
	vs_u32 pad;
};

/* Bytes of the name of an NVTX range that is waited for, with its final zero. */
#define VS_RANGE_BYTES 64

/* Counters, index into the per-CPU array `counters`. */
enum vs_counter {
	VS_COUNT_EVENTS = 0,       /* records handed over */
	VS_COUNT_RING_FULL = 1,    /* events lost: no room in the ring */
	VS_COUNT_BODY_LOST = 2,    /* stack or code bodies lost; they are sent again when seen again */
	VS_COUNT_NO_SLOT = 3,      /* events without a stack: no scratch memory */
	VS_COUNT_UNREADABLE = 4,   /* events without a stack: memory could not be read */
	VS_COUNT_TABLE_FULL = 5,   /* driver calls not followed: their table was full */
	VS_COUNT_CODE_FREED = 6,   /* known code objects that were freed */
	VS_COUNT_NATIVE_LOST = 7,  /* stacks without their machine code: no room for a copy */
	VS_COUNTERS = 8,
};

/* --- Memory that the injected library shares with the reader, and what the two tell each other.
 *
 * The reader makes it (a sealed memfd) and sends its descriptor with VS_SETUP. The ring's words
 * begin VS_SHARED_BYTES into it; see the crate vramscope-ring. */
#define VS_SHARED_MAGIC 0x31726d76u
#define VS_PROTOCOL 2
#define VS_SHARED_BYTES 4096

struct vs_shared {
	vs_u32 magic;
	vs_u32 protocol;
	vs_u64 ring_words;
	vs_u64 pad0[6];
	vs_u64 head; /* words reserved by producers; a cache line of its own, as the others */
	vs_u64 pad1[7];
	vs_u64 tail; /* words taken by the reader */
	vs_u64 pad2[7];
	vs_u64 counters[VS_COUNTERS]; /* enum vs_counter, kept by the producers */
	/* Both written before VS_SETUP, read once. The interpreter's code: where Python frames say
	 * what goes on, and machine code need not be unwound any further. */
	vs_u64 interpreter_start;
	vs_u64 interpreter_end;
	struct vs_python python;
};

/* Messages on the socket: one a datagram, each begins with its kind. */
enum vs_message {
	VS_HELLO = 1,  /* struct vs_hello, library to reader */
	VS_SETUP = 2,  /* struct vs_setup, with the descriptor */
	VS_RESCAN = 3, /* struct vs_plain: libraries were loaded, look again */
	VS_LEAVE = 4,  /* struct vs_plain: undo everything */
	VS_HOOKED = 5, /* struct vs_hooked, the answer to VS_SETUP, VS_RESCAN and VS_REPLACED */
	VS_LEFT = 6,   /* struct vs_left, the answer to VS_LEAVE */
	VS_CUPTI = 7,  /* struct vs_hooked with the CUPTI entry: its state has changed */
	/* struct vs_plain: other code lies where code was, look again and forget the stacks */
	VS_REPLACED = 8,
};

struct vs_plain {
	vs_u32 message;
	vs_u32 pad;
};

struct vs_hello {
	vs_u32 message;
	vs_u32 protocol;
};

enum vs_setup_flag {
	VS_SETUP_NATIVE = 1, /* unwind machine code too */
	VS_SETUP_NATIVE_WHOLE = 2, /* all of it at every allocation, not for new stacks only */
	VS_SETUP_CUPTI = 4,  /* subscribe to CUPTI's callbacks */
	VS_SETUP_TSC = 8,    /* times are of the time stamp counter, which the reader converts */
};

#define VS_SYMBOL_BYTES 240
struct vs_setup {
	vs_u32 message;
	vs_u32 flags;
	char step_symbol[VS_SYMBOL_BYTES]; /* function that marks a step; empty: none */
};

/* What the library places, in the order in which it tells of them. */
enum vs_hook {
	VS_HOOK_CODE_FREED = 0,
	VS_HOOK_EXECUTE = 1,
	VS_HOOK_CUPTI = 2,
	VS_HOOK_OOM = 3,
	VS_HOOK_MEMORY = 4,
	VS_HOOK_STEP = 5,
	VS_HOOK_NATIVE = 6, /* not a hook: whether machine code can be unwound */
	VS_HOOKS = 7,
};

enum vs_hook_state {
	VS_HOOK_ABSENT = 0, /* nothing in the process refers to it */
	VS_HOOK_PLACED = 1,
	VS_HOOK_FAILED = 2,
	VS_HOOK_UNWANTED = 3, /* was not asked for */
};

#define VS_DETAIL_BYTES 120
struct vs_hook_report {
	vs_u32 state; /* enum vs_hook_state */
	vs_u32 places; /* pointers that were changed */
	char detail[VS_DETAIL_BYTES]; /* in words, ends with a zero byte */
};

struct vs_hooked {
	vs_u32 message;
	vs_u32 pad;
	struct vs_hook_report hooks[VS_HOOKS];
};

struct vs_left {
	vs_u32 message;
	vs_u32 inside; /* threads that are still in the library's code */
	char detail[VS_DETAIL_BYTES]; /* what could not be undone, in words; empty: nothing */
};
