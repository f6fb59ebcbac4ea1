/* The probes. Each is one function: where it sits is in its comment, what it sends is in wire.h.
 *
 * The attach cookie carries what a probe has to know of its place: see cookie_*. Uprobes may lie a
 * few bytes behind a function's entry (see the planner); the argument registers are untouched
 * there, the stack pointer may have moved by the cookie's delta.
 */
#include "native.h"
#include "python.h"

/* bpf_loop, bpf_probe_read_user and bpf_ktime_get_ns are for programs under the GPL. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

#ifdef VS_SLEEPABLE
#define UPROBE SEC("uprobe.s")
#define URETPROBE SEC("uretprobe.s")
#else
#define UPROBE SEC("uprobe")
#define URETPROBE SEC("uretprobe")
#endif

#define DEVICE_TYPE_CUDA 1

/* A program, and its body. */
#define PROBE(kind, name)                                    \
	static __always_inline int name##_body(struct pt_regs *ctx); \
	kind int name(struct pt_regs *ctx)                   \
	{                                                    \
		own_stack(ctx);                              \
		return name##_body(ctx);                     \
	}                                                    \
	static __always_inline int name##_body(struct pt_regs *ctx)

static __always_inline __u32 cookie_process(__u64 cookie)
{
	return cookie & (VS_MAX_PROCESSES - 1);
}

static __always_inline __u32 cookie_function(__u64 cookie)
{
	return (cookie >> 16) & 0xffff;
}

static __always_inline __u64 cookie_delta(__u64 cookie)
{
	return (cookie >> 32) & 0xffff;
}

static __always_inline void fill_head(struct vs_header *head, __u32 kind, __u32 process)
{
	head->kind = kind;
	head->device = 0;
	head->process = process;
	head->flags = 0;
	head->time = bpf_ktime_get_ns();
	head->tid = bpf_get_current_pid_tgid();
	head->stack = 0;
}

static __always_inline void send(void *record, __u32 size)
{
	if (bpf_ringbuf_output(&ring, record, size, BPF_RB_NO_WAKEUP))
		count(VS_COUNT_RING_FULL);
}

/* Who asked: the thread's own Python stack; on a thread without one, that of the thread which sits
 * in Engine::execute. */
static __always_inline void fill_stack(struct vs_header *head, __u32 process)
{
	struct execution *execution;
	struct executing *who;
	__u64 thread;

	head->stack = python_stack(process, &head->flags);
	if (head->stack || (head->flags & VS_FLAG_UNREADABLE))
		return;
	who = bpf_map_lookup_elem(&executing, &process);
	if (!who)
		return;
	thread = who->latest;
	if (!thread)
		return;
	execution = bpf_map_lookup_elem(&executions, &thread);
	if (!execution) {
		thread = who->previous;
		execution = bpf_map_lookup_elem(&executions, &thread);
	}
	if (!execution)
		return;
	head->stack = execution->stack;
	head->flags |= VS_FLAG_BACKWARD;
}

/* The same with the machine code between Python and the probe. */
static __always_inline void fill_whole_stack(struct vs_header *head, __u32 process,
					     struct place place)
{
	fill_stack(head, process);
	add_native(head, process, place);
}

/* c10::reportMemoryUsageToProfiler(void *ptr, int64_t size, size_t allocated, size_t reserved,
 * c10::Device): every block handed out (size > 0) and given back (size < 0). */
PROBE(UPROBE, tensor_memory)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 process = cookie_process(cookie);
	struct vs_tensor record = {};
	__u32 device = ctx->r8 & 0xffff;

	if ((device & 0xff) != DEVICE_TYPE_CUDA)
		return 0;
	fill_head(&record.head, VS_TENSOR, process);
	record.address = ctx->di;
	record.size = ctx->si;
	record.allocated = ctx->dx;
	record.reserved = ctx->cx;
	record.head.device = device >> 8;
	if (record.size > 0)
		fill_whole_stack(&record.head, process, caller_of(ctx, cookie_delta(cookie)));
	send(&record, sizeof(record));
	return 0;
}

/* c10::reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved, c10::Device) */
PROBE(UPROBE, tensor_oom)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 process = cookie_process(cookie);
	struct vs_oom record = {};

	fill_head(&record.head, VS_OOM, process);
	record.requested = ctx->di;
	record.allocated = ctx->si;
	record.reserved = ctx->dx;
	record.head.device = (ctx->cx >> 8) & 0xff;
	fill_whole_stack(&record.head, process, caller_of(ctx, cookie_delta(cookie)));
	send(&record, sizeof(record));
	return 0;
}

/* torch::autograd::Engine::execute, at entry. */
PROBE(UPROBE, backward_enter)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), thread = bpf_get_current_pid_tgid();
	__u32 process = cookie_process(cookie);
	struct execution *outer, inside = {};
	struct executing *who;
	struct vs_mark record = {};

	inside.sp = ctx->sp + cookie_delta(cookie);
	outer = bpf_map_lookup_elem(&executions, &thread);
	fill_head(&record.head, VS_BACKWARD, process);
	record.head.stack = python_stack(process, &record.head.flags);
	if (outer && inside.sp < outer->sp) {
		record.head.flags |= VS_FLAG_NESTED;
	} else {
		/* Not nested: an entry that is there was left by an exception. */
		inside.stack = record.head.stack;
		inside.process = process;
		bpf_map_update_elem(&executions, &thread, &inside, BPF_ANY);
		who = bpf_map_lookup_elem(&executing, &process);
		if (who && who->latest != thread) {
			who->previous = who->latest;
			who->latest = thread;
		}
	}
	send(&record, sizeof(record));
	return 0;
}

/* The same function, at each of its return instructions. No return probe: it would replace the
 * return address on the stack, and a C++ exception that passes there would end the process. */
PROBE(UPROBE, backward_leave)
{
	__u32 process = cookie_process(bpf_get_attach_cookie(ctx));
	__u64 thread = bpf_get_current_pid_tgid();
	struct execution *execution = bpf_map_lookup_elem(&executions, &thread);
	struct executing *who;

	if (!execution || execution->sp != ctx->sp)
		return 0;
	bpf_map_delete_elem(&executions, &thread);
	who = bpf_map_lookup_elem(&executing, &process);
	if (!who)
		return 0;
	if (who->latest == thread) {
		who->latest = who->previous;
		who->previous = 0;
	} else if (who->previous == thread) {
		who->previous = 0;
	}
	return 0;
}

/* A thread's contexts; made with the first call that is seen. */
static __always_inline struct contexts *contexts_of(__u32 process, __u64 thread)
{
	struct contexts *known = bpf_map_lookup_elem(&contexts, &thread), none = {};

	/* Of a process that had this thread's number before. */
	if (known && known->process == process)
		return known;
	none.process = process;
	if (bpf_map_update_elem(&contexts, &thread, &none, BPF_ANY))
		return 0;
	return bpf_map_lookup_elem(&contexts, &thread);
}

/* cuCtxSetCurrent, cuCtxPushCurrent, cuCtxPopCurrent, and the contexts that are made current when
 * they are created. That a call may fail does not matter: then the program has no use for it. */
static __always_inline void context_changes(__u32 process, __u64 thread, __u32 function,
					    __u64 context)
{
	struct contexts *current = contexts_of(process, thread);

	if (!current)
		return;
	if (function == VS_CONTEXT_POP || (function == VS_CONTEXT_SET && current->depth)) {
		if (current->depth)
			current->depth--;
	}
	if (function != VS_CONTEXT_POP && context) {
		current->stack[current->depth & (VS_CONTEXTS - 1)] = context;
		current->depth++;
	}
}

/* The context that the driver's calls of a thread are about, 0 where it is not known. */
static __always_inline __u64 current_context(__u32 process, __u64 thread)
{
	struct contexts *current = bpf_map_lookup_elem(&contexts, &thread);

	if (!current || current->process != process || !current->depth)
		return 0;
	return current->stack[(current->depth - 1) & (VS_CONTEXTS - 1)];
}

static __always_inline void send_driver(__u32 process, struct driver_call *call, __u64 address,
					__s32 result, struct place place)
{
	struct vs_driver record = {};

	fill_head(&record.head, VS_DRIVER, process);
	record.address = address;
	record.size = call->size;
	record.extra = call->extra;
	record.function = call->function;
	record.result = result;
	record.device = call->device;
	record.context = current_context(process, bpf_get_current_pid_tgid());
	switch (call->function) {
	case VS_MEM_FREE:
	case VS_FREE_ASYNC:
	case VS_HOST_FREE:
	case VS_VMM_RELEASE:
	case VS_VMM_RETAIN:
	case VS_VMM_MAP:
	case VS_VMM_UNMAP:
	case VS_CAPTURE_BEGIN:
	case VS_CAPTURE_END:
	case VS_POOL_TRIM:
	case VS_POOL_DESTROY:
	case VS_POOL_THRESHOLD:
	case VS_POOL_CREATE:
	case VS_CONTEXT_RETAIN:
	case VS_CONTEXT_CREATE:
	case VS_CONTEXT_CREATE_3:
	case VS_CONTEXT_CREATE_4:
		break;
	default:
		fill_whole_stack(&record.head, process, place);
	}
	send(&record, sizeof(record));
}

/* A function of libcuda, at entry. What gives memory back is told here, before another thread can
 * be given the same address; what hands memory out is told when it returns. */
PROBE(UPROBE, driver_enter)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), thread = bpf_get_current_pid_tgid();
	__u32 process = cookie_process(cookie);
	struct driver_call call = {}, *outer;
	struct place nowhere = {};
	int location[2] = {};

	call.function = cookie_function(cookie);
	call.process = process;
	call.device = -1;
	call.sp = ctx->sp + cookie_delta(cookie);
	if (call.function >= VS_CONTEXT_SET && call.function <= VS_CONTEXT_POP) {
		context_changes(process, thread, call.function, ctx->di);
		return 0;
	}
	outer = bpf_map_lookup_elem(&driver_calls, &thread);
	if (outer && call.sp < outer->sp)
		return 0; /* called by another one: counted there */
	switch (call.function) {
	case VS_MEM_FREE:
	case VS_FREE_ASYNC:
	case VS_HOST_FREE:
	case VS_VMM_RELEASE:
	case VS_CAPTURE_END:
	case VS_POOL_DESTROY:
		send_driver(process, &call, ctx->di, 0, nowhere);
		return 0;
	case VS_CAPTURE_BEGIN:
		call.out = ctx->di;
		break;
	case VS_POOL_TRIM:
		call.size = ctx->si;
		send_driver(process, &call, ctx->di, 0, nowhere);
		return 0;
	case VS_POOL_THRESHOLD:
		/* cuMemPoolSetAttribute(pool, attribute, value): the fourth is the threshold. */
		if ((__u32)ctx->si != 4)
			return 0;
		call.size = read_u64(ctx->dx);
		send_driver(process, &call, ctx->di, 0, nowhere);
		return 0;
	case VS_VMM_UNMAP:
		call.size = ctx->si;
		send_driver(process, &call, ctx->di, 0, nowhere);
		return 0;
	case VS_VMM_MAP:
		call.out = ctx->di;
		call.size = ctx->si;
		call.extra = ctx->cx;
		break;
	case VS_ALLOC_POOL:
		call.out = ctx->di;
		call.size = ctx->si;
		call.extra = ctx->dx;
		break;
	case VS_ALLOC_PITCH:
		call.out = ctx->di;
		call.extra = ctx->si;
		call.size = ctx->cx;
		break;
	case VS_VMM_CREATE:
		call.out = ctx->di;
		call.size = ctx->si;
		/* CUmemAllocationProp: two ints, then the location's type (1: a device) and id. */
		if (!read_user(location, sizeof(location), ctx->dx + 8) && location[0] == 1)
			call.device = location[1];
		break;
	case VS_POOL_CREATE:
		call.out = ctx->di;
		/* CUmemPoolProps begins likewise. */
		if (!read_user(location, sizeof(location), ctx->si + 8) && location[0] == 1)
			call.device = location[1];
		break;
	case VS_CONTEXT_RETAIN:
		call.out = ctx->di;
		call.device = ctx->si;
		break;
	case VS_CONTEXT_CREATE:
		call.out = ctx->di;
		call.device = ctx->dx;
		break;
	case VS_CONTEXT_CREATE_3:
		call.out = ctx->di;
		call.device = ctx->r8;
		break;
	case VS_CONTEXT_CREATE_4:
		call.out = ctx->di;
		call.device = ctx->cx;
		break;
	case VS_VMM_RETAIN:
		call.out = ctx->di;
		break;
	default:
		call.out = ctx->di;
		call.size = ctx->si;
	}
	if (bpf_map_update_elem(&driver_calls, &thread, &call, BPF_ANY))
		count(VS_COUNT_TABLE_FULL);
	return 0;
}

/* The same functions, at their return. C functions: no exception passes through them. */
PROBE(URETPROBE, driver_leave)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), thread = bpf_get_current_pid_tgid();
	__u32 process = cookie_process(cookie);
	struct driver_call *found = bpf_map_lookup_elem(&driver_calls, &thread), call;
	__u64 address;

	/* Behind the return the stack pointer is one word above where the return address lay. */
	if (!found || found->function != cookie_function(cookie) || ctx->sp != found->sp + 8)
		return 0;
	call = *found;
	bpf_map_delete_elem(&driver_calls, &thread);
	if ((__s32)ctx->ax != 0)
		return 0;
	switch (call.function) {
	case VS_VMM_MAP:
	case VS_CAPTURE_BEGIN:
		address = call.out;
		break;
	default:
		address = read_u64(call.out);
	}
	if (call.function >= VS_CONTEXT_CREATE && call.function <= VS_CONTEXT_CREATE_4)
		context_changes(process, thread, VS_CONTEXT_PUSH, address);
	if (call.function == VS_ALLOC_PITCH) {
		call.size *= read_u64(call.extra);
		call.extra = 0;
	}
	send_driver(process, &call, address, 0, returned_to(ctx));
	return 0;
}

/* A function that the user named: a step begins. */
PROBE(UPROBE, step_symbol)
{
	struct vs_mark record = {};

	fill_head(&record.head, VS_USER, cookie_process(bpf_get_attach_cookie(ctx)));
	send(&record, sizeof(record));
	return 0;
}

/* nvtxRangePushA(const char *name): a step begins if it is the range that the user named. */
PROBE(UPROBE, step_nvtx)
{
	struct range_name name = {}, *wanted;
	struct vs_mark record = {};
	__u32 zero = 0;
	__u64 different = 0;

	wanted = bpf_map_lookup_elem(&step_range, &zero);
	if (!wanted || bpf_probe_read_user_str(&name, sizeof(name), (const void *)ctx->di) < 0)
		return 0;
#pragma clang loop unroll(full)
	for (int word = 0; word < VS_RANGE_BYTES / 8; word++)
		different |= name.words[word] ^ wanted->words[word];
	if (different)
		return 0;
	fill_head(&record.head, VS_USER, cookie_process(bpf_get_attach_cookie(ctx)));
	send(&record, sizeof(record));
	return 0;
}

/* The dynamic loader's word that libraries come or go. */
PROBE(UPROBE, loader_state)
{
	loader_moved(cookie_process(bpf_get_attach_cookie(ctx)));
	return 0;
}

/* CPython's code_dealloc(PyObject *): the code object is about to go. */
PROBE(UPROBE, code_freed)
{
	struct code_key key = {
		.address = ctx->di,
		.process = cookie_process(bpf_get_attach_cookie(ctx)),
	};

	if (bpf_map_delete_elem(&codes, &key) == 0) {
		__sync_fetch_and_add(&code_epoch, 1);
		count(VS_COUNT_CODE_FREED);
	}
	return 0;
}
