#include "palmette/compose/promise.hpp"

#include <algorithm>
#include <tuple>

#include "palmette/base/error.hpp"
#include "palmette/base/never_destroyed.hpp"
#include "palmette/compose/factor.hpp"

namespace palmette::compose {
namespace {

plan::Blocks united(std::vector<Interval>& list) {
    std::sort(list.begin(), list.end(), [](const Interval& a, const Interval& b) { return a.first < b.first; });
    plan::Blocks out;
    std::int64_t until = 0;
    for (const Interval& interval : list) {
        const std::int64_t first = std::max(interval.first, until);
        out.insert({first, interval.end() - first});
        until = std::max(until, interval.end());
    }
    return out;
}

template <class Visit>
void each(const RankSet& ranks, Visit visit) {
    for (std::size_t i = 0; i < ranks.runs(); ++i)
        for (std::int64_t r = ranks.run(i).first; r < ranks.run(i).end(); ++r) visit(static_cast<std::int32_t>(r));
}

}  // namespace

Holdings::Holdings(const Composition& composition, std::int32_t only) {
    std::map<std::pair<std::int32_t, Buffer>, std::vector<Interval>> lists;
    const auto note = [&](std::int32_t rank, Buffer buffer, Interval blocks) {
        if (only >= 0 && rank != only) return;
        auto& list = lists[{rank, buffer}];
        // The same blocks again, as a contribution to every rank's result: once only.
        if (list.empty() || !(list.back() == blocks)) list.push_back(blocks);
    };
    composition.visit([&](std::int32_t, const Primitive& primitive) {
        note(primitive.root.value, primitive.reduces ? primitive.target : primitive.source, primitive.blocks);
        const Buffer theirs = primitive.reduces ? primitive.source : primitive.target;
        if (only < 0)
            each(primitive.others, [&](std::int32_t rank) { note(rank, theirs, primitive.blocks); });
        else if (primitive.others.contains(only))
            note(only, theirs, primitive.blocks);
    });
    for (const Composition::Holding& held : composition.held()) note(held.rank.value, held.buffer, held.blocks);
    for (auto& [key, list] : lists) blocks_[key] = united(list);
}

const plan::Blocks& Holdings::of(Rank rank, Buffer buffer) const {
    static const base::NeverDestroyed none{plan::Blocks()};
    const auto at = blocks_.find({rank.value, buffer});
    return at == blocks_.end() ? *none : at->second;
}

Promise::Promise(const Composition& composition, std::int32_t stripes)
    : composition_(composition), stripes_(stripes), holdings_(composition) {}

std::int64_t Promise::bytes_of(std::int64_t block) const { return bytes_of_stripe(composition_, stripes_, block); }

plan::Blocks Promise::holds(Rank rank, Buffer buffer) const {
    plan::Blocks out;
    for (const Interval& interval : holdings_.of(rank, buffer).intervals())
        out.insert({interval.first * stripes_, interval.count * stripes_});
    return out;
}

std::vector<bool> Promise::commutes() const {
    std::vector<bool> out;
    for (const Operation& operation : composition_.operations()) out.push_back(operation.commutative);
    return out;
}

void Promise::evaluate(plan::Terms& terms,
                       const std::function<void(Rank, Buffer, std::int64_t, plan::Contents)>& visit) const {
    using Cell = std::tuple<std::int32_t, Buffer, std::int64_t>;
    std::map<Cell, plan::Contents> changed;
    const auto value = [&](std::int32_t rank, Buffer buffer, std::int64_t block) {
        const auto at = changed.find({rank, buffer, block});
        return at == changed.end() ? terms.leaf(rank, buffer, block) : at->second;
    };
    // Primitives of a phase read the state before it; their writes become visible when it ends.
    std::vector<std::pair<Cell, plan::Contents>> updates;
    std::int32_t now = 0;
    const auto end_phase = [&] {
        for (const auto& [cell, contents] : updates) changed[cell] = contents;
        updates.clear();
    };
    composition_.visit([&](std::int32_t phase, const Primitive& primitive) {
        if (phase != now) end_phase();
        now = phase;
        for (std::int64_t b = primitive.blocks.first * stripes_; b < primitive.blocks.end() * stripes_; ++b) {
            const std::int32_t root = primitive.root.value;
            if (!primitive.reduces) {
                const plan::Contents contents = value(root, primitive.source, b);
                each(primitive.others,
                     [&](std::int32_t rank) { updates.emplace_back(Cell{rank, primitive.target, b}, contents); });
                continue;
            }
            std::optional<plan::Contents> sum;
            std::string why;
            each(primitive.others, [&](std::int32_t rank) {
                const plan::Contents part = value(rank, primitive.source, b);
                sum = sum ? terms.combine(primitive.operation, *sum, part, why) : part;
            });
            // A handle of its own: another reduction of the same contributions may combine them in another association.
            updates.emplace_back(Cell{root, primitive.target, b}, terms.again(*sum));
        }
    });
    end_phase();
    for (std::int32_t r = 0; r < composition_.ranks(); ++r)
        for (std::size_t i = 0; i < buffers(); ++i) {
            const Buffer buffer = plan::caller_buffer(i);
            const plan::Blocks held = holds(Rank{r}, buffer);
            for (const Interval& interval : held.intervals())
                for (std::int64_t b = interval.first; b < interval.end(); ++b)
                    visit(Rank{r}, buffer, b, value(r, buffer, b));
        }
}

}  // namespace palmette::compose
