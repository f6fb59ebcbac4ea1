/* What the reader has not heard of yet: code objects, and stacks of them. */
#pragma once

#include "frames.h"

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
