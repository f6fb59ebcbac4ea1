/* Stands in for PyTorch's libc10_cuda: calls the function of libc10 as another library does, through
 * a pointer that the dynamic linker fills. */
#include <pthread.h>
#include <stdint.h>

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, long, unsigned long, unsigned long, unsigned);

void report(uint64_t id)
{
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)id, 512, 512, 1024, 0x200001);
}

void report_free(uint64_t id)
{
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)id, -512, 0, 1024, 0x200001);
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
