// What a composition does to real bytes, worked out primitive by primitive.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "palmette/compose/composition.hpp"
#include "palmette/compose/promise.hpp"
#include "support/real_bytes.hpp"

namespace palmette::test {

/// Plays a composition's primitives on real bytes, phase by phase.
class PlayedComposition {
  public:
    explicit PlayedComposition(const compose::Composition& composition)
        : composition_(composition), holdings_(composition) {
        for (std::int32_t r = 0; r < composition.ranks(); ++r)
            for (std::size_t b = 0; b < composition.buffers().size(); ++b)
                visit_blocks(r, b, [&](std::int64_t block, std::int64_t) {
                    auto& bytes = state_[{r, b, block}];
                    bytes.resize(static_cast<std::size_t>(composition.lengths()[block]));
                    for (std::size_t i = 0; i < bytes.size(); i += 8) {
                        const auto seed =
                            static_cast<std::uint32_t>(r * 7919 + static_cast<int>(b) * 31 + block * 104729);
                        const Affine one{1, (seed + static_cast<std::uint32_t>(i)) * 2654435761U};
                        std::memcpy(bytes.data() + i, &one, 8);
                    }
                });
        before_ = state_;
    }

    /// A rank's buffer, with blocks in the order and at the places of the caller's.
    std::vector<char> buffer(std::int32_t rank, std::size_t buffer, bool after) const {
        std::vector<char> out;
        for (const plan::Interval& interval : holdings_.of(plan::Rank{rank}, plan::caller_buffer(buffer)).intervals())
            for (std::int64_t block = interval.first; block < interval.end(); ++block) {
                const auto& bytes = (after ? state_ : before_).at({rank, buffer, block});
                out.insert(out.end(), bytes.begin(), bytes.end());
            }
        return out;
    }

    void play() {
        std::int32_t now = 0;
        auto read = state_;
        AffineMemory memory;
        composition_.visit([&](std::int32_t phase, const compose::Primitive& primitive) {
            if (phase != now) read = state_;
            now = phase;
            const std::size_t source = plan::caller_index(primitive.source),
                              target = plan::caller_index(primitive.target);
            for (std::int64_t block = primitive.blocks.first; block < primitive.blocks.end(); ++block) {
                bool first = true;
                for (std::int32_t r = primitive.others.next(0); r >= 0; r = primitive.others.next(r + 1)) {
                    if (!primitive.reduces) {
                        state_[{r, target, block}] = read.at({primitive.root.value, source, block});
                        continue;
                    }
                    auto& sum = state_[{primitive.root.value, target, block}];
                    const auto& mine = read.at({r, source, block});
                    if (first)
                        sum = mine;
                    else
                        memory.combine(0, sum.data(), mine.data(), sum.data(), static_cast<std::int64_t>(sum.size()));
                    first = false;
                }
            }
        });
    }

  private:
    template <class Visit>
    void visit_blocks(std::int32_t rank, std::size_t buffer, Visit visit) const {
        for (const plan::Interval& interval : holdings_.of(plan::Rank{rank}, plan::caller_buffer(buffer)).intervals())
            for (std::int64_t block = interval.first; block < interval.end(); ++block) visit(block, 0);
    }

    const compose::Composition& composition_;
    compose::Holdings holdings_;
    std::map<std::tuple<std::int32_t, std::size_t, std::int64_t>, std::vector<char>> state_, before_;
};

}  // namespace palmette::test
