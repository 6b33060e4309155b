#include "folded.h"

#include <smpi/smpi.h>

#include <algorithm>
#include <new>
#include <vector>

namespace {

constexpr std::size_t least_folded = std::size_t{1} << 20;

bool folding = false;
std::vector<void*> folded;

}  // namespace

extern "C" void* folded_memory(size_t bytes) { return SMPI_SHARED_MALLOC(std::max<size_t>(bytes, 1)); }
extern "C" void free_folded_memory(void* memory) { SMPI_SHARED_FREE(memory); }
extern "C" void fold_scratch(bool fold) { folding = fold; }

// Only arrays of bytes are made by new[] in the runtime: scratch and copies of elements. Whatever has pointers in it isn't.
void* operator new[](std::size_t bytes) {
    if (!folding || bytes < least_folded) return ::operator new(bytes);
    folded.reserve(folded.size() + 1);
    void* memory = folded_memory(bytes);
    if (!memory) throw std::bad_alloc();
    folded.push_back(memory);
    return memory;
}

void operator delete[](void* memory) noexcept {
    const auto at = std::find(folded.begin(), folded.end(), memory);
    if (at == folded.end()) return ::operator delete(memory);
    folded.erase(at);
    free_folded_memory(memory);
}

void operator delete[](void* memory, std::size_t) noexcept { operator delete[](memory); }
