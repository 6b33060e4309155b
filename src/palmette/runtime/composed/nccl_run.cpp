#include "palmette/runtime/composed/nccl_run.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace palmette::runtime {

using device::Progress;

namespace {

/// Those that are started, in that order.
std::vector<NcclRun*>& queue() {
    static auto* runs = new std::vector<NcclRun*>;
    return *runs;
}

}  // namespace

NcclRun::NcclRun(std::shared_ptr<ComposedNccl> nccl, Communicator& state, int first_tag)
    : nccl_(std::move(nccl)),
      state_(state),
      started_(std::make_unique<Verdict>(state.shadow_comm(), state.rank(), state.size(), first_tag)),
      outcome_(std::make_unique<Verdict>(state.shadow_comm(), state.rank(), state.size(), first_tag + Verdict::tags)) {}

NcclRun::~NcclRun() {
    // The MPI may write there yet.
    if (started_->broken()) static_cast<void>(started_.release());
    if (outcome_->broken()) static_cast<void>(outcome_.release());
}

bool NcclRun::any_under_way() { return !queue().empty(); }

void NcclRun::start() {
    queue().push_back(this);
    started_->begin(++state_.nccl_runs);
    outcome_->begin();
    started_->step(Progress::done);
}

NcclRun::Way NcclRun::look() {
    // The others may be waiting for this rank's messages by the MPI.
    if (some_failed()) return Way::without_effect;
    if (queue().front() != this) return Way::not_yet;
    if (nccl_->in_service) return turn_.try_take() ? Way::by_nccl : Way::not_yet;
    return in_same_order() ? Way::by_messages : Way::not_yet;
}

bool NcclRun::step(Progress mine) {
    started_->step(Progress::done);
    if (started_->some_failed()) mine = Progress::failed;
    if (mine == Progress::done && !started_->over()) mine = Progress::under_way;
    outcome_->step(mine);
    return started_->over() && outcome_->over();
}

bool NcclRun::end(Way way) {
    std::erase(queue(), this);
    turn_.give_back();
    const bool succeeded = outcome_->all_succeeded();
    if (!succeeded && way != Way::by_messages) nccl_->give_up();
    return succeeded;
}

}  // namespace palmette::runtime
