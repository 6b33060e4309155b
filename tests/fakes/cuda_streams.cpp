// libcuda: streams, events, modules and kernels.
#include <cstring>

#include "driver.hpp"

using namespace fake;

namespace {

int create(Driver& d, Stream** handle, unsigned flags, int priority, const std::string& library) {
    if (handle == nullptr || flags > stream_non_blocking) return invalid_value;
    auto made = std::make_shared<Stream>();
    made->context = current();
    made->ordered_with_default = flags != stream_non_blocking;
    made->priority = priority;
    made->library = library;
    *handle = made.get();
    d.all_streams[made.get()] = std::move(made);
    return success;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

/// Whether a module's text has `.entry NAME`.
bool has_entry(const std::string& text, const std::string& name) {
    const std::string word = ".entry";
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        std::size_t begin = at + word.size();
        while (begin < text.size() && std::isspace(static_cast<unsigned char>(text[begin])) != 0) ++begin;
        if (text.compare(begin, name.size(), name) == 0 && !is_name(text[begin + name.size()])) return true;
    }
    return false;
}

int load(Driver& d, Module** module, const void* image, const std::string& library) {
    if (module == nullptr || image == nullptr) return invalid_value;
    const std::string text = static_cast<const char*>(image);
    if (text.find(".version") == std::string::npos) return invalid_image;
    if (text.find(".target") == std::string::npos || text.find(".address_size") == std::string::npos) {
        return invalid_ptx;
    }
    auto made = std::make_unique<Module>();
    made->context = current();
    made->library = library;
    made->text = text;
    *module = made.get();
    d.modules[made.get()] = std::move(made);
    return success;
}

/// Memory that a kernel of `context` uses; empty: it can't.
std::vector<Piece> of_kernel(const Driver& d, const Context& context, std::uintptr_t address, std::size_t size) {
    std::vector<Piece> pieces = d.memory.pieces(address, size);
    for (const Piece& piece : pieces) {
        const bool usable =
            piece.keeps &&
            (piece.keeps->on_host() || piece.keeps->kind == Kind::managed || piece.keeps->kind == Kind::opened ||
             (piece.keeps->kind == Kind::mapped
                  ? piece.keeps->accessible[static_cast<std::size_t>(context.device)]
                  : piece.keeps->device == context.device || context.peers.count(piece.keeps->device) != 0));
        if (!usable) return {};
    }
    return pieces;
}

/// Runs a kernel on memory in one piece; over several by a copy.
int run(Driver& d, const Context& context, const std::string& name, std::uintptr_t left, std::uintptr_t right,
        std::uintptr_t target, std::size_t count) {
    const std::size_t size = count * kernel_element(name);
    if (size == 0) return success;
    std::vector<Piece> a, b, to;
    {
        const std::lock_guard<std::recursive_mutex> lock(d.mutex);
        a = of_kernel(d, context, left, size);
        b = of_kernel(d, context, right, size);
        to = of_kernel(d, context, target, size);
        if (a.empty() || b.empty() || to.empty()) {
            d.late_errors.push_back(name + " on memory that the device can't reach");
            return illegal_address;
        }
    }
    if (a.size() == 1 && b.size() == 1 && to.size() == 1) {
        reduce(name, a[0].at, b[0].at, to[0].at, count);
        return success;
    }
    std::vector<char> first(size), second(size);
    copy({{first.data(), size, nullptr}}, a);
    copy({{second.data(), size, nullptr}}, b);
    reduce(name, first.data(), second.data(), first.data(), count);
    copy(to, {{first.data(), size, nullptr}});
    return success;
}

}  // namespace

FAKE_API int cuStreamCreate(Stream** stream, unsigned flags) {
    FAKE_CALL(cuStreamCreate, Needs::context);
    return create(d, stream, flags, 0, call.library);
}

FAKE_API int cuStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
    FAKE_CALL(cuStreamCreateWithPriority, Needs::context);
    return create(d, stream, flags, priority, call.library);
}

FAKE_API int cuStreamDestroy_v2(Stream* stream) {
    FAKE_CALL(cuStreamDestroy_v2, Needs::context);
    // Its work goes on.
    return d.all_streams.erase(stream) != 0 ? success : invalid_handle;
}

FAKE_API int cuStreamSynchronize(Stream* handle) {
    FAKE_CALL(cuStreamSynchronize, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    if (stream == stream->context->legacy) {
        // It's behind what others have.
        d.add(stream, [](int&) { return true; });
    }
    const Place end = Streams::end_of(stream);
    lock.unlock();
    return d.streams.wait(end);
}

FAKE_API int cuStreamQuery(Stream* handle) {
    FAKE_CALL(cuStreamQuery, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    std::vector<Place> ends{Streams::end_of(stream)};
    if (stream == stream->context->legacy) {
        for (const StreamPointer& other : d.streams_of(stream->context)) {
            if (other->ordered_with_default) ends.push_back(Streams::end_of(other));
        }
    }
    lock.unlock();
    for (const Place& end : ends) {
        if (!d.streams.query(end)) return not_ready;
    }
    return stream->error.load();
}

FAKE_API int cuStreamWaitEvent(Stream* handle, Event* event, unsigned) {
    FAKE_CALL(cuStreamWaitEvent, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream || d.events.count(event) == 0) return invalid_handle;
    if (event->place.stream && !event->place.reached()) d.add(stream, [](int&) { return true; }, {event->place});
    return success;
}

FAKE_API int cuStreamGetCtx(Stream* handle, Context** context) {
    FAKE_CALL(cuStreamGetCtx, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    if (context == nullptr) return invalid_value;
    *context = stream->context;
    return success;
}

FAKE_API int cuStreamGetFlags(Stream* handle, unsigned* flags) {
    FAKE_CALL(cuStreamGetFlags, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    if (flags == nullptr) return invalid_value;
    *flags = stream->ordered_with_default ? 0 : stream_non_blocking;
    return success;
}

FAKE_API int cuStreamIsCapturing(Stream* handle, int* status) {
    FAKE_CALL(cuStreamIsCapturing, Needs::context);
    if (!d.stream(handle)) return invalid_handle;
    if (status == nullptr) return invalid_value;
    *status = 0;
    return success;
}

FAKE_API int cuLaunchHostFunc(Stream* handle, void (*function)(void*), void* argument) {
    FAKE_CALL(cuLaunchHostFunc, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream) return invalid_handle;
    if (function == nullptr) return invalid_value;
    d.add(stream, [=](int&) { return function(argument), true; });
    return success;
}

FAKE_API int cuEventCreate(Event** event, unsigned flags) {
    FAKE_CALL(cuEventCreate, Needs::context);
    if (event == nullptr || (flags & ~event_flags) != 0) return invalid_value;
    auto made = std::make_unique<Event>();
    made->context = current();
    made->library = call.library;
    *event = made.get();
    d.events[made.get()] = std::move(made);
    return success;
}

FAKE_API int cuEventRecord(Event* event, Stream* handle) {
    FAKE_CALL(cuEventRecord, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream || d.events.count(event) == 0 || event->context != stream->context) return invalid_handle;
    // As work, so that the default streams' order holds for it, too.
    d.add(stream, [](int&) { return true; });
    event->place = Streams::end_of(stream);
    return success;
}

FAKE_API int cuEventQuery(Event* event) {
    FAKE_CALL(cuEventQuery, Needs::initialized);
    if (d.events.count(event) == 0) return invalid_handle;
    const Place place = event->place;
    lock.unlock();
    if (!d.streams.query(place)) return not_ready;
    return place.stream ? place.stream->error.load() : success;
}

FAKE_API int cuEventSynchronize(Event* event) {
    FAKE_CALL(cuEventSynchronize, Needs::context);
    if (d.events.count(event) == 0) return invalid_handle;
    const Place place = event->place;
    lock.unlock();
    return d.streams.wait(place);
}

FAKE_API int cuEventDestroy_v2(Event* event) {
    FAKE_CALL(cuEventDestroy_v2, Needs::initialized);
    return d.events.erase(event) != 0 ? success : invalid_handle;
}

FAKE_API int cuModuleLoadData(Module** module, const void* image) {
    FAKE_CALL(cuModuleLoadData, Needs::context);
    return load(d, module, image, call.library);
}

FAKE_API int cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*, void**) {
    FAKE_CALL(cuModuleLoadDataEx, Needs::context);
    return load(d, module, image, call.library);
}

FAKE_API int cuModuleGetFunction(Function** function, Module* module, const char* name) {
    FAKE_CALL(cuModuleGetFunction, Needs::context);
    if (function == nullptr || name == nullptr || *name == '\0') return invalid_value;
    if (d.modules.count(module) == 0) return invalid_handle;
    if (!has_entry(module->text, name)) return not_found;
    auto made = std::make_unique<Function>();
    made->module = module;
    made->name = name;
    *function = made.get();
    d.functions[made.get()] = std::move(made);
    return success;
}

FAKE_API int cuModuleUnload(Module* module) {
    FAKE_CALL(cuModuleUnload, Needs::context);
    if (d.modules.count(module) == 0) return invalid_handle;
    std::erase_if(d.functions, [&](const auto& item) { return item.second->module == module; });
    d.modules.erase(module);
    return success;
}

FAKE_API int cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared, Stream* handle, void** parameters,
                            void** extra) {
    FAKE_CALL(cuLaunchKernel, Needs::context);
    const StreamPointer stream = d.stream(handle);
    if (!stream || d.functions.count(function) == 0 || function->module->context != current() ||
        stream->context != current()) {
        return invalid_handle;
    }
    const std::uint64_t threads = std::uint64_t{block_x} * block_y * block_z;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || threads == 0 || threads > 1024 || shared > 49152 ||
        grid_x > 0x7fffffffU || grid_y > 65535 || grid_z > 65535) {
        return invalid_value;
    }
    if (extra != nullptr || !has_kernel(function->name)) return not_supported;
    if (parameters == nullptr) return invalid_value;
    std::uint64_t words[4];
    for (int i = 0; i < 4; ++i) std::memcpy(&words[i], parameters[i], sizeof words[i]);
    ++d.kernels[function->name];
    d.add(stream, [&d, name = function->name, context = current(), left = words[0], right = words[1], target = words[2],
                   count = words[3]](int& error) {
        error = run(d, *context, name, left, right, target, count);
        return true;
    });
    return success;
}

/// For the fake NCCL: appends work to a stream. `step` is called until it doesn't return 0, from any thread, and must
/// not block; what it returns then is the stream's error unless it's 1.
FAKE_API int fake_cuda_enqueue(Stream* handle, int (*step)(void*), void* argument) {
    Driver& d = driver();
    const std::lock_guard<std::recursive_mutex> lock(d.mutex);
    const StreamPointer stream = d.closed ? nullptr : d.stream(handle);
    if (!stream) return invalid_handle;
    d.add(stream, [=](int& error) {
        const int result = step(argument);
        if (result > 1) error = result;
        return result != 0;
    });
    return success;
}

/// For the fake NCCL: the host's address of device memory of which `size` bytes are in one allocation; else nullptr.
FAKE_API void* fake_cuda_range(const void* address, std::size_t size) {
    Driver& d = driver();
    const std::lock_guard<std::recursive_mutex> lock(d.mutex);
    const std::vector<Piece> pieces = d.memory.pieces(reinterpret_cast<std::uintptr_t>(address), size);
    const bool device = pieces.size() == 1 && pieces[0].keeps && pieces[0].keeps->kind != Kind::registered;
    return device ? pieces[0].at : nullptr;
}

/// Physical number of the current context's device; -1: there is none.
FAKE_API int fake_cuda_device() {
    Driver& d = driver();
    const std::lock_guard<std::recursive_mutex> lock(d.mutex);
    return current() != nullptr ? d.physical_of(current()->device) : -1;
}
