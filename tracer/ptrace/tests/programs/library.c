/* What is loaded: its constructor overwrites every register that a function may overwrite. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((constructor)) static void begin(void) {
    if (__builtin_cpu_supports("avx2"))
        __asm__ volatile("vpcmpeqd %%ymm5, %%ymm5, %%ymm5\n vmovdqa %%ymm5, %%ymm14\n vzeroupper\n" ::: "xmm5", "xmm14");
    else
        __asm__ volatile("pcmpeqd %%xmm5, %%xmm5\n movdqa %%xmm5, %%xmm14\n" ::: "xmm5", "xmm14");
    free(malloc(100000));
}

uint64_t answer(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}

uint64_t length(const char *text) { return strlen(text); }

uint64_t nap(uint64_t milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0) {}
    return milliseconds;
}

uint64_t crash(void) {
    volatile uintptr_t nowhere = 8;
    return *(uint64_t *)nowhere;
}

uint64_t blocks(int signal) {
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    return sigismember(&blocked, signal);
}
