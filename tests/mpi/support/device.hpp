// Buffers in a device's memory, or in other kinds of memory that its driver has; by the driver library that a test
// names, which a test of ours stands in for (tests/fakes).
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "outcome.hpp"
#include "rng.hpp"

namespace test {

/// The functions of CUDA's driver, or of HIP where the library is that, which programs call.
class Driver {
  public:
    using Pointer = unsigned long long;

    /// Loads it, and makes the context that a program has. Ends the process where that fails.
    explicit Driver(const char* library) {
        library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!library_) fail(dlerror());
        hip_ = std::strstr(library, "amdhip") != nullptr;
        if (hip_) return;
        call<int(unsigned)>("cuInit", 0U);
        call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context_, 0);
        use();
    }
    /// For another thread.
    void use() { call<int(void*)>("cuCtxSetCurrent", context_); }
    void unload() {
        if (!hip_) {
            call<int(void*)>("cuCtxSetCurrent", nullptr);
            call<int(int)>("cuDevicePrimaryCtxRelease_v2", 0);
        }
        dlclose(library_);
        library_ = nullptr;
    }

    enum class Kind { host, pinned, registered, managed, pool, mapped, device };
    static constexpr int kinds = 7;

    char* allocate(Kind kind, std::size_t bytes) {
        if (hip_) return allocate_by_hip(kind, bytes);
        Pointer at = 0;
        void* host = nullptr;
        switch (kind) {
            case Kind::host:
                return static_cast<char*>(std::malloc(bytes));
            case Kind::registered:
                host = std::malloc(bytes);
                call<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2", host, bytes, 0U);
                return static_cast<char*>(host);
            case Kind::pinned:
                call<int(void**, std::size_t, unsigned)>("cuMemHostAlloc", &host, bytes, 0U);
                return static_cast<char*>(host);
            case Kind::managed:
                call<int(Pointer*, std::size_t, unsigned)>("cuMemAllocManaged", &at, bytes, 1U);
                break;
            case Kind::pool:
                call<int(Pointer*, std::size_t, void*)>("cuMemAllocAsync", &at, bytes, nullptr);
                call<int(void*)>("cuStreamSynchronize", nullptr);
                break;
            case Kind::mapped:
                return map(bytes);
            case Kind::device:
                call<int(Pointer*, std::size_t)>("cuMemAlloc_v2", &at, bytes);
                break;
        }
        return reinterpret_cast<char*>(at);
    }
    void release(Kind kind, char* memory, std::size_t bytes) {
        if (hip_) return release_by_hip(kind, memory);
        const auto at = reinterpret_cast<Pointer>(memory);
        switch (kind) {
            case Kind::host:
                return std::free(memory);
            case Kind::registered:
                call<int(void*)>("cuMemHostUnregister", memory);
                return std::free(memory);
            case Kind::pinned:
                return call<int(void*)>("cuMemFreeHost", memory);
            case Kind::pool:
                call<int(Pointer, void*)>("cuMemFreeAsync", at, nullptr);
                return call<int(void*)>("cuStreamSynchronize", nullptr);
            case Kind::mapped:
                return unmap(at, bytes);
            case Kind::managed:
            case Kind::device:
                return call<int(Pointer)>("cuMemFree_v2", at);
        }
    }
    void write(char* to, const void* from, std::size_t bytes) {
        if (bytes > 0 && hip_)
            call<int(void*, const void*, std::size_t, int)>("hipMemcpy", static_cast<void*>(to), from, bytes, 4);
        else if (bytes > 0)
            call<int(Pointer, Pointer, std::size_t)>("cuMemcpy", reinterpret_cast<Pointer>(to),
                                                     reinterpret_cast<Pointer>(from), bytes);
    }
    void read(void* to, const char* from, std::size_t bytes) { write(static_cast<char*>(to), from, bytes); }

  private:
    char* allocate_by_hip(Kind kind, std::size_t bytes) {
        void* memory = nullptr;
        switch (kind) {
            case Kind::host:
            case Kind::registered:
                memory = std::malloc(bytes);
                if (kind == Kind::registered)
                    call<int(void*, std::size_t, unsigned)>("hipHostRegister", memory, bytes, 0U);
                break;
            case Kind::pinned:
                call<int(void**, std::size_t, unsigned)>("hipHostMalloc", &memory, bytes, 0U);
                break;
            case Kind::managed:
                call<int(void**, std::size_t, unsigned)>("hipMallocManaged", &memory, bytes, 1U);
                break;
            default:
                call<int(void**, std::size_t)>("hipMalloc", &memory, bytes);
        }
        return static_cast<char*>(memory);
    }
    void release_by_hip(Kind kind, void* memory) {
        if (kind == Kind::registered) call<int(void*)>("hipHostUnregister", memory);
        if (kind == Kind::host || kind == Kind::registered) return std::free(memory);
        call<int(void*)>(kind == Kind::pinned ? "hipHostFree" : "hipFree", memory);
    }

    /// CUmemAllocationProp as far as the location.
    struct Properties {
        int type = 1, handles = 0, location_type = 1, location = 0;
        char rest[64] = {};
    };
    struct Access {
        int location_type = 1, location = 0;
        unsigned flags = 3;
    };
    static std::size_t whole(std::size_t bytes) {
        constexpr std::size_t granularity = 2 << 20;
        return (bytes + granularity - 1) / granularity * granularity;
    }
    char* map(std::size_t bytes) {
        const std::size_t size = whole(bytes);
        const Properties properties;
        const Access access;
        Pointer at = 0;
        unsigned long long handle = 0;
        call<int(Pointer*, std::size_t, std::size_t, Pointer, unsigned long long)>("cuMemAddressReserve", &at, size, 0,
                                                                                   0, 0);
        call<int(unsigned long long*, std::size_t, const Properties*, unsigned long long)>("cuMemCreate", &handle, size,
                                                                                           &properties, 0);
        call<int(Pointer, std::size_t, std::size_t, unsigned long long, unsigned long long)>("cuMemMap", at, size, 0,
                                                                                             handle, 0);
        call<int(Pointer, std::size_t, const Access*, std::size_t)>("cuMemSetAccess", at, size, &access, 1);
        call<int(unsigned long long)>("cuMemRelease", handle);
        return reinterpret_cast<char*>(at);
    }
    void unmap(Pointer at, std::size_t bytes) {
        call<int(Pointer, std::size_t)>("cuMemUnmap", at, whole(bytes));
        call<int(Pointer, std::size_t)>("cuMemAddressFree", at, whole(bytes));
    }

    template <class Function, class... Arguments>
    void call(const char* name, Arguments... arguments) {
        auto* function = reinterpret_cast<Function*>(dlsym(library_, name));
        if (!function) fail(name);
        if (const int result = function(arguments...); result != 0) {
            std::fprintf(stderr, "%s: %d\n", name, result);
            std::_Exit(1);
        }
    }
    [[noreturn]] static void fail(const char* what) {
        std::fprintf(stderr, "driver: %s\n", what);
        std::_Exit(1);
    }

    void* library_ = nullptr;
    void* context_ = nullptr;
    bool hip_ = false;
};

/// Where buffers of a test lie. Null: in ordinary memory.
inline Driver* driver = nullptr;
/// All on the device, or of any kind, drawn for each.
inline bool any_memory = false;

/// The bytes of a host buffer, in memory of another kind for the time of a call.
class Elsewhere {
  public:
    Elsewhere(Rng& rng, char* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {
        if (!driver || bytes == 0) return;
        kind_ = any_memory ? static_cast<Driver::Kind>(rng.below(Driver::kinds)) : Driver::Kind::device;
        // Allocations are aligned as memory of the host's is, and no better.
        memory_ = driver->allocate(kind_, bytes + 16);
        upload();
    }
    Elsewhere(const Elsewhere&) = delete;
    Elsewhere& operator=(const Elsewhere&) = delete;
    ~Elsewhere() {
        if (memory_) driver->release(kind_, memory_, bytes_ + 16);
    }
    void upload() {
        if (memory_) driver->write(memory_ + shift(), begin_, bytes_);
    }
    void download() {
        if (memory_) driver->read(begin_, memory_ + shift(), bytes_);
    }
    char* at(char* host) const { return memory_ ? memory_ + shift() + (host - begin_) : host; }

  private:
    std::size_t shift() const { return reinterpret_cast<std::size_t>(begin_) % 16; }

    char* begin_;
    std::size_t bytes_;
    Driver::Kind kind_ = Driver::Kind::host;
    char* memory_ = nullptr;
};

/// --driver LIBRARY [--memory any] [--load CASE] [--unload CASE]: the driver comes before MPI_Init, or before the case
/// of that number, and goes before another.
class DriverOptions {
  public:
    DriverOptions(int argc, char** argv)
        : library_(word_option(argc, argv, "--driver", nullptr)),
          load_(option(argc, argv, "--load", -1)),
          unload_(option(argc, argv, "--unload", -2)) {
        any_memory = std::strcmp(word_option(argc, argv, "--memory", "device"), "any") == 0;
        at(-1);
    }
    void at(long number) {
        if (!library_) return;
        if (number == load_) driver = new Driver(library_);
        if (number == unload_ && driver) {
            driver->unload();
            driver = nullptr;
        }
    }

  private:
    const char* library_;
    long load_, unload_;
};

}  // namespace test
