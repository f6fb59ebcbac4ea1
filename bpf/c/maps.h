/* Memory shared between the programs and with the reader. */
#pragma once

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "wire.h"

#define VS_MAX_PROCESSES 256
/* Bytes of a thread's Python data stack that are fetched in one read: some 80 frames. */
#define VS_BULK 16384

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VS_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VS_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct vs_python);
} pythons SEC(".maps");

struct known_code {
	__u32 id;
	__u32 first_traceable; /* bytes */
};

struct code_key {
	__u64 address;
	__u64 process;
};

/* Code objects that the reader has heard of. An entry is removed when the object is freed, and only
 * then: an entry that went before its object would let the object go unnoticed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 131072);
	__type(key, struct code_key);
	__type(value, struct known_code);
} codes SEC(".maps");

/* Stacks that the reader has heard of: hash of the raw frames -> id. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 262144);
	__type(key, __u64);
	__type(value, __u32);
} stacks SEC(".maps");

struct raw_frame {
	__u64 code;
	__u64 instr;
	__u32 owner;
	__u32 entry; /* the interpreter's C function was called for it */
};

/* What the walk reads of a Python frame. */
struct look {
	__u64 code; /* with its tag */
	__u64 previous;
	__u64 instr;
	__u32 owner;
	__u32 entry;
};

/* Walks that a slot remembers: sets of a power of two, and walks in each. */
#define VS_WALK_SETS 64
#define VS_WALK_WAYS 4
#define VS_WALK_FRAMES 64

/* A walk over Python frames that was made before, as all that it read. The frames lead one to the
 * next; so where they read the same again, the walk goes the same way, and the same stack comes of
 * it. */
struct python_walk {
	__u64 known; /* what the hash began with */
	__u64 frame; /* the innermost */
	__u32 id;    /* the stack that came of it */
	__u32 visited; /* frames, 0: nothing is remembered here */
	struct look frames[VS_WALK_FRAMES];
};

struct python_walks {
	__u32 next; /* the one to be replaced */
	__u32 pad;
	struct python_walk way[VS_WALK_WAYS];
};

/* Scratch memory of one running program. Programs may sleep and may be preempted, so per-CPU
 * memory would be shared between two of them; a slot is taken and given back instead. */
struct slot {
	__u32 busy;
	__u32 count; /* frames in `frames` */
	__u32 flags; /* enum vs_flag */
	__u32 emitted; /* frames in `stack` */
	__u64 frame; /* next frame to visit */
	__u64 hash;
	__u64 bulk_start;
	__u64 bulk_last; /* the last place in it where a frame is whole, from its start */
	__u32 visited; /* frames, those that are none of Python's too */
	__u32 set;     /* of `walks`, that this walk belongs to */
	struct raw_frame frames[VS_MAX_FRAMES];
	struct vs_stack stack;
	struct vs_code code;
	__u8 object[512 + 8]; /* a frame, code object or thread state */
	__u8 bulk[VS_BULK + 128];
	struct python_walks walks[VS_WALK_SETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* The outermost Engine::execute that a thread is in. */
struct execution {
	__u64 sp; /* at entry: where its return address lies */
	__u32 stack;
	__u32 process;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64); /* pid_tgid */
	__type(value, struct execution);
} executions SEC(".maps");

/* The threads that entered Engine::execute last, by process. */
struct executing {
	__u64 latest;
	__u64 previous;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VS_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct executing);
} executing SEC(".maps");

/* A driver call that a thread is in. */
struct driver_call {
	__u64 sp;
	__u64 out; /* where the address comes back */
	__u64 size;
	__u64 extra; /* cuMemAllocPitch: where the pitch comes back */
	__u16 function;
	__u16 process;
	__s32 device;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64); /* pid_tgid */
	__type(value, struct driver_call);
} driver_calls SEC(".maps");

/* The contexts that are current on a thread, the innermost last. Only where the process sees more
 * than one device: else all is of that one. */
#define VS_CONTEXTS 8
struct contexts {
	__u64 stack[VS_CONTEXTS];
	__u32 depth;
	__u32 process;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64); /* pid_tgid */
	__type(value, struct contexts);
} contexts SEC(".maps");

/* The NVTX range that marks a step, filled up with zeros. */
struct range_name {
	__u64 words[VS_RANGE_BYTES / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct range_name);
} step_range SEC(".maps");

__u32 next_code = 1;
__u32 next_stack = 1;
/* Rises when a known code object is freed: stacks are known under the epoch they were seen in, so
 * a new object at an old address never passes for the old one. */
__u64 code_epoch = 0;

static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash ^= value;
	hash *= 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
	return hash ^ (hash >> 29);
}

static __always_inline void count(__u32 index)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &index);

	if (value)
		__sync_fetch_and_add(value, 1);
}

/* Always 0, as the verifier knows. */
const volatile __u32 never = 0;

/* Makes a program use its thread's own stack.
 *
 * Since 6.13 the kernel gives programs of this type a stack of the processor's where theirs is 64
 * bytes or more (PRIV_STACK_ADAPTIVE in kernel/bpf/verifier.c), since kprobes run to their end before
 * the next one begins. Uprobes do not: they sleep and are preempted, and the next one on that
 * processor would write over what they left there. A program with a tail call gets none; this one is
 * in a branch that the verifier takes out again.
 */
static __always_inline void own_stack(void *ctx)
{
	if (never)
		bpf_tail_call(ctx, &counters, 0);
}

/* Reads memory of the process. A page that is not mapped in right now (swapped out, being moved
 * between NUMA nodes) makes the quick read fail; a sleepable program then waits for it. */
static __always_inline long read_user(void *to, __u32 size, __u64 from)
{
	long failed = bpf_probe_read_user(to, size, (const void *)from);

#ifdef VS_SLEEPABLE
	if (failed)
		failed = bpf_copy_from_user(to, size, (const void *)from);
#endif
	return failed;
}

static __always_inline __u64 read_u64(__u64 from)
{
	__u64 value = 0;

	if (read_user(&value, sizeof(value), from))
		return 0;
	return value;
}

static __always_inline struct slot *take_slot(void)
{
	__u32 at = bpf_get_smp_processor_id();

#pragma clang loop unroll(full)
	for (int tries = 0; tries < 8; tries++) {
		__u32 key = (at + tries * 7) & 63;
		struct slot *slot = bpf_map_lookup_elem(&slots, &key);

		if (slot && __sync_val_compare_and_swap(&slot->busy, 0, 1) == 0)
			return slot;
	}
	return 0;
}

static __always_inline void give_slot(struct slot *slot)
{
	__sync_lock_test_and_set(&slot->busy, 0);
}
