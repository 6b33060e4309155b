// What CUDA's driver does otherwise than HIP: contexts, where memory lies, kernels.
#include <algorithm>
#include <mutex>
#include <vector>

#include "palmette/device/cuda_api.hpp"
#include "palmette/device/device_kernels.hpp"
#include "palmette/device/driver.hpp"

namespace palmette::device {
namespace {

using namespace cuda;

/// The functions that HIP hasn't or has with other parameters, by the names under which the library exports them.
struct Api {
    Result (*GetErrorName)(Result, const char**);
    Result (*DevicePrimaryCtxGetState)(Device, unsigned*, int*);
    Result (*DevicePrimaryCtxRetain)(Context*, Device);
    Result (*DevicePrimaryCtxRelease)(Device);
    Result (*CtxGetCurrent)(Context*);
    Result (*CtxGetDevice)(Device*);
    Result (*CtxPushCurrent)(Context);
    Result (*CtxPopCurrent)(Context*);
    Result (*PointerGetAttributes)(unsigned, int*, void**, Pointer);
    Result (*PointerGetAttribute)(void*, int, Pointer);
    Result (*MemcpyAsync)(Pointer, Pointer, std::size_t, Stream);
    Result (*Memcpy2DAsync)(const Copy2d*, Stream);
    // Null where the driver is older.
    Result (*CtxGetId)(Context, unsigned long long*);
    Result (*ThreadExchangeStreamCaptureMode)(int*);
    Result (*MemRetainAllocationHandle)(Allocation*, void*);
    Result (*MemGetAllocationPropertiesFromHandle)(AllocationProperties*, Allocation);
    Result (*MemRelease)(Allocation);
    Result (*ModuleLoadData)(Module*, const void*);
    Result (*ModuleUnload)(Module);
    Result (*ModuleGetFunction)(Function*, Module, const char*);
    Result (*LaunchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,
                           void**, void**);

    bool load(void* library) {
        const auto get = [&](auto& function, const char* name) { return load_symbol(library, name, function); };
        get(CtxGetId, "cuCtxGetId");
        get(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
        get(MemRetainAllocationHandle, "cuMemRetainAllocationHandle");
        get(MemGetAllocationPropertiesFromHandle, "cuMemGetAllocationPropertiesFromHandle");
        get(MemRelease, "cuMemRelease");
        get(ModuleLoadData, "cuModuleLoadData");
        get(ModuleUnload, "cuModuleUnload");
        get(ModuleGetFunction, "cuModuleGetFunction");
        get(LaunchKernel, "cuLaunchKernel");
        return get(GetErrorName, "cuGetErrorName") && get(DevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState") &&
               get(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain") &&
               get(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2") && get(CtxGetCurrent, "cuCtxGetCurrent") &&
               get(CtxGetDevice, "cuCtxGetDevice") && get(CtxPushCurrent, "cuCtxPushCurrent_v2") &&
               get(CtxPopCurrent, "cuCtxPopCurrent_v2") && get(PointerGetAttributes, "cuPointerGetAttributes") &&
               get(PointerGetAttribute, "cuPointerGetAttribute") && get(MemcpyAsync, "cuMemcpyAsync") &&
               get(Memcpy2DAsync, "cuMemcpy2DAsync_v2");
    }
};

Pointer pointer(const void* address) { return reinterpret_cast<Pointer>(address); }

class CudaDriver final : public Driver {
  public:
    CudaDriver(const Symbols& symbols, const Api& api) : Driver(symbols), api_(api) {}

    const char* name() const override { return "cuda"; }
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

    bool has_kernel(kernels::Operator op, kernels::Element element) override {
        return api_.ModuleLoadData && api_.ModuleGetFunction && api_.LaunchKernel && device::has_kernel(op, element);
    }
    Status combine(const Place& place, Queue queue, kernels::Operator op, kernels::Element element, const void* left,
                   const void* right, void* target, std::int64_t count) override {
        return status_at(place, [&] {
            Function function = nullptr;
            if (const Result result = find_kernel(place.context, op, element, function); result != success)
                return result;
            Pointer from_left = pointer(left), from_right = pointer(right), to = pointer(target);
            unsigned long long elements = static_cast<unsigned long long>(count);
            void* parameters[] = {&from_left, &from_right, &to, &elements};
            constexpr unsigned threads = 256;
            constexpr unsigned long long most_blocks = 1024;  // the kernels loop over what is left
            const auto blocks = static_cast<unsigned>(std::min(most_blocks, (elements + threads - 1) / threads));
            return api_.LaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, static_cast<Stream>(queue), parameters,
                                     nullptr);
        });
    }
    void release_kernels() override {
        const std::lock_guard lock(kernels_mutex_);
        for (const LoadedKernels& loaded : kernels_) {
            Place place;
            place.context = loaded.context;
            if (api_.ModuleUnload) at(place, [&] { return api_.ModuleUnload(loaded.module); });
        }
        kernels_.clear();
        const std::lock_guard primary(primary_mutex_);
        for (const auto& [device, context] : primary_) api_.DevicePrimaryCtxRelease(device);
        primary_.clear();
    }

  private:
    Result enter(const Place& place, int& before) override {
        if (!place.context) return invalid_context;
        if (const Result result = api_.CtxPushCurrent(static_cast<Context>(place.context)); result != success)
            return result;
        // What a thread does here must not count among what another one captures in a graph.
        before = capture_mode_relaxed;
        if (api_.ThreadExchangeStreamCaptureMode) api_.ThreadExchangeStreamCaptureMode(&before);
        return success;
    }
    void leave(const Place&, int before) override {
        Context popped = nullptr;
        if (api_.ThreadExchangeStreamCaptureMode) api_.ThreadExchangeStreamCaptureMode(&before);
        api_.CtxPopCurrent(&popped);
    }
    const char* error_name(Result result) override {
        const char* text = nullptr;
        return api_.GetErrorName(result, &text) == success ? text : nullptr;
    }
    Result begin_copy(Queue queue, void* to, const void* from, std::size_t bytes) override {
        return api_.MemcpyAsync(pointer(to), pointer(from), bytes, static_cast<Stream>(queue));
    }
    Result begin_rows(Queue queue, void* to, const void* from, const Rows& rows, bool to_host) override {
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
        return api_.Memcpy2DAsync(&all, static_cast<Stream>(queue));
    }
    bool may_export(const void* address) override {
        int capable = 0;
        return api_.PointerGetAttribute(&capable, attribute_legacy_ipc, pointer(address)) == success && capable != 0;
    }

    struct LoadedKernels {
        Context context;
        Module module;
    };

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
    Result find_kernel(void* context, kernels::Operator op, kernels::Element element, Function& function) {
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
    Symbols symbols{};
    Api api{};
    // Never destroyed: calls may come until the process ends.
    return symbols.load(library, Symbols::Names::cuda) && api.load(library) ? new CudaDriver(symbols, api) : nullptr;
}

}  // namespace palmette::device
