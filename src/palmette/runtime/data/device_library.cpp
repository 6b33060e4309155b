#include "palmette/runtime/data/device_library.hpp"

#include <link.h>

#include <atomic>
#include <cstdio>
#include <string_view>

namespace palmette::runtime {
namespace {

constexpr std::string_view driver = "libze_loader.so";

struct Scan {
    unsigned long long known = 0;  ///< libraries that had been loaded at the last scan
    unsigned long long now = 0;
    bool found = false;
};

int scan_object(dl_phdr_info* info, std::size_t, void* argument) {
    auto& scan = *static_cast<Scan*>(argument);
    scan.now = info->dlpi_adds;
    if (scan.now == scan.known) return 1;
    const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
    const std::string_view name = path.substr(path.rfind('/') + 1);
    scan.found = scan.found || name.substr(0, driver.size()) == driver;
    return 0;
}

}  // namespace

bool device_library_is_loaded() {
    static std::atomic<unsigned long long> known{0};
    static std::atomic<bool> found{false};
    if (found.load(std::memory_order_relaxed)) return true;
    Scan scan;
    scan.known = known.load(std::memory_order_acquire);
    dl_iterate_phdr(scan_object, &scan);
    // One that was unloaded again counts as well: memory that it allocated may still be in use.
    if (scan.found) found.store(true, std::memory_order_relaxed);
    // Last: another thread that reads it looks through none of these libraries.
    known.store(scan.now, std::memory_order_release);
    return found.load(std::memory_order_relaxed);
}

void warn_of_device_memory(int rank) {
    static std::atomic<bool> warned{false};
    if (rank != 0 || warned.exchange(true)) return;
    std::fputs(
        "palmette: Level Zero, the driver library of Intel's GPUs, is loaded and data may lie in device memory, which "
        "palmette doesn't read: collectives are left to the MPI; if no buffer of theirs lies there, set "
        "PALMETTE_DEVICE=off\n",
        stderr);
}

}  // namespace palmette::runtime
