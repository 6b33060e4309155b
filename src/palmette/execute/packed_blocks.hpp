// Layout of a composition's blocks in the caller's buffers: packed without gaps.
#pragma once

#include <map>
#include <vector>

#include "palmette/compose/factor.hpp"
#include "palmette/compose/promise.hpp"
#include "palmette/execute/binding.hpp"

namespace palmette::execute {

/// Offsets of one rank's blocks: ascending, without gaps, each cut in stripes.
class PackedBlocks : public Places {
  public:
    PackedBlocks(const compose::Composition& composition, std::int32_t stripes, base::Rank rank)
        : composition_(composition), stripes_(stripes) {
        const compose::Holdings holdings(composition, rank.value);
        for (std::size_t b = 0; b < composition.buffers().size(); ++b) {
            std::map<std::int64_t, std::int64_t>& at = at_.emplace_back();
            std::int64_t end = 0;
            for (const plan::Interval& interval : holdings.of(rank, plan::caller_buffer(b)).intervals())
                for (std::int64_t block = interval.first; block < interval.end(); ++block) {
                    at[block] = end;
                    end += composition.lengths()[block];
                }
            bytes_.push_back(end);
        }
    }
    std::int64_t length(std::int64_t block) const override {
        return compose::bytes_of_stripe(composition_, stripes_, block);
    }
    std::int64_t offset(plan::Buffer buffer, std::int64_t block) const override {
        return at_[plan::caller_index(buffer)].at(block / stripes_) +
               plan::cut_begin(composition_.lengths()[block / stripes_], stripes_, composition_.element_bytes(),
                               block % stripes_);
    }
    const std::vector<std::int64_t>& bytes() const { return bytes_; }

  private:
    const compose::Composition& composition_;
    std::int32_t stripes_;
    std::vector<std::map<std::int64_t, std::int64_t>> at_;
    std::vector<std::int64_t> bytes_;
};

}  // namespace palmette::execute
