/* A program that does to the injected library what real ones do, only more of it: many threads at
 * once, born and dying; forks; exceptions through Engine::execute are left to the tests with PyTorch.
 * Loads the library as the CUDA driver does.
 *
 * usage: stress THREADS EVENTS, with CUDA_INJECTION64_PATH and VRAMSCOPE_SOCKET (vramscope run).
 * Linked against libc10.so and libcaller.so (tracer/tests/python_stacks). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void report(uint64_t id);
void report_from_bare_thread(uint64_t id);
void report_free(uint64_t id);

static long events;

static int deeper(int depth, uint64_t id)
{
	volatile char room[64 + depth * 16];

	room[depth] = (char)id;
	if (depth > 0)
		return deeper(depth - 1, id) + room[depth];
	report(id);
	report_free(id);
	return room[0];
}

static void *work(void *argument)
{
	uint64_t thread = (uint64_t)argument;

	for (long event = 0; event < events; event++) {
		uint64_t id = ((thread + 1) << 32) + 512 * (event % 1000 + 1);

		deeper((int)(event % 40), id);
		if (event % 500 == 0)
			report_from_bare_thread(id);
		if (event % 2000 == 0) {
			pid_t child = fork();

			if (child == 0) {
				report(id);
				_exit(0);
			}
			waitpid(child, 0, 0);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 8;
	const char *path = getenv("CUDA_INJECTION64_PATH");
	pthread_t threads[64];

	events = argc > 2 ? atol(argv[2]) : 10000;
	if (path) {
		void *library = dlopen(path, RTLD_NOW);
		int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : 0;

		if (!initialize) {
			fprintf(stderr, "stress: %s\n", dlerror());
			return 1;
		}
		initialize();
	}
	for (int index = 0; index < count && index < 64; index++)
		pthread_create(&threads[index], 0, work, (void *)(uintptr_t)index);
	for (int index = 0; index < count && index < 64; index++)
		pthread_join(threads[index], 0);
	puts("done");
	return 0;
}
