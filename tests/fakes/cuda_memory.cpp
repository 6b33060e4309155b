// libcuda: memory, what a pointer is, copies.
#include <algorithm>
#include <cstring>

#include "driver.hpp"

using namespace fake;

namespace {

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

/// Copies, and waits for it unless it's within devices, where the real one doesn't wait either.
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
