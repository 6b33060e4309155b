#include "palmette/runtime/state/device_agreement.hpp"

#include <bit>

#include "palmette/device/loaded.hpp"
#include "palmette/runtime/data/device_library.hpp"
#include "palmette/runtime/data/mpi_devices.hpp"
#include "palmette/runtime/data/on_device.hpp"
#include "palmette/runtime/state/communicator.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/ways/nccl.hpp"

namespace palmette::runtime {

bool DeviceAgreement::is_due() {
    // All ranks make the same plans. The checks get rarer, so that a program whose sizes never repeat doesn't pay for
    // an agreement each time, unless a rank has a driver.
    const std::uint64_t looks = ++looks_;
    return drivers_.any || std::has_single_bit(looks) || looks % 1024 == 0;
}

DeviceAgreement::Finding DeviceAgreement::look(Communicator& state, select::Function function,
                                               const Settings& settings) {
    if (!settings.device_check || !is_due()) return Finding::may_be_served;
#if defined(PALMETTE_ABI_SMPI)
    static_cast<void>(state), static_cast<void>(function);
    return Finding::may_be_served;
#else
    // New kinds of calls have a set-up cost anyway, and those on device data mostly are new.
    const auto all =
        all_true(state.shadow_comm(), {!device_library_is_loaded(), ByNccl::is_offered(state, settings),
                                       !device::driver_loaded(), mpi_takes_devices(), !OnDevice::current()});
    if (!all) return Finding::are_unknown;
    const auto [known, all_have_nccl, none_has_driver, mpi_takes_all, none_on_device] = *all;
    drivers_ = {!none_has_driver, mpi_takes_all};
    if (all_have_nccl) ByNccl::begin(state, settings);
    if (!known) return Finding::are_unknown;
    return !none_on_device && are_the_mpis(function, settings) ? Finding::are_the_mpis : Finding::may_be_served;
#endif
}

void DeviceAgreement::first_left(Communicator& state, select::Function function, const Settings& settings) {
    if (!ByNccl::has(function) || look(state, function, settings) != Finding::are_unknown) return;
    state.unusable = Refusal::device_memory;
    warn_of_device_memory(state.rank());
}

}  // namespace palmette::runtime
