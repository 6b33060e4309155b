// A process's driver: what its devices, contexts, streams and memory are, who called what, and the log of it at the
// end. One for each library (libcuda, libamdhip64).
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda_types.hpp"
#include "memory.hpp"
#include "settings.hpp"
#include "streams.hpp"

namespace fake {

struct Context {
    int device = 0;
    bool primary = false;
    int retained = 0;
    bool alive = false;
    unsigned flags = 0;
    std::string library;
    StreamPointer legacy;
    /// Default streams of threads.
    std::map<int, StreamPointer> of_threads;
    std::set<int> peers;
};

struct Event {
    Context* context = nullptr;
    std::string library;
    Place place;
};

struct Module {
    Context* context = nullptr;
    std::string library;
    std::string text;
};

struct Function {
    Module* module = nullptr;
    std::string name;
};

/// A function of the interface: how often it was called, by which library.
struct Counted {
    const char* name;
    Counted* next;
    std::map<std::string, std::uint64_t> calls;
    std::uint64_t total = 0;

    explicit Counted(const char* function);
};

enum class Needs { nothing, initialized, context };

/// A call of a function, counted; `result` is not success when it fails at once.
struct Call {
    int result = success;
    std::string library;

    Call(Counted& function, const void* caller, Needs needs);
};

struct Driver {
    explicit Driver(const Settings& read);

    Settings settings;
    std::recursive_mutex mutex;
    bool initialized = false;
    /// A child of a process that had initialized it.
    bool forked = false;
    bool closed = false;
    Memory memory;
    Streams streams;
    std::vector<std::unique_ptr<Context>> primary;
    std::map<Context*, std::unique_ptr<Context>> contexts;
    /// Threads may still have them.
    std::vector<std::unique_ptr<Context>> dead;
    std::map<Stream*, StreamPointer> all_streams;
    std::map<Event*, std::unique_ptr<Event>> events;
    std::map<Module*, std::unique_ptr<Module>> modules;
    std::map<Function*, std::unique_ptr<Function>> functions;
    std::map<Pool*, std::unique_ptr<Pool>> pools;
    std::vector<Pool*> standard_pools;
    std::map<PhysicalMemory*, std::shared_ptr<PhysicalMemory>> physical;
    std::map<std::uintptr_t, std::size_t> reserved;
    /// For the log.
    std::vector<std::string> created_contexts;
    std::map<std::string, std::uint64_t> bytes;
    std::map<std::string, std::uint64_t> kernels;
    std::vector<std::string> late_errors;

    /// Physical number of a visible device.
    int physical_of(int device) const { return settings.visible[static_cast<std::size_t>(device)]; }
    bool has(int device) const { return device >= 0 && device < static_cast<int>(settings.visible.size()); }
    bool knows(const Context* context) const;

    int retain(Context** context, int device, const std::string& library);
    int release(int device);
    void created(const Context& context);
    /// After synchronize().
    void destroy(Context& context);
    /// Waits for everything in a context (nullptr: in all). The lock isn't held.
    int synchronize(const Context* context);
    std::vector<StreamPointer> streams_of(const Context* context);

    /// A handle of the program; nullptr: it's none.
    StreamPointer stream(void* handle);
    /// Adds work to a stream in the order that default streams ask for.
    void add(const StreamPointer& stream, Step step, std::vector<Place> after = {});
    /// Work that fails is in the log, too.
    void add_copy(const StreamPointer& stream, std::uintptr_t target, std::uintptr_t source, std::size_t size);
    void add_copy_2d(const StreamPointer& stream, std::uintptr_t target, std::size_t target_pitch,
                     std::uintptr_t source, std::size_t source_pitch, std::size_t width, std::size_t height);
    void add_fill(const StreamPointer& stream, std::uintptr_t target, int value, std::size_t size);
    std::string kind_of(std::uintptr_t address) const;

    AllocationPointer allocate(Kind kind, std::size_t size, int device, const std::string& library);
    int ipc_handle(IpcHandle* handle, std::uintptr_t address);
    int ipc_open(std::uintptr_t* address, const IpcHandle& handle, unsigned flags, const std::string& library);
    int ipc_close(std::uintptr_t address);
    int register_host(void* address, std::size_t size, const std::string& library);
    int pointer_attribute(int attribute, void* data, std::uintptr_t address, bool lenient);

    void write_log();
};

/// The process's driver.
Driver& driver();
/// All that were called until now.
const Counted* all_functions();
std::string base_name(const std::string& path);
/// The calling thread's contexts, the current one last; none: nullptr.
Context* current();
void set_current(Context* context);
bool push_current(Context* context);
Context* pop_current();
/// Who made the calls of this thread instead of who seems to; nullptr: nobody else. HIP's functions call CUDA's.
const void*& on_behalf_of();
/// What every function does that asks about a pointer.
void be_slow();
std::string pci_bus_id(int physical);
/// The file's name of the library or program with this address.
std::string library_of(const void* address);

/// A kernel by its name ("palmette_sum_f32") on memory of the host; false: there is none.
bool has_kernel(const std::string& name);
bool reduce(const std::string& name, const void* left, const void* right, void* target, std::size_t count);
/// Bytes of an element of its type.
std::size_t kernel_element(const std::string& name);

}  // namespace fake

#define FAKE_CALL(function, needs)                                                                            \
    static ::fake::Counted& counted_ = *new ::fake::Counted(#function); /* never destroyed: the log has it */ \
    const ::fake::Call call(counted_, __builtin_return_address(0), needs);                                    \
    if (call.result != ::fake::success) return call.result;                                                   \
    [[maybe_unused]] ::fake::Driver& d = ::fake::driver();                                                    \
    std::unique_lock<std::recursive_mutex> lock(d.mutex)
