// libcuda: memory that programs map themselves, and memory of other processes.
#include <sys/mman.h>

#include "driver.hpp"

using namespace fake;

namespace {

constexpr std::size_t granularity = 2UL << 20;

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

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
