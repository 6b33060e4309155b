// Which operations the service takes.
#pragma once

#include "palmette/aggregate/frame.hpp"

namespace palmette::aggregate {

/// Whether a profile with only SHARP's types and operations has it: integers and reals of 16, 32 and 64 bits, no
/// products, no pairs.
bool sharp_has(kernels::Operator op, kernels::Element element) noexcept;

/// Whether the collective combines the contributions of all members; else one member's go to the others.
constexpr bool combines(Collective collective) {
    return collective == Collective::allreduce || collective == Collective::reduce ||
           collective == Collective::reduce_scatter;
}

/// Reason::none or unsupported.
Reason supported(Collective collective, kernels::Operator op, kernels::Element element, bool only_sharp) noexcept;

}  // namespace palmette::aggregate
