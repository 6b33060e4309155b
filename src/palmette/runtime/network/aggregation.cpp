#include "palmette/runtime/network/aggregation.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "palmette/base/error.hpp"
#include "palmette/runtime/transport/agreement.hpp"

namespace palmette::runtime {
namespace {

using aggregate::Reason;

constexpr std::uint64_t longest_retry = 1 << 20;

}  // namespace

void Aggregation::leave() {
    in_service_ = false;
    groups_->leave();
}

/// Collective, where the ranks have agreed on this code.
bool Aggregation::conclude(std::int64_t code, std::string_view own_detail) {
    in_service_ = code == 0;
    if (in_service_) return true;
    const std::int32_t finder = rank_in(code);
    std::array<char, 160> text{};
    if (rank_ == finder) std::memcpy(text.data(), own_detail.data(), std::min(own_detail.size(), text.size() - 1));
    const int error = PMPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, finder, comm_);
    why_ = base::cat(error == MPI_SUCCESS ? text.data() : "the MPI's broadcast has failed", " (rank ", finder, ")");
    return false;
}

bool Aggregation::join(const BoundProgram& program) {
    leave();
    for (std::size_t stage = 0; stage < groups_->stages(); ++stage) {
        aggregate::Problem problem;
        try {
            problem = groups_->pass(stage, program);
        } catch (const std::bad_alloc&) {
            problem = {Reason::no_resource, "this process is out of memory"};
        }
        const auto code = smallest(comm_, agreement_code(problem.reason, rank_));
        if (code && conclude(*code, base::cat(aggregate::name_of(problem.reason), ": ", problem.detail))) continue;
        if (!code) why_ = "the MPI's messages have failed";
        leave();
        return false;
    }
    return true;
}

bool Aggregation::serves(const Operation& operation, const BoundProgram& program) {
    if (!in_service_) {
        if (++calls_without_ < retry_after_) return false;
        calls_without_ = 0;
        retry_after_ = std::min(4 * retry_after_, longest_retry);
        if (!join(program)) return false;
    }
    const auto known = operation.known();
    if (known && groups_->combine(known->op, known->element)) return true;
    why_ = "unsupported: the aggregators' profile has no such operation on such elements";
    return false;
}

bool Aggregation::succeeded(const AggregationTransport& transport) {
    std::string detail;
    if (const auto& failure = transport.failure())
        detail = base::cat(aggregate::name_of(failure->reason), ": ", failure->detail);
    if (conclude(transport.agreed(), detail)) return true;
    leave();
    return false;
}

}  // namespace palmette::runtime
