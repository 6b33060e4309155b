// What the ranks of a composition's plan with NCCL agree on about its runs.
#pragma once

#include <memory>
#include <string>

#include "palmette/device/nccl.hpp"
#include "palmette/runtime/state/communicator.hpp"
#include "palmette/runtime/transport/consensus.hpp"

namespace palmette::runtime {

/// NCCL's communicator of a communicator's plans. After a failure of a run it isn't used any more.
struct ComposedNccl {
    std::unique_ptr<device::Nccl> handle;
    bool in_service = true;  ///< as far as the runs have ended here

    void give_up() {
        in_service = false;
        handle->abort();
    }
};

/// NCCL as a communicator's compositions share it.
struct NcclOfCompositions : KeptState {
    std::weak_ptr<ComposedNccl> nccl;  ///< gone with the last of the plans
    int runs = 0;                      ///< that have been started
};

/// Collective: for a plan that asks for NCCL; null on all ranks where one hasn't got it.
std::shared_ptr<ComposedNccl> nccl_of_plan(Communicator& state, const Settings& settings);

/// One bound plan's run at a time, always with the background's lock held.
///
/// NCCL's operations have no tags, and two of them on one device may wait for each other, so a process has one such run
/// under way at a time, in the order of their starts, which is the same on all ranks. That is checked: a rank tells
/// the others which run of the communicator's this one is. By then time counts, too.
///
/// When a rank has failed, or hears of it, its messages by NCCL complete without effect. All ranks agree on the outcome
/// before the run completes on any. So the runs before this one have ended in the same way on all ranks when it
/// begins, which decides whether it goes by NCCL. It goes by messages only once all have started it in the same order.
class NcclRun {
  public:
    NcclRun(std::shared_ptr<ComposedNccl> nccl, Communicator& state, int first_tag);
    NcclRun(const NcclRun&) = delete;
    NcclRun& operator=(const NcclRun&) = delete;
    ~NcclRun();
    static constexpr int tags = 2 * Consensus::tags;

    /// How its program runs.
    enum class Mode : std::uint8_t { not_yet, by_nccl, without_effect, by_messages };

    void start();
    /// Whether it begins, and how.
    Mode look();
    /// Goes on; `mine`: this rank's progress. Whether the outcome is known and all have heard of it.
    bool step(device::Progress mine);
    /// Where that is so: whether all have succeeded. `mode`: how it has run.
    bool end(Mode mode);

    bool all_started() const { return started_->over(); }
    bool some_failed() const { return started_->some_failed() || outcome_->some_failed(); }
    bool in_same_order() const { return started_->all_succeeded(); }
    device::Nccl& handle() const { return *nccl_->handle; }

    /// Whether any run has started and not ended.
    static bool any_under_way();

  private:
    std::shared_ptr<ComposedNccl> nccl_;
    Communicator& state_;
    std::unique_ptr<Consensus> started_, outcome_;
    device::NcclTurn turn_;
};

}  // namespace palmette::runtime
