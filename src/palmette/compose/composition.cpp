#include "palmette/compose/composition.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::compose {

using base::cat;
using base::fail;

RankSet RankSet::of(std::vector<std::int32_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    RankSet out;
    for (const std::int32_t rank : ranks) {
        if (!out.rest_.empty() && out.rest_.back().end() == rank)
            ++out.rest_.back().count;
        else
            out.rest_.push_back({rank, 1});
    }
    if (out.rest_.size() == 1) {
        out.first_ = out.rest_.front();
        out.rest_.clear();
    }
    return out;
}

bool RankSet::contains(std::int32_t rank) const {
    if (rest_.empty()) return first_.first <= rank && rank < first_.end();
    const auto after = std::upper_bound(rest_.begin(), rest_.end(), rank,
                                        [](std::int32_t r, const Interval& run) { return r < run.first; });
    return after != rest_.begin() && rank < (after - 1)->end();
}

std::int64_t RankSet::count_in(std::int32_t first, std::int32_t end) const {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < runs(); ++i)
        total += std::max(std::int64_t{0},
                          std::min<std::int64_t>(run(i).end(), end) - std::max<std::int64_t>(run(i).first, first));
    return total;
}

std::int32_t RankSet::next(std::int32_t first) const {
    for (std::size_t i = 0; i < runs(); ++i)
        if (run(i).end() > first) return static_cast<std::int32_t>(std::max<std::int64_t>(run(i).first, first));
    return -1;
}

Lengths Lengths::uniform(std::int64_t blocks, std::int64_t bytes) {
    Lengths out;
    out.blocks_ = blocks, out.bytes_ = bytes;
    return out;
}

Lengths Lengths::cut(std::int64_t blocks, std::int64_t total_bytes, std::int64_t element_bytes) {
    Lengths out = uniform(blocks, total_bytes);
    out.kind_ = Kind::cut, out.element_ = element_bytes;
    return out;
}

Lengths Lengths::rule(std::int64_t blocks, std::function<std::int64_t(std::int64_t)> bytes_of) {
    Lengths out;
    out.kind_ = Kind::rule, out.blocks_ = blocks, out.bytes_of_ = std::move(bytes_of);
    return out;
}

Lengths Lengths::some(std::int64_t blocks, std::vector<std::pair<std::int64_t, std::int64_t>> bytes) {
    return rule(blocks, [bytes = std::move(bytes)](std::int64_t b) {
        const auto at = std::lower_bound(bytes.begin(), bytes.end(), std::pair(b, std::int64_t{0}));
        if (at == bytes.end() || at->first != b) fail("the length of block ", b, " isn't known to this rank");
        return at->second;
    });
}

Lengths Lengths::list(std::vector<std::int64_t> bytes) {
    const auto blocks = static_cast<std::int64_t>(bytes.size());
    return rule(blocks, [bytes = std::move(bytes)](std::int64_t b) { return bytes[static_cast<std::size_t>(b)]; });
}

std::int64_t Lengths::operator[](std::int64_t block) const {
    switch (kind_) {
        case Kind::uniform:
            return bytes_;
        case Kind::cut: {
            // As plan::cut_begin, which the plans of vectors use.
            const std::int64_t elements = bytes_ / element_;
            const auto begin = [&](std::int64_t b) {
                return elements / blocks_ * b + elements % blocks_ * b / blocks_;
            };
            return (begin(block + 1) - begin(block)) * element_;
        }
        case Kind::rule:
            return bytes_of_(block);
    }
    return 0;
}

Composition::Composition(std::int32_t ranks, Lengths lengths, std::int64_t element_bytes)
    : ranks_(ranks), lengths_(std::move(lengths)), element_bytes_(element_bytes) {
    if (ranks < 1) fail("a composition needs at least one rank, not ", ranks);
    if (lengths_.blocks() < 0) fail("a composition can't have ", lengths_.blocks(), " blocks");
    if (element_bytes < 1) fail("an element can't have ", element_bytes, " bytes");
}

Buffer Composition::buffer(std::string_view name) {
    auto at = std::find(buffers_.begin(), buffers_.end(), name);
    if (at == buffers_.end()) {
        if (buffers_.size() == plan::most_caller_buffers)
            fail("buffer '", name, "': a composition has at most ", plan::most_caller_buffers, " buffers");
        at = buffers_.insert(buffers_.end(), std::string(name));
    }
    return plan::caller_buffer(static_cast<std::size_t>(at - buffers_.begin()));
}

std::uint8_t Composition::operation(Operation operation) {
    if (operations_.size() == 256) fail("operation '", operation.name, "': a composition has at most 256 operations");
    operations_.push_back(std::move(operation));
    return static_cast<std::uint8_t>(operations_.size() - 1);
}

void Composition::hold(Rank rank, Buffer buffer, Interval blocks) {
    if (rank.value < 0 || rank.value >= ranks_)
        fail("hold: rank ", rank, " is outside of a composition of ", ranks_, " ranks");
    if (blocks.first < 0 || blocks.count < 0 || blocks.end() > lengths_.blocks())
        fail("hold: blocks ", blocks.first, " to ", blocks.end() - 1, " are outside of 0 to ", lengths_.blocks() - 1);
    held_.push_back({rank, buffer, blocks});
}

void Composition::check(const Primitive& primitive) const {
    const auto complain = [&](const auto&... parts) {
        fail(primitive.reduces ? "reduce to rank " : "multicast from rank ", primitive.root, ": ", parts...);
    };
    if (primitive.root.value < 0 || primitive.root.value >= ranks_)
        complain("there are only the ranks 0 to ", ranks_ - 1);
    if (primitive.others.runs() == 0)
        complain(primitive.reduces ? "no rank contributes; name at least one" : "no rank receives; name at least one");
    if (primitive.others.least() < 0 || primitive.others.most() >= ranks_)
        complain("rank ", primitive.others.least() < 0 ? primitive.others.least() : primitive.others.most(),
                 " of its set is outside of 0 to ", ranks_ - 1);
    const Interval& blocks = primitive.blocks;
    if (blocks.first < 0 || blocks.count < 1 || blocks.end() > lengths_.blocks())
        complain("blocks ", blocks.first, " to ", blocks.end() - 1, " are none of the blocks 0 to ",
                 lengths_.blocks() - 1);
    for (const Buffer buffer : {primitive.source, primitive.target})
        if (plan::is_scratch(buffer) || plan::caller_index(buffer) >= buffers_.size())
            complain("buffer ", plan::caller_index(buffer), " has no name; ask the composition for it with buffer()");
    if (primitive.reduces && primitive.operation >= operations_.size())
        complain("operation ", static_cast<int>(primitive.operation), " of ", operations_.size(),
                 "; add it with operation()");
}

void Composition::add(Primitive primitive) {
    check(primitive);
    items_.push_back({phases_, std::move(primitive), nullptr});
}

void Composition::multicast(Rank from, RankSet to, Buffer source, Interval blocks, Buffer target) {
    add({false, from, std::move(to), blocks, source, target, 0});
}

void Composition::reduce(RankSet from, Rank to, Buffer source, Interval blocks, Buffer target, std::uint8_t operation) {
    add({true, to, std::move(from), blocks, source, target, operation});
}

void Composition::rule(std::function<void(const Emit&)> generate) {
    items_.push_back({phases_, {}, std::move(generate)});
}

void Composition::visit(const Visit& visit) const {
    for (const Item& item : items_) {
        if (!item.generate) {
            visit(item.phase, item.primitive);
            continue;
        }
        item.generate([&](const Primitive& primitive) {
            check(primitive);
            visit(item.phase, primitive);
        });
    }
}

}  // namespace palmette::compose
