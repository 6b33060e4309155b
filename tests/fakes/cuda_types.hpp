// CUDA's driver interface as far as the fakes have it: numbers and layouts. tests/fakes/check_cuda_header.cpp compares
// them with the real cuda.h.
#pragma once

#include <cstddef>

#ifdef FAKE_HIP
#define FAKE_API extern "C"
#else
#define FAKE_API extern "C" __attribute__((visibility("default")))
#endif

namespace fake {

/// Results; HIP has the same numbers for them.
enum Result : int {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    deinitialized = 4,
    no_device = 100,
    invalid_device = 101,
    invalid_image = 200,
    invalid_context = 201,
    peer_access_unsupported = 217,
    invalid_ptx = 218,
    invalid_handle = 400,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    peer_access_already_enabled = 704,
    peer_access_not_enabled = 705,
    already_registered = 712,
    not_registered = 713,
    not_supported = 801,
    unknown = 999,
};

enum MemoryType : int { memory_host = 1, memory_device = 2, memory_unified = 4 };

enum PointerAttribute : int {
    attribute_context = 1,
    attribute_memory_type = 2,
    attribute_device_pointer = 3,
    attribute_host_pointer = 4,
    attribute_p2p_tokens = 5,
    attribute_sync_memops = 6,
    attribute_buffer_id = 7,
    attribute_is_managed = 8,
    attribute_device_ordinal = 9,
    attribute_is_ipc_capable = 10,
    attribute_range_start = 11,
    attribute_range_size = 12,
    attribute_mapped = 13,
    attribute_handle_types = 14,
    attribute_is_rdma_capable = 15,
    attribute_access_flags = 16,
    attribute_pool = 17,
    attribute_mapping_size = 18,
    attribute_mapping_base = 19,
    attribute_block_id = 20,
};

enum LocationType : int { location_device = 1, location_host = 2, location_host_numa = 3 };
constexpr int allocation_pinned = 1;
constexpr int access_read_write = 3;
constexpr unsigned stream_non_blocking = 1;
constexpr unsigned event_flags = 0x7;
constexpr unsigned ipc_lazy_peer_access = 1;
constexpr unsigned attach_global = 1, attach_host = 2;

struct IpcHandle {
    char bytes[64];
};
struct Uuid {
    char bytes[16];
};
struct Location {
    int type;
    int id;
};
struct AllocationProperties {
    int type;
    int handle_types;
    Location location;
    void* windows;
    unsigned char flags[8];
};
struct AccessDescription {
    Location location;
    int flags;
};
struct PoolProperties {
    int type;
    int handle_types;
    Location location;
    void* windows;
    std::size_t max_size;
    unsigned char flags[56];
};
struct Copy2D {
    std::size_t source_x, source_y;
    int source_type;
    const void* source_host;
    unsigned long long source_device;
    void* source_array;
    std::size_t source_pitch;
    std::size_t target_x, target_y;
    int target_type;
    void* target_host;
    unsigned long long target_device;
    void* target_array;
    std::size_t target_pitch;
    std::size_t width, height;
};

using DevicePointer = unsigned long long;

}  // namespace fake
