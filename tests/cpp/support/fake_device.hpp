// Memory of a simulated device: the driver in tests/fakes, loaded into a test's process.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "palmette/device/driver.hpp"
#include "palmette/device/place.hpp"

namespace palmette::test {

/// The driver, with a context of this thread; once in a process, and in none that forks others which have it.
class FakeDevice {
    template <class Function, class... Arguments>
    auto call(const char* name, Arguments... arguments) const {
        return reinterpret_cast<Function*>(dlsym(library_, name))(arguments...);
    }

  public:
    /// `settings`: PALMETTE_FAKE_CUDA.
    explicit FakeDevice(const std::string& settings) {
        setenv("PALMETTE_FAKE_CUDA", settings.c_str(), 1);
        library_ = dlopen(library().c_str(), RTLD_NOW | RTLD_LOCAL);
        const bool works = library_ && call<int(unsigned)>("cuInit", 0U) == 0 &&
                           call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context_, 0) == 0 &&
                           call<int(void*)>("cuCtxSetCurrent", context_) == 0 && device::find_drivers();
        EXPECT_TRUE(works) << library();
        if (!works) std::exit(1);
    }
    /// Otherwise it isn't built.
    static bool is_there() { return std::filesystem::exists(library()); }

    char* allocate(std::size_t bytes) const {
        unsigned long long at = 0;
        EXPECT_EQ((call<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2", &at, bytes)), 0);
        return reinterpret_cast<char*>(at);
    }
    void free(char* memory) const {
        EXPECT_EQ((call<int(unsigned long long)>("cuMemFree_v2", reinterpret_cast<unsigned long long>(memory))), 0);
    }
    /// Where the test reads and writes it.
    char* alias(const char* memory) const {
        return static_cast<char*>(call<void*(const void*)>("fake_cuda_alias", static_cast<const void*>(memory)));
    }

  private:
    static std::string library() {
        const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
        return program.parent_path() / "fakes" / "libcuda.so.1";
    }

    void* library_ = nullptr;
    void* context_ = nullptr;
};

/// Some of its memory.
class DeviceBuffer {
  public:
    DeviceBuffer(const FakeDevice& device, std::size_t bytes) : device_(device), at_(device.allocate(bytes)) {}
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    ~DeviceBuffer() { device_.free(at_); }
    char* at() const { return at_; }
    void write(const void* from, std::size_t bytes) const { std::memcpy(device_.alias(at_), from, bytes); }
    void read(void* to, std::size_t bytes) const { std::memcpy(to, device_.alias(at_), bytes); }

  private:
    const FakeDevice& device_;
    char* at_;
};

}  // namespace palmette::test
