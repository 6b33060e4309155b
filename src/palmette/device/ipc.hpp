// Device memory between the processes of a node: allocations that others may open, and those of others, kept open.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "palmette/device/driver.hpp"

namespace palmette::device {

/// Some bytes of an allocation of this or another process; goes through shared memory.
struct Exported {
    Handle handle;
    std::uint64_t process;    ///< a random word: process numbers are used again, and may be the same in two containers
    std::uint64_t begin;      ///< of the allocation, in the exporter's addresses
    std::uint64_t id;         ///< of the allocation, unique in that process; 0: the driver has none
    std::int64_t allocation;  ///< its length
    std::int64_t offset;      ///< of the bytes in it
};

/// What IPC has done in this process; for the report.
struct IpcCounts {
    std::atomic<std::int64_t> exports{0};     ///< allocations for which there is a handle
    std::atomic<std::int64_t> unexported{0};  ///< those that the driver gave none for
    std::atomic<std::int64_t> opens{0}, closes{0}, hits{0}, evictions{0};
    std::atomic<std::int64_t> refusals{0};  ///< allocations of others that couldn't be opened
};
extern constinit IpcCounts ipc_counts;

/// The word that names this process in an Exported; not the parent's in a forked child.
std::uint64_t this_process();

/// Handles of this process's allocations: asked for once for each. Thread-safe.
class Exports {
  public:
    static Exports& instance();

    /// False: others can't open it. `place` is that of `address`; `out.offset` is the address's.
    bool find(const Place& place, const void* address, Exported& out);

    static constexpr std::size_t most = 64;

  private:
    struct ExportState {
        Exported exported{};
        bool works = false;
        std::uint64_t last_use = 0;
    };
    std::mutex mutex_;
    std::vector<ExportState> known_;
    std::uint64_t time_ = 0;
};

/// Allocations of other processes, opened here at their first use, and closed when the bound is reached, when their
/// memory has been freed there and another allocation taken its place, and at the end. Thread-safe.
class Imports {
  public:
    static Imports& instance();

    /// A mapping that stays until it is given back.
    struct Mapping {
        char* begin = nullptr;  ///< null: it can't be opened here
        std::int64_t bytes = 0;
        std::int64_t number = -1;
    };
    /// For commands at `place`. Not for memory of this process.
    Mapping take(const Place& place, const Exported& exported);
    void give_back(const Mapping& mapping);

    /// Closes all that isn't in use.
    void close_all();
    std::size_t count();

    /// The most that are open or known not to open.
    void set_most(std::size_t most);

  private:
    struct Open {
        Place place;
        Exported exported{};
        char* begin = nullptr;
        int users = 0;
        std::uint64_t last_use = 0;
    };
    using All = std::map<std::int64_t, Open>;
    All::iterator close(All::iterator one);
    bool make_room();

    std::mutex mutex_;
    All all_;
    std::int64_t next_ = 0;
    std::uint64_t time_ = 0;
    std::size_t most_ = 128;
};

}  // namespace palmette::device
