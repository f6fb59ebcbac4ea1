/* Functions with frames of every kind, all with names of their own. Built several times, PREFIX tells
 * which one it is. */
#include <alloca.h>
#include <stdint.h>
#include <string.h>

struct chain;
void go(struct chain *);

#define JOIN(a, b) a##_##b
#define NAME(a, b) JOIN(a, b)

/* A few saved registers. */
#define SMALL(n)                                                        \
	__attribute__((noinline)) void NAME(PREFIX, n)(struct chain *c) \
	{                                                               \
		volatile uint64_t kept[n + 1];                          \
		kept[n] = n;                                            \
		go(c);                                                  \
		__asm__ volatile("" ::"r"(kept[n]) : "memory");         \
	}
/* A size that is known when it runs. */
#define SIZED(n)                                                        \
	__attribute__((noinline)) void NAME(PREFIX, n)(struct chain *c) \
	{                                                               \
		char *space = alloca(16 + ((uintptr_t)c & 0x7f0));      \
		memset(space, 1, 16);                                   \
		go(c);                                                  \
		__asm__ volatile("" ::"r"(space) : "memory");           \
	}
/* A stack that is aligned. */
#define ALIGNED(n)                                                      \
	__attribute__((noinline)) void NAME(PREFIX, n)(struct chain *c) \
	{                                                               \
		__attribute__((aligned(64))) volatile char space[192];  \
		space[n] = n;                                           \
		go(c);                                                  \
		__asm__ volatile("" ::"r"(space) : "memory");           \
	}
/* More than two pages. */
#define LARGE(n)                                                        \
	__attribute__((noinline)) void NAME(PREFIX, n)(struct chain *c) \
	{                                                               \
		volatile char space[9000];                              \
		space[n] = n;                                           \
		go(c);                                                  \
		__asm__ volatile("" ::"r"(space) : "memory");           \
	}

SMALL(0) SIZED(1) ALIGNED(2) SMALL(3) SIZED(4) ALIGNED(5) SMALL(6) LARGE(7)

void (*const functions_of_it[8])(struct chain *) = {
	NAME(PREFIX, 0), NAME(PREFIX, 1), NAME(PREFIX, 2), NAME(PREFIX, 3),
	NAME(PREFIX, 4), NAME(PREFIX, 5), NAME(PREFIX, 6), NAME(PREFIX, 7),
};
