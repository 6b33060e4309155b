#include "palmette/aggregate/sharp/types.hpp"

namespace palmette::aggregate::sharp {

using kernels::Element;
using kernels::Operator;

std::optional<DataType> type_of(Element element) noexcept {
    switch (element) {
        case Element::int8:
            return type_int8;
        case Element::int16:
            return type_int16;
        case Element::int32:
            return type_int32;
        case Element::int64:
            return type_int64;
        case Element::uint8:
        case Element::byte:
            return type_uint8;
        case Element::uint16:
            return type_uint16;
        case Element::uint32:
            return type_uint32;
        case Element::uint64:
            return type_uint64;
        case Element::float16:
            return type_float16;
        case Element::bfloat16:
            return type_bfloat16;
        case Element::float32:
            return type_float32;
        case Element::float64:
            return type_float64;
        default:
            return std::nullopt;
    }
}

std::optional<ReduceOp> op_of(Operator op) noexcept {
    switch (op) {
        case Operator::sum:
            return op_sum;
        case Operator::min:
            return op_min;
        case Operator::max:
            return op_max;
        case Operator::land:
            return op_land;
        case Operator::lor:
            return op_lor;
        case Operator::lxor:
            return op_lxor;
        case Operator::band:
            return op_band;
        case Operator::bor:
            return op_bor;
        case Operator::bxor:
            return op_bxor;
        default:
            return std::nullopt;
    }
}

Combines Combines::of(const Capabilities& capabilities) noexcept {
    return {capabilities.mask.types, capabilities.mask.ops};
}

bool Combines::operator()(Operator op, Element element) const noexcept {
    const auto type = type_of(element);
    const auto operation = op_of(op);
    return type && operation && (types >> *type & 1) != 0 && (ops >> *operation & 1) != 0;
}

}  // namespace palmette::aggregate::sharp
