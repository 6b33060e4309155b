// AMD's HIP. Seen on the test driver only: no machine with such a device has been at hand.
#include <dlfcn.h>

#include <cstring>

#include "palmette/device/driver.hpp"

namespace palmette::device {
namespace {

using Result = int;
constexpr Result success = 0, not_ready = 600;
constexpr int memory_host = 1, memory_device = 2, memory_managed = 3;  // hipMemoryType since ROCm 6
constexpr int copy_default = 4;
constexpr unsigned stream_default = 0, event_disable_timing = 2, host_register_portable = 1, ipc_lazy_peer_access = 1;

/// hipPointerAttribute_t since ROCm 6; the rest is only room.
struct Attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned flags;
    unsigned char rest[64];
};
struct IpcHandle {
    unsigned char reserved[64];
};

struct Api {
    Result (*DriverGetVersion)(int*);
    const char* (*GetErrorName)(Result);
    Result (*GetDeviceCount)(int*);
    Result (*GetDevice)(int*);
    Result (*SetDevice)(int);
    Result (*DeviceGetName)(char*, int, int);
    Result (*DeviceGetPCIBusId)(char*, int, int);
    Result (*DeviceCanAccessPeer)(int*, int, int);
    Result (*PointerGetAttributes)(Attributes*, const void*);
    Result (*MemGetAddressRange)(void**, std::size_t*, void*);
    Result (*StreamCreateWithFlags)(void**, unsigned);
    Result (*StreamDestroy)(void*);
    Result (*StreamSynchronize)(void*);
    Result (*EventCreateWithFlags)(void**, unsigned);
    Result (*EventDestroy)(void*);
    Result (*EventRecord)(void*, void*);
    Result (*EventQuery)(void*);
    Result (*EventSynchronize)(void*);
    Result (*MemcpyAsync)(void*, const void*, std::size_t, int, void*);
    Result (*Memcpy2DAsync)(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int, void*);
    Result (*HostRegister)(void*, std::size_t, unsigned);
    Result (*HostUnregister)(void*);
    Result (*Malloc)(void**, std::size_t);
    Result (*Free)(void*);
    // Null where the library lacks them.
    Result (*IpcGetMemHandle)(IpcHandle*, void*);
    Result (*IpcOpenMemHandle)(void**, IpcHandle, unsigned);
    Result (*IpcCloseMemHandle)(void*);

    bool load(void* library) {
        const auto get = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            return function != nullptr;
        };
        const bool all = get(DriverGetVersion, "hipDriverGetVersion") && get(GetErrorName, "hipGetErrorName") &&
                         get(GetDeviceCount, "hipGetDeviceCount") && get(GetDevice, "hipGetDevice") &&
                         get(SetDevice, "hipSetDevice") && get(DeviceGetName, "hipDeviceGetName") &&
                         get(DeviceGetPCIBusId, "hipDeviceGetPCIBusId") &&
                         get(PointerGetAttributes, "hipPointerGetAttributes") &&
                         get(MemGetAddressRange, "hipMemGetAddressRange") &&
                         get(StreamCreateWithFlags, "hipStreamCreateWithFlags") &&
                         get(StreamDestroy, "hipStreamDestroy") && get(StreamSynchronize, "hipStreamSynchronize") &&
                         get(EventCreateWithFlags, "hipEventCreateWithFlags") && get(EventDestroy, "hipEventDestroy") &&
                         get(EventRecord, "hipEventRecord") && get(EventQuery, "hipEventQuery") &&
                         get(EventSynchronize, "hipEventSynchronize") && get(MemcpyAsync, "hipMemcpyAsync") &&
                         get(Memcpy2DAsync, "hipMemcpy2DAsync") && get(HostRegister, "hipHostRegister") &&
                         get(HostUnregister, "hipHostUnregister") && get(Malloc, "hipMalloc") && get(Free, "hipFree");
        get(DeviceCanAccessPeer, "hipDeviceCanAccessPeer");
        get(IpcGetMemHandle, "hipIpcGetMemHandle");
        get(IpcOpenMemHandle, "hipIpcOpenMemHandle");
        get(IpcCloseMemHandle, "hipIpcCloseMemHandle");
        return all;
    }
};

class HipDriver final : public Driver {
  public:
    explicit HipDriver(const Api& api) : api_(api) {}

    const char* name() const override { return "hip"; }
    int version() override {
        int version = 0;
        return api_.DriverGetVersion(&version) == success ? version : 0;
    }
    int devices() override {
        int count = 0;
        return api_.GetDeviceCount(&count) == success ? count : 0;
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
        Attributes attributes{};
        Place place;
        if (api_.PointerGetAttributes(&attributes, address) != success) return place;
        if (attributes.type == memory_managed || (attributes.type != 0 && attributes.is_managed))
            place.memory = Memory::managed;
        else if (attributes.type == memory_device)
            place.memory = Memory::device;
        else if (attributes.type == memory_host)
            place.memory = Memory::pinned;
        else
            return place;
        place.driver = this;
        place.device = attributes.device;
        return place;
    }
    bool is_alive(const Place&) override { return true; }
    bool has_begun() override { return true; }
    Status range_of(const Place& place, const void* address, void*& begin, std::int64_t& bytes) override {
        const Current current(*this, place);
        std::size_t size = 0;
        const Result result = api_.MemGetAddressRange(&begin, &size, const_cast<void*>(address));
        bytes = static_cast<std::int64_t>(size);
        return status(result);
    }

    Status open_queue(const Place& place, Queue& queue) override {
        const Current current(*this, place);
        return status(api_.StreamCreateWithFlags(&queue, stream_default));
    }
    void close_queue(const Place& place, Queue queue) override {
        const Current current(*this, place);
        api_.StreamDestroy(queue);
    }
    Status synchronize(const Place& place, Queue queue) override {
        const Current current(*this, place);
        return status(api_.StreamSynchronize(queue));
    }
    Status open_event(const Place& place, Event& event) override {
        const Current current(*this, place);
        return status(api_.EventCreateWithFlags(&event, event_disable_timing));
    }
    void close_event(const Place& place, Event event) override {
        const Current current(*this, place);
        api_.EventDestroy(event);
    }
    Status record(const Place& place, Event event, Queue queue) override {
        const Current current(*this, place);
        return status(api_.EventRecord(event, queue));
    }
    Status query(const Place& place, Event event, bool& done) override {
        const Current current(*this, place);
        const Result result = api_.EventQuery(event);
        done = result != not_ready;
        return done ? status(result) : nullptr;
    }
    Status wait(const Place& place, Event event) override {
        const Current current(*this, place);
        return status(api_.EventSynchronize(event));
    }

    Status copy(const Place& place, Queue queue, void* to, const void* from, std::int64_t bytes) override {
        const Current current(*this, place);
        return status(api_.MemcpyAsync(to, from, static_cast<std::size_t>(bytes), copy_default, queue));
    }
    Status copy_rows(const Place& place, Queue queue, void* to, const void* from, const Rows& rows, bool) override {
        const Current current(*this, place);
        const auto stride = static_cast<std::size_t>(rows.stride);
        return status(api_.Memcpy2DAsync(to, stride, from, stride, static_cast<std::size_t>(rows.width),
                                         static_cast<std::size_t>(rows.count), copy_default, queue));
    }

    Status pin(const Place& place, void* memory, std::int64_t bytes) override {
        const Current current(*this, place);
        return status(api_.HostRegister(memory, static_cast<std::size_t>(bytes), host_register_portable));
    }
    void unpin(const Place& place, void* memory) override {
        const Current current(*this, place);
        api_.HostUnregister(memory);
    }

    Status allocate(const Place& place, std::int64_t bytes, void*& memory) override {
        const Current current(*this, place);
        return status(api_.Malloc(&memory, static_cast<std::size_t>(bytes)));
    }
    void release(const Place& place, void* memory) override {
        const Current current(*this, place);
        api_.Free(memory);
    }
    Status within(const Place& place, const std::function<void()>& body) override {
        const Current current(*this, place);
        body();
        return nullptr;
    }

    bool exports(const void*) override {
        return api_.IpcGetMemHandle && api_.IpcOpenMemHandle && api_.IpcCloseMemHandle;
    }
    Status export_memory(const Place& place, void* begin, Handle& handle) override {
        if (!api_.IpcGetMemHandle) return "no IPC";
        const Current current(*this, place);
        IpcHandle raw{};
        const Result result = api_.IpcGetMemHandle(&raw, begin);
        std::memcpy(handle.bytes.data(), raw.reserved, sizeof raw.reserved);
        handle.bus_id = bus_id(place.device);
        return status(result);
    }
    Status open_memory(const Place& place, const Handle& handle, void*& begin) override {
        if (!api_.IpcOpenMemHandle) return "no IPC";
        const Current current(*this, place);
        IpcHandle raw{};
        std::memcpy(raw.reserved, handle.bytes.data(), sizeof raw.reserved);
        return status(api_.IpcOpenMemHandle(&begin, raw, ipc_lazy_peer_access));
    }
    void close_memory(const Place& place, void* begin) override {
        const Current current(*this, place);
        api_.IpcCloseMemHandle(begin);
    }
    bool accesses(int device, int other) override {
        int can = 0;
        return api_.DeviceCanAccessPeer && api_.DeviceCanAccessPeer(&can, device, other) == success && can != 0;
    }

    // Kernels would be needed as code objects for each kind of device; the host reduces.
    bool has_kernel(runtime::Operator, runtime::Element) override { return false; }
    Status combine(const Place&, Queue, runtime::Operator, runtime::Element, const void*, const void*, void*,
                   std::int64_t) override {
        return "no kernel";
    }
    void release_kernels() override {}

  private:
    /// The device of a place is this thread's for its lifetime.
    class Current {
      public:
        Current(const HipDriver& driver, const Place& place) : driver_(driver) {
            if (driver_.api_.GetDevice(&before_) != success) before_ = place.device;
            changes_ = before_ != place.device && driver_.api_.SetDevice(place.device) == success;
        }
        Current(const Current&) = delete;
        Current& operator=(const Current&) = delete;
        ~Current() {
            if (changes_) driver_.api_.SetDevice(before_);
        }

      private:
        const HipDriver& driver_;
        int before_ = 0;
        bool changes_ = false;
    };

    Status status(Result result) const { return result == success ? nullptr : api_.GetErrorName(result); }

    Api api_;
};

}  // namespace

Driver* make_hip_driver(void* library) {
    Api api{};
    return api.load(library) ? new HipDriver(api) : nullptr;
}

}  // namespace palmette::device
