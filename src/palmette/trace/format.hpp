// The file that the processes of one node record into: docs/guide/record.md. Written through shared mappings,
// so that what it holds is readable at every instant, however a process ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace palmette::trace {

inline constexpr std::array<char, 8> file_magic{'P', 'A', 'L', 'M', 'R', 'E', 'C', '\0'};
inline constexpr std::uint32_t format_version = 5;
inline constexpr std::size_t page_bytes = 4096;
/// Alignment of sections in the file, in bytes: the largest page that a system maps files by, on arm64.
inline constexpr std::size_t section_alignment = 65536;

/// A counter that one thread writes, or several, while other processes read it.
template <class Value>
using Shared = std::atomic<Value>;

/// Header at the beginning of the file. Sections follow one after the other, one for each process.
struct FileHeader {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t header_bytes;  ///< where the first section begins
    Shared<std::uint64_t> end;   ///< where the next section begins; changed under flock
    std::array<char, 256> host;
    std::array<char, 64> boot_id;  ///< tells a node that was restarted from itself: clocks begin anew
};

enum class State : std::uint32_t {
    begun,       ///< before MPI_Init, or in it
    running,     ///< between MPI_Init and MPI_Finalize
    finalizing,  ///< in MPI_Finalize
    finalized,
    aborted  ///< called MPI_Abort
};

/// A pair of readings of the clock that times calls and of CLOCK_MONOTONIC: two of them convert one to the other.
struct ClockPair {
    Shared<std::uint64_t> ticks;
    Shared<std::int64_t> monotonic_ns;
};

/// What clock synchronisation has found: at `real_ns` of this node's time, rank 0's node showed `offset_ns` more, up to
/// `error_ns` more or less. real_ns is 0 where nothing was found.
struct SyncPoint {
    Shared<std::int64_t> real_ns, offset_ns, error_ns;
};

/// Where a table of a section lies, in bytes from the section's beginning.
struct Table {
    std::uint64_t offset;
    std::uint32_t capacity;       ///< entries
    Shared<std::uint32_t> count;  ///< entries in use
};

/// Tells whether a process lives, to whoever reads its section, whatever process ids mean there: a mutex that it holds,
/// in which the kernel sets a bit when the process ends without giving it back (PTHREAD_MUTEX_ROBUST).
struct Life {
    static constexpr std::uint32_t ended = 0x40000000;  ///< FUTEX_OWNER_DIED
    alignas(8) std::array<char, 64> mutex;
    std::uint32_t word_at;           ///< where in it that word lies, of 32 bits
    Shared<std::uint32_t> is_known;  ///< 0: nothing can be told by it
};

/// Mechanism that interrupts threads for samples.
enum class SampledBy : std::uint32_t {
    nothing,           ///< no samples
    thread_cpu_timer,  ///< POSIX timers on each thread's CPU clock, which tick only while it runs
    thread_event       ///< perf_event_open's clock of each thread, at rates above the kernel's ticks
};

/// What a section says of its samples (palmette run --sample): how they are taken, and what is missing in them.
struct SamplingHeader {
    Shared<SampledBy> by;
    Shared<std::uint32_t> signal;      ///< signal that interrupts threads
    Shared<std::uint64_t> period_ns;   ///< CPU time between two samples of a thread, as requested last
    Shared<std::uint64_t> samples;     ///< samples taken
    Shared<std::uint64_t> lost;        ///< samples not taken: no entry for the thread, or a busy moment
    Shared<std::uint64_t> incomplete;  ///< samples whose stack walk didn't reach the thread's start
    /// Samples of stacks deeper than what is kept: the inner and the outermost frames remain.
    Shared<std::uint64_t> cut;
    Shared<std::uint64_t> shortened;     ///< samples whose inner frames found no place: they count for the outer ones
    Shared<std::uint64_t> unmerged;      ///< samples whose Python frames weren't certain: the interpreter's own remain
    Shared<std::uint64_t> ticks;         ///< time for taking samples, without the signals' own
    Shared<std::uint64_t> signal_ticks;  ///< cost of a signal that does nothing, as measured at the start
    Shared<std::uint32_t> python;        ///< version of the interpreter, as PY_VERSION_HEX; 0: there was none
    Shared<std::uint32_t> python_is_refused;  ///< 1: this Python version's frame layout isn't known
    Table contexts;                           ///< ContextNode; 0: what is above all roots
    Table ring;                               ///< Sample: the n-th is at n % capacity
    Table threads;                            ///< SampledThread
    Table modules;                            ///< ModuleEntry; 0 is unused
    Table texts;                              ///< characters: names, each with a 0 behind it; 0 is an empty one
    Table accounts;                           ///< AccountedGap: the n-th is at n % capacity
    Shared<std::uint64_t> accounted_gaps;     ///< accounts written so far, overwritten ones included
};

/// What a section says of the program's regions: palmette_region_begin, and functions compiled to tell of themselves.
struct RegionsHeader {
    Table nodes;    ///< RegionNode; 0 is unused
    Table modules;  ///< ModuleEntry; 0 is unused
    Table texts;    ///< characters: names, each with a 0 behind it; 0 is an empty one
    Shared<std::uint64_t>
        missed;  ///< begun in the midst of another's begin, by a signal handler, or in a thread too many
    Shared<std::uint32_t> cost_milliticks;  ///< cost of a begin and its end, as measured at the start
    std::uint32_t unused;
};

/// Counters of a node's network adapters, in the section of the process that reads them: the first of its node.
struct AdaptersHeader {
    Table adapters;                     ///< AdapterEntry
    Table readings;                     ///< AdapterReading: one of each adapter, and so on for each moment
    Shared<std::uint64_t> interval_ns;  ///< between two moments; doubled, and half of them dropped, when all is full
};

/// How a process's sums have grown, each second and where the program says so (MPI_Pcontrol(2)).
struct SnapshotsHeader {
    Table moments;                      ///< Snapshot
    Table parts;                        ///< SnapshotPart
    Shared<std::uint64_t> interval_ns;  ///< time between two moments; doubled, and pairs merged, when the table is full
};

/// Header at the beginning of a section, which describes one process.
struct SectionHeader {
    std::array<char, 8> magic;
    std::uint64_t bytes;  ///< size of the section
    std::int32_t pid;
    Shared<std::int32_t> rank;  ///< in MPI_COMM_WORLD; -1 before it is known
    Shared<std::int32_t> size;
    Shared<State> state;
    std::uint32_t ticks_are_tsc;  ///< 1: the processor's time-stamp counter; 0: nanoseconds of CLOCK_MONOTONIC
    std::uint32_t records_calls;  ///< 1: a ring of records (--trace); 0: aggregates alone (--profile)
    ClockPair first, last;
    /// The time of day less CLOCK_MONOTONIC when the process started. A node's time is CLOCK_MONOTONIC plus this value
    /// of its first process, so that setting the clock changes nothing.
    Shared<std::int64_t> node_offset_ns;
    SyncPoint synced_first, synced_last;  ///< in MPI_Init and in MPI_Finalize
    Table functions;                      ///< FunctionName
    Table communicators;                  ///< CommunicatorEntry
    Table aggregates;                     ///< Aggregate: entry 0 takes what finds no place
    Table paths;                          ///< PathEntry
    Table frames;                         ///< Frame
    Table modules;                        ///< ModuleEntry
    Table threads;                        ///< ThreadEntry
    Table ring;                           ///< Record, shared out among threads
    Table request_handles;                ///< Shared<std::uint64_t>: handle + 1 of what is outstanding; 0: nothing
    Table requests;                       ///< RequestEntry, one for each of these handles
    /// A bit for each 8 of them, set once one has been used: readers pass over the others.
    std::array<Shared<std::uint64_t>, 32> request_sets;
    Table plans;                               ///< PlanEntry: entry 0 is unused
    Table sends;                               ///< PlanSend
    Shared<std::uint64_t> unpathed_calls;      ///< calls whose path found no place in the tables
    Shared<std::uint64_t> unaggregated_calls;  ///< calls whose sum found none: in one of their function, or entry 0
    Shared<std::uint64_t> merged_calls;        ///< calls in a sum of several communicators, for want of one of theirs
    Shared<std::uint64_t> unnumbered_communicators;  ///< for which there was no entry: their calls are of none
    Shared<std::uint64_t> threadless_calls;       ///< calls of threads for which there was no entry: recorded nowhere
    Shared<std::uint64_t> unfollowed_requests;    ///< requests for which there was no entry
    Shared<std::uint64_t> unplanned_calls;        ///< served calls whose plan found no entry
    Shared<std::uint64_t> unwound_calls;          ///< call paths that weren't in the cache
    Shared<std::uint64_t> unwinding_ticks;        ///< time for walking stacks, which is in no call's time
    Shared<std::uint32_t> call_cost_milliticks;   ///< what recording a call costs here, as measured at the start
    Shared<std::uint32_t> clock_cost_milliticks;  ///< share of call_cost_milliticks for both readings of the clock
    std::array<char, 512> executable;
    /// Calls of the program inside of other calls (callbacks), which aren't recorded.
    Shared<std::uint64_t> nested_calls;
    Shared<std::uint64_t> left_calls;          ///< calls that a jump left, recorded as if they had taken no time
    Shared<std::uint32_t> counter_distrusted;  ///< 1: the kernel found during the run that the counter goes wrong
    std::uint32_t unused;
    std::uint64_t pid_namespace;  ///< in which `pid` is this process: its inode; 0: not known
    Life life;
    SamplingHeader sampling;
    Table peers;                            ///< PeerEntry: entry 0 is whoever isn't in MPI_COMM_WORLD, 1 all others
    Shared<std::uint64_t> one_sided_calls;  ///< MPI_Put and the like, whose bytes no peer's entry has
    Shared<std::uint64_t>
        uncounted_requests;  ///< persistent ones for which there was no entry: what they send is in none
    RegionsHeader regions;
    AdaptersHeader adapters;
    SnapshotsHeader snapshots;
};

/// The entries of a table of a section that this process made, whose offsets are known to be right.
template <class Entry>
Entry* entries(SectionHeader& section, const Table& table) {
    return reinterpret_cast<Entry*>(reinterpret_cast<char*>(&section) + table.offset);
}

struct FunctionName {
    std::array<char, 48> name;
};

/// Names a communicator alike on all of its ranks: the parent's id and the order of creation, hashed. When all entries
/// are taken, new communicators get those of freed ones, the one that was freed first first.
struct CommunicatorEntry {
    std::uint64_t id;
    std::int32_t rank;
    std::int32_t size;
    Shared<std::uint64_t> collectives;  ///< collectives begun on it by this rank, so that instances can be matched
    Shared<std::uint64_t> since_ticks;  ///< start of this communicator if a freed one had the entry before it; else 0
};

inline constexpr std::size_t histogram_bins = 28;

/// The parts of an aggregate's key, above the function's 10 bits.
inline constexpr unsigned key_size_class = 10, key_communicator = 16, key_path = 32, key_request = 60;
inline constexpr std::uint32_t function_mask = 0x3FF, communicator_mask = 0xFFFF, path_mask = 0xFFFFFFF;

/// All calls of one (function, call path, communicator, size class), or all requests that they made: their time is that
/// from the start to the call that completed them. Bin i counts calls of 2^(i+4) to 2^(i+5) ticks.
struct Aggregate {
    Shared<std::uint64_t> key;  ///< 0: unused; else its parts, + 1
    Shared<std::uint64_t> calls;
    Shared<std::uint64_t> bytes;
    Shared<std::uint64_t> ticks;
    Shared<std::uint64_t> longest_ticks;
    std::array<Shared<std::uint32_t>, histogram_bins> histogram;
    std::array<char, 8> unused;
};
static_assert(sizeof(Aggregate) == 160);

/// Frames of a call path, innermost first.
struct PathEntry {
    std::uint32_t first_frame;
    std::uint32_t frame_count;
};

/// An address in a module: where it returns to, minus 1 where a line is looked up.
struct Frame {
    std::uint32_t module;
    std::uint32_t unused;
    std::uint64_t offset;  ///< from the module's lowest address, as its program headers number it
};

/// Begins the path of what is no module but a region of the program's: its name follows. Of a call's frames such are
/// the outermost ones.
inline constexpr const char* region_prefix = "region:";

/// Begins the path of what is no module but a function of Python's: its name and its file follow, a colon between them,
/// and its frames' offsets are lines.
inline constexpr const char* python_prefix = "python:";

struct ModuleEntry {
    std::uint32_t build_id_bytes;
    std::array<unsigned char, 20> build_id;
    std::array<char, 488> path;
};

/// `cut`: here frames are left out, since the stack was too deep. `lost`: nobody knows who called the frames inside.
/// `region`: no frame but a region that the program was in, which is outside of all frames.
enum class ContextKind : std::uint32_t { native, python, cut, lost, region };

/// A frame and those outside of it: a node of the tree of all stacks that samples have met.
struct ContextNode {
    std::uint32_t parent;  ///< the caller's; 0: a thread's start
    ContextKind kind;
    /// Native: in the table of modules, 0 for unknown, and the address as Frame has it; of the innermost frame that of
    /// the next instruction, of a caller that which is returned to. Python: where the file's name is among the texts,
    /// and the function's qualified name << 32 | line. A region: where its name is among the regions' texts.
    std::uint32_t module;
    std::uint32_t is_innermost;  ///< 1: the address is the interrupted one, and its line is looked up as it is
    std::uint64_t offset;
    Shared<std::uint64_t> samples;  ///< samples whose innermost frame this is
    Shared<std::uint64_t> cpu_ns;   ///< CPU time of the threads since their previous samples
};
static_assert(sizeof(ContextNode) == 40);

/// One sample. Who reads sees a whole one where `ticks` is the same before and after, and not 0.
struct Sample {
    Shared<std::uint64_t> ticks;
    Shared<std::uint32_t> context;
    Shared<std::uint32_t> thread;  ///< number of its SampledThread, from 1
    Shared<std::uint64_t> cpu_ns;  ///< CPU time of the thread since its previous sample
};
static_assert(sizeof(Sample) == 24);

/// `thread`: above all regions of one thread, or of threads that ran one after the other. `function`: compiled with
/// -finstrument-functions. `unbegun`: of a name whose ends found no beginning.
enum class RegionKind : std::uint32_t { thread, named, function, unbegun };

/// A region within another one: a node of the tree of all that a thread has met. Only that thread writes to it.
struct RegionNode {
    std::uint32_t parent;  ///< index of the region around it; 0: the thread's root
    RegionKind kind;
    std::uint32_t module;            ///< a function's module, as index in the table; 0: unknown
    Shared<std::uint32_t> unclosed;  ///< calls that ended with an outer region, or with their thread
    std::uint64_t offset;            ///< a function's address as in Frame; else offset of the name in the texts
    Shared<std::uint64_t> calls;     ///< calls begun; for `unbegun` ends
    Shared<std::uint64_t> ticks;     ///< time in ended calls with all inside; recursive calls count once
    Shared<std::uint64_t> longest_ticks;
    Shared<std::uint64_t> inner;       ///< calls begun in it that found no node of their own
    Shared<std::uint64_t> open_since;  ///< begin of the outermost open call; 0: none is open
};
static_assert(sizeof(RegionNode) == 64);

/// `infiniband`: a port, `mlx5_0:1`; else an interface of the network.
struct AdapterEntry {
    std::array<char, 60> name;
    std::uint32_t is_infiniband;
};
static_assert(sizeof(AdapterEntry) == 64);

/// What an adapter's counters were. Counters of the system: they begin long before the job, and count what others send.
struct AdapterReading {
    Shared<std::uint64_t> ticks;
    Shared<std::uint64_t> received_bytes, sent_bytes, received_packets, sent_packets;
    Shared<std::uint64_t> waited;  ///< ticks in which a port had data to send but couldn't (port_xmit_wait)
};
static_assert(sizeof(AdapterReading) == 48);

/// A moment, and what has been added to sums since the one before.
struct Snapshot {
    std::uint64_t ticks;
    std::uint32_t first_part, part_count;
    std::uint32_t is_border;  ///< 1: the program has said that something else begins here
    std::uint32_t unused;
};
static_assert(sizeof(Snapshot) == 24);

/// What has been added to one of the aggregates, or of the nodes of regions.
struct SnapshotPart {
    std::uint32_t sum;    ///< number of the aggregate or of the region's node, the latter with the uppermost bit set
    std::uint32_t calls;  ///< at most as many as fit
    std::uint64_t ticks, bytes;
};
static_assert(sizeof(SnapshotPart) == 24);
inline constexpr std::uint32_t part_of_region = 0x80000000;

/// A thread that samples are taken of.
struct SampledThread {
    Shared<std::int64_t> thread_id;
    Shared<std::uint64_t> samples;
    Shared<std::uint64_t> cpu_ns;
    Shared<std::uint32_t> ended;
    std::uint32_t unused;
};
static_assert(sizeof(SampledThread) == 32);

/// How the kernel accounts for a thread's time around a long stretch between two of its calls: what of it is neither on
/// a processor nor on the way to one, it was blocked. Read as Sample is.
struct AccountedGap {
    Shared<std::uint64_t> ticks;        ///< end of the stretch, where the next call begins
    Shared<std::uint64_t> begin_ticks;  ///< end of the previous call
    Shared<std::uint64_t>
        since_ticks;  ///< what follows is from then on: mostly the same, else up to milliseconds before
    Shared<std::uint64_t> ran_ns;
    Shared<std::uint64_t> waited_ns;  ///< for a processor
    Shared<std::uint32_t> thread;     ///< number of its ThreadEntry, from 1
    Shared<std::uint32_t> io;         ///< page faults that needed I/O, and blocks read and written
};
static_assert(sizeof(AccountedGap) == 48);

/// A call that has begun and not ended; ticks is 0 when there is none.
struct OpenCall {
    Shared<std::uint64_t> ticks;
    Shared<std::uint32_t> path;
    Shared<std::uint16_t> function;
    Shared<std::uint16_t> communicator;
    Shared<std::uint64_t> bytes;
    Shared<std::int32_t> peer;  ///< rank in the communicator; -1: none, -2: any
    Shared<std::int32_t> tag;
    Shared<std::uint64_t> instance;  ///< a collective's number on its communicator, from 0
    /// Requests that the call waits for: those whose `waited_by` is this thread's number, + 1.
    Shared<std::uint32_t> requests;
    Shared<std::int32_t> receives_from;  ///< MPI_Sendrecv's source, `peer` being its destination; -1: none, -2: any
};

enum class Persistent : std::uint32_t {
    no,
    sends,      ///< sends or takes part in a collective: bytes are sent when it is started
    receives,   ///< receives: its bytes are nothing that this rank sends
    unrecorded  ///< made while recording was switched off: what its starts send is counted, and nothing else
};

/// A request that was started and isn't complete, or a persistent one that isn't freed.
struct RequestEntry {
    Shared<std::uint64_t> ticks;  ///< start of the request; 0: persistent and not started
    std::uint64_t bytes;
    std::uint64_t instance;  ///< a collective's number on its communicator
    std::uint32_t path;
    std::uint16_t function, communicator;
    std::int32_t peer, tag;
    Persistent persistent;
    std::uint32_t plan;
    Shared<std::uint32_t> waited_by;   ///< number of the thread that waits for it, + 1; 0: none does
    Shared<std::uint32_t> cancelled;   ///< 1: the program has asked for that
    std::uint32_t maker, made_record;  ///< number of the thread that made it, and its record's number, lower 32 bits
};
static_assert(sizeof(RequestEntry) == 64);

/// A plan by which this process's calls were served. Its numbers are those of this rank's part.
struct PlanEntry {
    std::array<char, 24> function;
    std::array<char, 64> algorithm;
    std::uint16_t communicator;
    std::uint16_t unused;
    std::int32_t root;            ///< in the communicator; -1: none
    std::int64_t block_bytes;     ///< -1: sizes differ between calls
    std::int64_t bound_ns;        ///< the physical limit of a call; -1: not known to this rank
    Shared<std::uint64_t> calls;  ///< calls that have ended
    Shared<std::uint64_t> ticks;
    std::uint32_t first_send, send_count;  ///< what one call of this rank sends, all calls where sizes differ
};

/// What is sent to one rank.
struct PlanSend {
    std::int32_t peer;  ///< in the communicator
    std::uint32_t unused;
    std::uint64_t messages, bytes;
};

/// Ways in which a program says itself how many bytes go to whom.
enum class SentBy : std::uint32_t {
    messages,    ///< point to point
    neighbours,  ///< collectives over neighbours: a block to each
    exchanges    ///< all-to-alls: a block to each other rank
};
inline constexpr std::size_t ways_of_sending = 3;

/// What this process has sent to one other, exactly, by SentBy: whatever the communicator, also while recording is
/// switched off.
struct PeerEntry {
    struct Sum {
        Shared<std::uint64_t> messages, bytes;
    };
    std::int32_t rank;  ///< in this process's MPI_COMM_WORLD; -1: of entry 0, -2: of entry 1
    std::uint32_t unused;
    std::array<Sum, ways_of_sending> sent;
    std::array<char, 8> padding;
};
static_assert(sizeof(PeerEntry) == 64);

struct ThreadEntry {
    std::int64_t thread_id;
    std::uint32_t ring_first, ring_capacity;  ///< the thread's part of the ring
    Shared<std::uint64_t> recorded;           ///< records written, overwritten ones included
    Shared<std::uint64_t> requests;           ///< requests among `recorded`
    OpenCall open;
    std::array<char, 48> unused;
};
static_assert(sizeof(ThreadEntry) == 128);

/// One call that has ended, or one request from its start to the call that completed it. `duration`: 27 bits shifted
/// left by the upper 5 bits.
struct Record {
    std::uint64_t begin_ticks;
    std::uint32_t duration;
    std::uint32_t function : 10, is_request : 1, unused : 5, communicator : 16;
    std::uint16_t path, plan;      ///< plan 0: not served
    std::int32_t tag;              ///< tag; for a collective the lower 31 bits of its instance
    std::uint64_t bytes_and_peer;  ///< bytes << 24 | rank in the communicator or root, no_peer or any_peer
};
static_assert(sizeof(Record) == 32);
inline constexpr std::uint32_t no_peer = 0xFFFFFF, any_peer = 0xFFFFFE;

inline std::uint32_t packed_duration(std::uint64_t ticks) {
    std::uint32_t shift = 0;
    while ((ticks >> shift) >= (std::uint64_t{1} << 27)) ++shift;
    return shift << 27 | static_cast<std::uint32_t>(ticks >> shift);
}
inline std::uint64_t unpacked_duration(std::uint32_t packed) {
    return static_cast<std::uint64_t>(packed & 0x7FFFFFFU) << (packed >> 27);
}

}  // namespace palmette::trace
