#include "palmette/aggregate/service.hpp"

namespace palmette::aggregate {

Operation Operation::allreduce(runtime::Operator op, runtime::Element element, const void* input, void* output,
                               std::uint64_t count) {
    return {Collective::allreduce, op, element, 0, count, input, output, 0, count};
}

Operation Operation::reduce(runtime::Operator op, runtime::Element element, const void* input, void* output,
                            std::uint64_t count, std::uint16_t root, bool is_root) {
    return {Collective::reduce, op, element, root, count, input, is_root ? output : nullptr, 0, is_root ? count : 0};
}

Operation Operation::bcast(runtime::Element element, void* buffer, std::uint64_t count, std::uint16_t root,
                           bool is_root) {
    return {Collective::bcast,
            runtime::Operator::sum,
            element,
            root,
            count,
            is_root ? buffer : nullptr,
            is_root ? nullptr : buffer,
            0,
            is_root ? 0 : count};
}

Operation Operation::reduce_scatter(runtime::Operator op, runtime::Element element, const void* input, void* output,
                                    std::uint64_t count, std::uint64_t first, std::uint64_t wanted) {
    return {Collective::reduce_scatter, op, element, 0, count, input, output, first, wanted};
}

}  // namespace palmette::aggregate
