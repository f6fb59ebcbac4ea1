/* A library for CUDA_INJECTION64_PATH: counts API calls through the simulation's hook. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct api_call {
	uint32_t size, domain, site, params_size;
	const char *name;
	const void *params;
	const int *result;
	uint64_t correlation;
	uint64_t *user;
	void *context;
};

enum { DRIVER = 1, RUNTIME = 2, NAMES = 512 };

static struct {
	const char *name;
	long count[2];
} counts[NAMES];
static long bytes, mismatches;
static __thread uint64_t runtime_correlation;

static void hook(const struct api_call *call)
{
	int slot = 0;

	while (slot < NAMES - 1 && counts[slot].name != NULL && strcmp(counts[slot].name, call->name) != 0)
		slot++;
	counts[slot].name = call->name;
	counts[slot].count[call->site]++;

	if (call->site == 0)
		*call->user = call->correlation;
	else if (*call->user != call->correlation || call->result == NULL)
		mismatches++;

	if (call->domain == RUNTIME)
		runtime_correlation = call->site == 0 ? call->correlation : 0;
	else if (runtime_correlation != 0 && runtime_correlation != call->correlation)
		mismatches++;

	if (call->site == 1 && strcmp(call->name, "cuMemAlloc_v2") == 0 && *call->result == 0) {
		const struct {
			uintptr_t *address;
			size_t size;
		} *params = call->params;
		bytes += *params->address != 0 && call->params_size == sizeof(*params) ? (long)params->size : 0;
	}
}

long recorded_calls(const char *name, int site)
{
	for (int slot = 0; slot < NAMES && counts[slot].name != NULL; slot++)
		if (strcmp(counts[slot].name, name) == 0)
			return counts[slot].count[site];
	return 0;
}

long recorded_bytes(void)
{
	return bytes;
}

long correlation_mismatches(void)
{
	return mismatches;
}

int InitializeInjection(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void (*set_hook)(void (*)(const struct api_call *)) = NULL;

	if (driver != NULL)
		*(void **)&set_hook = dlsym(driver, "simcuda_set_api_hook");
	if (set_hook == NULL)
		return 0;
	set_hook(hook);
	return 1;
}
