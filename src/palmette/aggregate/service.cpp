#include "palmette/aggregate/service.hpp"

namespace palmette::aggregate {

Operation Operation::allreduce(kernels::Operator op, kernels::Element element, const void* input, void* output,
                               std::uint64_t count) {
    return {Collective::allreduce, op, element, 0, count, input, output, 0, count};
}

Operation Operation::reduce(kernels::Operator op, kernels::Element element, const void* input, void* output,
                            std::uint64_t count, std::uint16_t root, bool is_root) {
    return {Collective::reduce, op, element, root, count, input, is_root ? output : nullptr, 0, is_root ? count : 0};
}

Operation Operation::bcast(kernels::Element element, void* buffer, std::uint64_t count, std::uint16_t root,
                           bool is_root) {
    return {Collective::bcast,
            kernels::Operator::sum,
            element,
            root,
            count,
            is_root ? buffer : nullptr,
            is_root ? nullptr : buffer,
            0,
            is_root ? 0 : count};
}

Operation Operation::reduce_scatter(kernels::Operator op, kernels::Element element, const void* input, void* output,
                                    std::uint64_t count, std::uint64_t first, std::uint64_t wanted) {
    return {Collective::reduce_scatter, op, element, 0, count, input, output, first, wanted};
}

}  // namespace palmette::aggregate
