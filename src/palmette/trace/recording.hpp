// Reads what the processes of a node have recorded, also while they run or after they were killed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "palmette/trace/format.hpp"

namespace palmette::trace {

/// A communicator as one process knows it. Equal ids in different processes are the same communicator.
struct CommunicatorInfo {
    std::uint64_t id = 0;
    std::int32_t rank = -1, size = 0;
    std::uint64_t collectives = 0;  ///< collectives begun on it by this process
    std::uint64_t since_ticks = 0;  ///< start of this communicator if a freed one had the entry before it; else 0
};

struct FrameInfo {
    std::string module;        ///< path of the executable or library
    std::string build_id;      ///< in hexadecimal; empty: it has none
    std::uint64_t offset = 0;  ///< the return address, as the module's program headers number it
};

/// All calls of one function, call path, communicator and size class, or the requests that they made, from start to
/// completion.
struct AggregateInfo {
    std::string function;
    bool is_request = false;
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
    std::int64_t begin_real_ns = 0;  ///< node time: CLOCK_REALTIME unless it was set during the run
    std::uint64_t bytes = 0;
    std::int32_t peer = -1, tag = 0;  ///< peer: rank in the communicator; -1: none, -2: any
    std::uint64_t instance = 0;       ///< a collective's number on its communicator, from 1; else 0
    std::uint32_t thread = 0;         ///< number of the thread in its process, from 1
    std::int32_t receives_from = -1;  ///< MPI_Sendrecv's source: rank in the communicator; -1: none, -2: any
};

/// A request that was started and isn't complete.
struct RequestInfo {
    std::string function;  ///< MPI function that started it
    std::uint32_t path = 0;
    std::uint16_t communicator = 0;
    std::int64_t begin_real_ns = 0;
    std::uint64_t bytes = 0, instance = 0;
    std::int32_t peer = -1, tag = 0;
    std::uint32_t waited_by = 0;  ///< number of the thread that waits for it; 0: none
    std::uint32_t maker = 0;      ///< number of the thread that made it
};

/// What all calls by a plan have sent to one rank.
struct SendInfo {
    std::int32_t peer = 0;  ///< in the communicator
    std::uint64_t messages = 0, bytes = 0;
};

/// A plan of palmette's by which calls were served.
struct PlanInfo {
    std::string function, algorithm;
    std::uint16_t communicator = 0;
    std::int32_t root = -1;
    std::int64_t block_bytes = -1;  ///< -1: sizes differ between calls
    double bound_s = -1;            ///< the physical limit of a call; -1: this rank doesn't know it
    std::uint64_t calls = 0;
    double seconds = 0;  ///< in these calls
    std::vector<SendInfo> sends;
};

/// What a process itself has sent to one rank of its MPI_COMM_WORLD, in the whole run: messages point to point, blocks
/// of collectives over neighbours, and blocks of all-to-alls.
struct PeerInfo {
    /// Peers outside of MPI_COMM_WORLD: spawned processes, or another job's.
    static constexpr std::int32_t outside = -1;
    static constexpr std::int32_t others = -2;  ///< all peers for which there was no entry of their own
    std::int32_t rank = 0;
    std::uint64_t messages = 0, message_bytes = 0;
    std::uint64_t neighbour_blocks = 0, neighbour_bytes = 0;
    std::uint64_t exchange_blocks = 0, exchange_bytes = 0;
};

/// One call that has ended, or one request from its start to its completion.
struct CallInfo {
    std::int64_t begin_real_ns = 0;
    double seconds = 0;
    std::string function;
    bool is_request = false;
    std::uint32_t path = 0, plan = 0;
    std::uint16_t communicator = 0;
    std::uint64_t bytes = 0, instance = 0;  ///< instance: a collective's number, from 1; else 0
    std::int32_t peer = -1, tag = 0;        ///< peer: -1 none, -2 any; a collective's root
    std::uint32_t thread = 0;
};

/// A frame that samples have met, with those outside of it.
struct ContextInfo {
    std::uint32_t parent = 0;  ///< the caller's index; 0: a thread's start
    ContextKind kind = ContextKind::native;
    std::string module;         ///< path of the executable, the library or the Python file
    std::string build_id;       ///< in hexadecimal; empty: it has none
    std::uint64_t offset = 0;   ///< native: the address, as the module's program headers number it
    bool is_innermost = false;  ///< the address is the interrupted one; else it is returned to, behind the call
    std::string function;       ///< qualified name of a Python function
    std::uint32_t line = 0;     ///< line of Python code; 0: unknown
    std::uint64_t samples = 0;  ///< samples whose innermost frame this is
    double cpu_s = 0;           ///< processor time of the threads since their previous samples
};

struct SampledThreadInfo {
    std::int64_t thread_id = 0;
    std::uint32_t calls_as = 0;  ///< number of the thread in calls (CallInfo::thread); 0: it has none now
    std::uint64_t samples = 0;
    double cpu_s = 0;
    bool ended = false;
};

/// What samples a process has taken (palmette run --sample).
struct SamplingInfo {
    SampledBy by = SampledBy::nothing;
    std::uint32_t signal = 0;
    double period_s = 0;           ///< CPU time between two samples of a thread, as requested last
    std::uint64_t samples = 0;     ///< samples taken
    std::uint64_t dropped = 0;     ///< samples that the ring has lost by now; contexts still count them
    std::uint64_t lost = 0;        ///< not taken
    std::uint64_t incomplete = 0;  ///< samples whose stack walk didn't reach the thread's start
    std::uint64_t cut = 0;         ///< samples of stacks deeper than what is kept
    std::uint64_t shortened = 0;   ///< samples whose inner frames found no place
    std::uint64_t unmerged = 0;  ///< samples whose Python frames weren't certain, so that the interpreter's own remain
    double seconds = 0;          ///< time for taking samples, without the signals' own
    double signal_s = 0;         ///< cost of a signal that does nothing, as measured at the start
    std::uint32_t python = 0;    ///< version of the interpreter, as PY_VERSION_HEX; 0: there was none
    bool python_is_refused = false;
    std::vector<SampledThreadInfo> threads;
};

/// A long stretch of a thread between two of its calls, off the processor by state: as the kernel accounts for it.
struct AccountedInfo {
    std::int64_t end_real_ns = 0;  ///< node time
    std::uint32_t thread = 0;      ///< number of the thread in calls
    double put_aside_s = 0;        ///< runnable, but waiting for a processor
    double io_s = 0;               ///< blocked, where pages or blocks were read or written meanwhile
    double asleep_s = 0;           ///< blocked otherwise
};

/// Samples one by one, as columns.
struct SampleColumns {
    std::vector<std::int64_t> real_ns;  ///< node time
    std::vector<std::uint32_t> context, thread;
    std::vector<double> cpu_s;
};

/// A region of the program within another one, over all threads of a process.
struct RegionInfo {
    std::uint32_t parent = 0;  ///< index; 0: outside of all
    RegionKind kind = RegionKind::named;
    std::string name;            ///< name of a named region; empty for a function
    std::string module;          ///< path of a function's executable or library
    std::string build_id;        ///< in hexadecimal; empty: it has none
    std::uint64_t offset = 0;    ///< a function's address, as the module's program headers number it
    std::uint64_t calls = 0;     ///< calls begun
    std::uint64_t inner = 0;     ///< calls begun in it, too deep or too many for a node of their own
    double seconds = 0;          ///< time in the region with all inside; of an open one as far as its process got
    double longest_s = 0;        ///< longest call that has ended
    std::uint64_t unclosed = 0;  ///< calls that ended with an outer region, or with their thread
    std::uint32_t open = 0;      ///< threads in which it hasn't ended
};

/// A network adapter of a node, and what its counters were, moment by moment. They are the system's: they count what
/// others send, too, and begin long before the job.
struct AdapterInfo {
    std::string name;
    bool is_infiniband = false;         ///< a port; else an interface of the network
    std::vector<std::int64_t> real_ns;  ///< node time of each reading
    std::vector<std::uint64_t> received_bytes, sent_bytes, received_packets, sent_packets;
    std::vector<std::uint64_t> waited;  ///< ticks in which a port had data to send but couldn't
};

/// What has been added to one sum between two moments.
struct SnapshotPartInfo {
    std::string function;      ///< MPI function; empty for a region
    std::uint32_t region = 0;  ///< index into regions; 0: none
    std::uint32_t calls = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;  ///< a region counts only calls that have ended
};
/// How a process's sums have grown since the snapshot before, or since the start.
struct SnapshotInfo {
    std::int64_t real_ns = 0;  ///< node time
    bool is_border = false;    ///< the program has said that something else begins here: MPI_Pcontrol(2)
    std::vector<SnapshotPartInfo> parts;
};

/// Where a node's clock stood against that of rank 0's node.
struct SyncInfo {
    std::int64_t real_ns = 0, offset_ns = 0, error_ns = 0;
};

/// Whether a process that hasn't finalized was still there when its node's file was read, or copied.
enum class LifeSign : std::uint8_t { unknown, lives, ended };

/// One process.
struct ProcessInfo {
    std::int32_t pid = 0, rank = -1, size = 0;
    State state = State::begun;
    std::string executable;
    bool records_calls = false;
    double tick_s = 0;                                 ///< length of a tick of the recorder's clock
    std::int64_t begin_real_ns = 0, last_real_ns = 0;  ///< node time
    std::int64_t node_offset_ns = 0;                   ///< the node's time less its CLOCK_MONOTONIC
    bool counter_distrusted = false;  ///< the kernel found during the run that the clock of the calls goes wrong
    LifeSign life = LifeSign::unknown;
    std::uint64_t pid_namespace = 0;  ///< in which `pid` counts; 0: not known
    std::uint64_t nested = 0;         ///< calls of the program's inside of others (callbacks), which aren't recorded
    std::uint64_t left = 0;           ///< calls that a jump left, recorded as if they had taken no time
    std::uint64_t calls = 0;          ///< calls that have ended
    std::uint64_t dropped = 0;        ///< calls whose records the ring has overwritten
    std::uint64_t unaggregated = 0;   ///< calls whose aggregate doesn't tell the call path or the function
    std::uint64_t merged = 0;         ///< calls whose aggregate doesn't tell the communicator
    std::uint64_t unnumbered = 0;     ///< communicators whose calls are of none
    std::uint64_t reused = 0;         ///< communicators in the place of a freed one, whose records are of none
    std::uint64_t unpathed = 0;
    std::uint64_t threadless = 0;  ///< calls that are recorded nowhere: more threads at a time than there are entries
    std::uint64_t unwound = 0;
    double unwinding_s = 0;
    std::uint64_t requests = 0;    ///< completed requests
    std::uint64_t unfollowed = 0;  ///< requests that weren't followed for want of an entry
    std::uint64_t unplanned = 0;   ///< served calls whose plan isn't known
    double call_cost_s = 0;        ///< what recording a call costs, as measured at the start
    double clock_cost_s = 0;       ///< share of call_cost_s for reading the clock
    std::vector<SyncInfo> synced;  ///< in MPI_Init and MPI_Finalize, as far as that was possible
    std::vector<CommunicatorInfo> communicators;
    std::vector<AggregateInfo> aggregates;
    std::vector<std::vector<FrameInfo>> paths;  ///< innermost frame first; [0] is empty
    std::vector<OpenCallInfo> open;
    std::vector<RequestInfo> outstanding;
    std::vector<PlanInfo> plans;  ///< [0] is unused
    SamplingInfo sampling;
    std::vector<RegionInfo> regions;            ///< [0] is outside of all; parents stand before what is inside
    std::vector<std::uint32_t> region_of_node;  ///< index into regions, by number in the section
    /// Region begins that weren't recorded: in signal handlers, or in too many threads.
    std::uint64_t missed_regions = 0;
    double region_cost_s = 0;             ///< cost of a begin and its end, as measured at the start; 0: no regions
    std::vector<SnapshotInfo> snapshots;  ///< by time
    std::vector<AdapterInfo> adapters;    ///< its node's adapters, if this process reads their counters
    std::vector<PeerInfo> peers;          ///< the peers that something was sent to
    std::uint64_t one_sided = 0;          ///< calls whose bytes no peer has
    std::uint64_t uncounted = 0;          ///< persistent requests whose messages no peer has
    std::string file;                     ///< path of the file that it was read from
    std::size_t section = 0;              ///< which of the file's processes it is
    /// The tree of its samples' stacks, [0] above all roots, read when it is asked for first: of many processes they
    /// would fill the memory. Throws as Recording::read.
    const std::vector<ContextInfo>& contexts();

  private:
    std::shared_ptr<const std::vector<ContextInfo>> contexts_;
};

/// One node's file. `with_tables`: aggregates and paths as well, which a look at open calls doesn't need.
struct Recording {
    std::string host, boot_id;
    std::vector<ProcessInfo> processes;

    /// Throws base::Error that names the file and what is wrong with it. Nothing in a file is trusted.
    static Recording read(const std::string& path, bool with_tables);
    /// The calls one by one of the `section`-th process of a file, as far as its ring holds them, by time. Throws as
    /// `read`.
    static std::vector<CallInfo> calls_of(const std::string& path, std::size_t section);
    /// Samples one by one, likewise. Threads are numbered from 1.
    static SampleColumns samples_of(const std::string& path, std::size_t section);
    /// The tree of its samples' stacks, likewise; [0] is above all roots.
    static std::vector<ContextInfo> contexts_of(const std::string& path, std::size_t section);
};

}  // namespace palmette::trace
