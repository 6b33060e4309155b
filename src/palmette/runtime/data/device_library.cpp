#include "palmette/runtime/data/device_library.hpp"

#include <link.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string_view>

namespace palmette::runtime {
namespace {

constexpr std::array<std::string_view, 3> drivers{"libcuda.so", "libamdhip64.so", "libze_loader.so"};

struct Look {
    unsigned long long known = 0;  ///< libraries that had been loaded at the last look
    unsigned long long now = 0;
    bool found = false;
};

int look_at(dl_phdr_info* info, std::size_t, void* argument) {
    auto& look = *static_cast<Look*>(argument);
    look.now = info->dlpi_adds;
    if (look.now == look.known) return 1;
    const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
    const std::string_view name = path.substr(path.rfind('/') + 1);
    for (const std::string_view driver : drivers) look.found = look.found || name.substr(0, driver.size()) == driver;
    return 0;
}

}  // namespace

bool device_library_is_loaded() {
    static std::atomic<unsigned long long> known{0};
    static std::atomic<bool> found{false};
    if (found.load(std::memory_order_relaxed)) return true;
    Look look;
    look.known = known.load(std::memory_order_relaxed);
    dl_iterate_phdr(look_at, &look);
    known.store(look.now, std::memory_order_relaxed);
    // One that was unloaded again counts as well: what it gave out may still be there.
    if (look.found) found.store(true, std::memory_order_relaxed);
    return look.found;
}

void tell_of_device_memory(int rank) {
    static std::atomic<bool> told{false};
    if (rank != 0 || told.exchange(true)) return;
    std::fputs(
        "palmette: a GPU's driver library is loaded and data may lie in device memory, which palmette doesn't read: "
        "collectives are left to the MPI; if no buffer of theirs lies there, set PALMETTE_DEVICE_CHECK=0\n",
        stderr);
}

}  // namespace palmette::runtime
