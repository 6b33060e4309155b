// The steps of all programs as one graph, of which play and flow simulate the time: bytes, partners, dependencies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "palmette/plan/plan.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::model {

inline constexpr std::uint32_t no_step = UINT32_MAX;

/// One step of one rank; indices number the steps of all ranks consecutively.
struct GraphStep {
    double bytes = 0;
    std::uint32_t rank = 0;
    std::uint32_t partner = no_step;  ///< the other side of a message, the expose of a pull, the last pull of an expose
    std::uint32_t missing = 0;        ///< unsatisfied dependencies
    std::uint32_t pair = 0;           ///< send: index of the ordered pair of ranks; expose: outstanding pulls
    std::uint16_t stage = 0;
    plan::StepKind kind = plan::StepKind::send;
    std::uint8_t level = 0;  ///< message: the outermost level that tells both ranks apart
    bool in_node = false;    ///< message or pull: between ranks of a node
    bool staged = false;     ///< message: non-contiguous blocks, packed or unpacked
    bool copied = false;     ///< expose: readers get a copy
};

/// Programs are added one by one, so that a caller may discard each of them; of a step only a GraphStep and its
/// dependents are kept.
class StepGraph {
  public:
    /// `job`, `request` and `block_bytes` must outlive this.
    StepGraph(const topology::Job& job, const plan::Request& request, const std::vector<std::int64_t>& block_bytes);

    /// Programs must be added in rank order. Throws base::Error on lengths whose number isn't that of blocks.
    void add(const plan::Program& program);
    /// Matches sends with recvs, in order, and pulls with exposes. Throws base::Error on an unmatched step.
    void match();

    std::vector<GraphStep> steps;
    std::vector<std::string> stages;
    std::uint32_t pairs = 0;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;  ///< bytes of all messages

    /// The steps that depend on one, ascending.
    std::span<const std::uint32_t> waiters(std::uint32_t step) const {
        return std::span(waiters_).subspan(first_waiter_[step], first_waiter_[step + 1] - first_waiter_[step]);
    }

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
    std::size_t node_level_;
    std::vector<End> sends_, recvs_, exposes_, pulls_;
    std::vector<std::uint32_t> first_waiter_, waiters_;
};

}  // namespace palmette::model
