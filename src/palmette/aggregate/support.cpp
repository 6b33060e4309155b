#include "palmette/aggregate/support.hpp"

namespace palmette::aggregate {

bool sharp_has(kernels::Operator op, kernels::Element element) noexcept {
    using kernels::Element;
    using kernels::Operator;
    if (op == Operator::prod || op == Operator::minloc || op == Operator::maxloc) return false;
    switch (element) {
        case Element::int16:
        case Element::int32:
        case Element::int64:
        case Element::uint16:
        case Element::uint32:
        case Element::uint64:
        case Element::float16:
        case Element::float32:
        case Element::float64:
            return true;
        default:
            return false;
    }
}

Reason supported(Collective collective, kernels::Operator op, kernels::Element element, bool only_sharp) noexcept {
    if (!combines(collective)) return collective == Collective::none ? Reason::unsupported : Reason::none;
    if (kernels::kernel_for(op, element) == nullptr || (only_sharp && !sharp_has(op, element)))
        return Reason::unsupported;
    return Reason::none;
}

}  // namespace palmette::aggregate
