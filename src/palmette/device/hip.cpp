// AMD's HIP. Seen on the test driver only: no machine with such a device has been at hand.

#include "palmette/device/driver.hpp"

namespace palmette::device {
namespace {

constexpr int memory_host = 1, memory_device = 2, memory_managed = 3;  // hipMemoryType since ROCm 6
constexpr int copy_default = 4;

/// hipPointerAttribute_t since ROCm 6; the rest is only room.
struct Attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned flags;
    unsigned char rest[64];
};
/// The functions that CUDA hasn't or has with other parameters.
struct Api {
    int (*GetDevice)(int*);
    int (*SetDevice)(int);
    const char* (*GetErrorName)(int);
    int (*PointerGetAttributes)(Attributes*, const void*);
    int (*MemcpyAsync)(void*, const void*, std::size_t, int, void*);
    int (*Memcpy2DAsync)(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int, void*);

    bool load(void* library) {
        const auto get = [&](auto& function, const char* name) { return load_symbol(library, name, function); };
        return get(GetDevice, "hipGetDevice") && get(SetDevice, "hipSetDevice") &&
               get(GetErrorName, "hipGetErrorName") && get(PointerGetAttributes, "hipPointerGetAttributes") &&
               get(MemcpyAsync, "hipMemcpyAsync") && get(Memcpy2DAsync, "hipMemcpy2DAsync");
    }
};

/// Without kernels: they would be needed as code objects for each kind of device; the host reduces.
class HipDriver final : public Driver {
  public:
    HipDriver(const Symbols& symbols, const Api& api) : Driver(symbols), api_(api) {}

    const char* name() const override { return "hip"; }
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

  private:
    Result enter(const Place& place, int& before) override {
        if (api_.GetDevice(&before) != success) before = place.device;
        if (before != place.device && api_.SetDevice(place.device) != success) before = place.device;
        return success;
    }
    void leave(const Place& place, int before) override {
        if (before != place.device) api_.SetDevice(before);
    }
    const char* error_name(Result result) override { return api_.GetErrorName(result); }
    Result begin_copy(Queue queue, void* to, const void* from, std::size_t bytes) override {
        return api_.MemcpyAsync(to, from, bytes, copy_default, queue);
    }
    Result begin_rows(Queue queue, void* to, const void* from, const Rows& rows, bool) override {
        const auto stride = static_cast<std::size_t>(rows.stride);
        return api_.Memcpy2DAsync(to, stride, from, stride, static_cast<std::size_t>(rows.width),
                                  static_cast<std::size_t>(rows.count), copy_default, queue);
    }

    Api api_;
};

}  // namespace

Driver* make_hip_driver(void* library) {
    Symbols symbols{};
    Api api{};
    return symbols.load(library, Symbols::Names::hip) && api.load(library) ? new HipDriver(symbols, api) : nullptr;
}

}  // namespace palmette::device
