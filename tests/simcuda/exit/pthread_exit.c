/*
 * Loaded before libc (LD_PRELOAD): makes threads that CPython ends at its finalization
 * wait for the end of the process instead.
 *
 * CPython before 3.14 calls pthread_exit in any other thread that asks for the GIL while
 * the interpreter is being finalized. PyTorch's autograd threads ask for it in C++
 * destructors, which must not be unwound: the process dies with "terminate called
 * without an active exception" when a program ends shortly after backward(). On a real
 * GPU the race is rare; here, where kernels take no time, it is common. CPython 3.14
 * lets such threads wait, and so does this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_python(const void *address)
{
	Dl_info info;
	const char *name;

	if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
		return 0;
	name = strrchr(info.dli_fname, '/');
	name = name != NULL ? name + 1 : info.dli_fname;
	return strncmp(name, "libpython", 9) == 0 || strncmp(name, "python", 6) == 0;
}

__attribute__((visibility("default"), noreturn)) void pthread_exit(void *value)
{
	void (*next)(void *);

	if (is_python(__builtin_return_address(0)))
		for (;;)
			pause();
	next = (void (*)(void *))dlsym(RTLD_NEXT, "pthread_exit");
	if (next != NULL)
		next(value);
	abort();
}
