// Memory of zeros that is there before it is used, so that no signal handler waits for the kernel to find it, and is
// never given back: they may use it to the end.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace palmette::record {

/// An array on a page of its own, whose values are all right as zeros.
template <class Value>
Value* zeroed(std::size_t count) {
    void* const memory =
        mmap(nullptr, count * sizeof(Value), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<Value*>(memory);
}

}  // namespace palmette::record
