/* The running thread's machine-code stack, unwound where it lies, by rules that the reader learns
 * from the libraries' unwind information.
 *
 * Where all rules are known, a stack is a list of addresses, and two call paths never pass for one
 * another. An address without a rule ends the walk: the stack from there on goes to the reader,
 * which unwinds it and learns; the next walk gets further.
 */
#pragma once

#include "native_memo.h"

/* Bytes of the stack that are fetched in one read. */
#define VS_WINDOW 4096
/* The largest frame of a function that is believed. */
#define VS_WIDEST (4 << 20)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VS_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct vs_native);
} natives SEC(".maps");

/* How often code was mapped over other code behind the loader's back, by process. The reader's alone
 * to write: it cannot add to what a program adds to. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VS_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, __u64);
} replaced SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VS_RULE_SETS);
	__type(key, __u32);
	__type(value, struct vs_rules);
} rules SEC(".maps");

/* Stacks with machine code that the reader has heard of: hash -> id. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 262144);
	__type(key, __u64);
	__type(value, __u32);
} native_stacks SEC(".maps");

/* The caller of the function that a probe sits in, `delta` bytes of stack behind its entry. */
static __always_inline struct place caller_of(struct pt_regs *ctx, __u64 delta)
{
	struct place place = {
		.pc = read_u64(ctx->sp + delta),
		.sp = ctx->sp + delta + 8,
		.bp = ctx->bp,
	};

	return place;
}

/* The place that a function was called from, at its return. */
static __always_inline struct place returned_to(struct pt_regs *ctx)
{
	struct place place = { .pc = ctx->ip, .sp = ctx->sp, .bp = ctx->bp };

	return place;
}

/* The packed rule of an address, 0 if there is none. */
static __always_inline __u64 find_rule(__u64 address, __u64 epoch)
{
	__u64 key = address ^ (epoch * VS_RULE_SPREAD);
	__u32 index = (key * VS_RULE_SPREAD) >> 49;
	struct vs_rules *set = bpf_map_lookup_elem(&rules, &index);

	if (!set)
		return 0;
#pragma clang loop unroll(full)
	for (int way = 0; way < VS_RULE_WAYS; way++) {
		__u64 rule = set->rule[way];

		if (rule && set->check[way] == (key ^ (rule * VS_RULE_CHECK)))
			return rule;
	}
	return 0;
}

static __always_inline long stack_word(struct native_slot *slot, __u64 at, __u64 *value)
{
	__u64 within = at - slot->window_start;

	if (at & 7)
		return 1;
	if (!slot->window_start || within > VS_WINDOW - 8) {
		/* Near the end of the stack there is less than a window. */
		if (bpf_probe_read_user(slot->window, VS_WINDOW, (const void *)at)) {
			slot->window_start = 0;
			return read_user(value, sizeof(*value), at);
		}
		slot->window_start = at;
		within = 0;
	}
	*value = *(__u64 *)(slot->window + (within & (VS_WINDOW - 8)));
	return 0;
}

static long unwind_frame(__u32 index, void *context)
{
	struct native_slot *slot = *(struct native_slot **)context;
	struct vs_stack_mixed *walk = &slot->copy.before;
	__u64 pc = slot->at.pc, rule, cfa, base, value;
	__u32 n = walk->count, kind;

	if (pc - slot->stop_start < slot->stop_bytes) {
		walk->state = VS_WALK_STOPPED;
		return 1;
	}
	if (n >= VS_MAX_NATIVE) {
		walk->state = VS_WALK_TRUNCATED;
		return 1;
	}
	/* The call is before the address that it returns to. */
	rule = find_rule(pc - 1, walk->epoch);
	if (!rule) {
		walk->state = VS_WALK_MISSING;
		return 1;
	}
	walk->native[n & (VS_MAX_NATIVE - 1)] = pc;
	walk->count = n + 1;
	slot->hash = mix(slot->hash, pc);
	walk->state = VS_WALK_END;
	kind = (rule >> 61) & 3;
	if (!kind)
		return 1;
	walk->state = VS_WALK_BROKEN;
	base = slot->at.sp;
	if (kind != 1) {
		base = slot->at.bp;
		if (slot->bp_at)
			depends(slot, slot->bp_at, base, VS_MEMO_RELATIVE);
		else
			memo_of(slot)->follows = 1;
	}
	cfa = base + ((__s64)(rule << 8) >> 36);
	if (kind == 3) {
		if (stack_word(slot, cfa, &value))
			return 1;
		depends(slot, cfa, value, VS_MEMO_RELATIVE);
		cfa = value;
	} else {
		base = cfa;
	}
	/* Callers lie above; the frame is at least the return address. */
	if (cfa <= slot->at.sp || cfa - slot->at.sp > VS_WIDEST || (cfa & 7))
		return 1;
	if ((rule >> 60) & 1) {
		if (stack_word(slot, base + ((__s64)(rule << 36) >> 36), &value))
			return 1;
		slot->at.bp = value;
		slot->bp_at = base + ((__s64)(rule << 36) >> 36);
	}
	if (stack_word(slot, cfa - 8, &value))
		return 1;
	depends(slot, cfa - 8, value, 0);
	slot->at.sp = cfa;
	slot->at.pc = value;
	walk->state = VS_WALK_END;
	return value == 0;
}

static __always_inline void unwind(struct native_slot *slot)
{
	bpf_loop(VS_MAX_NATIVE + 1, unwind_frame, &slot, 0);
}

static long copy_piece(__u32 index, void *context)
{
	struct native_slot *slot = *(struct native_slot **)context;
	__u32 done = slot->copy.bytes, rest;
	__u64 from = slot->copy.sp + done;
	__u8 *to = slot->copy.stack + (done & (VS_STACK_BYTES - 4096));

	if (done > VS_STACK_BYTES - 4096)
		return 1;
	if (!read_user(to, 4096, from)) {
		slot->copy.bytes = done + 4096;
		return 0;
	}
	/* The rest of the last page. */
	rest = 4096 - (from & 4095);
	if (rest < 4096 && !read_user(to, rest & 4095, from))
		slot->copy.bytes = done + rest;
	return 1;
}

/* Sends the walk so far and the stack behind it; 0 if that did not work. */
static __always_inline __u32 send_copy(struct native_slot *slot)
{
	struct vs_stack_copy *copy = &slot->copy;
	__u64 size, waiting = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);

	/* A quarter of the ring is for the events. */
	if (waiting > bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 4 * 3)
		return 0;
	copy->before.head.kind = VS_STACK_COPY;
	copy->pc = slot->at.pc;
	copy->sp = slot->at.sp;
	copy->bp = slot->at.bp;
	copy->bytes = 0;
	bpf_loop(VS_STACK_BYTES / 4096, copy_piece, &slot, 0);
	size = __builtin_offsetof(struct vs_stack_copy, stack) + copy->bytes;
	if (size > sizeof(*copy))
		size = sizeof(*copy);
	copy->before.head.stack = __sync_fetch_and_add(&next_stack, 1);
	if (bpf_ringbuf_output(&ring, copy, size, BPF_RB_NO_WAKEUP))
		return 0;
	return copy->before.head.stack;
}

static __always_inline __u32 send_walk(struct native_slot *slot)
{
	struct vs_stack_mixed *walk = &slot->copy.before;
	__u64 size;

	walk->head.kind = VS_STACK_MIXED;
	walk->head.stack = __sync_fetch_and_add(&next_stack, 1);
	size = __builtin_offsetof(struct vs_stack_mixed, native) + 8 * (__u64)walk->count;
	if (size > sizeof(*walk))
		size = sizeof(*walk);
	if (bpf_ringbuf_output(&ring, walk, size, BPF_RB_NO_WAKEUP))
		return 0;
	return walk->head.stack;
}

/* Puts the thread's machine code to the Python stack that `head` names. */
static __always_inline void add_native(struct vs_header *head, __u32 process, struct place place)
{
	struct vs_native *native = bpf_map_lookup_elem(&natives, &process);
	__u64 *behind = bpf_map_lookup_elem(&replaced, &process);
	struct vs_stack_mixed *walk;
	struct native_slot *slot;
	__u32 *known, id, fit;
	__u64 key;

	if (!native || !behind || native->mode == VS_NATIVE_NEVER || !place.pc)
		return;
	slot = take_native_slot();
	if (!slot) {
		count(VS_COUNT_NO_SLOT);
		return;
	}
	walk = &slot->copy.before;
	walk->head = *head;
	walk->head.device = 0;
	walk->python = head->stack;
	walk->caller = 0;
	if (head->flags & VS_FLAG_BACKWARD) {
		walk->python = 0;
		walk->caller = head->stack;
	}
	/* Both rise only: where the sum is the same, both are. */
	walk->epoch = native->epoch + *behind;
	slot->from = place;
	id = recall(slot);
	if (id)
		goto out;
	walk->count = 0;
	slot->at = place;
	slot->bp_at = 0;
	slot->unfit = 0;
	slot->window_start = 0;
	slot->hash = mix(mix(walk->epoch, walk->python), walk->caller);
	slot->stop_start = native->interpreter_start;
	/* Where there are Python frames, they say what follows. */
	slot->stop_bytes = 0;
	if (walk->python && native->mode != VS_NATIVE_ALWAYS)
		slot->stop_bytes = native->interpreter_end - native->interpreter_start;
	unwind(slot);
	key = slot->hash;
	/* What lies beyond the interpreter differs in depth if it differs, but for functions whose
	 * frames are of one size. */
	if (walk->state == VS_WALK_STOPPED)
		key = mix(key, depth(slot->at.sp));
	fit = !slot->unfit && (walk->state == VS_WALK_STOPPED || walk->state == VS_WALK_END);
	if (walk->state != VS_WALK_MISSING) {
		known = bpf_map_lookup_elem(&native_stacks, &key);
		if (known) {
			id = *known;
			goto remember;
		}
		if (walk->state == VS_WALK_STOPPED) {
			slot->stop_bytes = 0;
			/* What it is known by ends here. */
			fit = 0;
			unwind(slot);
		}
	}
	if (walk->state == VS_WALK_MISSING) {
		id = send_copy(slot);
	} else {
		id = send_walk(slot);
		if (id)
			bpf_map_update_elem(&native_stacks, &key, &id, BPF_ANY);
	}
	if (!id)
		count(VS_COUNT_NATIVE_LOST);
remember:
	if (fit && id)
		remember(slot, id);
out:
	if (id) {
		head->stack = id;
		/* The caller is in that stack. */
		head->flags &= ~VS_FLAG_BACKWARD;
	}
	give_native_slot(slot);
}

#define RT_CONSISTENT 0
#define RT_DELETE 2

/* _dl_debug_state: the dynamic loader calls it before and after it maps or unmaps libraries (the
 * debugger interface of <link.h>). Addresses of code that went mean something else from then on,
 * both for who looks before it is gone and for who looks after. */
static __always_inline void loader_moved(__u32 process)
{
	struct vs_native *native = bpf_map_lookup_elem(&natives, &process);
	__u32 state = RT_CONSISTENT;

	if (!native || !native->loader_state || read_user(&state, sizeof(state), native->loader_state))
		return;
	if (state == RT_DELETE) {
		native->unloading = 1;
		__sync_fetch_and_add(&native->epoch, 1);
	} else if (state == RT_CONSISTENT && native->unloading) {
		native->unloading = 0;
		__sync_fetch_and_add(&native->epoch, 1);
	}
}
