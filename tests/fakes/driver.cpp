#include "driver.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fake {
namespace {

// Without a destructor at the thread's end, which would keep the library from being unloaded.
constexpr std::size_t most_contexts = 64;
thread_local Context* stack[most_contexts];
thread_local std::size_t stacked = 0;
thread_local const Driver* stack_of = nullptr;

// What is in the handle's 64 bytes.
struct Exported {
    char name[8];
    int process, file;
    std::uint64_t offset, size, inode, id;
    int physical;
};
static_assert(sizeof(Exported) <= sizeof(IpcHandle));
constexpr char exported_name[8] = "fakeipc";

Driver* instance = nullptr;
Counted* counted_functions = nullptr;
std::mutex functions_mutex;

// The child has no thread, and the mutexes may be held: it begins with another driver, and never has a device if its
// parent had.
void begin_child() {
    const bool initialized = instance != nullptr && (instance->initialized || instance->forked);
    new (&functions_mutex) std::mutex;
    for (Counted* f = counted_functions; f != nullptr; f = f->next) f->calls.clear(), f->total = 0;
    auto* fresh = new Driver(instance->settings);
    fresh->forked = initialized;
    instance = fresh;
}

__attribute__((constructor)) void begin() {
    instance = new Driver(Settings::read());
    pthread_atfork(nullptr, nullptr, begin_child);
}

__attribute__((destructor)) void end() {
    instance->streams.stop();
    const std::lock_guard<std::recursive_mutex> lock(instance->mutex);
    instance->closed = true;
    instance->write_log();
}

}  // namespace

Driver& driver() { return *instance; }

const Counted* all_functions() { return counted_functions; }

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Counted::Counted(const char* function) : name(function) {
    const std::lock_guard<std::mutex> lock(functions_mutex);
    next = counted_functions;
    counted_functions = this;
}

std::string library_of(const void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "?";
    return base_name(info.dli_fname);
}

Call::Call(Counted& function, const void* caller, Needs needs) {
    Driver& d = driver();
    const void* const other = on_behalf_of();
    library = library_of(
        other != nullptr ? other : caller);  // not under the lock: it takes the loader's, under which the library ends
    const std::lock_guard<std::recursive_mutex> lock(d.mutex);
    if (d.closed) {
        result = deinitialized;
        return;
    }
    ++function.calls[library];
    ++function.total;
    if (needs != Needs::nothing && (!d.initialized || d.settings.not_initialized)) result = not_initialized;
    if (result == success && needs == Needs::context && current() == nullptr) result = invalid_context;
    for (const Failure& failure : d.settings.failures) {
        if (failure.function == function.name && (failure.call == 0 || failure.call == function.total)) {
            result = failure.result;
        }
    }
}

Driver::Driver(const Settings& read) : settings(read), streams(read) {
    for (std::size_t device = 0; device < settings.visible.size(); ++device) {
        primary.push_back(std::make_unique<Context>());
        primary.back()->device = static_cast<int>(device);
        primary.back()->primary = true;
        auto pool = std::make_unique<Pool>();
        pool->standard = true;
        pool->properties.type = allocation_pinned;
        pool->properties.location = {location_device, static_cast<int>(device)};
        standard_pools.push_back(pool.get());
        pools[pool.get()] = std::move(pool);
    }
}

Context* current() {
    if (stack_of != instance) stacked = 0;
    if (stacked == 0) return nullptr;
    Context* const top = stack[stacked - 1];
    return top != nullptr && top->alive ? top : nullptr;
}

void set_current(Context* context) {
    if (stack_of != instance) stacked = 0;
    stack_of = instance;
    if (stacked == 0) stacked = 1;
    stack[stacked - 1] = context;
    if (context == nullptr) --stacked;
}

bool push_current(Context* context) {
    if (stack_of != instance) stacked = 0;
    stack_of = instance;
    if (stacked == most_contexts) return false;
    stack[stacked++] = context;
    return true;
}

Context* pop_current() {
    Context* const top = current();
    if (top != nullptr) --stacked;
    return top;
}

const void*& on_behalf_of() {
    thread_local const void* caller = nullptr;
    return caller;
}

void be_slow() {
    if (driver().settings.slow_query_us > 0) usleep(driver().settings.slow_query_us);
}

std::string pci_bus_id(int physical) {
    char text[32];
    std::snprintf(text, sizeof text, "0000:%02X:00.0", 0x10 + physical);
    return text;
}

bool Driver::knows(const Context* context) const {
    if (context == nullptr) return false;
    if (contexts.count(const_cast<Context*>(context)) != 0) return true;
    return std::any_of(primary.begin(), primary.end(),
                       [&](const auto& p) { return p.get() == context && context->alive; });
}

int Driver::retain(Context** context, int device, const std::string& library) {
    if (!has(device)) return invalid_device;
    Context& wanted = *primary[static_cast<std::size_t>(device)];
    if (wanted.retained++ == 0) {
        wanted.alive = true;
        wanted.library = library;
        created(wanted);
    }
    *context = &wanted;
    return success;
}

int Driver::release(int device) {
    if (!has(device)) return invalid_device;
    Context& wanted = *primary[static_cast<std::size_t>(device)];
    if (wanted.retained == 0) return invalid_context;
    if (--wanted.retained == 0) destroy(wanted);
    return success;
}

void Driver::destroy(Context& context) {
    context.alive = false;
    context.legacy.reset();
    context.of_threads.clear();
    context.peers.clear();
    std::vector<AllocationPointer> gone;
    for (const auto& [address, allocation] : memory.all()) {
        if (allocation->context == &context) gone.push_back(allocation);
    }
    for (const AllocationPointer& allocation : gone) memory.remove(*allocation);
    std::erase_if(all_streams, [&](const auto& item) { return item.second->context == &context; });
    std::erase_if(events, [&](const auto& item) { return item.second->context == &context; });
    std::erase_if(functions, [&](const auto& item) { return item.second->module->context == &context; });
    std::erase_if(modules, [&](const auto& item) { return item.second->context == &context; });
    const auto own = contexts.find(&context);
    if (own == contexts.end()) return;
    dead.push_back(std::move(own->second));
    contexts.erase(own);
}

std::vector<StreamPointer> Driver::streams_of(const Context* context) {
    std::vector<StreamPointer> found;
    const auto defaults = [&](const Context& of) {
        if (context != nullptr && &of != context) return;
        if (of.legacy) found.push_back(of.legacy);
        for (const auto& [thread, stream] : of.of_threads) found.push_back(stream);
    };
    for (const auto& each : primary) defaults(*each);
    for (const auto& [handle, each] : contexts) defaults(*each);
    for (const auto& [handle, stream] : all_streams) {
        if (context == nullptr || stream->context == context) found.push_back(stream);
    }
    return found;
}

int Driver::synchronize(const Context* context) {
    std::vector<StreamPointer> all;
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex);
        all = streams_of(context);
    }
    int error = success;
    for (const StreamPointer& stream : all) {
        if (const int own = streams.wait(Streams::end_of(stream)); own != 0) error = own;
    }
    return error;
}

StreamPointer Driver::stream(void* handle) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number > 2) {
        const auto found = all_streams.find(static_cast<Stream*>(handle));
        return found == all_streams.end() ? nullptr : found->second;
    }
    Context* const context = current();
    if (context == nullptr) return nullptr;
    StreamPointer& standard =
        number == 2 ? context->of_threads[static_cast<int>(syscall(SYS_gettid))] : context->legacy;
    if (!standard) {
        standard = std::make_shared<Stream>();
        standard->context = context;
    }
    return standard;
}

void Driver::add(const StreamPointer& stream, Step step, std::vector<Place> after) {
    const StreamPointer& legacy = stream->context->legacy;
    if (stream == legacy) {
        for (const StreamPointer& other : streams_of(stream->context)) {
            if (other != legacy && other->ordered_with_default) after.push_back(Streams::end_of(other));
        }
    } else if (stream->ordered_with_default && legacy) {
        after.push_back(Streams::end_of(legacy));
    }
    std::erase_if(after, [](const Place& place) { return place.reached(); });
    streams.add(stream, std::move(step), std::move(after));
}

std::string Driver::kind_of(std::uintptr_t address) const {
    const AllocationPointer holder = memory.find(address);
    return !holder ? "pageable" : holder->on_host() ? "pinned" : holder->kind == Kind::managed ? "managed" : "device";
}

void Driver::add_copy(const StreamPointer& stream, std::uintptr_t target, std::uintptr_t source, std::size_t size) {
    add_copy_2d(stream, target, size, source, size, size, 1);
}

void Driver::add_copy_2d(const StreamPointer& stream, std::uintptr_t target, std::size_t target_pitch,
                         std::uintptr_t source, std::size_t source_pitch, std::size_t width, std::size_t height) {
    bytes[kind_of(source) + " to " + kind_of(target)] += width * height;
    add(stream, [=, this](int& error) {
        for (std::size_t row = 0; row < height && width > 0; ++row) {
            std::vector<Piece> to, from;
            {
                const std::lock_guard<std::recursive_mutex> lock(mutex);
                to = memory.pieces(target + row * target_pitch, width);
                from = memory.pieces(source + row * source_pitch, width);
                if (to.empty() || from.empty()) {
                    late_errors.push_back("a copy's memory was freed before it was copied");
                    error = illegal_address;
                    return true;
                }
            }
            copy(to, from);
        }
        return true;
    });
}

void Driver::add_fill(const StreamPointer& stream, std::uintptr_t target, int value, std::size_t size) {
    bytes["fill"] += size;
    add(stream, [=, this](int& error) {
        std::vector<Piece> to;
        {
            const std::lock_guard<std::recursive_mutex> lock(mutex);
            to = memory.pieces(target, size);
            if (to.empty() && size > 0) {
                late_errors.push_back("memory was freed before it was filled");
                error = illegal_address;
            }
        }
        for (const Piece& piece : to) std::memset(piece.at, value, piece.size);
        return true;
    });
}

AllocationPointer Driver::allocate(Kind kind, std::size_t size, int device, const std::string& library) {
    const bool small = kind == Kind::device && size <= SmallBlock::largest;
    const AllocationPointer made =
        small ? memory.allocate_small(kind, size, device) : memory.allocate(kind, size, device);
    if (!made) return nullptr;
    made->library = library;
    // Real memory isn't zero.
    std::memset(made->alias, 0xa5, std::min<std::size_t>(size, 65536));
    memory.insert(made);
    return made;
}

int Driver::ipc_handle(IpcHandle* handle, std::uintptr_t address) {
    if (settings.no_ipc) return not_supported;
    const AllocationPointer holder = memory.find(address);
    if (!holder || holder->kind != Kind::device) return invalid_value;
    Exported exported{};
    std::memcpy(exported.name, exported_name, sizeof exported.name);
    exported.process = getpid();
    exported.file = holder->pages->file;
    exported.offset = holder->offset;
    exported.size = holder->size;
    exported.inode = holder->pages->inode;
    exported.id = holder->id;
    exported.physical = physical_of(holder->device);
    std::memset(handle, 0, sizeof *handle);
    std::memcpy(handle, &exported, sizeof exported);
    return success;
}

int Driver::ipc_open(std::uintptr_t* address, const IpcHandle& handle, unsigned flags, const std::string& library) {
    if (settings.no_ipc_open) return not_supported;
    if (flags > ipc_lazy_peer_access) return invalid_value;
    Exported exported{};
    std::memcpy(&exported, &handle, sizeof exported);
    if (std::memcmp(exported.name, exported_name, sizeof exported.name) != 0) return invalid_value;
    if (exported.process == getpid()) return invalid_context;
    const std::string bytes_of(handle.bytes, sizeof handle.bytes);
    for (const auto& [at, allocation] : memory.all()) {
        if (allocation->kind != Kind::opened || allocation->handle != bytes_of) continue;
        ++allocation->opens;
        *address = at;
        return success;
    }
    const Context& context = *current();
    const auto seen = std::find(settings.visible.begin(), settings.visible.end(), exported.physical);
    // A device that isn't visible here is reached as a peer, too.
    const int device = seen == settings.visible.end() ? -2 : static_cast<int>(seen - settings.visible.begin());
    if (device != context.device && (settings.no_peer || flags != ipc_lazy_peer_access)) {
        return peer_access_unsupported;
    }
    const std::string path = "/proc/" + std::to_string(exported.process) + "/fd/" + std::to_string(exported.file);
    auto pages = std::make_shared<Pages>(open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status{};
    if (pages->file < 0 || fstat(pages->file, &status) != 0 || status.st_ino != exported.inode) return invalid_value;
    pages->size = static_cast<std::size_t>(status.st_size);
    pages->inode = status.st_ino;
    const AllocationPointer made = memory.map(Kind::opened, pages, 0, exported.offset + exported.size, false, 0);
    if (!made) return out_of_memory;
    made->offset = exported.offset;
    made->address += made->offset;
    made->alias += made->offset;
    made->size = exported.size;
    made->device = device == -2 ? context.device : device;
    made->context = current();
    made->library = library;
    made->handle = bytes_of;
    made->opens = 1;
    memory.insert(made);
    *address = made->address;
    return success;
}

int Driver::ipc_close(std::uintptr_t address) {
    const AllocationPointer holder = memory.find(address);
    if (!holder || holder->kind != Kind::opened || holder->address != address) return invalid_value;
    if (--holder->opens == 0) memory.remove(*holder);
    return success;
}

int Driver::register_host(void* address, std::size_t size, const std::string& library) {
    if (address == nullptr || size == 0) return invalid_value;
    if (settings.no_pin) return not_supported;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (memory.overlaps(at, size)) return already_registered;
    auto made = std::make_shared<Allocation>();
    made->kind = Kind::registered;
    made->address = at;
    made->size = size;
    made->alias = static_cast<char*>(address);
    made->id = memory.next_id();
    made->device = current()->device;
    made->context = current();
    made->library = library;
    memory.insert(made);
    return success;
}

int Driver::pointer_attribute(int attribute, void* data, std::uintptr_t address, bool lenient) {
    if (data == nullptr) return invalid_value;
    if (attribute < attribute_context || attribute > attribute_block_id) return invalid_value;
    if (settings.old && attribute > attribute_mapped) return invalid_value;
    if (attribute == attribute_p2p_tokens) return not_supported;
    const AllocationPointer holder = memory.find(address);
    if (!holder && !lenient) return invalid_value;
    const auto word = [&](std::uint64_t value) { std::memcpy(data, &value, sizeof value); };
    const auto number = [&](unsigned value) { std::memcpy(data, &value, sizeof value); };
    const auto truth = [&](bool value) { std::memcpy(data, &value, sizeof value); };
    const bool streamed = holder && (holder->kind == Kind::pool || holder->kind == Kind::mapped);
    const bool host = holder && holder->on_host();
    const std::uintptr_t offset = holder ? address - holder->address : 0;
    switch (attribute) {
        case attribute_context:
            word(!holder || streamed ? 0 : reinterpret_cast<std::uintptr_t>(holder->context));
            break;
        case attribute_memory_type:
            number(!holder ? 0U : static_cast<unsigned>(host || holder->says_host ? memory_host : memory_device));
            break;
        case attribute_device_pointer:
            word(holder ? address : 0);
            break;
        case attribute_host_pointer: {
            const bool readable = host || (holder && holder->kind == Kind::managed);
            if (!readable && !lenient) return invalid_value;
            word(readable ? reinterpret_cast<std::uintptr_t>(holder->alias) + offset : 0);
            break;
        }
        case attribute_sync_memops:
            number(holder && holder->sync_memops ? 1U : 0U);
            break;
        case attribute_buffer_id:
            word(holder ? holder->id : 0);
            break;
        case attribute_is_managed:
            number(holder && holder->kind == Kind::managed ? 1U : 0U);
            break;
        case attribute_device_ordinal:
            number(static_cast<unsigned>(holder ? holder->device : -2));
            break;
        case attribute_is_ipc_capable:
            truth(holder && holder->kind == Kind::device);
            break;
        case attribute_range_start:
            word(!holder ? 0 : holder->reserved != 0 ? holder->reserved : holder->address);
            break;
        case attribute_range_size:
            word(!holder ? 0 : holder->reserved != 0 ? holder->reserved_size : holder->size);
            break;
        case attribute_mapped:
            truth(holder != nullptr);
            break;
        case attribute_handle_types: {
            std::uint64_t types = 0;
            if (holder && holder->physical) types = static_cast<unsigned>(holder->physical->properties.handle_types);
            if (holder && holder->pool) types = static_cast<unsigned>(holder->pool->properties.handle_types);
            word(types);
            break;
        }
        case attribute_is_rdma_capable:
            truth(holder && !host && holder->kind != Kind::managed);
            break;
        case attribute_access_flags:
            number(holder ? access_read_write : 0U);
            break;
        case attribute_pool:
            word(holder ? reinterpret_cast<std::uintptr_t>(holder->pool) : 0);
            break;
        case attribute_mapping_size:
            word(holder ? holder->size : 0);
            break;
        case attribute_mapping_base:
            word(holder ? holder->address : 0);
            break;
        case attribute_block_id:
            word(!holder ? 0 : holder->physical ? holder->physical->id : holder->id);
            break;
        default:
            return invalid_value;
    }
    return success;
}

}  // namespace fake
