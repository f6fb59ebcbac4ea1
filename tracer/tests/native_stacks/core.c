/* Runs chains of functions that another library, Python or the C library's sort stand between. */
#include <stdint.h>
#include <stdlib.h>

struct chain {
	const uint8_t *links;
	uint32_t at, count;
	uint64_t number;
	void (*python)(struct chain *);
};

#define PYTHON 255
#define SORT 254

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, long, unsigned long, unsigned long, unsigned);

static void (*functions[64])(struct chain *);
static unsigned known;
static __thread struct chain *sorting;

/* Makes the functions of a library known, as the next links. */
unsigned add(void (*const *more)(struct chain *), unsigned count)
{
	unsigned first = known;

	for (unsigned i = 0; i < count; i++)
		functions[known++] = more[i];
	return first;
}

void go(struct chain *chain);

__attribute__((noinline)) static int compare(const void *a, const void *b)
{
	struct chain *chain = sorting;

	sorting = 0;
	if (chain)
		go(chain);
	__asm__ volatile("" ::: "memory");
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void by_sort(struct chain *chain)
{
	int both[2] = { 2, 1 };

	sorting = chain;
	qsort(both, 2, sizeof(int), compare);
	__asm__ volatile("" ::: "memory");
}

void go(struct chain *chain)
{
	uint8_t link;

	if (chain->at == chain->count) {
		_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)chain->number, 512, 512, 1024,
								       1);
	} else {
		link = chain->links[chain->at++];
		if (link == PYTHON)
			chain->python(chain);
		else if (link == SORT)
			by_sort(chain);
		else
			functions[link](chain);
	}
	/* No call is the last thing that a function does: it would be a jump. */
	__asm__ volatile("" ::: "memory");
}
