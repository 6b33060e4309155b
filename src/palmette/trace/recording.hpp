// Reads what the processes of a node have recorded, also while they run or after they were killed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "palmette/trace/format.hpp"

namespace palmette::trace {

/// Communicators of different processes are the same where their ids are.
struct CommunicatorInfo {
    std::uint64_t id = 0;
    std::int32_t rank = -1, size = 0;
    std::uint64_t collectives = 0;  ///< begun on it by this process
};

struct FrameInfo {
    std::string module;        ///< path of the executable or library
    std::string build_id;      ///< in hexadecimal; empty: it has none
    std::uint64_t offset = 0;  ///< the return address, as the module's program headers number it
};

/// All calls of one function, call path, communicator and size class.
struct AggregateInfo {
    std::string function;
    std::uint32_t path = 0;          ///< index into paths; 0: unknown
    std::uint16_t communicator = 0;  ///< index into communicators; 0: none
    std::uint64_t calls = 0, bytes = 0;
    double seconds = 0, longest_s = 0;
    std::array<std::uint32_t, histogram_bins> histogram{};
};

/// A call that has begun and not ended.
struct OpenCallInfo {
    std::int64_t thread_id = 0;
    std::string function;
    std::uint32_t path = 0;
    std::uint16_t communicator = 0;
    std::int64_t begin_real_ns = 0;  ///< CLOCK_REALTIME
    std::uint64_t bytes = 0;
    std::int32_t peer = -1, tag = 0;  ///< peer: rank in the communicator; -1: none, -2: any
    std::uint64_t instance = 0;       ///< of a collective, counted from 1 on its communicator; else 0
};

/// One process.
struct ProcessInfo {
    std::int32_t pid = 0, rank = -1, size = 0;
    State state = State::begun;
    std::string executable;
    bool records_calls = false;
    double tick_s = 0;  ///< length of a tick of the recorder's clock
    std::int64_t begin_real_ns = 0, last_real_ns = 0;
    std::uint64_t calls = 0;         ///< that have ended
    std::uint64_t dropped = 0;       ///< of them, those that the ring has no record of any more
    std::uint64_t unaggregated = 0;  ///< of them, those that are in aggregate 0
    std::uint64_t unpathed = 0;
    std::uint64_t threadless = 0;  ///< calls that are recorded nowhere: more threads at a time than there are entries
    std::uint64_t unwound = 0;
    double unwinding_s = 0;
    std::vector<CommunicatorInfo> communicators;
    std::vector<AggregateInfo> aggregates;
    std::vector<std::vector<FrameInfo>> paths;  ///< innermost frame first; [0] is empty
    std::vector<OpenCallInfo> open;
};

/// One node's file. `with_tables`: aggregates and paths as well, which a look at open calls doesn't need.
struct Recording {
    std::string host, boot_id;
    std::vector<ProcessInfo> processes;

    /// Throws base::Error that names the file and what is wrong with it. Nothing in a file is trusted.
    static Recording read(const std::string& path, bool with_tables);
};

}  // namespace palmette::trace
