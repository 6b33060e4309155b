// CUDA's driver.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <vector>

#include "palmette/device/cuda_api.hpp"
#include "palmette/device/device_kernels.hpp"
#include "palmette/device/driver.hpp"

namespace palmette::device {
namespace {

using namespace cuda;

/// The functions that are used, by the names under which the library exports them.
struct Api {
    Result (*DriverGetVersion)(int*);
    Result (*GetErrorName)(Result, const char**);
    Result (*DeviceGetCount)(int*);
    Result (*DeviceGetName)(char*, int, Device);
    Result (*DeviceGetPCIBusId)(char*, int, Device);
    Result (*DeviceCanAccessPeer)(int*, Device, Device);
    Result (*DevicePrimaryCtxGetState)(Device, unsigned*, int*);
    Result (*DevicePrimaryCtxRetain)(Context*, Device);
    Result (*DevicePrimaryCtxRelease)(Device);
    Result (*CtxGetCurrent)(Context*);
    Result (*CtxGetDevice)(Device*);
    Result (*CtxPushCurrent)(Context);
    Result (*CtxPopCurrent)(Context*);
    Result (*PointerGetAttributes)(unsigned, int*, void**, Pointer);
    Result (*PointerGetAttribute)(void*, int, Pointer);
    Result (*MemGetAddressRange)(Pointer*, std::size_t*, Pointer);
    Result (*StreamCreate)(Stream*, unsigned);
    Result (*StreamDestroy)(Stream);
    Result (*StreamWaitEvent)(Stream, CuEvent, unsigned);
    Result (*StreamSynchronize)(Stream);
    Result (*EventCreate)(CuEvent*, unsigned);
    Result (*EventDestroy)(CuEvent);
    Result (*EventRecord)(CuEvent, Stream);
    Result (*EventQuery)(CuEvent);
    Result (*EventSynchronize)(CuEvent);
    Result (*MemcpyAsync)(Pointer, Pointer, std::size_t, Stream);
    Result (*Memcpy2DAsync)(const Copy2d*, Stream);
    Result (*MemHostRegister)(void*, std::size_t, unsigned);
    Result (*MemHostUnregister)(void*);
    Result (*MemAlloc)(Pointer*, std::size_t);
    Result (*MemFree)(Pointer);
    // Null where the driver is older.
    Result (*CtxGetId)(Context, unsigned long long*);
    Result (*ThreadExchangeStreamCaptureMode)(int*);
    Result (*MemRetainAllocationHandle)(Allocation*, void*);
    Result (*MemGetAllocationPropertiesFromHandle)(AllocationProperties*, Allocation);
    Result (*MemRelease)(Allocation);
    Result (*IpcGetMemHandle)(IpcHandle*, Pointer);
    Result (*IpcOpenMemHandle)(Pointer*, IpcHandle, unsigned);
    Result (*IpcCloseMemHandle)(Pointer);
    Result (*ModuleLoadData)(Module*, const void*);
    Result (*ModuleUnload)(Module);
    Result (*ModuleGetFunction)(Function*, Module, const char*);
    Result (*LaunchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,
                           void**, void**);

    bool load(void* library) {
        const auto get = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            return function != nullptr;
        };
        const bool all =
            get(DriverGetVersion, "cuDriverGetVersion") && get(GetErrorName, "cuGetErrorName") &&
            get(DeviceGetCount, "cuDeviceGetCount") && get(DeviceGetName, "cuDeviceGetName") &&
            get(DeviceGetPCIBusId, "cuDeviceGetPCIBusId") &&
            get(DevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState") &&
            get(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain") &&
            get(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2") && get(CtxGetCurrent, "cuCtxGetCurrent") &&
            get(CtxGetDevice, "cuCtxGetDevice") && get(CtxPushCurrent, "cuCtxPushCurrent_v2") &&
            get(CtxPopCurrent, "cuCtxPopCurrent_v2") && get(PointerGetAttributes, "cuPointerGetAttributes") &&
            get(PointerGetAttribute, "cuPointerGetAttribute") && get(MemGetAddressRange, "cuMemGetAddressRange_v2") &&
            get(StreamCreate, "cuStreamCreate") && get(StreamDestroy, "cuStreamDestroy_v2") &&
            get(StreamWaitEvent, "cuStreamWaitEvent") && get(StreamSynchronize, "cuStreamSynchronize") &&
            get(EventCreate, "cuEventCreate") && get(EventDestroy, "cuEventDestroy_v2") &&
            get(EventRecord, "cuEventRecord") && get(EventQuery, "cuEventQuery") &&
            get(EventSynchronize, "cuEventSynchronize") && get(MemcpyAsync, "cuMemcpyAsync") &&
            get(Memcpy2DAsync, "cuMemcpy2DAsync_v2") && get(MemHostRegister, "cuMemHostRegister_v2") &&
            get(MemHostUnregister, "cuMemHostUnregister") && get(MemAlloc, "cuMemAlloc_v2") &&
            get(MemFree, "cuMemFree_v2");
        get(DeviceCanAccessPeer, "cuDeviceCanAccessPeer");
        get(CtxGetId, "cuCtxGetId");
        get(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
        get(MemRetainAllocationHandle, "cuMemRetainAllocationHandle");
        get(MemGetAllocationPropertiesFromHandle, "cuMemGetAllocationPropertiesFromHandle");
        get(MemRelease, "cuMemRelease");
        get(IpcGetMemHandle, "cuIpcGetMemHandle");
        get(IpcOpenMemHandle, "cuIpcOpenMemHandle_v2");
        get(IpcCloseMemHandle, "cuIpcCloseMemHandle");
        get(ModuleLoadData, "cuModuleLoadData");
        get(ModuleUnload, "cuModuleUnload");
        get(ModuleGetFunction, "cuModuleGetFunction");
        get(LaunchKernel, "cuLaunchKernel");
        return all;
    }
};

Pointer pointer(const void* address) { return reinterpret_cast<Pointer>(address); }

class CudaDriver final : public Driver {
  public:
    explicit CudaDriver(const Api& api) : api_(api) {}

    const char* name() const override { return "cuda"; }
    int version() override {
        int version = 0;
        return api_.DriverGetVersion(&version) == success ? version : 0;
    }
    int devices() override {
        int count = 0;
        return api_.DeviceGetCount(&count) == success ? count : 0;
    }
    std::string device_name(int device) override {
        char text[128] = "";
        return api_.DeviceGetName(text, sizeof text, device) == success ? text : "";
    }
    std::array<char, 16> bus_id(int device) override {
        std::array<char, 16> id{};
        if (api_.DeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), device) != success) id = {};
        return id;
    }

    Place place_of(const void* address) override {
        Context context = nullptr;
        unsigned type = 0;
        unsigned managed = 0;
        int device = -1;
        unsigned long long id = 0;
        int kinds[] = {attribute_context, attribute_memory_type, attribute_is_managed, attribute_device_ordinal,
                       attribute_buffer_id};
        void* values[] = {&context, &type, &managed, &device, &id};
        Place place;
        // Addresses that the driver doesn't know have no type; before cuInit and without devices it is an error.
        if (api_.PointerGetAttributes(5, kinds, values, pointer(address)) != success || type == 0) return place;
        place.id = id;
        place.device = device;
        if (managed) {
            place.memory = Memory::managed;
        } else if (type == memory_device) {
            place.memory = Memory::device;
        } else if (const int owner = owner_behind_host(address); owner >= 0) {
            place.memory = Memory::device;
            place.device = owner;
        } else {
            place.memory = Memory::pinned;
        }
        place.driver = this;
        place.context = context ? context : context_of(place.device);
        place.context_id = id_of(static_cast<Context>(place.context));
        return place;
    }

    bool is_alive(const Place& place) override {
        return place.context &&
               (place.context_id == 0 || id_of(static_cast<Context>(place.context)) == place.context_id);
    }
    bool has_begun() override {
        Context context = nullptr;
        return api_.CtxGetCurrent(&context) != not_initialized;
    }
    bool current_place(Place& place) override {
        Context context = nullptr;
        if (api_.CtxGetCurrent(&context) != success || !context || api_.CtxGetDevice(&place.device) != success)
            return false;
        place.memory = Memory::device;
        place.driver = this;
        place.context = context;
        place.context_id = id_of(context);
        return true;
    }

    Status range_of(const Place& place, const void* address, void*& begin, std::int64_t& bytes) override {
        const Current current(*this, place);
        Pointer base = 0;
        std::size_t size = 0;
        const Result result =
            current.works() ? api_.MemGetAddressRange(&base, &size, pointer(address)) : current.result();
        begin = reinterpret_cast<void*>(base);
        bytes = static_cast<std::int64_t>(size);
        return status(current, result);
    }

    Status open_queue(const Place& place, Queue& queue) override {
        const Current current(*this, place);
        return status(current, [&] { return api_.StreamCreate(reinterpret_cast<Stream*>(&queue), stream_default); });
    }
    Status open_queue_apart(const Place& place, Queue& queue) override {
        const Current current(*this, place);
        return status(current,
                      [&] { return api_.StreamCreate(reinterpret_cast<Stream*>(&queue), stream_non_blocking); });
    }
    Status wait_in(const Place& place, Queue queue, Event event) override {
        const Current current(*this, place);
        return status(current,
                      [&] { return api_.StreamWaitEvent(static_cast<Stream>(queue), static_cast<CuEvent>(event), 0); });
    }
    void close_queue(const Place& place, Queue queue) override {
        const Current current(*this, place);
        if (current.works()) api_.StreamDestroy(static_cast<Stream>(queue));
    }
    Status synchronize(const Place& place, Queue queue) override {
        const Current current(*this, place);
        return status(current, [&] { return api_.StreamSynchronize(static_cast<Stream>(queue)); });
    }
    Status open_event(const Place& place, Event& event) override {
        const Current current(*this, place);
        return status(current,
                      [&] { return api_.EventCreate(reinterpret_cast<CuEvent*>(&event), event_disable_timing); });
    }
    void close_event(const Place& place, Event event) override {
        const Current current(*this, place);
        if (current.works()) api_.EventDestroy(static_cast<CuEvent>(event));
    }
    Status record(const Place& place, Event event, Queue queue) override {
        const Current current(*this, place);
        return status(current,
                      [&] { return api_.EventRecord(static_cast<CuEvent>(event), static_cast<Stream>(queue)); });
    }
    Status query(const Place& place, Event event, bool& done) override {
        const Current current(*this, place);
        const Result result = current.works() ? api_.EventQuery(static_cast<CuEvent>(event)) : current.result();
        done = result != not_ready;
        return result == not_ready ? nullptr : status(current, result);
    }
    Status wait(const Place& place, Event event) override {
        const Current current(*this, place);
        return status(current, [&] { return api_.EventSynchronize(static_cast<CuEvent>(event)); });
    }

    Status copy(const Place& place, Queue queue, void* to, const void* from, std::int64_t bytes) override {
        const Current current(*this, place);
        return status(current, [&] {
            return api_.MemcpyAsync(pointer(to), pointer(from), static_cast<std::size_t>(bytes),
                                    static_cast<Stream>(queue));
        });
    }
    Status copy_rows(const Place& place, Queue queue, void* to, const void* from, const Rows& rows,
                     bool to_host) override {
        const Current current(*this, place);
        Copy2d all{};
        all.src_type = to_host ? memory_device : memory_host;
        all.dst_type = to_host ? memory_host : memory_device;
        (to_host ? all.src_device : all.dst_device) = pointer(to_host ? from : to);
        if (to_host)
            all.dst_host = to;
        else
            all.src_host = from;
        all.src_pitch = all.dst_pitch = static_cast<std::size_t>(rows.stride);
        all.width = static_cast<std::size_t>(rows.width);
        all.height = static_cast<std::size_t>(rows.count);
        return status(current, [&] { return api_.Memcpy2DAsync(&all, static_cast<Stream>(queue)); });
    }

    Status pin(const Place& place, void* memory, std::int64_t bytes) override {
        const Current current(*this, place);
        return status(current, [&] {
            return api_.MemHostRegister(memory, static_cast<std::size_t>(bytes), host_register_portable);
        });
    }
    void unpin(const Place& place, void* memory) override {
        const Current current(*this, place);
        if (current.works()) api_.MemHostUnregister(memory);
    }

    Status allocate(const Place& place, std::int64_t bytes, void*& memory) override {
        const Current current(*this, place);
        Pointer begin = 0;
        const Result result = current.works() ? api_.MemAlloc(&begin, static_cast<std::size_t>(bytes)) : success;
        memory = reinterpret_cast<void*>(begin);
        return status(current, result);
    }
    void release(const Place& place, void* memory) override {
        const Current current(*this, place);
        if (current.works()) api_.MemFree(pointer(memory));
    }
    Status within(const Place& place, const std::function<void()>& body) override {
        const Current current(*this, place);
        if (current.works()) body();
        return status(current, success);
    }

    bool exports(const void* address) override {
        int capable = 0;
        return api_.IpcGetMemHandle && api_.IpcOpenMemHandle && api_.IpcCloseMemHandle &&
               api_.PointerGetAttribute(&capable, attribute_legacy_ipc, pointer(address)) == success && capable != 0;
    }
    Status export_memory(const Place& place, void* begin, Handle& handle) override {
        if (!api_.IpcGetMemHandle) return "no IPC";
        const Current current(*this, place);
        IpcHandle raw{};
        const Result result = current.works() ? api_.IpcGetMemHandle(&raw, pointer(begin)) : current.result();
        std::memcpy(handle.bytes.data(), raw.reserved, sizeof raw.reserved);
        handle.bus_id = bus_id(place.device);
        return status(current, result);
    }
    Status open_memory(const Place& place, const Handle& handle, void*& begin) override {
        if (!api_.IpcOpenMemHandle) return "no IPC";
        const Current current(*this, place);
        IpcHandle raw{};
        std::memcpy(raw.reserved, handle.bytes.data(), sizeof raw.reserved);
        Pointer base = 0;
        const Result result =
            current.works() ? api_.IpcOpenMemHandle(&base, raw, ipc_lazy_peer_access) : current.result();
        begin = reinterpret_cast<void*>(base);
        return status(current, result);
    }
    void close_memory(const Place& place, void* begin) override {
        const Current current(*this, place);
        if (current.works()) api_.IpcCloseMemHandle(pointer(begin));
    }
    bool accesses(int device, int other) override {
        int can = 0;
        return api_.DeviceCanAccessPeer && api_.DeviceCanAccessPeer(&can, device, other) == success && can != 0;
    }

    bool has_kernel(runtime::Operator op, runtime::Element element) override {
        return api_.ModuleLoadData && api_.ModuleGetFunction && api_.LaunchKernel && device::has_kernel(op, element);
    }
    Status combine(const Place& place, Queue queue, runtime::Operator op, runtime::Element element, const void* left,
                   const void* right, void* target, std::int64_t count) override {
        const Current current(*this, place);
        Function function = nullptr;
        if (const Result result = find_kernel(place.context, op, element, function); result != success)
            return status(current, result);
        Pointer from_left = pointer(left), from_right = pointer(right), to = pointer(target);
        unsigned long long elements = static_cast<unsigned long long>(count);
        void* parameters[] = {&from_left, &from_right, &to, &elements};
        constexpr unsigned threads = 256;
        constexpr unsigned long long most_blocks = 1024;  // the kernels loop over what is left
        const auto blocks = static_cast<unsigned>(std::min(most_blocks, (elements + threads - 1) / threads));
        return status(current, [&] {
            return api_.LaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, static_cast<Stream>(queue), parameters,
                                     nullptr);
        });
    }
    void release_kernels() override {
        const std::lock_guard lock(kernels_mutex_);
        for (const LoadedKernels& loaded : kernels_) {
            Place place;
            place.context = loaded.context;
            const Current current(*this, place);
            if (current.works() && api_.ModuleUnload) api_.ModuleUnload(loaded.module);
        }
        kernels_.clear();
        const std::lock_guard primary(primary_mutex_);
        for (const auto& [device, context] : primary_) api_.DevicePrimaryCtxRelease(device);
        primary_.clear();
    }

  private:
    /// The context of a place is this thread's current one for its lifetime.
    class Current {
      public:
        Current(const CudaDriver& driver, const Place& place)
            : driver_(driver),
              result_(place.context ? driver.api_.CtxPushCurrent(static_cast<Context>(place.context))
                                    : invalid_context) {
            // What a thread does here must not count among what another one captures in a graph.
            if (works() && driver_.api_.ThreadExchangeStreamCaptureMode)
                driver_.api_.ThreadExchangeStreamCaptureMode(&capture_mode_);
        }
        Current(const Current&) = delete;
        Current& operator=(const Current&) = delete;
        ~Current() {
            Context popped = nullptr;
            if (!works()) return;
            if (driver_.api_.ThreadExchangeStreamCaptureMode)
                driver_.api_.ThreadExchangeStreamCaptureMode(&capture_mode_);
            driver_.api_.CtxPopCurrent(&popped);
        }
        bool works() const { return result_ == success; }
        Result result() const { return result_; }

      private:
        const CudaDriver& driver_;
        Result result_;
        int capture_mode_ = capture_mode_relaxed;  ///< then the thread's own
    };
    struct LoadedKernels {
        Context context;
        Module module;
    };

    /// Nothing may be commanded in another context than the place's.
    template <class Command>
    Status status(const Current& current, const Command& command) const
        requires(!std::is_integral_v<Command>)
    {
        return status(current, current.works() ? command() : current.result());
    }
    Status status(const Current& current, Result result) const {
        if (!current.works()) result = current.result();
        if (result == success) return nullptr;
        const char* text = nullptr;
        return api_.GetErrorName(result, &text) == success && text ? text : "an unknown error of CUDA";
    }

    /// Memory of pools and of the virtual memory API may be reported as the host's although a device has it: that
    /// device, or -1.
    int owner_behind_host(const void* address) const {
        Allocation allocation = 0;
        if (api_.MemRetainAllocationHandle && api_.MemGetAllocationPropertiesFromHandle && api_.MemRelease &&
            api_.MemRetainAllocationHandle(&allocation, const_cast<void*>(address)) == success) {
            AllocationProperties properties{};
            const bool known = api_.MemGetAllocationPropertiesFromHandle(&properties, allocation) == success;
            api_.MemRelease(allocation);
            return known && properties.location_type == location_device ? properties.location_id : -1;
        }
        void* pool = nullptr;
        int device = -1;
        if (api_.PointerGetAttribute(&pool, attribute_mempool, pointer(address)) == success && pool &&
            api_.PointerGetAttribute(&device, attribute_device_ordinal, pointer(address)) == success)
            return device;
        return -1;
    }

    unsigned long long id_of(Context context) const {
        unsigned long long id = 0;
        return context && api_.CtxGetId && api_.CtxGetId(context, &id) == success ? id : 0;
    }

    /// For memory that belongs to no context: the calling thread's, if it is one of that device, or the primary one,
    /// if there is one. Never makes one.
    Context context_of(int device) {
        Context context = nullptr;
        Device current = -1;
        if (api_.CtxGetCurrent(&context) == success && context && api_.CtxGetDevice(&current) == success &&
            current == device)
            return context;
        const std::lock_guard lock(primary_mutex_);
        unsigned flags = 0;
        int active = 0;
        const bool there = api_.DevicePrimaryCtxGetState(device, &flags, &active) == success && active;
        // The program may have reset the device.
        if (!there) std::erase_if(primary_, [&](const auto& known) { return known.first == device; });
        for (const auto& [known, primary] : primary_)
            if (known == device) return primary;
        if (!there || api_.DevicePrimaryCtxRetain(&context, device) != success) return nullptr;
        primary_.emplace_back(device, context);
        return context;
    }

    /// With the context current.
    Result find_kernel(void* context, runtime::Operator op, runtime::Element element, Function& function) {
        const std::lock_guard lock(kernels_mutex_);
        Module module = nullptr;
        for (const LoadedKernels& loaded : kernels_)
            if (loaded.context == context) module = loaded.module;
        if (!module) {
            if (const Result result = api_.ModuleLoadData(&module, kernels_ptx().c_str()); result != success)
                return result;
            kernels_.push_back({static_cast<Context>(context), module});
        }
        return api_.ModuleGetFunction(&function, module, kernel_name(op, element).c_str());
    }

    Api api_;
    std::mutex primary_mutex_;
    std::vector<std::pair<int, Context>> primary_;  ///< retained
    std::mutex kernels_mutex_;
    std::vector<LoadedKernels> kernels_;
};

}  // namespace

Driver* make_cuda_driver(void* library) {
    Api api{};
    // Never destroyed: calls may come until the process ends.
    return api.load(library) ? new CudaDriver(api) : nullptr;
}

}  // namespace palmette::device
