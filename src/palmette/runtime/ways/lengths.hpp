// Plans that forward blocks whose lengths ranks don't know of each other.
#pragma once

#include "palmette/runtime/lengths/repeated_counts.hpp"
#include "palmette/runtime/ways/way.hpp"

namespace palmette::runtime {

/// The lengths go the blocks' way before each call.
class LengthsFirst : public Planned {
  public:
    int bind(Work& call) override;
};

/// Lengths are exchanged once, and repeat from then on. A call in which some rank's have changed is the MPI's, on all
/// ranks. For blocking calls.
class LengthsRepeat : public Planned {
  public:
    /// `repeated` is the communicator's and outlives its plans.
    explicit LengthsRepeat(RepeatedCounts& repeated) : repeated_(repeated) {}
    int bind(Work& call) override;
    int run(Work& call, MpiExecutor& executor) override;
    OnDevices on_devices() const override { return remembered_ ? OnDevices{} : Planned::on_devices(); }

  private:
    int run_remembered(Work& call, MpiExecutor& executor);

    RepeatedCounts& repeated_;
    // What the call that is bound last has shown.
    bool remembered_ = false;      ///< to lengths that were exchanged in an earlier call
    bool counts_changed_ = false;  ///< a rank's counts differ from these, as far as this rank has learned
};

}  // namespace palmette::runtime
