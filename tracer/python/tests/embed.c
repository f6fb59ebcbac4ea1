/*
 * A program with Python built in, under a name that tells nothing of it:
 *     embed LIBPYTHON          loads the library and starts nothing
 *     embed LIBPYTHON SOURCE   starts an interpreter and runs the source
 * Waits for the end of its standard input, so that it can be looked at.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (argc > 2) {
        void (*initialize)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
        int (*run)(const char *) = (int (*)(const char *))dlsym(library, "PyRun_SimpleString");
        initialize(0);
        return run(argv[2]) != 0;
    }
    puts("loaded");
    fflush(stdout);
    getchar();
    return 0;
}
