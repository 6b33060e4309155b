// What the ranks of a communicator know of each other's devices: whether data may lie in memory that palmette can't
// look at, and whether the MPI takes it where it lies.
#pragma once

#include <cstdint>

#include "palmette/runtime/settings/settings.hpp"
#include "palmette/select/table.hpp"

namespace palmette::runtime {

class Communicator;

/// All of it is the same on all ranks.
class DeviceAgreement {
  public:
    struct Drivers {
        bool any = false;         ///< some rank has one
        bool of_the_mpi = false;  ///< the MPI takes the memory of their devices on all ranks
    };
    void set(const Drivers& drivers) { drivers_ = drivers; }

    /// Whether buffers of calls that nobody can agree on may lie on a device and are the MPI's to move then: it takes
    /// them, and may do so without staging. Where the user asks for a way of palmette's it serves.
    bool are_the_mpis(select::Function function, const Settings& settings) const {
        return drivers_.any && drivers_.of_the_mpi && settings.device_path == Settings::DevicePath::automatic &&
               !settings.forced[static_cast<std::size_t>(function)];
    }

    /// What becomes of a new kind of blocking calls by the memory that its data may lie in.
    enum class Finding : std::uint8_t {
        may_be_served,
        are_the_mpis,  ///< some rank's lies on a device, and the MPI takes it there on all ranks
        are_unknown    ///< it may lie in memory that can't be looked at
    };
    /// Collective where it is due: a driver may have been loaded since the state was made.
    Finding look(Communicator& state, select::Function function, const Settings& settings);
    /// A blocking call is left to the MPI before a plan is made. Collective at each function's first one: later ones
    /// may bypass this.
    void is_left(Communicator& state, select::Function function, const Settings& settings) {
        if (settings.device_path != Settings::DevicePath::nccl) [[likely]]
            return;
        const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(function);
        if (!(left_functions_ & bit)) [[unlikely]] {
            left_functions_ |= bit;
            first_left(state, function, settings);
        }
    }

  private:
    bool is_due();
    void first_left(Communicator& state, select::Function function, const Settings& settings);

    Drivers drivers_;
    std::uint64_t looks_ = 0;
    std::uint32_t left_functions_ = 0;  ///< a bit for each
};

}  // namespace palmette::runtime
