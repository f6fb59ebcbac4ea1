/* The Python frames of the running thread, where they lie.
 *
 * A walk visits them and hashes what it sees. It is remembered as all that it read, so that the same
 * one need not be made again.
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

/* Reads a frame: from the copy of the data stack, or where it lies. */
static __always_inline long look_at(struct slot *slot, struct vs_python *python, __u64 frame,
				    struct look *look)
{
	__u64 within = frame - slot->bulk_start;
	__u32 bytes = FRAME_OBJECT_BYTES;
	const __u8 *at;

	if (within <= slot->bulk_last) {
		at = slot->bulk + (within & (VS_BULK - 8));
		look->code = *(const __u64 *)(at + (python->frame_code & 0x78));
		look->previous = *(const __u64 *)(at + (python->frame_previous & 0x78));
		look->instr = *(const __u64 *)(at + (python->frame_instr & 0x78));
		look->owner = at[python->frame_owner & 0x7f];
		look->entry = at[(python->frame_owner - 1) & 0x7f];
		return 0;
	}
	if (python->instr_kind == VS_INSTR_POINTER)
		bytes = FRAME_BYTES;
	at = slot->object;
	if (read_user(slot->object, bytes, frame))
		return 1;
	look->code = field64(at, python->frame_code & 0x78);
	look->previous = field64(at, python->frame_previous & 0x78);
	if (python->instr_kind == VS_INSTR_POINTER)
		look->instr = field64(at, python->frame_instr & 0x78);
	else
		look->instr = field32(at, python->frame_instr & 0x7c);
	look->owner = 0;
	look->entry = 1;
	if (python->frame_owner != VS_NONE) {
		look->owner = at[python->frame_owner & 0x7f];
		look->entry = at[(python->frame_owner - 1) & 0x7f];
	}
	return 0;
}

static __always_inline struct python_walks *walks_of(struct slot *slot)
{
	return &slot->walks[slot->set & (VS_WALK_SETS - 1)];
}

/* The walk that is there the longest: this one takes its place. */
static __always_inline struct python_walk *oldest(struct slot *slot)
{
	struct python_walks *walks = walks_of(slot);

	return &walks->way[walks->next & (VS_WALK_WAYS - 1)];
}

static long visit_frame(__u32 index, void *context)
{
	struct walk *walk = context;
	struct slot *slot = walk->slot;
	struct vs_python *python = walk->python;
	struct look look;
	__u64 code;
	__u32 n;

	if (!slot->frame)
		return 1;
	n = slot->count;
	if (n >= VS_MAX_FRAMES) {
		slot->flags |= VS_FLAG_TRUNCATED;
		return 1;
	}
	if (look_at(slot, python, slot->frame, &look)) {
		slot->flags |= VS_FLAG_UNREADABLE;
		slot->frame = 0;
		return 1;
	}
	/* Where there are more, the walk is not remembered. */
	oldest(slot)->frames[slot->visited & (VS_WALK_FRAMES - 1)] = look;
	slot->visited++;
	slot->frame = look.previous;
	code = look.code & python->code_mask;
	if (look.owner >= OWNER_NOT_PYTHON || !code) {
		/* The frame before this one began a call of the interpreter. */
		if (n > 0 && python->entries == VS_ENTRY_SHIM) {
			slot->frames[(n - 1) & (VS_MAX_FRAMES - 1)].entry = 1;
			slot->hash = mix(slot->hash, 1);
		}
		return 0;
	}
	if (python->entries == VS_ENTRY_SHIM)
		look.entry = 0;
	n &= VS_MAX_FRAMES - 1;
	slot->frames[n].code = code;
	slot->frames[n].instr = look.instr;
	slot->frames[n].owner = look.owner;
	slot->frames[n].entry = look.entry;
	slot->count = n + 1;
	slot->hash = mix(mix(slot->hash, code ^ (__u64)look.entry << 63), look.instr);
	return 0;
}

/* Whether the walk that starts here is one that was made before.
 *
 * A function of its own, and global, for the verifier's sake: it looks at those once, and not at every
 * place and with everything that it knows there, which took most of a second. */
__noinline int is_walk(struct slot *slot, struct vs_python *python, struct python_walk *walk)
{
	__u64 frame;

	if (!slot || !python || !walk)
		return 0;
	frame = slot->frame;
	if (walk->frame != frame || walk->known != slot->hash || !walk->visited)
		return 0;
	for (__u32 n = 0; n < VS_WALK_FRAMES; n++) {
		struct look *then = &walk->frames[n], look;

		if (n >= walk->visited)
			return 1;
		if (look_at(slot, python, frame, &look))
			return 0;
		if (look.code != then->code || look.previous != then->previous ||
		    look.instr != then->instr || look.owner != then->owner ||
		    look.entry != then->entry)
			return 0;
		frame = look.previous;
	}
	return 1;
}

/* Looks for the walk that starts here among those that were made before. */
static __always_inline struct python_walk *recall_walk(struct slot *slot, struct vs_python *python)
{
	__u64 within = slot->frame - slot->bulk_start, instr = 0;
	struct python_walks *walks;

	if (within <= slot->bulk_last)
		instr = *(__u64 *)(slot->bulk + (within & (VS_BULK - 8)) + (python->frame_instr & 0x78));
	slot->set = mix(slot->frame, instr) >> 32;
	walks = walks_of(slot);
	for (__u32 way = 0; way < VS_WALK_WAYS; way++)
		if (is_walk(slot, python, &walks->way[way]))
			return &walks->way[way];
	return 0;
}

/* Remembers the walk that was made, if all of it was seen. */
static __always_inline void remember_walk(struct slot *slot, __u64 known, __u64 frame, __u32 id)
{
	struct python_walk *walk = oldest(slot);

	if (slot->flags || slot->frame || slot->visited > VS_WALK_FRAMES)
		return;
	walk->known = known;
	walk->frame = frame;
	walk->id = id;
	walk->visited = slot->visited;
	walks_of(slot)->next++;
}
