// One interface over the drivers of CUDA and HIP: where memory lies, copies, pinning, IPC and reductions on the device.
//
// The driver is taken as it lies in the process; nothing of palmette links a GPU's library. No function here creates a
// context, and each leaves the calling thread's current context or device as it was.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "palmette/kernels/kernels.hpp"

namespace palmette::device {

class Driver;

/// How the host may treat a buffer.
enum class Memory : std::uint8_t {
    host,     ///< the driver doesn't know it
    pinned,   ///< the host's, from the driver or registered with it
    managed,  ///< migrates: the host may touch it
    device    ///< the host must not touch it
};

/// Where a buffer lies.
struct Place {
    Memory memory = Memory::host;
    Driver* driver = nullptr;  ///< null: the driver doesn't know it
    /// CUDA's context in which commands on the buffer are given: its own, or its device's primary one; HIP: unused.
    void* context = nullptr;
    std::uint64_t context_id = 0;  ///< of the context, never used again; 0: the driver can't tell
    int device = 0;
    std::uint64_t id = 0;  ///< of the allocation, unique in this process

    bool on_device() const { return memory == Memory::device; }
    /// Whether commands on both can go to one queue.
    friend bool same_queue(const Place& a, const Place& b) {
        return a.driver == b.driver && a.context == b.context && a.context_id == b.context_id && a.device == b.device;
    }
};

/// What another process needs to open an allocation; as bytes in shared memory or a message.
struct Handle {
    std::array<unsigned char, 64> bytes{};
    std::array<char, 16> bus_id{};  ///< PCI bus of the device: numbers of devices differ between processes
};

/// A driver's queue of commands (stream) and event; opaque.
using Queue = void*;
using Event = void*;

/// Null: it worked. Else the driver's name of the error.
using Status = const char*;

/// Rows of a strided copy, all of `width` bytes.
struct Rows {
    std::int64_t width = 0;
    std::int64_t count = 1;
    std::int64_t stride = 0;  ///< from one row to the next, on both sides
};

/// Points `function` at a library's symbol. False: the library lacks it, and `function` is null.
template <class Function>
bool load_symbol(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

/// The functions that CUDA's driver and HIP have alike, but for their names. Addresses on devices are pointers here;
/// CUDA's are integers of the same size.
struct Symbols {
    using Result = int;
    static constexpr Result success = 0, not_ready = 600;
    static constexpr unsigned stream_default = 0, stream_non_blocking = 1, event_disable_timing = 2,
                              register_portable = 1, lazy_peer_access = 1;

    Result (*version)(int*);
    Result (*device_count)(int*);
    Result (*device_name)(char*, int, int);
    Result (*bus_id)(char*, int, int);
    Result (*range)(void**, std::size_t*, void*);
    Result (*open_stream)(Queue*, unsigned);
    Result (*close_stream)(Queue);
    Result (*synchronize)(Queue);
    Result (*wait_in_stream)(Queue, Event, unsigned);
    Result (*open_event)(Event*, unsigned);
    Result (*close_event)(Event);
    Result (*record)(Event, Queue);
    Result (*query)(Event);
    Result (*wait)(Event);
    Result (*pin)(void*, std::size_t, unsigned);
    Result (*unpin)(void*);
    Result (*allocate)(void**, std::size_t);
    Result (*release)(void*);
    // Null where the library lacks them.
    Result (*accesses)(int*, int, int);
    Result (*export_memory)(decltype(Handle::bytes)*, void*);
    Result (*open_memory)(void**, decltype(Handle::bytes), unsigned);
    Result (*close_memory)(void*);

    enum class Names : std::uint8_t { cuda, hip };
    /// False: it lacks one that is needed.
    bool load(void* library, Names names);
};

/// All functions may be called by several threads at once. Statuses: null where it worked.
class Driver {
  public:
    virtual ~Driver() = default;

    virtual const char* name() const = 0;  ///< cuda, hip
    /// As the driver counts: 12040 for CUDA 12.4; 0 where it can't tell.
    int version();
    /// Asks for all that is needed to know of `address` at once.
    virtual Place place_of(const void* address) = 0;
    /// Whether it was initialised: before, there is no memory of its devices. Cheap.
    virtual bool has_begun() { return true; }
    /// Where the calling thread's commands go; false: it has no context.
    virtual bool current_place(Place&) { return false; }
    /// The beginning and the length of the allocation that `address` lies in.
    Status range_of(const Place& place, const void* address, void*& begin, std::int64_t& bytes);
    std::string device_name(int device);
    std::array<char, 16> bus_id(int device);
    int devices();

    /// Whether the context that a place was in still exists: the program may have ended it, and begun one like it.
    virtual bool is_alive(const Place&) { return true; }

    /// In-order queues where `place` is. They wait for what the program has begun on the default stream: its copies and
    /// fills there may go on after they have returned.
    Status open_queue(const Place& place, Queue& queue);
    /// Another one, that orders nothing with the default stream, in either direction.
    Status open_queue_apart(const Place& place, Queue& queue);
    void close_queue(const Place& place, Queue queue);
    Status synchronize(const Place& place, Queue queue);
    Status open_event(const Place& place, Event& event);
    void close_event(const Place& place, Event event);
    Status record(const Place& place, Event event, Queue queue);
    /// Whether all commands before the event are done; does not wait.
    Status query(const Place& place, Event event, bool& done);
    Status wait(const Place& place, Event event);
    /// What comes into the queue waits for the event.
    Status wait_in(const Place& place, Queue queue, Event event);

    /// Begins a copy, whichever side is on a device. Neither may be touched until the queue has come past it.
    Status copy(const Place& place, Queue queue, void* to, const void* from, std::int64_t bytes);
    /// Between device and host.
    Status copy_rows(const Place& place, Queue queue, void* to, const void* from, const Rows& rows, bool to_host);

    /// Page-locks host memory, so that copies are asynchronous and fast.
    Status pin(const Place& place, void* memory, std::int64_t bytes);
    void unpin(const Place& place, void* memory);

    /// Memory where `place` is, of palmette's own.
    Status allocate(const Place& place, std::int64_t bytes, void*& memory);
    void release(const Place& place, void* memory);

    /// Calls `body` with the place's context current in this thread; not at all where that fails.
    Status within(const Place& place, const std::function<void()>& body);

    /// Whether the allocation that `address` lies in can be exported; costs a query.
    bool exports(const void* address) {
        return api_.export_memory && api_.open_memory && api_.close_memory && may_export(address);
    }
    /// A handle by which other processes open the allocation that begins at `begin` (see range_of).
    Status export_memory(const Place& place, void* begin, Handle& handle);
    /// Maps another process's allocation for commands at `place`. Not possible in the process that exported it.
    Status open_memory(const Place& place, const Handle& handle, void*& begin);
    void close_memory(const Place& place, void* begin);
    /// Whether commands at `place` may reach memory of the device with that bus id.
    bool reaches(const Place& place, const std::array<char, 16>& bus_id);
    /// Whether a device reaches the memory of another one.
    bool accesses(int device, int other);

    /// Begins target = left op right over `count` elements, all three reachable for the device at `place`. False where
    /// there is no such kernel: the host must do it.
    virtual bool has_kernel(kernels::Operator, kernels::Element) { return false; }
    virtual Status combine(const Place&, Queue, kernels::Operator, kernels::Element, const void* /*left*/,
                           const void* /*right*/, void* /*target*/, std::int64_t /*count*/) {
        return "no kernel";
    }

    /// Gives back what was loaded and retained.
    virtual void release_kernels() {}

  protected:
    using Result = Symbols::Result;
    static constexpr Result success = Symbols::success;

    explicit Driver(const Symbols& symbols) : api_(symbols) {}

    /// Makes a place's context or device this thread's; `before` is for `leave`, after it has worked.
    virtual Result enter(const Place& place, int& before) = 0;
    virtual void leave(const Place& place, int before) = 0;
    /// Null: unknown.
    virtual const char* error_name(Result result) = 0;
    virtual Result begin_copy(Queue queue, void* to, const void* from, std::size_t bytes) = 0;
    virtual Result begin_rows(Queue queue, void* to, const void* from, const Rows& rows, bool to_host) = 0;
    virtual bool may_export(const void*) { return true; }

    /// Runs `command` at a place; nothing where that can't be entered.
    template <class Command>
    Result at(const Place& place, const Command& command) {
        int before = 0;
        Result result = enter(place, before);
        if (result != success) return result;
        result = command();
        leave(place, before);
        return result;
    }
    template <class Command>
    Status status_at(const Place& place, const Command& command) {
        return status(at(place, command));
    }
    Status status(Result result);

  private:
    Symbols api_;
};

/// Takes the drivers that lie in the process, and keeps them loaded: memory that they manage may be in use after the
/// program has closed its own handle. False where none has the functions that are needed.
bool find_drivers();
/// Drivers of devices that were found.
std::span<Driver* const> all_drivers();

// Constructors of the two; null where `library` lacks functions that are needed.
Driver* make_cuda_driver(void* library);
Driver* make_hip_driver(void* library);

}  // namespace palmette::device
