// A way around a way: one call whose buffers lie in the memory of devices.
#pragma once

#include "palmette/execute/device_memory.hpp"
#include "palmette/runtime/data/on_device.hpp"
#include "palmette/runtime/ways/way.hpp"

namespace palmette::runtime {

/// What it is around runs on the devices' memory where that may and can, as each rank decides by itself; else on copies
/// in the host's memory, which go on meanwhile where it may. Collective as the way inside is.
class AroundDevices final : public Way {
  public:
    /// `data`: the call's buffers on devices, and their copies.
    AroundDevices(Way& inside, OnDevice& data) : inside_(inside), data_(data) {}

    int bind(Work& call) override { return inside_.bind(call); }
    int run(Work& call, MpiExecutor& executor) override;
    Runs runs(const CachedPlan& plan) const override { return inside_.runs(plan); }
    OnDevices on_devices() const override { return inside_.on_devices(); }
    bool is_in_network() const override { return inside_.is_in_network(); }

  private:
    /// Whether the plan runs there: then all is prepared for it.
    bool move_to_device(Work& call, MpiExecutor& executor);
    /// Where the base of a plan's send or receive buffer lies on the device.
    char* on_device(const Work& call, bool of_send) const;
    /// Whether the ranks of the node can open what a plan exposes of the call's device buffers.
    bool exports(const Work& call, const execute::BoundProgram& program) const;

    Way& inside_;
    OnDevice& data_;
    execute::DeviceMemory memory_;
};

}  // namespace palmette::runtime
