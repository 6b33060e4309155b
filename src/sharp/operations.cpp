#include "sharp/operations.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace palmette::sharp_twin {

using namespace aggregate;
using namespace aggregate::sharp;
using kernels::Element;
using kernels::Operator;

namespace {

std::optional<Element> element_of(int type) {
    switch (type) {
        case type_uint32:
            return Element::uint32;
        case type_int32:
            return Element::int32;
        case type_uint64:
            return Element::uint64;
        case type_int64:
            return Element::int64;
        case type_float32:
            return Element::float32;
        case type_float64:
            return Element::float64;
        case type_uint16:
            return Element::uint16;
        case type_int16:
            return Element::int16;
        case type_float16:
            return Element::float16;
        case type_bfloat16:
            return Element::bfloat16;
        case type_uint8:
            return Element::uint8;
        case type_int8:
            return Element::int8;
        default:
            return std::nullopt;
    }
}

std::optional<Operator> operator_of(int op) {
    switch (op) {
        case op_max:
            return Operator::max;
        case op_min:
            return Operator::min;
        case op_sum:
            return Operator::sum;
        case op_land:
            return Operator::land;
        case op_band:
            return Operator::band;
        case op_lor:
            return Operator::lor;
        case op_bor:
            return Operator::bor;
        case op_lxor:
            return Operator::lxor;
        case op_bxor:
            return Operator::bxor;
        default:
            return std::nullopt;
    }
}

/// Whether the memory that a handle stands for holds the buffer.
bool is_registered(const Context& context, const DataDescription& data) {
    if (!data.buffer.memory) return true;
    const auto known = context.registered.find(reinterpret_cast<std::uintptr_t>(data.buffer.memory));
    if (known == context.registered.end()) return false;
    const auto& [begin, bytes] = known->second;
    const char* const from = static_cast<const char*>(data.buffer.data);
    return from >= begin && from + data.buffer.bytes <= begin + bytes;
}

bool good(const Comm& comm, const DataDescription& data, std::size_t bytes) {
    const Context& context = *comm.context;
    if (data.type != 0 || data.memory_type != 0) return false;
    if (context.strict && (data.reserved[0] != 0 || data.reserved[1] != 0)) return false;
    return data.buffer.bytes >= bytes && (data.buffer.data || bytes == 0) && is_registered(context, data);
}

int begin(Comm& comm, std::vector<Operation> operations, void** handle) {
    if (const int code = comm.context->faults.at("operation", comm.context->rank)) return code;
    auto request = std::make_unique<Request>();
    request->comm = &comm;
    request->operations = std::move(operations);
    request->spoilt = comm.context->faults.at("sum", comm.context->rank) != 0;
    comm.waiting.push_back(request.get());
    *handle = request.release();
    progress(comm);
    return success;
}

}  // namespace

int begin_barrier(Comm& comm, void** handle) { return begin(comm, {Operation{}}, handle); }

int begin_reduction(Comm& comm, Kind kind, const ReduceSpec& spec, void** handle) {
    const auto element = element_of(spec.type);
    const auto op = operator_of(spec.op);
    if (!element || !op) return error_unsupported;
    Capabilities capabilities{};
    describe(*comm.context, capabilities);
    if ((capabilities.mask.types >> spec.type & 1) == 0) return error_unsupported;
    if (comm.context->strict && (spec.reserved[0] != 0 || spec.reserved[1] != 0 || spec.tag_type != 0))
        return error_invalid;
    const std::size_t bytes = spec.count * kernels::bytes_of(*element).extent;
    const auto rank = static_cast<std::uint64_t>(comm.rank), size = static_cast<std::uint64_t>(comm.size);
    const bool scatters = kind == Kind::reduce_scatter;
    const bool receives = kind != Kind::reduce || comm.rank == spec.root;
    if (!good(comm, spec.from, scatters ? size * bytes : bytes) || (receives && !good(comm, spec.to, bytes)))
        return error_invalid;
    const void* const from = spec.from.buffer.data;
    void* const to = spec.to.buffer.data;
    if (kind == Kind::allreduce)
        return begin(comm, {Operation::allreduce(*op, *element, from, to, spec.count)}, handle);
    if (scatters)
        return begin(
            comm,
            {Operation::reduce_scatter(*op, *element, from, to, size * spec.count, rank * spec.count, spec.count)},
            handle);
    return begin(
        comm, {Operation::reduce(*op, *element, from, to, spec.count, static_cast<std::uint16_t>(spec.root), receives)},
        handle);
}

int begin_bcast(Comm& comm, const BcastSpec& spec, void** handle) {
    if (!good(comm, spec.data, spec.bytes)) return error_invalid;
    return begin(comm,
                 {Operation::bcast(Element::byte, spec.data.buffer.data, spec.bytes,
                                   static_cast<std::uint16_t>(spec.root), comm.rank == spec.root)},
                 handle);
}

/// Each member's block goes to the others.
int begin_allgather(Comm& comm, const GatherSpec& spec, void** handle) {
    const std::size_t bytes = spec.from.buffer.bytes;
    if (!good(comm, spec.from, bytes) || !good(comm, spec.to, bytes * static_cast<std::size_t>(comm.size)))
        return error_invalid;
    std::vector<Operation> operations;
    for (int root = 0; root < comm.size; ++root) {
        char* const block = static_cast<char*>(spec.to.buffer.data) + static_cast<std::size_t>(root) * bytes;
        if (root == comm.rank) std::memmove(block, spec.from.buffer.data, bytes);
        operations.push_back(
            Operation::bcast(Element::byte, block, bytes, static_cast<std::uint16_t>(root), root == comm.rank));
    }
    return begin(comm, std::move(operations), handle);
}

bool test(Request& request) {
    if (!request.complete) progress(*request.comm);
    return request.complete;
}

int wait(Request* request) {
    const std::unique_ptr<Request> owned(request);
    Comm& comm = *request->comm;
    while (!test(*request)) comm.client->wait(100);
    if (request->spoilt && !request->operations.empty() && request->operations.back().output)
        *static_cast<char*>(request->operations.back().output) ^= 1;
    const int late = comm.context->faults.at("wait", comm.context->rank);
    return request->code != 0 ? request->code : late;
}

}  // namespace palmette::sharp_twin
