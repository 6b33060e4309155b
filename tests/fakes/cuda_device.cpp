// libcuda: the driver itself, devices, contexts.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "driver.hpp"

using namespace fake;

namespace {

struct Named {
    int result;
    const char* name;
    const char* sentence;
};
constexpr Named results[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {deinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_image, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {peer_access_unsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported"},
    {invalid_ptx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {not_ready, "CUDA_ERROR_NOT_READY", "device not ready"},
    {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {peer_access_already_enabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {peer_access_not_enabled, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {already_registered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "memory has already been registered"},
    {not_registered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "memory has not been registered"},
    {not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {unknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Named* find(int result) {
    for (const Named& named : results) {
        if (named.result == result) return &named;
    }
    return nullptr;
}

int proc_address(const char* symbol, void** function, int* status) {
    // The newest version of a name; names with a version in them aren't known to the real one.
    static const int anchor = 0;
    Dl_info own{};
    dladdr(&anchor, &own);
    void* const library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    const std::string name = symbol;
    *function = nullptr;
    if (library != nullptr && name.rfind("cu", 0) == 0 && name.find("_v") == std::string::npos) {
        *function = dlsym(library, (name + "_v2").c_str());
        if (*function == nullptr) *function = dlsym(library, symbol);
    }
    if (library != nullptr) dlclose(library);
    if (status != nullptr) *status = *function != nullptr ? 0 : 1;
    return *function != nullptr ? success : not_found;
}

}  // namespace

FAKE_API int cuInit(unsigned flags) {
    FAKE_CALL(cuInit, Needs::nothing);
    if (flags != 0) return invalid_value;
    if (d.forked) return not_initialized;
    if (d.settings.visible.empty()) return no_device;
    d.initialized = true;
    return success;
}

FAKE_API int cuDriverGetVersion(int* version) {
    FAKE_CALL(cuDriverGetVersion, Needs::nothing);
    if (version == nullptr) return invalid_value;
    *version = d.settings.old ? 11010 : 12080;
    return success;
}

FAKE_API int cuGetErrorName(int result, const char** name) {
    const Named* const known = find(result);
    *name = known ? known->name : nullptr;
    return known ? success : invalid_value;
}

FAKE_API int cuGetErrorString(int result, const char** sentence) {
    const Named* const known = find(result);
    *sentence = known ? known->sentence : nullptr;
    return known ? success : invalid_value;
}

FAKE_API int cuGetProcAddress(const char* symbol, void** function, int, unsigned long long) {
    FAKE_CALL(cuGetProcAddress, Needs::nothing);
    lock.unlock();
    return symbol == nullptr || function == nullptr ? invalid_value : proc_address(symbol, function, nullptr);
}

FAKE_API int cuGetProcAddress_v2(const char* symbol, void** function, int, unsigned long long, int* status) {
    FAKE_CALL(cuGetProcAddress_v2, Needs::nothing);
    lock.unlock();
    return symbol == nullptr || function == nullptr ? invalid_value : proc_address(symbol, function, status);
}

FAKE_API int cuDeviceGetCount(int* count) {
    FAKE_CALL(cuDeviceGetCount, Needs::initialized);
    if (count == nullptr) return invalid_value;
    *count = static_cast<int>(d.settings.visible.size());
    return success;
}

FAKE_API int cuDeviceGet(int* device, int ordinal) {
    FAKE_CALL(cuDeviceGet, Needs::initialized);
    if (device == nullptr) return invalid_value;
    if (!d.has(ordinal)) return invalid_device;
    *device = ordinal;
    return success;
}

FAKE_API int cuDeviceGetName(char* name, int length, int device) {
    FAKE_CALL(cuDeviceGetName, Needs::initialized);
    if (name == nullptr || length < 1) return invalid_value;
    if (!d.has(device)) return invalid_device;
    std::snprintf(name, static_cast<std::size_t>(length), "Fake device %d", d.physical_of(device));
    return success;
}

FAKE_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
    FAKE_CALL(cuDeviceGetAttribute, Needs::initialized);
    if (value == nullptr) return invalid_value;
    if (!d.has(device)) return invalid_device;
    const std::map<int, int> values{
        {1, 1024},                           // MAX_THREADS_PER_BLOCK
        {16, 108},                           // MULTIPROCESSOR_COUNT
        {18, 0},                             // INTEGRATED
        {20, 0},                             // COMPUTE_MODE
        {33, 0x10 + d.physical_of(device)},  // PCI_BUS_ID
        {34, 0},                             // PCI_DEVICE_ID
        {40, 2},                             // ASYNC_ENGINE_COUNT
        {41, 1},                             // UNIFIED_ADDRESSING
        {50, 0},                             // PCI_DOMAIN_ID
        {75, 8},                             // COMPUTE_CAPABILITY_MAJOR
        {76, 0},                             // COMPUTE_CAPABILITY_MINOR
        {83, 1},                             // MANAGED_MEMORY
        {88, 0},                             // PAGEABLE_MEMORY_ACCESS
        {89, 1},                             // CONCURRENT_MANAGED_ACCESS
        {91, 1},                             // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
        {99, d.settings.no_pin ? 0 : 1},     // HOST_REGISTER_SUPPORTED
        {100, 0},                            // PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
        {102, d.settings.old ? 0 : 1},       // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        {115, d.settings.old ? 0 : 1},       // MEMORY_POOLS_SUPPORTED
    };
    const auto known = values.find(attribute);
    *value = known == values.end() ? 0 : known->second;
    return attribute > 0 ? success : invalid_value;
}

FAKE_API int cuDeviceGetUuid(Uuid* uuid, int device) {
    FAKE_CALL(cuDeviceGetUuid, Needs::initialized);
    if (uuid == nullptr) return invalid_value;
    if (!d.has(device)) return invalid_device;
    std::snprintf(uuid->bytes, sizeof uuid->bytes, "fake device %d", d.physical_of(device));
    return success;
}

FAKE_API int cuDeviceGetUuid_v2(Uuid* uuid, int device) {
    FAKE_CALL(cuDeviceGetUuid_v2, Needs::initialized);
    if (uuid == nullptr) return invalid_value;
    if (!d.has(device)) return invalid_device;
    std::snprintf(uuid->bytes, sizeof uuid->bytes, "fake device %d", d.physical_of(device));
    return success;
}

FAKE_API int cuDeviceGetPCIBusId(char* id, int length, int device) {
    FAKE_CALL(cuDeviceGetPCIBusId, Needs::initialized);
    if (id == nullptr || length < 13) return invalid_value;
    if (!d.has(device)) return invalid_device;
    std::snprintf(id, static_cast<std::size_t>(length), "%s", pci_bus_id(d.physical_of(device)).c_str());
    return success;
}

FAKE_API int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
    FAKE_CALL(cuDeviceTotalMem_v2, Needs::initialized);
    if (bytes == nullptr) return invalid_value;
    if (!d.has(device)) return invalid_device;
    *bytes = std::size_t{16} << 30;
    return success;
}

FAKE_API int cuDeviceCanAccessPeer(int* can, int device, int peer) {
    FAKE_CALL(cuDeviceCanAccessPeer, Needs::initialized);
    if (can == nullptr) return invalid_value;
    if (!d.has(device) || !d.has(peer)) return invalid_device;
    *can = device != peer && !d.settings.no_peer ? 1 : 0;
    return success;
}

FAKE_API int cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
    FAKE_CALL(cuCtxEnablePeerAccess, Needs::context);
    if (flags != 0) return invalid_value;
    if (!d.knows(peer)) return invalid_context;
    if (d.settings.no_peer || peer->device == current()->device) return peer_access_unsupported;
    return current()->peers.insert(peer->device).second ? success : peer_access_already_enabled;
}

FAKE_API int cuDevicePrimaryCtxRetain(Context** context, int device) {
    FAKE_CALL(cuDevicePrimaryCtxRetain, Needs::initialized);
    return context == nullptr ? invalid_value : d.retain(context, device, call.library);
}

namespace {

int release(Driver& d, std::unique_lock<std::recursive_mutex>& lock, int device) {
    if (!d.has(device)) return invalid_device;
    if (d.primary[static_cast<std::size_t>(device)]->retained == 1) {
        lock.unlock();
        d.synchronize(d.primary[static_cast<std::size_t>(device)].get());
        lock.lock();
    }
    return d.release(device);
}

}  // namespace

FAKE_API int cuDevicePrimaryCtxRelease(int device) {
    FAKE_CALL(cuDevicePrimaryCtxRelease, Needs::initialized);
    return release(d, lock, device);
}

FAKE_API int cuDevicePrimaryCtxRelease_v2(int device) {
    FAKE_CALL(cuDevicePrimaryCtxRelease_v2, Needs::initialized);
    return release(d, lock, device);
}

FAKE_API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    FAKE_CALL(cuDevicePrimaryCtxGetState, Needs::initialized);
    if (!d.has(device)) return invalid_device;
    if (flags == nullptr || active == nullptr) return invalid_value;
    *flags = d.primary[static_cast<std::size_t>(device)]->flags;
    *active = d.primary[static_cast<std::size_t>(device)]->alive ? 1 : 0;
    return success;
}

namespace {

int create(Driver& d, Context** context, unsigned flags, int device, const std::string& library) {
    if (context == nullptr) return invalid_value;
    if (!d.has(device)) return invalid_device;
    auto made = std::make_unique<Context>();
    made->device = device;
    made->flags = flags;
    made->library = library;
    made->alive = true;
    if (!push_current(made.get())) return out_of_memory;
    d.created(*made);
    *context = made.get();
    d.contexts[made.get()] = std::move(made);
    return success;
}

}  // namespace

FAKE_API int cuCtxCreate(Context** context, unsigned flags, int device) {
    FAKE_CALL(cuCtxCreate, Needs::initialized);
    return create(d, context, flags, device, call.library);
}

FAKE_API int cuCtxCreate_v2(Context** context, unsigned flags, int device) {
    FAKE_CALL(cuCtxCreate_v2, Needs::initialized);
    return create(d, context, flags, device, call.library);
}

FAKE_API int cuCtxDestroy_v2(Context* context) {
    FAKE_CALL(cuCtxDestroy_v2, Needs::initialized);
    if (d.contexts.count(context) == 0) return invalid_context;
    lock.unlock();
    d.synchronize(context);
    lock.lock();
    if (current() == context) pop_current();
    d.destroy(*context);
    return success;
}

FAKE_API int cuCtxGetCurrent(Context** context) {
    FAKE_CALL(cuCtxGetCurrent, Needs::initialized);
    if (context == nullptr) return invalid_value;
    *context = current();
    return success;
}

FAKE_API int cuCtxSetCurrent(Context* context) {
    FAKE_CALL(cuCtxSetCurrent, Needs::initialized);
    if (context != nullptr && !d.knows(context)) return invalid_context;
    set_current(context);
    return success;
}

FAKE_API int cuCtxPushCurrent_v2(Context* context) {
    FAKE_CALL(cuCtxPushCurrent_v2, Needs::initialized);
    if (!d.knows(context)) return invalid_context;
    return push_current(context) ? success : invalid_value;
}

FAKE_API int cuCtxPopCurrent_v2(Context** context) {
    FAKE_CALL(cuCtxPopCurrent_v2, Needs::context);
    Context* const popped = pop_current();
    if (context != nullptr) *context = popped;
    return success;
}

FAKE_API int cuCtxGetDevice(int* device) {
    FAKE_CALL(cuCtxGetDevice, Needs::context);
    if (device == nullptr) return invalid_value;
    *device = current()->device;
    return success;
}

FAKE_API int cuCtxSynchronize() {
    FAKE_CALL(cuCtxSynchronize, Needs::context);
    lock.unlock();
    return d.synchronize(current());
}
