// Compiled by tests/python/device/test_cuda_header.py with the real cuda.h: the fake's numbers and layouts are its own,
// and those that palmette has written down are, too.
#include <cuda.h>

#include <cstddef>

#include "cuda_types.hpp"
#include "palmette/device/cuda_api.hpp"
#include "palmette/device/driver.hpp"

#define SAME(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))

SAME(fake::success, CUDA_SUCCESS);
SAME(fake::invalid_value, CUDA_ERROR_INVALID_VALUE);
SAME(fake::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(fake::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(fake::deinitialized, CUDA_ERROR_DEINITIALIZED);
SAME(fake::no_device, CUDA_ERROR_NO_DEVICE);
SAME(fake::invalid_device, CUDA_ERROR_INVALID_DEVICE);
SAME(fake::invalid_image, CUDA_ERROR_INVALID_IMAGE);
SAME(fake::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
SAME(fake::peer_access_unsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
SAME(fake::invalid_ptx, CUDA_ERROR_INVALID_PTX);
SAME(fake::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
SAME(fake::not_found, CUDA_ERROR_NOT_FOUND);
SAME(fake::not_ready, CUDA_ERROR_NOT_READY);
SAME(fake::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(fake::peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(fake::peer_access_not_enabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SAME(fake::already_registered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(fake::not_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME(fake::not_supported, CUDA_ERROR_NOT_SUPPORTED);
SAME(fake::unknown, CUDA_ERROR_UNKNOWN);

SAME(fake::memory_host, CU_MEMORYTYPE_HOST);
SAME(fake::memory_device, CU_MEMORYTYPE_DEVICE);
SAME(fake::memory_unified, CU_MEMORYTYPE_UNIFIED);

SAME(fake::attribute_context, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(fake::attribute_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(fake::attribute_device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SAME(fake::attribute_host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER);
SAME(fake::attribute_p2p_tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS);
SAME(fake::attribute_sync_memops, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
SAME(fake::attribute_buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(fake::attribute_is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(fake::attribute_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(fake::attribute_is_ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME(fake::attribute_range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(fake::attribute_range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(fake::attribute_mapped, CU_POINTER_ATTRIBUTE_MAPPED);
SAME(fake::attribute_handle_types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
SAME(fake::attribute_is_rdma_capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
SAME(fake::attribute_access_flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS);
SAME(fake::attribute_pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME(fake::attribute_mapping_size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME(fake::attribute_mapping_base, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
SAME(fake::attribute_block_id, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);

SAME(fake::location_device, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(fake::location_host, CU_MEM_LOCATION_TYPE_HOST);
SAME(fake::location_host_numa, CU_MEM_LOCATION_TYPE_HOST_NUMA);
SAME(fake::allocation_pinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(fake::access_read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(fake::stream_non_blocking, CU_STREAM_NON_BLOCKING);
SAME(fake::event_flags, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
SAME(fake::ipc_lazy_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(fake::attach_global, CU_MEM_ATTACH_GLOBAL);
SAME(fake::attach_host, CU_MEM_ATTACH_HOST);

#define SAME_PLACE(ours, our_field, theirs, their_field) \
    static_assert(offsetof(fake::ours, our_field) == offsetof(theirs, their_field))

SAME(sizeof(fake::IpcHandle), sizeof(CUipcMemHandle));
SAME(sizeof(fake::Uuid), sizeof(CUuuid));
SAME(sizeof(fake::DevicePointer), sizeof(CUdeviceptr));
SAME(sizeof(fake::Location), sizeof(CUmemLocation));
SAME(sizeof(fake::AllocationProperties), sizeof(CUmemAllocationProp));
SAME_PLACE(AllocationProperties, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_PLACE(AllocationProperties, location, CUmemAllocationProp, location);
SAME_PLACE(AllocationProperties, windows, CUmemAllocationProp, win32HandleMetaData);
SAME(sizeof(fake::AccessDescription), sizeof(CUmemAccessDesc));
SAME_PLACE(AccessDescription, flags, CUmemAccessDesc, flags);
SAME(sizeof(fake::PoolProperties), sizeof(CUmemPoolProps));
SAME_PLACE(PoolProperties, handle_types, CUmemPoolProps, handleTypes);
SAME_PLACE(PoolProperties, location, CUmemPoolProps, location);
SAME_PLACE(PoolProperties, max_size, CUmemPoolProps, maxSize);
SAME(sizeof(fake::Copy2D), sizeof(CUDA_MEMCPY2D));
SAME_PLACE(Copy2D, source_type, CUDA_MEMCPY2D, srcMemoryType);
SAME_PLACE(Copy2D, source_host, CUDA_MEMCPY2D, srcHost);
SAME_PLACE(Copy2D, source_device, CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(Copy2D, source_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_PLACE(Copy2D, target_x, CUDA_MEMCPY2D, dstXInBytes);
SAME_PLACE(Copy2D, target_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_PLACE(Copy2D, target_device, CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(Copy2D, target_pitch, CUDA_MEMCPY2D, dstPitch);
SAME_PLACE(Copy2D, width, CUDA_MEMCPY2D, WidthInBytes);
SAME_PLACE(Copy2D, height, CUDA_MEMCPY2D, Height);

namespace product = palmette::device::cuda;
using palmette::device::Symbols;

SAME(Symbols::success, CUDA_SUCCESS);
SAME(Symbols::not_ready, CUDA_ERROR_NOT_READY);
SAME(product::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(product::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
SAME(Symbols::stream_default, CU_STREAM_DEFAULT);
SAME(Symbols::stream_non_blocking, CU_STREAM_NON_BLOCKING);
SAME(Symbols::event_disable_timing, CU_EVENT_DISABLE_TIMING);
SAME(Symbols::register_portable, CU_MEMHOSTREGISTER_PORTABLE);
SAME(Symbols::lazy_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(product::attribute_context, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(product::attribute_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(product::attribute_buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(product::attribute_is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(product::attribute_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(product::attribute_legacy_ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME(product::attribute_mempool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME(product::memory_host, CU_MEMORYTYPE_HOST);
SAME(product::memory_device, CU_MEMORYTYPE_DEVICE);
SAME(product::location_device, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(product::capture_mode_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);

#define SAME_IN_PRODUCT(ours, our_field, theirs, their_field) \
    static_assert(offsetof(product::ours, our_field) == offsetof(theirs, their_field))

SAME(sizeof(palmette::device::Handle::bytes), sizeof(CUipcMemHandle));
SAME(sizeof(product::Pointer), sizeof(CUdeviceptr));
SAME(sizeof(product::Pointer), sizeof(void*));
static_assert(sizeof(product::AllocationProperties) >= sizeof(CUmemAllocationProp));
SAME_IN_PRODUCT(AllocationProperties, location_type, CUmemAllocationProp, location);
SAME_IN_PRODUCT(AllocationProperties, location_id, CUmemAllocationProp, location.id);
SAME(sizeof(product::Copy2d), sizeof(CUDA_MEMCPY2D));
SAME_IN_PRODUCT(Copy2d, src_type, CUDA_MEMCPY2D, srcMemoryType);
SAME_IN_PRODUCT(Copy2d, src_host, CUDA_MEMCPY2D, srcHost);
SAME_IN_PRODUCT(Copy2d, src_device, CUDA_MEMCPY2D, srcDevice);
SAME_IN_PRODUCT(Copy2d, src_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_IN_PRODUCT(Copy2d, dst_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_IN_PRODUCT(Copy2d, dst_host, CUDA_MEMCPY2D, dstHost);
SAME_IN_PRODUCT(Copy2d, dst_device, CUDA_MEMCPY2D, dstDevice);
SAME_IN_PRODUCT(Copy2d, dst_pitch, CUDA_MEMCPY2D, dstPitch);
SAME_IN_PRODUCT(Copy2d, width, CUDA_MEMCPY2D, WidthInBytes);
SAME_IN_PRODUCT(Copy2d, height, CUDA_MEMCPY2D, Height);
