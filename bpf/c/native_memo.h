/* What a walk over machine code works on, and the walks that are remembered: where the same one begins
 * again, it need not be made again.
 */
#pragma once

#include "maps.h"

#define VS_NATIVE_SLOTS 32
/* Bytes of the stack that a walk which is remembered may reach over. */
#define VS_REACH 16384
/* The deepest stack of a thread that is believed. */
#define VS_DEEPEST (64 << 20)
/* Walks that a slot remembers: sets, and walks in each; powers of two. */
#define VS_MEMO_SETS 64
#define VS_MEMO_WAYS 8
#define VS_MEMO_WORDS 80
/* In `offset`: the word is compared less the stack pointer. */
#define VS_MEMO_RELATIVE (1u << 31)

/* A walk that was made before, as the words of the stack that led it: the addresses that functions
 * return to, and the frame pointers that were followed. Each rule gives the place of the next word by
 * the words before it. So where they are all there again, at the same distances, the walk from the
 * same address goes the same way, and its rules need not be looked up. */
struct memo {
	__u64 epoch;
	__u64 pc;
	__u64 depth;
	__u64 bp; /* less the stack pointer */
	__u32 python;
	__u32 caller;
	__u32 id; /* the stack that came of it, 0: nothing is remembered here */
	__u32 words;
	__u32 bytes; /* of the stack, from the stack pointer on */
	__u32 follows; /* whether the frame pointer that it began with was followed */
	__u32 offset[VS_MEMO_WORDS];
	__u64 word[VS_MEMO_WORDS];
};

/* Walks that begin alike. Programs repeat themselves: the walk that comes next is the last one, or the
 * one that came after it before. */
struct memos {
	__u32 last;  /* where it was found the last time */
	__u32 next;  /* the one that is there the longest */
	__u32 bytes; /* of the stack, as far as any of them reaches */
	__u32 pad;
	struct memo way[VS_MEMO_WAYS];
};

/* Where a thread is: in the caller of a probed function. */
struct place {
	__u64 pc; /* the return address */
	__u64 sp; /* after the return */
	__u64 bp;
};

/* Scratch memory of one walk, see `struct slot`. */
struct native_slot {
	__u32 busy;
	__u32 pad;
	struct place at;
	struct place from;
	__u64 hash;
	__u64 bp_at; /* where `at.bp` was read, 0: it is the one of `from` */
	__u32 set; /* of `memos`, that this walk belongs to */
	__u32 unfit; /* the walk cannot be remembered */
	__u64 stop_start;
	__u64 stop_bytes;
	__u64 window_start; /* 0: nothing is in the window */
	struct vs_stack_copy copy; /* `before` is the walk */
	__u8 window[VS_REACH];
	struct memos memos[VS_MEMO_SETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VS_NATIVE_SLOTS);
	__type(key, __u32);
	__type(value, struct native_slot);
} native_slots SEC(".maps");

static __always_inline struct native_slot *take_native_slot(void)
{
	__u32 at = bpf_get_smp_processor_id();

#pragma clang loop unroll(full)
	for (int tries = 0; tries < 8; tries++) {
		__u32 key = (at + tries * 5) & (VS_NATIVE_SLOTS - 1);
		struct native_slot *slot = bpf_map_lookup_elem(&native_slots, &key);

		if (slot && __sync_val_compare_and_swap(&slot->busy, 0, 1) == 0)
			return slot;
	}
	return 0;
}

static __always_inline void give_native_slot(struct native_slot *slot)
{
	__sync_lock_test_and_set(&slot->busy, 0);
}

static __always_inline struct memos *memos_of(struct native_slot *slot)
{
	return &slot->memos[slot->set & (VS_MEMO_SETS - 1)];
}

/* Where this walk is written down. */
static __always_inline struct memo *memo_of(struct native_slot *slot)
{
	struct memos *memos = memos_of(slot);

	return &memos->way[memos->next & (VS_MEMO_WAYS - 1)];
}

/* Notes that the walk depends on a word of the stack. */
static __always_inline void depends(struct native_slot *slot, __u64 at, __u64 word, __u32 relative)
{
	__u64 offset = at - slot->from.sp;
	struct memo *memo = memo_of(slot);
	__u32 n = memo->words;

	if (offset > VS_REACH - 8 || (offset & 7) || n >= VS_MEMO_WORDS) {
		slot->unfit = 1;
		return;
	}
	memo->offset[n] = offset | relative;
	memo->word[n] = relative ? word - slot->from.sp : word;
	memo->words = n + 1;
	if (memo->bytes < offset + 8)
		memo->bytes = offset + 8;
}

/* How deep in its thread's stack a place is. A thread's block lies above its stack, at the same
 * distance for all threads; the main thread has its own place. */
static __always_inline __u64 depth(__u64 sp)
{
	__u64 above = bpf_get_current_task_btf()->thread.fsbase - sp;

	return above < VS_DEEPEST ? above : sp;
}

/* Whether a remembered walk is the one that starts here; the stack lies in the window. Global for the
 * verifier's sake, see is_walk(). */
__noinline int is_it(struct native_slot *slot, struct memo *memo, __u64 deep)
{
	struct vs_stack_mixed *walk;
	__u32 words;
	__u64 sp;

	if (!slot || !memo)
		return 0;
	walk = &slot->copy.before;
	sp = slot->from.sp;
	words = memo->words;

	if (!memo->id || memo->epoch != walk->epoch || memo->pc != slot->from.pc || memo->depth != deep ||
	    memo->python != walk->python || memo->caller != walk->caller)
		return 0;
	if (memo->follows && memo->bp != slot->from.bp - sp)
		return 0;
	for (__u32 n = 0; n < VS_MEMO_WORDS; n++) {
		__u32 offset = memo->offset[n];
		__u64 word = *(__u64 *)(slot->window + (offset & (VS_REACH - 8)));

		if (n >= words)
			return 1;
		if (offset & VS_MEMO_RELATIVE)
			word -= sp;
		if (word != memo->word[n])
			return 0;
	}
	return 1;
}

/* Looks whether the walk that starts here was made before: the stack that came of it, or 0. Else
 * makes a place ready to remember it. */
static __always_inline __u32 recall(struct native_slot *slot)
{
	struct vs_stack_mixed *walk = &slot->copy.before;
	__u64 sp = slot->from.sp, deep = depth(sp), key;
	struct memos *memos;
	struct memo *memo;
	__u32 bytes;

	key = mix(((__u64)walk->caller << 32 | walk->python) ^ walk->epoch, slot->from.pc ^ deep << 40 ^ deep);
	slot->set = key >> 32;
	memos = memos_of(slot);
	bytes = memos->bytes;
	if (bytes && bytes <= VS_REACH && !read_user(slot->window, bytes, sp)) {
		for (__u32 tries = 0; tries < VS_MEMO_WAYS; tries++) {
			__u32 way = (memos->last + tries) & (VS_MEMO_WAYS - 1);

			memo = &memos->way[way];
			if (is_it(slot, memo, deep)) {
				memos->last = way;
				return memo->id;
			}
		}
	}
	memo = memo_of(slot);
	memo->id = 0;
	memo->epoch = walk->epoch;
	memo->pc = slot->from.pc;
	memo->depth = deep;
	memo->bp = slot->from.bp - sp;
	memo->python = walk->python;
	memo->caller = walk->caller;
	memo->words = 0;
	memo->bytes = 0;
	memo->follows = 0;
	return 0;
}

/* Remembers the walk that was made, and what came of it. */
static __always_inline void remember(struct native_slot *slot, __u32 id)
{
	struct memos *memos = memos_of(slot);
	struct memo *memo = memo_of(slot);

	memo->id = id;
	if (memos->bytes < memo->bytes)
		memos->bytes = memo->bytes;
	memos->last = memos->next;
	memos->next++;
}
