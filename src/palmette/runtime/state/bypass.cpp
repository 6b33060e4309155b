#include "palmette/runtime/state/bypass.hpp"

#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

constinit std::array<Bypass, select::all_function_count> bypasses{};

namespace {

/// Programs start operations in the background far more often than they open a bypass in between.
constinit bool any_open = false;

}  // namespace

bool Bypass::may_open(const CommInfo& comm_info, Report::RefusedRow& row) {
    close();
    if (Report::Counter::concurrent || has_outstanding()) return false;
    comm_ = comm_info.comm;
    ranks_ = comm_info.ranks;
    leads_ = comm_info.leads;
    row_ = &row;
    open_ = any_open = true;
    return true;
}

void Bypass::open(const CommInfo& comm_info, Report::RefusedRow& row) { all_calls_ = may_open(comm_info, row); }

void Bypass::open(const CommInfo& comm_info, Report::RefusedRow& row, MPI_Datatype type, std::int64_t least,
                  std::int64_t most) {
    all_calls_ = false;
    if (!may_open(comm_info, row)) return;
    type_ = type;
    least_ = least;
    span_ = static_cast<std::uint64_t>(most - least);
}

void Bypass::open(const CommInfo& comm_info, Report::RefusedRow& row, const Arguments& arguments, std::int64_t limit,
                  std::int64_t& counted) {
    all_calls_ = false;
    if (!may_open(comm_info, row)) return;
    // A barrier has no other arguments.
    all_calls_ = arguments.type == MPI_DATATYPE_NULL;
    type_ = arguments.type;
    least_ = arguments.count;
    span_ = 0;
    op_ = arguments.op;
    root_ = arguments.root;
    limit_ = limit;
    counted_ = &counted;
}

void Bypass::close() {
    if (row_) (leads_ ? row_->calls.of_first : row_->calls.of_others).add(calls_);
    if (counted_) *counted_ += calls_;
    row_ = nullptr;
    counted_ = nullptr;
    limit_ = unlimited;
    calls_ = 0;
    open_ = false;
}

void close_bypasses() {
    if (!any_open) return;
    any_open = false;
    for (Bypass& bypass : bypasses) bypass.close();
}

}  // namespace palmette::runtime
