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

enum vs_kind {
	VS_TENSOR = 1,   /* struct vs_tensor */
	VS_OOM = 2,      /* struct vs_oom */
	VS_BACKWARD = 3, /* struct vs_mark: Engine::execute was entered */
	VS_DRIVER = 4,   /* struct vs_driver */
	VS_STACK = 5,    /* struct vs_stack */
	VS_CODE = 6,     /* struct vs_code */
	VS_USER = 7,     /* struct vs_mark: a place that the user named was passed */
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
	vs_u32 kind;    /* enum vs_kind */
	vs_u16 process; /* index that the reader gave the process */
	vs_u16 flags;   /* enum vs_flag */
	vs_u64 time;    /* CLOCK_MONOTONIC, ns */
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
	vs_u32 device;
	vs_u32 pad;
};

/* c10::reportOutOfMemoryToProfiler */
struct vs_oom {
	struct vs_header head;
	vs_u64 requested;
	vs_u64 allocated;
	vs_u64 reserved;
	vs_u32 device;
	vs_u32 pad;
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
};

struct vs_frame {
	vs_u32 code; /* id of a vs_code, 0: its table was full or it was unreadable */
	vs_u32 lasti; /* as the interpreter stores it: bytes, or code units where vs_python says so */
};

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

/* How to walk one process's Python, given by the reader. Offsets in bytes. */
enum vs_instr_kind {
	VS_INSTR_POINTER = 0, /* 3.11+: a pointer into the code */
	VS_INSTR_INDEX = 1,   /* 3.8-3.10: an int, bytes or code units */
};

#define VS_NONE 0xffffffffu

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
	VS_COUNTERS = 8,
};
