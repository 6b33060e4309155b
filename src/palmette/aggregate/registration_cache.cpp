#include "palmette/aggregate/registration_cache.hpp"

#include <algorithm>
#include <iterator>

namespace palmette::aggregate {
namespace {

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

void RegistrationCache::allow(const void* memory, std::size_t bytes) {
    std::uint64_t begin = address_of(memory), end = begin + bytes;
    if (bytes == 0) return;
    const std::lock_guard guard(mutex_);
    auto next = allowed_.upper_bound(begin);
    if (next != allowed_.begin() && std::prev(next)->second >= begin) --next;
    while (next != allowed_.end() && next->first <= end) {
        begin = std::min(begin, next->first);
        end = std::max(end, next->second);
        next = allowed_.erase(next);
    }
    allowed_.emplace(begin, end);
}

void RegistrationCache::withdraw(const void* memory, std::size_t bytes) noexcept {
    const std::uint64_t begin = address_of(memory), end = begin + bytes;
    const std::lock_guard guard(mutex_);
    ranges_.invalidate(0, begin, static_cast<std::int64_t>(bytes));
    auto next = allowed_.upper_bound(begin);
    if (next != allowed_.begin() && std::prev(next)->second > begin) --next;
    while (next != allowed_.end() && next->first < end) {
        const auto [first, last] = *next;
        next = allowed_.erase(next);
        if (first < begin) allowed_.emplace(first, begin);
        if (last > end) next = allowed_.emplace(end, last).first;
    }
}

RegistrationCache::Registration* RegistrationCache::take(const void* memory, std::size_t bytes, Extent extent) {
    const std::uint64_t begin = address_of(memory);
    const std::lock_guard guard(mutex_);
    const auto around = allowed(begin, begin + bytes);
    if (around == allowed_.end()) {
        if (others_ == Others::trusted) return ranges_.take(0, begin, static_cast<std::int64_t>(bytes));
        ++foreign_;
        return nullptr;
    }
    const std::uint64_t all = around->second - around->first;
    if (extent == Extent::allowed && all <= static_cast<std::uint64_t>(bounds_.bytes) / 2)
        return ranges_.take(0, around->first, static_cast<std::int64_t>(all));
    return ranges_.take(0, begin, static_cast<std::int64_t>(bytes));
}

void RegistrationCache::release(Registration* registration) noexcept {
    const std::lock_guard guard(mutex_);
    ranges_.release(registration);
}

RegistrationCache::Counts RegistrationCache::counts() const {
    const std::lock_guard guard(mutex_);
    Counts out{};
    static_cast<base::RangeCache::Counts&>(out) = ranges_.counts();
    out.foreign = foreign_;
    return out;
}

std::int64_t RegistrationCache::entries() const {
    const std::lock_guard guard(mutex_);
    return ranges_.entries();
}

std::int64_t RegistrationCache::bytes() const {
    const std::lock_guard guard(mutex_);
    return ranges_.bytes();
}

std::uintptr_t RegistrationCache::hold(int, std::uint64_t begin, std::int64_t bytes) {
    return registrar_.register_memory(reinterpret_cast<void*>(begin), static_cast<std::size_t>(bytes));
}

void RegistrationCache::drop(std::uintptr_t handle, std::int64_t) noexcept { registrar_.unregister_memory(handle); }

std::map<std::uint64_t, std::uint64_t>::const_iterator RegistrationCache::allowed(std::uint64_t begin,
                                                                                  std::uint64_t end) const {
    const auto after = allowed_.upper_bound(begin);
    return end >= begin && after != allowed_.begin() && std::prev(after)->second >= end ? std::prev(after)
                                                                                        : allowed_.end();
}

}  // namespace palmette::aggregate
