/* Stands in for PyTorch's libc10: the function that the tracer probes, with the arguments that the
 * test wants to see again. Built as libc10.so, so that the tracer takes it for the real one. */
#include <pthread.h>
#include <stdint.h>

__attribute__((noinline)) void
_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *pointer, long size, unsigned long allocated,
						      unsigned long reserved, unsigned device)
{
	__asm__ volatile("" : : "r"(pointer), "r"(size), "r"(allocated), "r"(reserved), "r"(device) : "memory");
}

void report(uint64_t id)
{
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)id, 512, 512, 1024, 0x200001);
}

static void *bare_thread(void *id)
{
	report((uint64_t)id);
	return 0;
}

/* An event on a thread that Python has never seen. */
void report_from_bare_thread(uint64_t id)
{
	pthread_t thread;

	pthread_create(&thread, 0, bare_thread, (void *)id);
	pthread_join(thread, 0);
}

static void *calling_thread(void *callback)
{
	((void (*)(void))callback)();
	return 0;
}

/* Python code on a thread that C made. */
void call_on_bare_thread(void (*callback)(void))
{
	pthread_t thread;

	pthread_create(&thread, 0, calling_thread, (void *)callback);
	pthread_join(thread, 0);
}
