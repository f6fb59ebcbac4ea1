/* Twelve threads that notice when anything of theirs changes. Prints "ready", ends when its input
 * does, and prints what it found: "errors N" and some counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int stop, errors, alarms, rounds, born, reloads;
static const char *other_library;

#define EXPECT(what)                                             \
    do {                                                         \
        if (!(what)) {                                           \
            atomic_fetch_add(&errors, 1);                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);   \
        }                                                        \
    } while (0)

/* Sleeps in a system call with known values in vector registers, in the registers that calls keep,
 * in the flags and in the red zone, and compares them afterwards. */
__attribute__((noinline)) static int asleep_with_values(long seed, int avx) {
    struct timespec time = {0, 300000};
    long values[8], after[8], red[16], general[6];
    for (int i = 0; i < 8; i++) values[i] = seed * 2654435761 + i;
    memset(after, 0, sizeof after);
    if (avx)
        __asm__ volatile("vmovdqu (%[v]), %%ymm5\n vmovdqu 32(%[v]), %%ymm14\n" ::[v] "r"(values) : "memory", "xmm5", "xmm14");
    else
        __asm__ volatile("movdqu (%[v]), %%xmm5\n movdqu 32(%[v]), %%xmm14\n" ::[v] "r"(values) : "memory", "xmm5", "xmm14");
    long result;
    __asm__ volatile(
        "mov %[seed], %%r12\n lea 1(%[seed]), %%r13\n lea 2(%[seed]), %%r14\n lea 3(%[seed]), %%rbx\n"
        "mov $16, %%rcx\n"
        "1: lea (%%r12,%%rcx), %%rax\n neg %%rcx\n mov %%rax, (%%rsp,%%rcx,8)\n neg %%rcx\n loop 1b\n"
        "mov $35, %%eax\n xor %%esi, %%esi\n syscall\n"
        "mov %%r12, (%[g])\n mov %%r13, 8(%[g])\n mov %%r14, 16(%[g])\n mov %%rbx, 24(%[g])\n"
        "mov $16, %%rcx\n"
        "2: neg %%rcx\n mov (%%rsp,%%rcx,8), %%rdx\n neg %%rcx\n mov %%rdx, -8(%[r],%%rcx,8)\n loop 2b\n"
        : "=&a"(result)
        : [seed] "r"(seed), "D"(&time), [g] "r"(general), [r] "r"(red)
        : "rbx", "rcx", "rdx", "rsi", "r11", "r12", "r13", "r14", "memory", "cc");
    if (avx)
        __asm__ volatile("vmovdqu %%ymm5, (%[v])\n vmovdqu %%ymm14, 32(%[v])\n vzeroupper\n" ::[v] "r"(after) : "memory");
    else {
        __asm__ volatile("movdqu %%xmm5, (%[v])\n movdqu %%xmm14, 32(%[v])\n" ::[v] "r"(after) : "memory");
        values[2] = values[3] = values[6] = values[7] = 0;
    }
    int good = result == 0 || result == -4;
    good &= memcmp(values, after, sizeof values) == 0;
    for (long i = 0; i < 4; i++) good &= general[i] == seed + i;
    for (long i = 0; i < 16; i++) good &= red[i] == seed + i + 1;
    return good;
}

static void *holder(void *argument) {
    int avx = __builtin_cpu_supports("avx2") != 0;
    stack_t alternate = {.ss_sp = malloc(64 * 1024), .ss_size = 64 * 1024};
    sigaltstack(&alternate, NULL);
    for (long i = (long)argument; !stop; i++) {
        EXPECT(asleep_with_values(i, avx));
        stack_t now;
        sigaltstack(NULL, &now);
        EXPECT(now.ss_sp == alternate.ss_sp && now.ss_flags == 0);
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, NULL, &blocked);
        EXPECT(!sigismember(&blocked, SIGUSR1) && !sigismember(&blocked, SIGALRM));
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

static void *sleeper(void *unused) {
    (void)unused;
    while (!stop) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        struct timespec time = {0, 3000000};
        while (nanosleep(&time, &time) != 0) {}
        clock_gettime(CLOCK_MONOTONIC, &after);
        long slept = (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
        EXPECT(slept >= 2990000);
        EXPECT(poll(NULL, 0, 1) == 0 || stop || alarms);
    }
    return NULL;
}

static void *epoller(void *unused) {
    (void)unused;
    int queue = epoll_create1(0);
    sigset_t none;
    sigfillset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    while (!stop) {
        struct epoll_event event;
        /* No signal gets here: EINTR could only come from a stop that was not mended. */
        EXPECT(epoll_wait(queue, &event, 1, 3) == 0);
    }
    return NULL;
}

static void *allocator(void *unused) {
    (void)unused;
    void *kept[64] = {0};
    for (unsigned i = 1; !stop; i = i * 1103515245 + 12345) {
        unsigned at = i >> 8 & 63;
        free(kept[at]);
        kept[at] = malloc(16 + (i >> 16) % 100000);
        *(char *)kept[at] = 1;
    }
    for (int i = 0; i < 64; i++) free(kept[i]);
    return NULL;
}

static void *loader(void *unused) {
    (void)unused;
    while (!stop) {
        void *handle = dlopen(other_library, RTLD_NOW);
        EXPECT(handle != NULL);
        if (handle) {
            EXPECT(dlsym(handle, "answer") != NULL);
            dlclose(handle);
        }
        atomic_fetch_add(&reloads, 1);
    }
    return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *conditional(void *unused) {
    (void)unused;
    while (!stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 2000000;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
        pthread_mutex_lock(&lock);
        pthread_cond_timedwait(&changed, &lock, &until);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *child(void *argument) {
    atomic_fetch_add(&born, 1);
    usleep(200);
    return argument;
}

static void *parent(void *unused) {
    (void)unused;
    while (!stop) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, child, (void *)i);
        for (long i = 0; i < 4; i++) {
            void *answer;
            pthread_join(threads[i], &answer);
            EXPECT(answer == (void *)i);
        }
    }
    return NULL;
}

static void on_alarm(int signal) {
    (void)signal;
    atomic_fetch_add(&alarms, 1);
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    other_library = arguments[1];
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    struct itimerval timer = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &timer, NULL);
    void *(*works[12])(void *) = {holder, holder, holder, sleeper, epoller, allocator,
                                  allocator, loader, loader, conditional, parent, holder};
    pthread_t threads[12];
    for (long i = 0; i < 12; i++) pthread_create(&threads[i], NULL, works[i], (void *)(i * 1000003));
    puts("ready");
    fflush(stdout);
    char letter;
    while (read(0, &letter, 1) != 0) {}
    stop = 1;
    for (int i = 0; i < 12; i++) pthread_join(threads[i], NULL);
    printf("errors %d rounds %d alarms %d born %d reloads %d\n", errors, rounds, alarms, born, reloads);
    return errors != 0;
}
