#include "palmette/runtime/compare/verdicts.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"
#include "palmette/base/hash.hpp"

namespace palmette::runtime {

Verdicts::Verdicts(const Verdicts& other) {
    const std::lock_guard lock(other.mutex_);
    entries_ = other.entries_;
}

void Verdicts::add(const CallKind& kind, const std::string& algorithm, bool won) {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find_if(
        entries_, [&](const Entry& entry) { return entry.kind == kind && entry.algorithm == algorithm; });
    if (known == entries_.end())
        entries_.push_back({kind, algorithm, won});
    else
        known->won = won;
}

std::vector<std::string> Verdicts::lost(const CallKind& kind) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const Entry& entry : entries_)
        if (entry.kind == kind && !entry.won) out.push_back(entry.algorithm);
    return out;
}

bool Verdicts::has_won(const CallKind& kind, const std::string& algorithm) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        entries_, [&](const Entry& entry) { return entry.won && entry.kind == kind && entry.algorithm == algorithm; });
}

void Verdicts::clear() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
}

std::uint64_t Verdicts::digest() const {
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) return 0;
    std::uint64_t hash = base::fnv1a_start;
    for (const Entry& entry : entries_)
        base::hash_append(
            hash, base::cat(static_cast<int>(entry.kind.function), ' ', entry.kind.size_class, ' ', entry.kind.ordered,
                            ' ', entry.kind.exact, ' ', entry.algorithm, ' ', entry.won));
    return hash;
}

}  // namespace palmette::runtime
