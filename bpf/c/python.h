/* The Python stack of the running thread, walked where it lies.
 *
 * Two passes. The first one visits the frames and hashes what it sees; for a stack that was seen
 * before that is all. The second one runs for new stacks only: it looks up (or sends) the code
 * objects and sends the body.
 */
#pragma once

#include "maps.h"

/* Bytes of a frame that hold every field the walk reads: 3.11+ interpreter frames, and the frame
 * objects of 3.8-3.10. */
#define FRAME_BYTES 80
#define FRAME_OBJECT_BYTES 112

/* Frames owned by the C stack or by the interpreter are entry points, not functions. */
#define OWNER_GENERATOR 1
#define OWNER_NOT_PYTHON 3

struct walk {
	struct slot *slot;
	struct vs_python *python;
	__u64 process;
	__u64 failed;
};

static __always_inline __u64 field64(const __u8 *at, __u32 offset)
{
	return *(const __u64 *)(at + (offset & 0xf8));
}

static __always_inline __u32 field32(const __u8 *at, __u32 offset)
{
	return *(const __u32 *)(at + (offset & 0xfc));
}

static long visit_frame(__u32 index, void *context)
{
	struct walk *walk = context;
	struct slot *slot = walk->slot;
	struct vs_python *python = walk->python;
	__u64 code, previous, instr, within;
	__u32 owner = 0, entry = 1, n;
	const __u8 *at;

	if (!slot->frame)
		return 1;
	n = slot->count;
	if (n >= VS_MAX_FRAMES) {
		slot->flags |= VS_FLAG_TRUNCATED;
		return 1;
	}
	within = slot->frame - slot->bulk_start;
	if (within + FRAME_BYTES <= slot->bulk_bytes) {
		at = slot->bulk + (within & (VS_BULK - 8));
		code = *(const __u64 *)(at + (python->frame_code & 0x78));
		previous = *(const __u64 *)(at + (python->frame_previous & 0x78));
		instr = *(const __u64 *)(at + (python->frame_instr & 0x78));
		owner = at[python->frame_owner & 0x7f];
		entry = at[(python->frame_owner - 1) & 0x7f];
	} else {
		__u32 bytes = python->instr_kind == VS_INSTR_POINTER ? FRAME_BYTES : FRAME_OBJECT_BYTES;

		at = slot->object;
		if (read_user(slot->object, bytes, slot->frame)) {
			slot->flags |= VS_FLAG_UNREADABLE;
			slot->frame = 0;
			return 1;
		}
		code = field64(at, python->frame_code & 0x78);
		previous = field64(at, python->frame_previous & 0x78);
		if (python->instr_kind == VS_INSTR_POINTER)
			instr = field64(at, python->frame_instr & 0x78);
		else
			instr = field32(at, python->frame_instr & 0x7c);
		if (python->frame_owner != VS_NONE) {
			owner = at[python->frame_owner & 0x7f];
			entry = at[(python->frame_owner - 1) & 0x7f];
		}
	}
	slot->frame = previous;
	code &= python->code_mask;
	if (owner >= OWNER_NOT_PYTHON || !code) {
		/* The frame before this one began a call of the interpreter. */
		if (n > 0 && python->entries == VS_ENTRY_SHIM) {
			slot->frames[(n - 1) & (VS_MAX_FRAMES - 1)].entry = 1;
			slot->hash = mix(slot->hash, 1);
		}
		return 0;
	}
	if (python->entries == VS_ENTRY_SHIM)
		entry = 0;
	n &= VS_MAX_FRAMES - 1;
	slot->frames[n].code = code;
	slot->frames[n].instr = instr;
	slot->frames[n].owner = owner;
	slot->frames[n].entry = entry;
	slot->count = n + 1;
	slot->hash = mix(mix(slot->hash, code ^ (__u64)entry << 63), instr);
	return 0;
}

/* Copies a string's header into `text` and its first `room` bytes to `to`. */
static __always_inline __u32 read_text(struct vs_python *python, __u64 object, struct vs_text *text,
				       __u8 *to, __u32 room)
{
	__u64 length = 0, data;
	__u32 state = 0, bits, unit, bytes;

	if (read_user(&length, 8, object + python->str_length) ||
	    read_user(&state, 4, object + python->str_state))
		return 1;
	/* Kind (3 bits), compact, ascii. Some builds of 3.14 give the field before them 16 bits. */
	bits = state >> (python->str_kind_shift & 31);
	if (!(bits & 7))
		bits = state >> 16;
	unit = bits & 7;
	if (length > 0x100000 || !unit)
		return 1;
	bytes = length * unit;
	text->width = unit;
	text->bytes = bytes;
	data = object + (bits & 16 ? python->str_ascii : python->str_compact);
	if (bytes > room)
		bytes = room;
	if (bytes == 0)
		return 0;
	return read_user(to, bytes, data) != 0;
}

/* Sends the code object whose first bytes lie in slot->object. */
static __always_inline long send_code(struct slot *slot, struct vs_python *python, __u64 address,
				      __u32 id, __u32 process)
{
	struct vs_code *code = &slot->code;
	__u64 lines = field64(slot->object, python->co_linetable), line_bytes = 0;
	__u32 bytes, size;

	code->head.kind = VS_CODE;
	code->head.device = 0;
	code->head.process = process;
	code->head.flags = 0;
	code->head.time = bpf_ktime_get_ns();
	code->head.tid = bpf_get_current_pid_tgid();
	code->head.stack = 0;
	code->address = address;
	code->id = id;
	code->first_line = field32(slot->object, python->co_firstlineno);
	code->unreadable = read_text(python, field64(slot->object, python->co_filename), &code->file,
				     code->file_data, VS_FILE_BYTES);
	code->unreadable |= read_text(python, field64(slot->object, python->co_name), &code->name,
				      code->name_data, VS_NAME_BYTES);
	if (read_user(&line_bytes, 8, lines + python->bytes_size) || line_bytes > 0x1000000) {
		line_bytes = 0;
		code->unreadable |= 1;
	}
	code->lines_bytes = line_bytes;
	bytes = line_bytes;
	if (bytes > VS_LINES_BYTES)
		bytes = VS_LINES_BYTES;
	if (bytes > 0 && read_user(code->lines, bytes, lines + python->bytes_data))
		code->unreadable |= 1;
	size = __builtin_offsetof(struct vs_code, lines) + bytes;
	if (size > sizeof(*code))
		size = sizeof(*code);
	return bpf_ringbuf_output(&ring, code, size, BPF_RB_NO_WAKEUP);
}

/* Second pass: raw frame -> frame of the body. */
static long resolve_frame(__u32 index, void *context)
{
	struct walk *walk = context;
	struct slot *slot = walk->slot;
	struct vs_python *python = walk->python;
	struct code_key key = {};
	struct known_code *known, fresh = {};
	struct raw_frame *raw;
	__u64 lasti;
	__u32 n;

	if (index >= slot->count || index >= VS_MAX_FRAMES)
		return 1;
	raw = &slot->frames[index];
	key.address = raw->code;
	key.process = walk->process;
	known = bpf_map_lookup_elem(&codes, &key);
	if (known) {
		fresh = *known;
	} else {
		__u32 bytes = python->code_size;

		if (bytes > 256)
			bytes = 256;
		if (bytes == 0 || read_user(slot->object, bytes, raw->code)) {
			walk->failed = 1;
			return 1;
		}
		fresh.id = __sync_fetch_and_add(&next_code, 1);
		if (python->instr_kind == VS_INSTR_POINTER)
			fresh.first_traceable = 2 * field32(slot->object, python->co_first_traceable);
		if (send_code(slot, python, raw->code, fresh.id, walk->process) ||
		    bpf_map_update_elem(&codes, &key, &fresh, BPF_ANY)) {
			walk->failed = 1;
			return 1;
		}
	}
	lasti = raw->instr;
	if (python->instr_kind == VS_INSTR_POINTER) {
		lasti -= raw->code + python->co_code;
		/* A frame that has not run its first traceable instruction is still being set up:
		 * Python itself does not show it. A generator's frame may rest before it. */
		if (raw->owner != OWNER_GENERATOR && (__s32)lasti < (__s32)fresh.first_traceable) {
			if (!raw->entry)
				return 0;
			fresh.id = 0;
			lasti = VS_FRAME_HIDDEN;
		}
	}
	if (lasti != VS_FRAME_HIDDEN)
		lasti = (lasti & ~VS_FRAME_ENTRY) | (raw->entry ? VS_FRAME_ENTRY : 0);
	n = slot->emitted;
	if (n >= VS_MAX_FRAMES)
		return 1;
	slot->stack.frames[n].code = fresh.id;
	slot->stack.frames[n].lasti = lasti;
	slot->emitted = n + 1;
	return 0;
}

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

	slot->bulk_bytes = 0;
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
	slot->bulk_bytes = bytes;
}

/* The id of the running thread's Python stack, 0 for an empty one. Sends its body if it is new.
 * `flags` gets what has to be said about it. */
static __always_inline __u32 python_stack(__u32 process, __u16 *flags)
{
	struct vs_python *python = bpf_map_lookup_elem(&pythons, &process);
	struct walk walk = {};
	struct slot *slot;
	__u32 *known, id = 0, bytes;
	__u64 state, hash, frame;

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
	slot->hash = mix(code_epoch, ((__u64)python->generation << 32 | process) + 1);
	fetch_bulk(slot, python);

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
		goto out;
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
out:
	give_slot(slot);
	return id;
}
