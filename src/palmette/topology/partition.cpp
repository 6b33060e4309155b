#include "palmette/topology/partition.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::topology {

Partition Partition::even(std::int32_t size, std::int32_t group_size) {
    if (group_size < 1) base::fail("a group needs at least one position, not ", group_size);
    Partition out;
    out.size_ = size;
    out.even_size_ = group_size;
    out.largest_ = std::min(size, group_size);
    out.smallest_ = size % group_size > 0 ? size % group_size : out.largest_;
    return out;
}

Partition Partition::from_firsts(std::int32_t size, std::vector<std::int32_t> firsts) {
    if (size > 0 && (firsts.empty() || firsts.front() != 0)) base::fail("groups of positions must begin at 0");
    for (std::size_t i = 1; i < firsts.size(); ++i)
        if (firsts[i] <= firsts[i - 1])
            base::fail("groups of positions must ascend: group ", i, " begins at ", firsts[i]);
    if (!firsts.empty() && firsts.back() >= size)
        base::fail("group ", firsts.size() - 1, " begins past the last position");
    const std::int32_t group = firsts.size() > 1 ? firsts[1] : std::max(size, 1);
    bool even = true;
    for (std::size_t i = 0; i < firsts.size(); ++i) even = even && firsts[i] == static_cast<std::int32_t>(i) * group;
    if (!firsts.empty()) even = even && size - firsts.back() <= group;
    if (even) return Partition::even(size, group);
    Partition out;
    out.size_ = size;
    out.firsts_ = std::move(firsts);
    out.smallest_ = size;
    for (std::int32_t g = 0; g < out.count(); ++g) {
        out.largest_ = std::max(out.largest_, out.size_of(g));
        out.smallest_ = std::min(out.smallest_, out.size_of(g));
    }
    return out;
}

std::int32_t Partition::count() const {
    if (even_size_ > 0) return size_ / even_size_ + (size_ % even_size_ > 0);
    return static_cast<std::int32_t>(firsts_.size());
}

std::int32_t Partition::group_of(std::int32_t position) const {
    if (even_size_ > 0) return position / even_size_;
    return static_cast<std::int32_t>(std::upper_bound(firsts_.begin(), firsts_.end(), position) - firsts_.begin()) - 1;
}

std::int32_t Partition::first(std::int32_t group) const {
    if (even_size_ > 0)
        return static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{group} * even_size_, size_));
    return group < static_cast<std::int32_t>(firsts_.size()) ? firsts_[static_cast<std::size_t>(group)] : size_;
}

}  // namespace palmette::topology
