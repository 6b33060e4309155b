// Walks all programs of a plan together, each message when both of its sides have started.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "palmette/plan/plan.hpp"

namespace palmette::plan {

struct StepRef {
    std::uint32_t rank = 0;
    StepId step = 0;
};

/// Calls `visit(step, partner)` for every copy, reduce and expose as it starts (partner null), every message (step is
/// the send, partner its recv) and every pull (step is the expose, partner the pull), each after all that it waits for,
/// taking sends as synchronous: a send is complete only when its receiver has taken it, an expose when all its readers
/// have (one that copies: at once). Messages are matched by (sender, receiver, tag), so what a step sees doesn't depend
/// on the order of the walk; if this walk gets through, every progress order does. Returns the first complaint: a step
/// without partner, or one that can never start.
std::optional<std::string> for_each_in_order(const Plan& plan,
                                             const std::function<void(StepRef, const StepRef*)>& visit);

}  // namespace palmette::plan
