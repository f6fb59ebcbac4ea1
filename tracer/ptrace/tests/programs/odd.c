/* One thread that does what its argument says, after it has printed "ready". */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void ready(void) {
    puts("ready");
    fflush(stdout);
}

static void wait_in_handler(int signal) {
    (void)signal;
    ready();
    for (;;) pause();
}

static volatile sig_atomic_t signals;
static void count(int signal) {
    (void)signal;
    signals++;
}

int main(int arguments, char **argument) {
    const char *what = arguments > 1 ? argument[1] : "";
    if (strcmp(what, "computes") == 0) {
        ready();
        for (volatile unsigned long i = 0;; i++) {}
    }
    if (strcmp(what, "handler") == 0) {
        stack_t alternate = {.ss_sp = malloc(256 * 1024), .ss_size = 256 * 1024};
        sigaltstack(&alternate, NULL);
        struct sigaction action = {.sa_handler = wait_in_handler, .sa_flags = SA_ONSTACK};
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
    }
    if (strcmp(what, "mutex") == 0) {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&lock);
        ready();
        pthread_mutex_lock(&lock);
    }
    if (strcmp(what, "reads") == 0) {
        struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
        sigaction(SIGUSR1, &action, NULL);
        sigaction(SIGRTMIN + 3, &action, NULL);
        ready();
        char line[64];
        while (fgets(line, sizeof line, stdin)) {
            printf("signals %d after %s", (int)signals, line);
            fflush(stdout);
        }
        return 0;
    }
    return 1;
}
