// Matches messages and simulates all programs of a plan in dependency order, with synchronous sends; detects deadlocks.
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
/// the send, partner its recv) and every pull (step is the expose, partner the pull), each after all its dependencies,
/// with sends as synchronous: a send completes only when its recv has started, an expose when all its readers have (one
/// that copies: at once). Messages are matched by (sender, receiver, tag), so the outcome doesn't depend on the order
/// of the walk; if this walk completes, every progress order does. Returns the first error: an unmatched step, or one
/// that can never start (deadlock).
std::optional<std::string> for_each_in_order(const Plan& plan,
                                             const std::function<void(StepRef, const StepRef*)>& visit);

}  // namespace palmette::plan
