// Which of MPI's operations on which elements a group of switches combines.
#pragma once

#include <cstdint>
#include <optional>

#include "palmette/aggregate/sharp/api.hpp"
#include "palmette/kernels/kernels.hpp"

namespace palmette::aggregate::sharp {

/// Nothing where SHARP has no such type: complex and logical numbers, pairs, long double.
std::optional<DataType> type_of(kernels::Element element) noexcept;
/// Nothing for products, which no switch has, though the library's interface has a number for them, and for the
/// operations with places.
std::optional<ReduceOp> op_of(kernels::Operator op) noexcept;

/// What the library says of the switches, in two masks that leaders compare.
struct Combines {
    std::uint64_t types = 0, ops = 0;  ///< bit i: DataType, ReduceOp i

    static Combines of(const Capabilities& capabilities) noexcept;
    bool operator()(kernels::Operator op, kernels::Element element) const noexcept;
    friend bool operator==(const Combines&, const Combines&) = default;
};

}  // namespace palmette::aggregate::sharp
