#include "palmette/runtime/network/aggregation.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>

#include "palmette/base/error.hpp"
#include "palmette/runtime/transport/agreement.hpp"

namespace palmette::runtime {
namespace {

using aggregate::Reason;

constexpr std::uint64_t longest_retry = 1 << 20;
/// Operations of programs that keep results between two agreements.
constexpr std::uint64_t kept_between = 256;

}  // namespace

void Aggregation::leave() {
    in_service_ = false;
    // The service ends for members that haven't their results yet, too.
    if (kept_) kept_->end();
    kept_.reset();
    has_met_ = false;
    groups_->leave();
}

void Aggregation::look_after_kept() {
    if (!has_met_) {
        has_met_ = true;
        kept_calls_ = 0;
        std::string why;
        kept_ = KeptMembers::meet(comm_, job_, rank_, level_, count_, why);
        if (!kept_ && !why.empty())
            std::fprintf(stderr, "palmette: rank %d: %s: short reductions by aggregators end with an agreement each\n",
                         rank_, why.c_str());
        return;
    }
    if (!kept_ || ++kept_calls_ % kept_between != 0) return;
    const auto code = smallest(comm_, execute::agreement_code(kept_->reason(), rank_));
    if (code && conclude(*code, kept_->why())) return;
    if (!code) why_ = "the MPI's messages have failed";
    leave();
}

/// Collective, where the ranks have agreed on this code.
bool Aggregation::conclude(std::int64_t code, std::string_view own_detail) {
    in_service_ = code == 0;
    if (in_service_) return true;
    const std::int32_t finder = execute::rank_in(code);
    std::array<char, 160> text{};
    if (rank_ == finder) std::memcpy(text.data(), own_detail.data(), std::min(own_detail.size(), text.size() - 1));
    const int error = PMPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, finder, comm_);
    why_ = base::cat(error == MPI_SUCCESS ? text.data() : "the MPI's broadcast has failed", " (rank ", finder, ")");
    return false;
}

bool Aggregation::join(const execute::BoundProgram& program) {
    leave();
    for (std::size_t stage = 0; stage < groups_->stages(); ++stage) {
        aggregate::Problem problem;
        try {
            problem = groups_->pass(stage, program);
        } catch (const std::bad_alloc&) {
            problem = {Reason::no_resource, "this process is out of memory"};
        }
        const auto code = smallest(comm_, execute::agreement_code(problem.reason, rank_));
        if (code && conclude(*code, base::cat(aggregate::name_of(problem.reason), ": ", problem.detail))) continue;
        if (!code) why_ = "the MPI's messages have failed";
        leave();
        return false;
    }
    return true;
}

bool Aggregation::serves(const Operation& operation, const execute::BoundProgram& program) {
    if (in_service_ && program.keeps) look_after_kept();
    if (!in_service_) {
        if (++calls_without_ < retry_after_) return false;
        calls_without_ = 0;
        retry_after_ = std::min(4 * retry_after_, longest_retry);
        if (!join(program)) return false;
        if (program.keeps) look_after_kept();
    }
    const auto known = operation.known();
    if (known && groups_->combine(known->op, known->element)) return true;
    why_ = "unsupported: the aggregators' profile has no such operation on such elements";
    return false;
}

bool Aggregation::succeeded(const execute::AggregationTransport& transport) {
    std::string detail;
    if (const auto& failure = transport.failure())
        detail = base::cat(aggregate::name_of(failure->reason), ": ", failure->detail);
    if (conclude(transport.agreed(), detail)) return true;
    leave();
    return false;
}

}  // namespace palmette::runtime
