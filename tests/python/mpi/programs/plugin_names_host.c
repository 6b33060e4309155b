/* Opens the plug-in that is its first argument, and calls its `work` with the second. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *const plugin = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin) {
        puts(dlerror());
        return 1;
    }
    return ((int (*)(const char *))dlsym(plugin, "work"))(argv[2]);
}
