// The steps of all programs, reduced to what the simulation needs: bytes, partners and dependencies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palmette/plan/plan.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::model {

inline constexpr std::uint32_t no_step = UINT32_MAX;

/// One step of one rank; indices number the steps of all ranks consecutively.
struct SimulatedStep {
    double bytes = 0;
    std::uint32_t rank = 0;
    std::uint32_t partner = no_step;  ///< the other side of a message, the expose of a pull, the last pull of an expose
    std::uint32_t missing = 0;        ///< unsatisfied dependencies
    std::uint32_t pair = 0;           ///< send: index of the ordered pair of ranks; expose: outstanding pulls
    std::uint16_t stage = 0;
    plan::StepKind kind = plan::StepKind::send;
    std::uint8_t level = 0;  ///< message: the outermost level that tells both ranks apart
    bool staged = false;     ///< message: non-contiguous blocks, packed or unpacked
    bool copied = false;     ///< expose: readers get a copy
};

/// Programs are added one by one, so that a caller may discard each of them; of a step only a SimulatedStep and its
/// dependents are kept.
class SimulatedSteps {
  public:
    /// `job`, `request` and `block_bytes` must outlive this.
    SimulatedSteps(const topology::Job& job, const plan::Request& request,
                   const std::vector<std::int64_t>& block_bytes);

    /// Programs must be added in rank order.
    void add(const plan::Program& program);
    /// Matches sends with recvs and pulls with exposes. Throws base::Error on an unmatched step.
    void match();

    std::vector<SimulatedStep> steps;
    std::vector<std::string> stages;
    std::uint32_t pairs = 0;

    const std::uint32_t* waiters_begin(std::uint32_t step) const { return waiters_.data() + first_waiter_[step]; }
    const std::uint32_t* waiters_end(std::uint32_t step) const { return waiters_.data() + first_waiter_[step + 1]; }

  private:
    struct End {
        std::int32_t from, to, tag;
        std::uint32_t step;
    };

    void link_waiters(const plan::Program& program, std::uint32_t first);
    bool is_staged(const plan::Program& program, const plan::Step& step) const;
    std::uint16_t stage_named(const std::string& name);

    const topology::Job& job_;
    const plan::Request& request_;
    const std::vector<std::int64_t>& block_bytes_;
    std::vector<End> sends_, recvs_, exposes_, pulls_;
    std::vector<std::uint32_t> first_waiter_, waiters_;
};

}  // namespace palmette::model
