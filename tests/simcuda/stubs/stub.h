/* What the hand-written parts of the stub libraries and the generated ones share. */
#ifndef SIMCUDA_STUB_H
#define SIMCUDA_STUB_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The generator finds the functions written by hand by this word. */
#define EXPORT __attribute__((visibility("default")))

/* Versions that the stubs report; the build passes those that the wheel was made for. */
#ifndef SIMCUDA_CUDA_VERSION
#define SIMCUDA_CUDA_VERSION 12080
#endif
#ifndef SIMCUDA_CUDNN_VERSION
#define SIMCUDA_CUDNN_VERSION 91000
#endif

/* An opaque object: zeros, large enough for whatever the library keeps in it. */
static inline void *new_object(void)
{
	enum { OBJECT_BYTES = 4096 };
	void *object = calloc(1, OBJECT_BYTES);

	if (object == NULL)
		abort();
	return object;
}

/* How much device memory a library takes for itself: the bytes that a variable says, else none. */
static inline size_t own_memory(const char *variable)
{
	const char *bytes = getenv(variable);

	return bytes != NULL ? strtoull(bytes, NULL, 10) : 0;
}

/* A function of the driver or of the runtime, whichever has it; they are loaded already. */
static inline void *cuda_function(const char *name)
{
	static const char *const libraries[] = { "libcudart.so.13", "libcudart.so.12", "libcuda.so.1" };

	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
		void *function = library != NULL ? dlsym(library, name) : NULL;

		if (function != NULL)
			return function;
	}
	fprintf(stderr, "simcuda: %s is not there\n", name);
	abort();
}

/* For a function that would compute: tells the driver that device memory changed. */
static inline void work_was_done(void)
{
	static void (*notify)(void);
	void *driver;

	if (notify == NULL) {
		driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
		if (driver == NULL)
			return;
		notify = (void (*)(void))dlsym(driver, "simcuda_work_was_done");
	}
	if (notify != NULL)
		notify();
}

/* For a function that has to do something and has not been written. */
_Noreturn static inline void unimplemented(const char *name)
{
	fprintf(stderr,
		"simcuda: %s was called, which the simulated CUDA does not implement.\n"
		"simcuda: write it in tests/simcuda/stubs/, or see the rules in its README.\n",
		name);
	abort();
}

/* Workspace sizes: not zero, so that callers take the way that allocates. */
enum { WORKSPACE_BYTES = 1 << 20, WORKSPACE_ELEMENTS = 4096 };

#endif
