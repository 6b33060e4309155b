// libcuda: memory, what a pointer is, memory of other processes, copies.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "driver.hpp"

using namespace fake;

namespace {

constexpr std::size_t granularity = 2UL << 20;

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Frees what `address` begins; it must be of one of these kinds.
int release(Driver& d, std::unique_lock<std::recursive_mutex>& lock, std::uintptr_t address,
            std::initializer_list<Kind> kinds, int otherwise) {
    if (address == 0) return success;
    const auto right = [&](const AllocationPointer& a) {
        return a && a->address == address && std::find(kinds.begin(), kinds.end(), a->kind) != kinds.end();
    };
    if (!right(d.memory.find(address))) return otherwise;
    lock.unlock();
    const int error = d.synchronize(nullptr);
    lock.lock();
    const AllocationPointer holder = d.memory.find(address);
    if (!right(holder)) return otherwise;
    d.memory.remove(*holder);
    return error;
}

int allocate(Driver& d, DevicePointer* address, std::size_t size, Kind kind, const std::string& library) {
    if (address == nullptr || size == 0) return invalid_value;
    const AllocationPointer made = d.allocate(kind, size, current()->device, library);
    if (!made) return out_of_memory;
    made->context = current();
    *address = made->address;
    return success;
}

int allocate_host(Driver& d, void** pointer, std::size_t size, const std::string& library) {
    DevicePointer address = 0;
    if (pointer == nullptr) return invalid_value;
    const int result = allocate(d, &address, size, Kind::host, library);
    if (result == success) *pointer = reinterpret_cast<void*>(address);
    return result;
}

int allocate_from(Driver& d, DevicePointer* address, std::size_t size, Pool* pool, void* stream,
                  const std::string& library) {
    if (d.settings.old) return not_supported;
    if (address == nullptr || size == 0 || d.pools.count(pool) == 0) return invalid_value;
    if (!d.stream(stream)) return invalid_handle;
    const bool device = pool->properties.location.type == location_device;
    const AllocationPointer made = d.allocate(Kind::pool, size, device ? pool->properties.location.id : -1, library);
    if (!made) return out_of_memory;
    made->pool = pool;
    made->says_host = d.settings.pool_says_host < 0 ? made->id % 2 == 0 : d.settings.pool_says_host == 1;
    *address = made->address;
    return success;
}

enum class Side { host, device, any };

/// Whether a copy can be: what's the device's must be known to the driver as a whole.
bool allowed(const Driver& d, std::uintptr_t address, std::size_t size, Side side) {
    if (address == 0) return false;
    const AllocationPointer holder = d.memory.find(address);
    if (!holder && side == Side::device) return false;
    if (holder && holder->kind == Kind::mapped && current() != nullptr &&
        !holder->accessible[static_cast<std::size_t>(current()->device)]) {
        return false;
    }
    return !d.memory.pieces(address, size).empty();
}

int start_copy(Driver& d, std::uintptr_t target, Side target_side, std::uintptr_t source, Side source_side,
               std::size_t size, void* handle) {
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    if (size == 0) return success;
    if (!allowed(d, target, size, target_side) || !allowed(d, source, size, source_side)) return invalid_value;
    d.add_copy(stream, target, source, size);
    return success;
}

/// The same, and waits for it unless it's within devices, where the real one doesn't either.
int finish_copy(Driver& d, std::unique_lock<std::recursive_mutex>& lock, std::uintptr_t target, Side target_side,
                std::uintptr_t source, Side source_side, std::size_t size) {
    const int result = start_copy(d, target, target_side, source, source_side, size, nullptr);
    if (result != success || size == 0) return result;
    const auto waits = [&](std::uintptr_t address) {
        const AllocationPointer holder = d.memory.find(address);
        return !holder || holder->on_host() || holder->sync_memops;
    };
    if (!waits(target) && !waits(source)) return success;
    const Place end = Streams::end_of(d.stream(nullptr));
    lock.unlock();
    return d.streams.wait(end);
}

int start_copy_2d(Driver& d, const Copy2D* what, void* handle) {
    if (what == nullptr) return invalid_value;
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    const auto side = [](int type) {
        return type == memory_host ? Side::host : type == memory_device ? Side::device : Side::any;
    };
    if (what->source_type == 3 || what->target_type == 3) return not_supported;
    if (what->width == 0 || what->height == 0) return success;
    if (what->source_pitch != 0 && what->source_pitch < what->width) return invalid_value;
    if (what->target_pitch != 0 && what->target_pitch < what->width) return invalid_value;
    const std::size_t source_pitch = what->source_pitch == 0 ? what->width : what->source_pitch;
    const std::size_t target_pitch = what->target_pitch == 0 ? what->width : what->target_pitch;
    const std::uintptr_t source =
        (what->source_type == memory_host ? address_of(what->source_host) : what->source_device) + what->source_x +
        what->source_y * source_pitch;
    const std::uintptr_t target =
        (what->target_type == memory_host ? address_of(what->target_host) : what->target_device) + what->target_x +
        what->target_y * target_pitch;
    for (std::size_t row = 0; row < what->height; ++row) {
        if (!allowed(d, source + row * source_pitch, what->width, side(what->source_type)) ||
            !allowed(d, target + row * target_pitch, what->width, side(what->target_type))) {
            return invalid_value;
        }
    }
    d.add_copy_2d(stream, target, target_pitch, source, source_pitch, what->width, what->height);
    return success;
}

}  // namespace

FAKE_API int cuPointerGetAttribute(void* data, int attribute, DevicePointer address) {
    be_slow();
    FAKE_CALL(cuPointerGetAttribute, Needs::initialized);
    return d.pointer_attribute(attribute, data, address, false);
}

FAKE_API int cuPointerGetAttributes(unsigned count, int* attributes, void** data, DevicePointer address) {
    be_slow();
    FAKE_CALL(cuPointerGetAttributes, Needs::initialized);
    if (count == 0 || attributes == nullptr || data == nullptr) return invalid_value;
    for (unsigned i = 0; i < count; ++i) {
        const int result = d.pointer_attribute(attributes[i], data[i], address, true);
        if (result != success) return result;
    }
    return success;
}

FAKE_API int cuPointerSetAttribute(const void* value, int attribute, DevicePointer address) {
    FAKE_CALL(cuPointerSetAttribute, Needs::initialized);
    const AllocationPointer holder = d.memory.find(address);
    if (value == nullptr || attribute != attribute_sync_memops || !holder) return invalid_value;
    unsigned set = 0;
    std::memcpy(&set, value, sizeof set);
    holder->sync_memops = set != 0;
    return success;
}

FAKE_API int cuMemAlloc_v2(DevicePointer* address, std::size_t size) {
    FAKE_CALL(cuMemAlloc_v2, Needs::context);
    return allocate(d, address, size, Kind::device, call.library);
}

FAKE_API int cuMemFree_v2(DevicePointer address) {
    FAKE_CALL(cuMemFree_v2, Needs::context);
    return release(d, lock, address, {Kind::device, Kind::managed, Kind::pool}, invalid_value);
}

FAKE_API int cuMemAllocManaged(DevicePointer* address, std::size_t size, unsigned flags) {
    FAKE_CALL(cuMemAllocManaged, Needs::context);
    if (flags != attach_global && flags != attach_host) return invalid_value;
    return allocate(d, address, size, Kind::managed, call.library);
}

FAKE_API int cuMemHostAlloc(void** pointer, std::size_t size, unsigned) {
    FAKE_CALL(cuMemHostAlloc, Needs::context);
    return allocate_host(d, pointer, size, call.library);
}

FAKE_API int cuMemAllocHost_v2(void** pointer, std::size_t size) {
    FAKE_CALL(cuMemAllocHost_v2, Needs::context);
    return allocate_host(d, pointer, size, call.library);
}

FAKE_API int cuMemFreeHost(void* pointer) {
    FAKE_CALL(cuMemFreeHost, Needs::context);
    return release(d, lock, address_of(pointer), {Kind::host}, invalid_value);
}

FAKE_API int cuMemHostRegister(void* pointer, std::size_t size, unsigned) {
    FAKE_CALL(cuMemHostRegister, Needs::context);
    return d.register_host(pointer, size, call.library);
}

FAKE_API int cuMemHostRegister_v2(void* pointer, std::size_t size, unsigned) {
    FAKE_CALL(cuMemHostRegister_v2, Needs::context);
    return d.register_host(pointer, size, call.library);
}

FAKE_API int cuMemHostUnregister(void* pointer) {
    FAKE_CALL(cuMemHostUnregister, Needs::context);
    if (pointer == nullptr) return invalid_value;
    return release(d, lock, address_of(pointer), {Kind::registered}, not_registered);
}

FAKE_API int cuMemHostGetDevicePointer_v2(DevicePointer* address, void* pointer, unsigned flags) {
    FAKE_CALL(cuMemHostGetDevicePointer_v2, Needs::context);
    const AllocationPointer holder = d.memory.find(address_of(pointer));
    if (address == nullptr || flags != 0 || !holder || !holder->on_host()) return invalid_value;
    *address = address_of(pointer);
    return success;
}

FAKE_API int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    FAKE_CALL(cuMemGetInfo_v2, Needs::context);
    if (free == nullptr || total == nullptr) return invalid_value;
    *free = std::size_t{12} << 30;
    *total = std::size_t{16} << 30;
    return success;
}

FAKE_API int cuMemAllocAsync(DevicePointer* address, std::size_t size, void* stream) {
    FAKE_CALL(cuMemAllocAsync, Needs::context);
    Pool* const pool = d.standard_pools[static_cast<std::size_t>(current()->device)];
    return allocate_from(d, address, size, pool, stream, call.library);
}

FAKE_API int cuMemAllocFromPoolAsync(DevicePointer* address, std::size_t size, Pool* pool, void* stream) {
    FAKE_CALL(cuMemAllocFromPoolAsync, Needs::context);
    return allocate_from(d, address, size, pool, stream, call.library);
}

FAKE_API int cuMemFreeAsync(DevicePointer address, void* handle) {
    FAKE_CALL(cuMemFreeAsync, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    const AllocationPointer holder = d.memory.find(address);
    if (!holder || holder->address != address || (holder->kind != Kind::pool && holder->kind != Kind::device)) {
        return invalid_value;
    }
    d.add(stream, [&d, freed = std::weak_ptr<Allocation>(holder)](int&) {
        const std::lock_guard<std::recursive_mutex> guard(d.mutex);
        if (const AllocationPointer a = freed.lock()) d.memory.remove(*a);
        return true;
    });
    return success;
}

FAKE_API int cuDeviceGetDefaultMemPool(Pool** pool, int device) {
    FAKE_CALL(cuDeviceGetDefaultMemPool, Needs::initialized);
    if (d.settings.old) return not_supported;
    if (pool == nullptr) return invalid_value;
    if (!d.has(device)) return invalid_device;
    *pool = d.standard_pools[static_cast<std::size_t>(device)];
    return success;
}

FAKE_API int cuMemPoolCreate(Pool** pool, const PoolProperties* properties) {
    FAKE_CALL(cuMemPoolCreate, Needs::initialized);
    if (d.settings.old) return not_supported;
    if (pool == nullptr || properties == nullptr || properties->type != allocation_pinned) return invalid_value;
    if (properties->location.type == location_device && !d.has(properties->location.id)) return invalid_device;
    auto made = std::make_unique<Pool>();
    made->properties = *properties;
    made->library = call.library;
    *pool = made.get();
    d.pools[made.get()] = std::move(made);
    return success;
}

FAKE_API int cuMemPoolDestroy(Pool* pool) {
    FAKE_CALL(cuMemPoolDestroy, Needs::initialized);
    const auto found = d.pools.find(pool);
    if (found == d.pools.end() || found->second->standard) return invalid_value;
    for (const auto& [address, allocation] : d.memory.all()) {
        if (allocation->pool == pool) allocation->pool = nullptr;
    }
    d.pools.erase(found);
    return success;
}

FAKE_API int cuMemGetAddressRange_v2(DevicePointer* base, std::size_t* size, DevicePointer address) {
    be_slow();
    FAKE_CALL(cuMemGetAddressRange_v2, Needs::context);
    const AllocationPointer holder = d.memory.find(address);
    if (!holder) return not_found;
    if (base != nullptr) *base = holder->address;
    if (size != nullptr) *size = holder->size;
    return success;
}

FAKE_API int cuMemAddressReserve(DevicePointer* address, std::size_t size, std::size_t, DevicePointer,
                                 unsigned long long flags) {
    FAKE_CALL(cuMemAddressReserve, Needs::initialized);
    if (address == nullptr || size == 0 || size % granularity != 0 || flags != 0) return invalid_value;
    *address = address_space().take(size);
    if (*address == 0) return out_of_memory;
    d.reserved[*address] = size;
    return success;
}

FAKE_API int cuMemAddressFree(DevicePointer address, std::size_t size) {
    FAKE_CALL(cuMemAddressFree, Needs::initialized);
    const auto found = d.reserved.find(address);
    if (found == d.reserved.end() || found->second != size || d.memory.overlaps(address, size)) return invalid_value;
    address_space().give_back(address, size);
    d.reserved.erase(found);
    return success;
}

FAKE_API int cuMemGetAllocationGranularity(std::size_t* bytes, const AllocationProperties* properties, int) {
    FAKE_CALL(cuMemGetAllocationGranularity, Needs::initialized);
    if (bytes == nullptr || properties == nullptr) return invalid_value;
    *bytes = granularity;
    return success;
}

FAKE_API int cuMemCreate(PhysicalMemory** handle, std::size_t size, const AllocationProperties* properties,
                         unsigned long long flags) {
    FAKE_CALL(cuMemCreate, Needs::initialized);
    if (d.settings.old) return not_supported;
    if (handle == nullptr || properties == nullptr || flags != 0 || size == 0 || size % granularity != 0 ||
        properties->type != allocation_pinned) {
        return invalid_value;
    }
    if (properties->location.type == location_device && !d.has(properties->location.id)) return invalid_device;
    auto made = std::make_shared<PhysicalMemory>();
    made->pages = std::make_shared<Pages>(size);
    if (made->pages->size == 0) return out_of_memory;
    made->properties = *properties;
    made->id = d.memory.next_id();
    made->library = call.library;
    *handle = made.get();
    d.physical[made.get()] = std::move(made);
    return success;
}

FAKE_API int cuMemRelease(PhysicalMemory* handle) {
    FAKE_CALL(cuMemRelease, Needs::initialized);
    const auto found = d.physical.find(handle);
    if (found == d.physical.end()) return invalid_value;
    if (--handle->handles == 0) d.physical.erase(found);
    return success;
}

FAKE_API int cuMemMap(DevicePointer address, std::size_t size, std::size_t offset, PhysicalMemory* handle,
                      unsigned long long flags) {
    FAKE_CALL(cuMemMap, Needs::initialized);
    const auto memory = d.physical.find(handle);
    auto range = d.reserved.upper_bound(address);
    if (memory == d.physical.end() || range == d.reserved.begin() || flags != 0 || offset != 0) return invalid_value;
    --range;
    if (size == 0 || size > handle->pages->size || address + size > range->first + range->second ||
        address % granularity != range->first % granularity || d.memory.overlaps(address, size)) {
        return invalid_value;
    }
    const bool on_device = handle->properties.location.type == location_device;
    const AllocationPointer made = d.memory.map(Kind::mapped, handle->pages, 0, size, !on_device, address);
    if (!made) return out_of_memory;
    made->device = on_device ? handle->properties.location.id : -1;
    made->physical = memory->second;
    made->accessible.resize(d.settings.visible.size());
    made->says_host = d.settings.vmm_says_host < 0 ? made->id % 2 == 0 : d.settings.vmm_says_host == 1;
    made->reserved = range->first;
    made->reserved_size = range->second;
    made->library = call.library;
    d.memory.insert(made);
    return success;
}

FAKE_API int cuMemSetAccess(DevicePointer address, std::size_t size, const AccessDescription* access,
                            std::size_t count) {
    FAKE_CALL(cuMemSetAccess, Needs::initialized);
    if (access == nullptr || d.memory.pieces(address, size).empty()) return invalid_value;
    for (const auto& [at, mapped] : d.memory.all()) {
        if (at < address || at >= address + size || mapped->kind != Kind::mapped) continue;
        for (std::size_t i = 0; i < count; ++i) {
            if (access[i].location.type != location_device) continue;
            if (!d.has(access[i].location.id)) return invalid_device;
            mapped->accessible[static_cast<std::size_t>(access[i].location.id)] = access[i].flags == access_read_write;
        }
    }
    return success;
}

FAKE_API int cuMemUnmap(DevicePointer address, std::size_t size) {
    FAKE_CALL(cuMemUnmap, Needs::initialized);
    lock.unlock();
    d.synchronize(nullptr);
    lock.lock();
    std::vector<AllocationPointer> gone;
    std::size_t covered = 0;
    for (const auto& [at, mapped] : d.memory.all()) {
        if (at < address || at >= address + size || mapped->kind != Kind::mapped) continue;
        gone.push_back(mapped);
        covered += mapped->size;
    }
    if (covered != size || size == 0) return invalid_value;
    for (const AllocationPointer& mapped : gone) d.memory.remove(*mapped);
    return success;
}

FAKE_API int cuMemRetainAllocationHandle(PhysicalMemory** handle, void* address) {
    FAKE_CALL(cuMemRetainAllocationHandle, Needs::initialized);
    const AllocationPointer holder = d.memory.find(address_of(address));
    if (handle == nullptr || !holder || !holder->physical) return invalid_value;
    *handle = holder->physical.get();
    PhysicalMemory& memory = **handle;
    if (d.physical.emplace(*handle, holder->physical).second) {
        memory.handles = 1;
        memory.library = call.library;
    } else {
        ++memory.handles;
    }
    return success;
}

FAKE_API int cuMemGetAllocationPropertiesFromHandle(AllocationProperties* properties, PhysicalMemory* handle) {
    FAKE_CALL(cuMemGetAllocationPropertiesFromHandle, Needs::initialized);
    if (properties == nullptr || d.physical.count(handle) == 0) return invalid_value;
    *properties = handle->properties;
    return success;
}

FAKE_API int cuIpcGetMemHandle(IpcHandle* handle, DevicePointer address) {
    FAKE_CALL(cuIpcGetMemHandle, Needs::context);
    return handle == nullptr ? invalid_value : d.ipc_handle(handle, address);
}

namespace {

int open_handle(Driver& d, DevicePointer* address, const IpcHandle& handle, unsigned flags,
                const std::string& library) {
    if (address == nullptr) return invalid_value;
    std::uintptr_t opened = 0;
    const int result = d.ipc_open(&opened, handle, flags, library);
    if (result == success) *address = opened;
    return result;
}

}  // namespace

FAKE_API int cuIpcOpenMemHandle(DevicePointer* address, IpcHandle handle, unsigned flags) {
    FAKE_CALL(cuIpcOpenMemHandle, Needs::context);
    return open_handle(d, address, handle, flags, call.library);
}

FAKE_API int cuIpcOpenMemHandle_v2(DevicePointer* address, IpcHandle handle, unsigned flags) {
    FAKE_CALL(cuIpcOpenMemHandle_v2, Needs::context);
    return open_handle(d, address, handle, flags, call.library);
}

FAKE_API int cuIpcCloseMemHandle(DevicePointer address) {
    FAKE_CALL(cuIpcCloseMemHandle, Needs::context);
    lock.unlock();
    d.synchronize(nullptr);
    lock.lock();
    return d.ipc_close(address);
}

FAKE_API int cuMemcpy(DevicePointer target, DevicePointer source, std::size_t size) {
    FAKE_CALL(cuMemcpy, Needs::context);
    return finish_copy(d, lock, target, Side::any, source, Side::any, size);
}

FAKE_API int cuMemcpyAsync(DevicePointer target, DevicePointer source, std::size_t size, void* stream) {
    FAKE_CALL(cuMemcpyAsync, Needs::context);
    return start_copy(d, target, Side::any, source, Side::any, size, stream);
}

FAKE_API int cuMemcpyDtoH_v2(void* target, DevicePointer source, std::size_t size) {
    FAKE_CALL(cuMemcpyDtoH_v2, Needs::context);
    return finish_copy(d, lock, address_of(target), Side::host, source, Side::device, size);
}

FAKE_API int cuMemcpyDtoHAsync_v2(void* target, DevicePointer source, std::size_t size, void* stream) {
    FAKE_CALL(cuMemcpyDtoHAsync_v2, Needs::context);
    return start_copy(d, address_of(target), Side::host, source, Side::device, size, stream);
}

FAKE_API int cuMemcpyHtoD_v2(DevicePointer target, const void* source, std::size_t size) {
    FAKE_CALL(cuMemcpyHtoD_v2, Needs::context);
    return finish_copy(d, lock, target, Side::device, address_of(source), Side::host, size);
}

FAKE_API int cuMemcpyHtoDAsync_v2(DevicePointer target, const void* source, std::size_t size, void* stream) {
    FAKE_CALL(cuMemcpyHtoDAsync_v2, Needs::context);
    return start_copy(d, target, Side::device, address_of(source), Side::host, size, stream);
}

FAKE_API int cuMemcpyDtoD_v2(DevicePointer target, DevicePointer source, std::size_t size) {
    FAKE_CALL(cuMemcpyDtoD_v2, Needs::context);
    return finish_copy(d, lock, target, Side::device, source, Side::device, size);
}

FAKE_API int cuMemcpyDtoDAsync_v2(DevicePointer target, DevicePointer source, std::size_t size, void* stream) {
    FAKE_CALL(cuMemcpyDtoDAsync_v2, Needs::context);
    return start_copy(d, target, Side::device, source, Side::device, size, stream);
}

FAKE_API int cuMemcpy2D_v2(const Copy2D* what) {
    FAKE_CALL(cuMemcpy2D_v2, Needs::context);
    const int result = start_copy_2d(d, what, nullptr);
    if (result != success) return result;
    const Place end = Streams::end_of(d.stream(nullptr));
    lock.unlock();
    return d.streams.wait(end);
}

FAKE_API int cuMemcpy2DAsync_v2(const Copy2D* what, void* stream) {
    FAKE_CALL(cuMemcpy2DAsync_v2, Needs::context);
    return start_copy_2d(d, what, stream);
}

namespace {

int fill(Driver& d, DevicePointer target, unsigned char value, std::size_t size, void* handle) {
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    if (size == 0) return success;
    if (!allowed(d, target, size, Side::device)) return invalid_value;
    d.add_fill(stream, target, value, size);
    return success;
}

}  // namespace

FAKE_API int cuMemsetD8_v2(DevicePointer target, unsigned char value, std::size_t size) {
    FAKE_CALL(cuMemsetD8_v2, Needs::context);
    return fill(d, target, value, size, nullptr);
}

FAKE_API int cuMemsetD8Async(DevicePointer target, unsigned char value, std::size_t size, void* stream) {
    FAKE_CALL(cuMemsetD8Async, Needs::context);
    return fill(d, target, value, size, stream);
}

/// Where the host reads and writes device memory; nullptr: it's no device memory, or none of a device.
FAKE_API void* fake_cuda_alias(const void* address) {
    Driver& d = driver();
    const std::lock_guard<std::recursive_mutex> lock(d.mutex);
    const AllocationPointer holder = d.memory.find(address_of(address));
    if (!holder || holder->on_host()) return nullptr;
    return holder->alias + (address_of(address) - holder->address);
}
