#include "palmette/topology/permutation.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::topology {

Permutation Permutation::identity(std::int32_t size) {
    Permutation out;
    out.size_ = size;
    if (size > 0) out.runs_.push_back({0, 0, 1});
    return out;
}

Permutation::Permutation(const std::vector<std::int32_t>& values) : size_(static_cast<std::int32_t>(values.size())) {
    std::vector<bool> seen(values.size(), false);
    for (std::int32_t i = 0; i < size_; ++i) {
        const std::int32_t value = values[static_cast<std::size_t>(i)];
        if (value < 0 || value >= size_ || seen[static_cast<std::size_t>(value)])
            base::fail("not a permutation of 0..", size_ - 1, ": entry ", i, " is ", value);
        seen[static_cast<std::size_t>(value)] = true;
    }
    for (std::int32_t i = 0; i < size_;) {
        const std::int32_t first = values[static_cast<std::size_t>(i)];
        const std::int32_t stride = i + 1 < size_ ? values[static_cast<std::size_t>(i + 1)] - first : 1;
        std::int32_t end = i + 1;
        while (end < size_ && values[static_cast<std::size_t>(end)] == first + (end - i) * stride) ++end;
        runs_.push_back({i, first, stride});
        i = end;
    }
}

Permutation Permutation::from_runs(std::int32_t size, std::vector<Run> runs) {
    std::int32_t previous = -1;
    for (const Run& run : runs) {
        if (run.first_index <= previous || run.first_index >= size)
            base::fail("runs of a permutation must ascend below ", size);
        previous = run.first_index;
    }
    if (size > 0 && (runs.empty() || runs.front().first_index != 0))
        base::fail("runs of a permutation must begin at 0");
    Permutation out;
    out.size_ = size;
    out.runs_ = std::move(runs);
    return out;
}

std::int32_t Permutation::operator[](std::int32_t index) const {
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), index,
                                        [](std::int32_t i, const Run& run) { return i < run.first_index; });
    const Run& run = *(after - 1);
    return run.first_value + (index - run.first_index) * run.stride;
}

}  // namespace palmette::topology
