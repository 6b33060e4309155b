// One interface over the drivers of CUDA and HIP: where memory lies, copies, pinning, IPC and reductions on the device.
//
// The driver is taken as it lies in the process; nothing of palmette links a GPU's library. No function here creates a
// context, and each leaves the calling thread's current context or device as it was.
#pragma once

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

/// All functions may be called by several threads at once. Statuses: null where it worked.
class Driver {
  public:
    virtual ~Driver() = default;

    virtual const char* name() const = 0;  ///< cuda, hip
    /// As the driver counts: 12040 for CUDA 12.4; 0 where it can't tell.
    virtual int version() = 0;
    /// Asks for all that is needed to know of `address` at once.
    virtual Place place_of(const void* address) = 0;
    /// Whether it was initialised: before, there is no memory of its devices. Cheap.
    virtual bool has_begun() = 0;
    /// Where the calling thread's commands go; false: it has no context.
    virtual bool current_place(Place&) { return false; }
    /// The beginning and the length of the allocation that `address` lies in.
    virtual Status range_of(const Place& place, const void* address, void*& begin, std::int64_t& bytes) = 0;
    virtual std::string device_name(int device) = 0;
    virtual std::array<char, 16> bus_id(int device) = 0;
    virtual int devices() = 0;

    /// Whether the context that a place was in still exists: the program may have ended it, and begun one like it.
    virtual bool is_alive(const Place& place) = 0;

    /// In-order queues where `place` is. They wait for what the program has begun on the default stream: its copies and
    /// fills there may go on after they have returned.
    virtual Status open_queue(const Place& place, Queue& queue) = 0;
    virtual void close_queue(const Place& place, Queue queue) = 0;
    virtual Status synchronize(const Place& place, Queue queue) = 0;
    virtual Status open_event(const Place& place, Event& event) = 0;
    virtual void close_event(const Place& place, Event event) = 0;
    virtual Status record(const Place& place, Event event, Queue queue) = 0;
    /// Whether all commands before the event are done; does not wait.
    virtual Status query(const Place& place, Event event, bool& done) = 0;
    virtual Status wait(const Place& place, Event event) = 0;
    /// Another queue, that orders nothing with the default stream, in either direction.
    virtual Status open_queue_apart(const Place&, Queue&) { return "no such queue"; }
    /// What comes into the queue waits for the event.
    virtual Status wait_in(const Place&, Queue, Event) { return "no such command"; }

    /// Begins a copy, whichever side is on a device. Neither may be touched until the queue has come past it.
    virtual Status copy(const Place& place, Queue queue, void* to, const void* from, std::int64_t bytes) = 0;
    /// Between device and host.
    virtual Status copy_rows(const Place& place, Queue queue, void* to, const void* from, const Rows& rows,
                             bool to_host) = 0;

    /// Page-locks host memory, so that copies are asynchronous and fast.
    virtual Status pin(const Place& place, void* memory, std::int64_t bytes) = 0;
    virtual void unpin(const Place& place, void* memory) = 0;

    /// Memory where `place` is, of palmette's own.
    virtual Status allocate(const Place& place, std::int64_t bytes, void*& memory) = 0;
    virtual void release(const Place& place, void* memory) = 0;

    /// Calls `body` with the place's context current in this thread; not at all where that fails.
    virtual Status within(const Place& place, const std::function<void()>& body) = 0;

    /// Whether the allocation that `address` lies in can be exported; costs a query.
    virtual bool exports(const void* address) = 0;
    /// A handle by which other processes open the allocation that begins at `begin` (see range_of).
    virtual Status export_memory(const Place& place, void* begin, Handle& handle) = 0;
    /// Maps another process's allocation for commands at `place`. Not possible in the process that exported it.
    virtual Status open_memory(const Place& place, const Handle& handle, void*& begin) = 0;
    virtual void close_memory(const Place& place, void* begin) = 0;
    /// Whether commands at `place` may reach memory of the device with that bus id.
    bool reaches(const Place& place, const std::array<char, 16>& bus_id);
    /// Whether a device reaches the memory of another one.
    virtual bool accesses(int device, int other) = 0;

    /// Begins target = left op right over `count` elements, all three reachable for the device at `place`. False where
    /// there is no such kernel: the host must do it.
    virtual bool has_kernel(runtime::Operator op, runtime::Element element) = 0;
    virtual Status combine(const Place& place, Queue queue, runtime::Operator op, runtime::Element element,
                           const void* left, const void* right, void* target, std::int64_t count) = 0;

    /// Gives back what was loaded and retained.
    virtual void release_kernels() = 0;
};

/// Takes the drivers that lie in the process, and keeps them loaded: memory that they manage may be in use after the
/// program has closed its own handle. False where none has the functions that are needed.
bool find_drivers();
/// Those that were found.
std::span<Driver* const> all_drivers();

// Constructors of the two; null where `library` lacks functions that are needed.
Driver* make_cuda_driver(void* library);
Driver* make_hip_driver(void* library);

}  // namespace palmette::device
