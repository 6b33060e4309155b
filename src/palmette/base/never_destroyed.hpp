// Objects that a program may still need while the process ends. Destructors of global objects and functions of atexit
// may call MPI, and run after those of objects that were made later, as ours are; the thread that ends the process has
// lost its thread_local objects even before that. So nothing of ours that has a destructor may be static or
// thread_local by itself: tests/python/test_preload_library.py reads the object files.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <new>
#include <utility>

namespace palmette::base {

/// For a static object: `static const base::NeverDestroyed table(make_table()); return *table;`
template <class T>
class NeverDestroyed {
  public:
    explicit NeverDestroyed(T value) { ::new (static_cast<void*>(room_)) T(std::move(value)); }
    /// Constructs the value in place, for what can't be moved.
    template <class... Arguments>
    explicit NeverDestroyed(std::in_place_t, Arguments&&... arguments) {
        ::new (static_cast<void*>(room_)) T(std::forward<Arguments>(arguments)...);
    }
    NeverDestroyed(const NeverDestroyed&) = delete;
    NeverDestroyed& operator=(const NeverDestroyed&) = delete;

    T& operator*() { return *std::launder(reinterpret_cast<T*>(room_)); }
    const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(room_)); }

  private:
    alignas(T) std::byte room_[sizeof(T)];
};

/// This thread's own T, the same for each use with the same `Tag`; made at its first use. It ends with its thread, but
/// not with the process.
template <class T, class Tag>
T& per_thread() {
    static constinit thread_local T* mine = nullptr;
    if (mine) [[likely]]
        return *mine;
    // Keys' destructors run when a thread ends, and not at exit(). Without a key (there are some thousand) its T is
    // left behind.
    static pthread_key_t key;
    static const bool has_key = pthread_key_create(&key, [](void* object) {
                                    mine = nullptr;
                                    delete static_cast<T*>(object);
                                }) == 0;
    mine = new T;
    if (has_key) pthread_setspecific(key, mine);
    return *mine;
}

}  // namespace palmette::base
