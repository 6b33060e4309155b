/* Which names of palmette's preload libraries are there for a program, and whether its MPI has them: by weak
   references, which the loader binds, and by dlsym, before MPI_Init and after it.

   names.inc: NAME(x) for each name. LIBRARY: built as a plug-in, whose `work` is called. Argument: the MPI's library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NAME(name) extern char name[] __attribute__((weak));
#include "names.inc"
#undef NAME

static const struct {
    const char *name;
    char *weak;
} names[] = {
#define NAME(name) {#name, name},
#include "names.inc"
#undef NAME
};
enum { count = sizeof names / sizeof *names };

static int cases, wrong;

/* Fortran's layer is a library of its own. */
static int is_of_c(const char *name) {
    int lower = 0;
    for (const char *c = name + 4; *c; ++c) lower |= *c >= 'a' && *c <= 'z';
    return name[0] == 'M' && lower;
}

/* What is there and is palmette's, the MPI must have. What the MPI has must be there. */
static void check(const char *when, const char *name, void *found, void *of_mpi) {
    Dl_info info = {0};
    const int is_ours =
        found && dladdr(found, &info) && info.dli_fname && strstr(info.dli_fname, "libpalmette_") != NULL;
    ++cases;
    if ((is_ours && !of_mpi) || (!found && of_mpi)) {
        ++wrong;
        printf("%s: %s is %s, and the MPI %s it\n", when, name, !found ? "missing" : "palmette's",
               of_mpi ? "has" : "lacks");
    }
}

#if defined(LIBRARY)
int work(const char *library) {
#else
int main(int argc, char **argv) {
    const char *const library = argv[1];
    (void)argc;
#endif
    void *const mpi = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (!mpi) {
        puts(dlerror());
        return 1;
    }
    int ours = 0;
    for (int started = 0; started < 2; ++started) {
        if (started) ((int (*)(int *, char ***))(void *)MPI_Init)(NULL, NULL);
        for (int i = 0; i < count; ++i) {
            if (!is_of_c(names[i].name)) continue;
            void *const of_mpi = dlsym(mpi, names[i].name);
            void *const found = dlsym(RTLD_DEFAULT, names[i].name);
            /* A plug-in's MPI is in a scope of its own. */
#if defined(LIBRARY)
            if (found)
#endif
                check(started ? "dlsym after MPI_Init" : "dlsym before MPI_Init", names[i].name, found, of_mpi);
            if (!started) check("weak reference", names[i].name, names[i].weak, of_mpi);
            Dl_info info = {0};
            ours += names[i].weak && dladdr(names[i].weak, &info) && strstr(info.dli_fname, "libpalmette_") != NULL;
        }
    }
    ((int (*)(void))(void *)MPI_Finalize)();
    printf("%d of palmette's\n%d cases, %d wrong\n", ours, cases, wrong);
    return wrong != 0;
}
