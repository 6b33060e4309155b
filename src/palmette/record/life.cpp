#include "palmette/record/life.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace palmette::record {
namespace {

/// The thread that holds it, of which the kernel keeps account.
constinit thread_local bool holds = false;

bool kernel_watches() {
    void* head = nullptr;
    std::size_t bytes = 0;
    return syscall(SYS_get_robust_list, 0, &head, &bytes) == 0 && head != nullptr;
}

pthread_mutex_t* mutex_of(trace::Life& life) { return reinterpret_cast<pthread_mutex_t*>(life.mutex.data()); }

}  // namespace

void begin_life(trace::Life& life) {
    static_assert(sizeof(pthread_mutex_t) <= sizeof life.mutex && alignof(pthread_mutex_t) <= 8);
    pthread_mutexattr_t attributes;
    if (!kernel_watches() || pthread_mutexattr_init(&attributes) != 0) return;
    auto* const mutex = new (life.mutex.data()) pthread_mutex_t;
    const bool made = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                      pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                      pthread_mutex_init(mutex, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    if (!made || pthread_mutex_lock(mutex) != 0) return;
    // The C library's own word for it has the thread's number in it first.
    const auto thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
    for (std::uint32_t at = 0; at < sizeof life.mutex; at += sizeof thread) {
        std::uint32_t word = 0;
        std::memcpy(&word, life.mutex.data() + at, sizeof word);
        if (word != thread) continue;
        life.word_at = at;
        holds = true;
        life.is_known.store(1, std::memory_order_release);
        return;
    }
    pthread_mutex_unlock(mutex);
}

void end_life(trace::Life& life) {
    if (!holds) return;
    holds = false;
    life.is_known.store(0, std::memory_order_release);
    pthread_mutex_unlock(mutex_of(life));
}

}  // namespace palmette::record
