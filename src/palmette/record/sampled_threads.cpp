// Threads that samples are taken of begin here: the program's first one, and those that it makes.
#include "palmette/record/sampler.hpp"

#if !defined(PALMETTE_ABI_SMPI)

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace palmette::record {
namespace {

/// What a new thread does.
struct Start {
    void* (*routine)(void*);
    void* argument;
};

void* begin_thread(void* given) {
    const Start start = *static_cast<Start*>(given);
    delete static_cast<Start*>(given);
    sample_this_thread();
    // In the place of this function, so that it is in no stack.
    return start.routine(start.argument);
}

/// The first thread, which nobody makes.
__attribute__((constructor)) void join_first_thread() {
    if (sampling_wish() && static_cast<pid_t>(syscall(SYS_gettid)) == getpid()) sample_this_thread();
}

}  // namespace
}  // namespace palmette::record

extern "C" __attribute__((visibility("default"))) int entry_pthread_create(pthread_t* thread,
                                                                           const pthread_attr_t* attributes,
                                                                           void* (*routine)(void*),
                                                                           void* argument) __asm__("pthread_create");
int entry_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto next = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    if (!next) return EAGAIN;
    if (!palmette::record::sampling_wish()) return next(thread, attributes, routine, argument);
    auto* const start = new (std::nothrow) palmette::record::Start{routine, argument};
    if (!start) return EAGAIN;
    const int code = next(thread, attributes, &palmette::record::begin_thread, start);
    if (code != 0) delete start;
    return code;
}

#endif
