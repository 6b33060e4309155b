/* A host that knows nothing of MPI and opens a plug-in in a scope of its own. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
    if (!plugin) return fprintf(stderr, "%s\n", dlerror()), 3;
    int (*work)(void) = (int (*)(void))dlsym(plugin, "work");
    return work ? work() : 4;
}
