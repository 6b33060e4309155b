// What CUDA's driver and HIP do alike.
#include "palmette/device/driver.hpp"

namespace palmette::device {

bool Symbols::load(void* library, Names names) {
    const auto get = [&](auto& function, const char* cuda, const char* hip) {
        return load_symbol(library, names == Names::cuda ? cuda : hip, function);
    };
    get(accesses, "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer");
    get(export_memory, "cuIpcGetMemHandle", "hipIpcGetMemHandle");
    get(open_memory, "cuIpcOpenMemHandle_v2", "hipIpcOpenMemHandle");
    get(close_memory, "cuIpcCloseMemHandle", "hipIpcCloseMemHandle");
    return get(version, "cuDriverGetVersion", "hipDriverGetVersion") &&
           get(device_count, "cuDeviceGetCount", "hipGetDeviceCount") &&
           get(device_name, "cuDeviceGetName", "hipDeviceGetName") &&
           get(bus_id, "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId") &&
           get(range, "cuMemGetAddressRange_v2", "hipMemGetAddressRange") &&
           get(open_stream, "cuStreamCreate", "hipStreamCreateWithFlags") &&
           get(close_stream, "cuStreamDestroy_v2", "hipStreamDestroy") &&
           get(synchronize, "cuStreamSynchronize", "hipStreamSynchronize") &&
           get(wait_in_stream, "cuStreamWaitEvent", "hipStreamWaitEvent") &&
           get(open_event, "cuEventCreate", "hipEventCreateWithFlags") &&
           get(close_event, "cuEventDestroy_v2", "hipEventDestroy") && get(record, "cuEventRecord", "hipEventRecord") &&
           get(query, "cuEventQuery", "hipEventQuery") && get(wait, "cuEventSynchronize", "hipEventSynchronize") &&
           get(pin, "cuMemHostRegister_v2", "hipHostRegister") &&
           get(unpin, "cuMemHostUnregister", "hipHostUnregister") && get(allocate, "cuMemAlloc_v2", "hipMalloc") &&
           get(release, "cuMemFree_v2", "hipFree");
}

Status Driver::status(Result result) {
    if (result == success) return nullptr;
    const char* const text = error_name(result);
    return text ? text : "an unknown error of the driver";
}

int Driver::version() {
    int version = 0;
    return api_.version(&version) == success ? version : 0;
}

int Driver::devices() {
    int count = 0;
    return api_.device_count(&count) == success ? count : 0;
}

std::string Driver::device_name(int device) {
    char text[128] = "";
    return api_.device_name(text, sizeof text, device) == success ? text : "";
}

std::array<char, 16> Driver::bus_id(int device) {
    std::array<char, 16> id{};
    if (api_.bus_id(id.data(), static_cast<int>(id.size()), device) != success) id = {};
    return id;
}

Status Driver::range_of(const Place& place, const void* address, void*& begin, std::int64_t& bytes) {
    std::size_t size = 0;
    const Status status = status_at(place, [&] { return api_.range(&begin, &size, const_cast<void*>(address)); });
    bytes = static_cast<std::int64_t>(size);
    return status;
}

Status Driver::open_queue(const Place& place, Queue& queue) {
    return status_at(place, [&] { return api_.open_stream(&queue, Symbols::stream_default); });
}

Status Driver::open_queue_apart(const Place& place, Queue& queue) {
    return status_at(place, [&] { return api_.open_stream(&queue, Symbols::stream_non_blocking); });
}

void Driver::close_queue(const Place& place, Queue queue) {
    at(place, [&] { return api_.close_stream(queue); });
}

Status Driver::synchronize(const Place& place, Queue queue) {
    return status_at(place, [&] { return api_.synchronize(queue); });
}

Status Driver::open_event(const Place& place, Event& event) {
    return status_at(place, [&] { return api_.open_event(&event, Symbols::event_disable_timing); });
}

void Driver::close_event(const Place& place, Event event) {
    at(place, [&] { return api_.close_event(event); });
}

Status Driver::record(const Place& place, Event event, Queue queue) {
    return status_at(place, [&] { return api_.record(event, queue); });
}

Status Driver::query(const Place& place, Event event, bool& done) {
    const Result result = at(place, [&] { return api_.query(event); });
    done = result != Symbols::not_ready;
    return done ? status(result) : nullptr;
}

Status Driver::wait(const Place& place, Event event) {
    return status_at(place, [&] { return api_.wait(event); });
}

Status Driver::wait_in(const Place& place, Queue queue, Event event) {
    return status_at(place, [&] { return api_.wait_in_stream(queue, event, 0); });
}

Status Driver::copy(const Place& place, Queue queue, void* to, const void* from, std::int64_t bytes) {
    return status_at(place, [&] { return begin_copy(queue, to, from, static_cast<std::size_t>(bytes)); });
}

Status Driver::copy_rows(const Place& place, Queue queue, void* to, const void* from, const Rows& rows, bool to_host) {
    return status_at(place, [&] { return begin_rows(queue, to, from, rows, to_host); });
}

Status Driver::pin(const Place& place, void* memory, std::int64_t bytes) {
    return status_at(place,
                     [&] { return api_.pin(memory, static_cast<std::size_t>(bytes), Symbols::register_portable); });
}

void Driver::unpin(const Place& place, void* memory) {
    at(place, [&] { return api_.unpin(memory); });
}

Status Driver::allocate(const Place& place, std::int64_t bytes, void*& memory) {
    memory = nullptr;
    return status_at(place, [&] { return api_.allocate(&memory, static_cast<std::size_t>(bytes)); });
}

void Driver::release(const Place& place, void* memory) {
    at(place, [&] { return api_.release(memory); });
}

Status Driver::within(const Place& place, const std::function<void()>& body) {
    return status_at(place, [&] { return body(), success; });
}

Status Driver::export_memory(const Place& place, void* begin, Handle& handle) {
    if (!api_.export_memory) return "no IPC";
    handle.bus_id = bus_id(place.device);
    return status_at(place, [&] { return api_.export_memory(&handle.bytes, begin); });
}

Status Driver::open_memory(const Place& place, const Handle& handle, void*& begin) {
    if (!api_.open_memory) return "no IPC";
    begin = nullptr;
    return status_at(place, [&] { return api_.open_memory(&begin, handle.bytes, Symbols::lazy_peer_access); });
}

void Driver::close_memory(const Place& place, void* begin) {
    at(place, [&] { return api_.close_memory(begin); });
}

bool Driver::accesses(int device, int other) {
    int can = 0;
    return api_.accesses && api_.accesses(&can, device, other) == success && can != 0;
}

bool Driver::reaches(const Place& place, const std::array<char, 16>& bus_id) {
    for (int other = 0; other < devices(); ++other)
        if (this->bus_id(other) == bus_id) return other == place.device || accesses(place.device, other);
    return false;
}

}  // namespace palmette::device
