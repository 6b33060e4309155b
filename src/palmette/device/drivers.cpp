// Which drivers are there, and where a buffer lies.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <initializer_list>
#include <mutex>
#include <string_view>

#include "palmette/device/place.hpp"

namespace palmette::device {
namespace {

struct DriverTable {
    std::array<Driver*, 2> drivers{};
    std::atomic<std::size_t> count{0};
};
constinit DriverTable found;

/// Keeps the library loaded.
void* open_if_there(std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) return library;
    return nullptr;
}

bool has(const char* name) {
    for (Driver* driver : all_drivers())
        if (std::string_view(driver->name()) == name) return true;
    return false;
}

/// Another thread may have added the same one.
void add(Driver* driver) {
    static constinit std::mutex adding;
    const std::lock_guard lock(adding);
    if (has(driver->name())) return;
    const std::size_t count = found.count.load(std::memory_order_relaxed);
    found.drivers[count] = driver;
    found.count.store(count + 1, std::memory_order_release);
}

}  // namespace

std::span<Driver* const> all_drivers() { return {found.drivers.data(), found.count.load(std::memory_order_acquire)}; }

// No lock is held while libraries are opened: the loader's may be another thread's, which calls this in a library's
// constructor.
bool find_drivers() {
    if (!has("cuda"))
        if (void* library = open_if_there({"libcuda.so.1", "libcuda.so"}))
            if (Driver* driver = make_cuda_driver(library)) add(driver);
    if (!has("hip"))
        if (void* library = open_if_there({"libamdhip64.so.7", "libamdhip64.so.6"}))
            if (Driver* driver = make_hip_driver(library)) add(driver);
    return found.count.load(std::memory_order_relaxed) > 0;
}

constinit std::atomic<bool> drivers_begun{false};

namespace {

Place ask(const void* address) {
    if (libraries_came()) look_for_drivers();
    for (Driver* driver : all_drivers()) {
        const Place place = driver->place_of(address);
        if (place.memory != Memory::host) return place;
    }
    return {};
}

}  // namespace

bool look_for_begun() {
    for (Driver* driver : all_drivers())
        if (driver->has_begun()) {
            host_memory.learn();
            drivers_begun.store(true, std::memory_order_relaxed);
            return true;
        }
    return false;
}

Place place_of(const void* address) { return known_host(address) ? Place() : ask(address); }

}  // namespace palmette::device
