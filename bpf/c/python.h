/* The Python stack of the running thread.
 *
 * A walk that was made before is known by what it read. Else there are two passes: the first one
 * visits the frames and hashes what it sees; the second one runs for new stacks only: it looks up (or
 * sends) the code objects and sends the body.
 */
#pragma once

#include "bodies.h"

struct thread_search {
	__u64 interpreter;
	__u64 thread;
	__u64 wanted;
	__u64 found;
	struct vs_python *python;
};

static long visit_thread(__u32 index, void *context)
{
	struct thread_search *search = context;
	struct vs_python *python = search->python;

	if (!search->thread) {
		if (!search->interpreter)
			return 1;
		search->thread = read_u64(search->interpreter + python->threads_head);
		search->interpreter = read_u64(search->interpreter + python->interp_next);
		return 0;
	}
	if (read_u64(search->thread + python->ts_thread_id) == search->wanted) {
		search->found = search->thread;
		return 1;
	}
	search->thread = read_u64(search->thread + python->ts_next);
	return 0;
}

/* The running thread's PyThreadState, 0 if it has none. pthread_self() is the thread's fsbase. */
static __always_inline __u64 thread_state(struct vs_python *python)
{
	__u64 fsbase = bpf_get_current_task_btf()->thread.fsbase;
	struct thread_search search = {};

	if (python->tss_slot != VS_NONE)
		return read_u64(fsbase + python->tss_slot);
	search.interpreter = read_u64(python->runtime + python->interp_head);
	search.wanted = fsbase;
	search.python = python;
	bpf_loop(8192, visit_thread, &search, 0);
	return search.found;
}

/* Copies the part of the thread's data stack that holds its innermost frames. The thread state
 * lies in slot->object. */
static __always_inline void fetch_bulk(struct slot *slot, struct vs_python *python)
{
	__u64 chunk, top, bytes;

	/* No frame lies there. */
	slot->bulk_last = 0;
	slot->bulk_start = 0;
	if (python->ts_chunk == VS_NONE)
		return;
	chunk = *(__u64 *)(slot->object + (python->ts_chunk & 0x1f8));
	top = *(__u64 *)(slot->object + (python->ts_top & 0x1f8));
	if (!chunk || top <= chunk)
		return;
	bytes = top - chunk;
	if (bytes > VS_BULK) {
		chunk = top - VS_BULK;
		bytes = VS_BULK;
	}
	if (bytes < FRAME_BYTES)
		return;
	if (read_user(slot->bulk, bytes & (VS_BULK * 2 - 1) & 0x7fff, chunk))
		return;
	slot->bulk_start = chunk;
	slot->bulk_last = bytes - FRAME_BYTES;
}

/* The id of the running thread's Python stack, 0 for an empty one. Sends its body if it is new.
 * `flags` gets what has to be said about it. */
static __always_inline __u32 python_stack(__u32 process, __u16 *flags)
{
	struct vs_python *python = bpf_map_lookup_elem(&pythons, &process);
	struct walk walk = {};
	struct python_walk *before;
	struct slot *slot;
	__u32 *known, id = 0, bytes;
	__u64 state, hash, frame, began;

	if (!python || !python->runtime)
		return 0;
	state = thread_state(python);
	if (!state)
		return 0;
	slot = take_slot();
	if (!slot) {
		count(VS_COUNT_NO_SLOT);
		*flags |= VS_FLAG_UNREADABLE;
		return 0;
	}
	/* One read for all that is needed of the thread state. */
	bytes = python->ts_bytes;
	if (bytes > 512 || read_user(slot->object, bytes & 0x3ff, state)) {
		count(VS_COUNT_UNREADABLE);
		*flags |= VS_FLAG_UNREADABLE;
		goto out;
	}
	frame = *(__u64 *)(slot->object + (python->ts_frame & 0x1f8));
	if (python->cframe_frame != VS_NONE && frame)
		frame = read_u64(frame + python->cframe_frame);
	if (!frame)
		goto out;
	slot->count = 0;
	slot->emitted = 0;
	slot->flags = 0;
	slot->frame = frame;
	/* A place that was another process's before: its stacks are not this one's. */
	slot->hash = mix(mix(1, code_epoch), (__u64)python->generation << 32 | process);
	began = slot->hash;
	fetch_bulk(slot, python);
	before = recall_walk(slot, python);
	if (before) {
		id = before->id;
		goto out;
	}

	slot->visited = 0;
	oldest(slot)->visited = 0;
	walk.slot = slot;
	walk.python = python;
	walk.process = process;
	bpf_loop(4 * VS_MAX_FRAMES, visit_frame, &walk, 0);
	if (slot->flags & VS_FLAG_UNREADABLE)
		count(VS_COUNT_UNREADABLE);
	*flags |= slot->flags;
	if (slot->count == 0)
		goto out;

	hash = slot->hash;
	known = bpf_map_lookup_elem(&stacks, &hash);
	if (known) {
		id = *known;
		goto remember;
	}
	bpf_loop(VS_MAX_FRAMES, resolve_frame, &walk, 0);
	if (walk.failed) {
		count(VS_COUNT_BODY_LOST);
		*flags |= VS_FLAG_UNREADABLE;
		goto out;
	}
	if (slot->emitted) {
		__u32 n = slot->emitted, size;

		if (n > VS_MAX_FRAMES)
			n = VS_MAX_FRAMES;
		id = __sync_fetch_and_add(&next_stack, 1);
		slot->stack.head.kind = VS_STACK;
		slot->stack.head.device = 0;
		slot->stack.head.process = process;
		slot->stack.head.flags = slot->flags;
		slot->stack.head.time = bpf_ktime_get_ns();
		slot->stack.head.tid = bpf_get_current_pid_tgid();
		slot->stack.head.stack = id;
		slot->stack.count = n;
		size = __builtin_offsetof(struct vs_stack, frames) + n * sizeof(struct vs_frame);
		if (bpf_ringbuf_output(&ring, &slot->stack, size, BPF_RB_NO_WAKEUP)) {
			count(VS_COUNT_BODY_LOST);
			*flags |= VS_FLAG_UNREADABLE;
			id = 0;
			goto out;
		}
	}
	/* A stack of set-up frames only stays known as the empty one. */
	bpf_map_update_elem(&stacks, &hash, &id, BPF_ANY);
remember:
	remember_walk(slot, began, frame, id);
out:
	give_slot(slot);
	return id;
}
