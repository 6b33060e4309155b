// libamdhip64.so.6 of our own: HIP's names for what the fake libcuda does. Contexts are implied: the device's primary
// one. cuda_*.cpp are compiled into it with FAKE_HIP, which hides their functions.
#include <cstring>

#include "driver.hpp"

using namespace fake;

extern "C" {
int cuMemAlloc_v2(DevicePointer*, std::size_t);
int cuMemFree_v2(DevicePointer);
int cuMemAllocManaged(DevicePointer*, std::size_t, unsigned);
int cuMemHostAlloc(void**, std::size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemHostRegister_v2(void*, std::size_t, unsigned);
int cuMemHostUnregister(void*);
int cuMemGetAddressRange_v2(DevicePointer*, std::size_t*, DevicePointer);
int cuIpcGetMemHandle(IpcHandle*, DevicePointer);
int cuIpcOpenMemHandle_v2(DevicePointer*, IpcHandle, unsigned);
int cuIpcCloseMemHandle(DevicePointer);
int cuMemcpy(DevicePointer, DevicePointer, std::size_t);
int cuMemcpyAsync(DevicePointer, DevicePointer, std::size_t, void*);
int cuMemcpy2DAsync_v2(const Copy2D*, void*);
int cuMemsetD8_v2(DevicePointer, unsigned char, std::size_t);
int cuStreamCreate(Stream**, unsigned);
int cuStreamDestroy_v2(Stream*);
int cuStreamSynchronize(Stream*);
int cuStreamQuery(Stream*);
int cuStreamWaitEvent(Stream*, Event*, unsigned);
int cuEventCreate(Event**, unsigned);
int cuEventRecord(Event*, Stream*);
int cuEventQuery(Event*);
int cuEventSynchronize(Event*);
int cuEventDestroy_v2(Event*);
int cuCtxSynchronize();
int cuDeviceGetPCIBusId(char*, int, int);
int cuDeviceGetName(char*, int, int);
int cuGetErrorName(int, const char**);
void* fake_cuda_alias(const void*);
}

#define HIP_API extern "C" __attribute__((visibility("default")))

namespace {

/// hipPointerAttribute_t of ROCm 6.
struct PointerAttributes {
    int type;
    int device;
    void* device_pointer;
    void* host_pointer;
    int is_managed;
    unsigned flags;
};
static_assert(sizeof(PointerAttributes) == 32);
enum HipType : int { unregistered = 0, of_host = 1, of_device = 2, of_managed = 3 };

thread_local int device = 0;

/// The device is initialized by the first call, and has a context from the first one on that needs it.
int begin(const Call& call, bool needs_context) {
    Driver& d = driver();
    const std::lock_guard<std::recursive_mutex> lock(d.mutex);
    if (d.forked || d.settings.not_initialized) return not_initialized;
    if (d.settings.visible.empty()) return no_device;
    d.initialized = true;
    if (!needs_context) return success;
    if (!d.has(device)) return invalid_device;
    Context* const context = d.primary[static_cast<std::size_t>(device)].get();
    Context* retained = context;
    if (!context->alive) d.retain(&retained, device, call.library);
    if (current() != context) set_current(context);
    return success;
}

/// Whose call this is, for the functions below it.
struct OnBehalf {
    explicit OnBehalf(const void* caller) { on_behalf_of() = caller; }
    ~OnBehalf() { on_behalf_of() = nullptr; }
};

}  // namespace

#define HIP_CALL(function, needs_context)                                                                     \
    static ::fake::Counted& counted_ = *new ::fake::Counted(#function); /* never destroyed: the log has it */ \
    const ::fake::Call call(counted_, __builtin_return_address(0), ::fake::Needs::nothing);                   \
    if (call.result != ::fake::success) return call.result;                                                   \
    if (const int begun = begin(call, needs_context); begun != ::fake::success) return begun;                 \
    const OnBehalf behalf(__builtin_return_address(0))

HIP_API int hipInit(unsigned) {
    HIP_CALL(hipInit, false);
    return success;
}

HIP_API int hipDriverGetVersion(int* version) {
    HIP_CALL(hipDriverGetVersion, false);
    if (version == nullptr) return invalid_value;
    *version = 60300000;
    return success;
}

HIP_API const char* hipGetErrorName(int result) {
    static const char* const other = "hipErrorUnknown";
    const char* name = nullptr;
    if (cuGetErrorName(result, &name) != success) return other;
    return result == success ? "hipSuccess" : name;
}

HIP_API const char* hipGetErrorString(int result) { return hipGetErrorName(result); }

HIP_API int hipGetDeviceCount(int* count) {
    HIP_CALL(hipGetDeviceCount, false);
    if (count == nullptr) return invalid_value;
    *count = static_cast<int>(driver().settings.visible.size());
    return success;
}

HIP_API int hipGetDevice(int* now) {
    HIP_CALL(hipGetDevice, false);
    if (now == nullptr) return invalid_value;
    *now = device;
    return success;
}

HIP_API int hipSetDevice(int wanted) {
    HIP_CALL(hipSetDevice, false);
    if (!driver().has(wanted)) return invalid_device;
    device = wanted;
    return success;
}

HIP_API int hipDeviceGetPCIBusId(char* id, int length, int of) {
    HIP_CALL(hipDeviceGetPCIBusId, false);
    return cuDeviceGetPCIBusId(id, length, of);
}

HIP_API int hipDeviceGetName(char* name, int length, int of) {
    HIP_CALL(hipDeviceGetName, false);
    return cuDeviceGetName(name, length, of);
}

HIP_API int hipDeviceSynchronize() {
    HIP_CALL(hipDeviceSynchronize, true);
    return cuCtxSynchronize();
}

HIP_API int hipPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
    be_slow();
    HIP_CALL(hipPointerGetAttributes, false);
    if (attributes == nullptr) return invalid_value;
    Driver& d = driver();
    const std::lock_guard<std::recursive_mutex> lock(d.mutex);
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    const AllocationPointer holder = d.memory.find(address);
    std::memset(attributes, 0, sizeof *attributes);
    if (!holder) return d.settings.old ? invalid_value : success;
    const bool managed = holder->kind == Kind::managed;
    attributes->type = managed ? of_managed : holder->on_host() ? of_host : of_device;
    attributes->device = holder->device;
    attributes->device_pointer = const_cast<void*>(pointer);
    if (managed || holder->on_host()) attributes->host_pointer = const_cast<void*>(pointer);
    attributes->is_managed = managed ? 1 : 0;
    return success;
}

HIP_API int hipMalloc(void** pointer, std::size_t size) {
    HIP_CALL(hipMalloc, true);
    if (pointer == nullptr) return invalid_value;
    *pointer = nullptr;
    if (size == 0) return success;
    DevicePointer address = 0;
    const int result = cuMemAlloc_v2(&address, size);
    *pointer = reinterpret_cast<void*>(address);
    return result;
}

HIP_API int hipFree(void* pointer) {
    HIP_CALL(hipFree, true);
    return cuMemFree_v2(reinterpret_cast<DevicePointer>(pointer));
}

HIP_API int hipMallocManaged(void** pointer, std::size_t size, unsigned flags) {
    HIP_CALL(hipMallocManaged, true);
    if (pointer == nullptr) return invalid_value;
    DevicePointer address = 0;
    const int result = cuMemAllocManaged(&address, size, flags);
    *pointer = reinterpret_cast<void*>(address);
    return result;
}

HIP_API int hipHostMalloc(void** pointer, std::size_t size, unsigned flags) {
    HIP_CALL(hipHostMalloc, true);
    return cuMemHostAlloc(pointer, size, flags);
}

HIP_API int hipHostFree(void* pointer) {
    HIP_CALL(hipHostFree, true);
    return cuMemFreeHost(pointer);
}

HIP_API int hipHostRegister(void* pointer, std::size_t size, unsigned flags) {
    HIP_CALL(hipHostRegister, true);
    return cuMemHostRegister_v2(pointer, size, flags);
}

HIP_API int hipHostUnregister(void* pointer) {
    HIP_CALL(hipHostUnregister, true);
    return cuMemHostUnregister(pointer);
}

HIP_API int hipMemGetAddressRange(void** base, std::size_t* size, void* pointer) {
    HIP_CALL(hipMemGetAddressRange, true);
    DevicePointer begin_of = 0;
    const int result = cuMemGetAddressRange_v2(&begin_of, size, reinterpret_cast<DevicePointer>(pointer));
    if (result == success && base != nullptr) *base = reinterpret_cast<void*>(begin_of);
    return result;
}

HIP_API int hipIpcGetMemHandle(IpcHandle* handle, void* pointer) {
    HIP_CALL(hipIpcGetMemHandle, true);
    return cuIpcGetMemHandle(handle, reinterpret_cast<DevicePointer>(pointer));
}

HIP_API int hipIpcOpenMemHandle(void** pointer, IpcHandle handle, unsigned flags) {
    HIP_CALL(hipIpcOpenMemHandle, true);
    if (pointer == nullptr) return invalid_value;
    DevicePointer address = 0;
    const int result = cuIpcOpenMemHandle_v2(&address, handle, flags);
    if (result == success) *pointer = reinterpret_cast<void*>(address);
    return result;
}

HIP_API int hipIpcCloseMemHandle(void* pointer) {
    HIP_CALL(hipIpcCloseMemHandle, true);
    return cuIpcCloseMemHandle(reinterpret_cast<DevicePointer>(pointer));
}

HIP_API int hipMemcpy(void* target, const void* source, std::size_t size, int kind) {
    HIP_CALL(hipMemcpy, true);
    if (kind < 0 || kind > 4) return invalid_value;
    return cuMemcpy(reinterpret_cast<DevicePointer>(target), reinterpret_cast<DevicePointer>(source), size);
}

HIP_API int hipMemcpyAsync(void* target, const void* source, std::size_t size, int kind, void* stream) {
    HIP_CALL(hipMemcpyAsync, true);
    if (kind < 0 || kind > 4) return invalid_value;
    return cuMemcpyAsync(reinterpret_cast<DevicePointer>(target), reinterpret_cast<DevicePointer>(source), size,
                         stream);
}

HIP_API int hipMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source, std::size_t source_pitch,
                             std::size_t width, std::size_t height, int kind, void* stream) {
    HIP_CALL(hipMemcpy2DAsync, true);
    if (kind < 0 || kind > 4) return invalid_value;
    Copy2D what{};
    what.source_type = what.target_type = memory_unified;
    what.source_device = reinterpret_cast<DevicePointer>(source);
    what.target_device = reinterpret_cast<DevicePointer>(target);
    what.source_pitch = source_pitch;
    what.target_pitch = target_pitch;
    what.width = width;
    what.height = height;
    return cuMemcpy2DAsync_v2(&what, stream);
}

HIP_API int hipMemset(void* target, int value, std::size_t size) {
    HIP_CALL(hipMemset, true);
    return cuMemsetD8_v2(reinterpret_cast<DevicePointer>(target), static_cast<unsigned char>(value), size);
}

HIP_API int hipStreamCreateWithFlags(Stream** stream, unsigned flags) {
    HIP_CALL(hipStreamCreateWithFlags, true);
    return cuStreamCreate(stream, flags);
}

HIP_API int hipStreamDestroy(Stream* stream) {
    HIP_CALL(hipStreamDestroy, true);
    return cuStreamDestroy_v2(stream);
}

HIP_API int hipStreamSynchronize(Stream* stream) {
    HIP_CALL(hipStreamSynchronize, true);
    return cuStreamSynchronize(stream);
}

HIP_API int hipStreamQuery(Stream* stream) {
    HIP_CALL(hipStreamQuery, true);
    return cuStreamQuery(stream);
}

HIP_API int hipStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
    HIP_CALL(hipStreamWaitEvent, true);
    return cuStreamWaitEvent(stream, event, flags);
}

HIP_API int hipEventCreateWithFlags(Event** event, unsigned flags) {
    HIP_CALL(hipEventCreateWithFlags, true);
    return cuEventCreate(event, flags & event_flags);
}

HIP_API int hipEventRecord(Event* event, Stream* stream) {
    HIP_CALL(hipEventRecord, true);
    return cuEventRecord(event, stream);
}

HIP_API int hipEventQuery(Event* event) {
    HIP_CALL(hipEventQuery, true);
    return cuEventQuery(event);
}

HIP_API int hipEventSynchronize(Event* event) {
    HIP_CALL(hipEventSynchronize, true);
    return cuEventSynchronize(event);
}

HIP_API int hipEventDestroy(Event* event) {
    HIP_CALL(hipEventDestroy, true);
    return cuEventDestroy_v2(event);
}

/// As fake_cuda_alias.
HIP_API void* fake_hip_alias(const void* address) { return fake_cuda_alias(address); }
