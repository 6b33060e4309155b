// The part of CUDA's driver API that is used, declared by hand: no CUDA is needed to build. A test compares the numbers
// with cuda.h (tests/python/device/test_cuda_header.py).
#pragma once

#include <cstddef>

namespace palmette::device::cuda {

using Result = int;
using Device = int;
using Pointer = unsigned long long;
using Context = struct ContextOfCuda*;
using Stream = struct StreamOfCuda*;
using CuEvent = struct EventOfCuda*;
using Module = struct ModuleOfCuda*;
using Function = struct FunctionOfCuda*;
using Allocation = unsigned long long;

constexpr Result not_initialized = 3, invalid_context = 201;

// Attributes of a pointer.
constexpr int attribute_context = 1, attribute_memory_type = 2, attribute_buffer_id = 7, attribute_is_managed = 8,
              attribute_device_ordinal = 9, attribute_legacy_ipc = 10, attribute_mempool = 17;
constexpr unsigned memory_host = 1, memory_device = 2;

constexpr int location_device = 1;

/// CUmemAllocationProp as far as the location; the rest is only room.
struct AllocationProperties {
    int type, handle_types, location_type, location_id;
    unsigned char rest[128];
};

/// CUDA_MEMCPY2D.
struct Copy2d {
    std::size_t src_x, src_y;
    unsigned src_type;
    const void* src_host;
    Pointer src_device;
    void* src_array;
    std::size_t src_pitch;
    std::size_t dst_x, dst_y;
    unsigned dst_type;
    void* dst_host;
    Pointer dst_device;
    void* dst_array;
    std::size_t dst_pitch;
    std::size_t width, height;
};
constexpr int capture_mode_relaxed = 2;

}  // namespace palmette::device::cuda
