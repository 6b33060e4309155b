// A plan's steps as a dependency graph for the flow simulation: numbered consecutively, sends matched with recvs.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::model {

/// Steps of all ranks; a step's number is first_of[rank] + its StepId.
struct FlowSteps {
    using Id = std::uint32_t;
    static constexpr Id none = 0xffffffff;

    struct Step {
        plan::StepKind kind = plan::StepKind::send;
        bool copied = false;
        std::uint16_t unread = 0;  ///< expose: pulls that haven't read it yet
        std::int32_t rank = 0;
        Id partner = none;          ///< the other side of a message; the expose of a pull
        std::uint32_t missing = 0;  ///< unsatisfied dependencies
        Id connection = none;       ///< send: ordered pair of ranks, where it has more than one message
        std::int64_t bytes = 0;     ///< sent, copied, read or combined
    };

    std::vector<Step> steps;
    std::vector<Id> first_of;                 ///< by rank, and the end
    std::vector<std::uint32_t> followers_of;  ///< where each step's list begins, and the end
    std::vector<Id> followers;                ///< dependent steps, ascending
    std::vector<std::uint32_t> readers_of;    ///< of exposes
    std::vector<Id> readers;
    Id connections = 0;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;  ///< of all messages

    /// Throws base::Error on a plan with unmatched messages (the verifier gives details), and where the number of
    /// lengths isn't that of blocks.
    FlowSteps(const plan::Plan& plan, const plan::Job& job, const std::vector<std::int64_t>& block_bytes);

  private:
    void pair(const plan::Plan& plan);
    void follow(const plan::Plan& plan);
};

}  // namespace palmette::model
