#include "palmette/node/shared_attach_cache.hpp"

namespace palmette::node {

const char* AttachCache::find(int member, std::uint64_t address, std::int64_t bytes) {
    base::RangeCache::Range* const range = ranges_.take(member, address, bytes);
    if (!range) return nullptr;
    if (range->uses > 1) {
        ranges_.release(range);
    } else {
        found_.push_back(range);
    }
    return reinterpret_cast<const char*>(range->handle) + (address - range->begin);
}

void AttachCache::settle() {
    for (base::RangeCache::Range* const range : found_) ranges_.release(range);
    found_.clear();
}

std::uintptr_t AttachCache::hold(int member, std::uint64_t begin, std::int64_t bytes) {
    return reinterpret_cast<std::uintptr_t>(attacher_.attach(member, begin, bytes));
}

void AttachCache::drop(std::uintptr_t mapped, std::int64_t bytes) noexcept {
    attacher_.detach(reinterpret_cast<char*>(mapped), bytes);
}

}  // namespace palmette::node
