// Records the program's MPI calls into a mapped file (palmette/trace/format.hpp): what is going on before a call, its
// time after it. Local: nothing is communicated, and nothing is lost when the process ends anyhow.
#pragma once

#include <mpi.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "palmette/record/call_paths.hpp"
#include "palmette/record/clock.hpp"
#include "palmette/runtime/data/plausible_handle.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

class Recorder;
/// This process's, from MPI_Init to the end of MPI_Finalize; null where nothing is recorded, and in forked children.
extern constinit std::atomic<Recorder*> recorder;
/// The same, but null while the program has switched recording off by MPI_Pcontrol(0).
extern constinit std::atomic<Recorder*> active;

/// What a thread needs at each call. Made at its first one.
struct ThreadState {
    int depth = 0;  ///< calls inside of the outermost one: of Fortran's layer, of I/O libraries, of the MPI
    Recorder* owner = nullptr;
    trace::ThreadEntry* entry = nullptr;  ///< null: no place for another thread, whose calls aren't recorded
    trace::Record* ring = nullptr;
    std::uint64_t mask = 0;  ///< records in the ring, less 1
    std::uint64_t recorded = 0;
    MPI_Comm last_comm = MPI_COMM_NULL;
    std::uint16_t last_communicator = 0;
    std::uint64_t last_generation = 0;
    CallPathCache paths;
};
#if defined(PALMETTE_ABI_SMPI)
extern constinit thread_local ThreadState* thread_state;
#else
extern constinit thread_local ThreadState* thread_state __attribute__((tls_model("initial-exec")));
#endif

class Recorder {
  public:
    /// Local. Makes this process's section in the file of its node, in the folder that PALMETTE_TRACE or
    /// PALMETTE_PROFILE names; nothing where neither is set. At MPI_Init, before the MPI's own. Where the file can't be
    /// written, a line says so and nothing is recorded.
    static void start();
    /// After MPI_Init: who this process is.
    void know_world();
    /// A session has begun (1) or ended (-1): of a program that never calls MPI_Init, which has no world and no rank.
    /// The last one's end isn't the program's: another may follow.
    void session(int change);
    void set_state(trace::State state) { section_->state.store(state, std::memory_order_release); }
    /// After it nothing is recorded any more.
    void stop();

    ThreadState* join_thread();
    /// A thread ends: the next one takes its entry and its part of the ring.
    void leave_thread(ThreadState& thread);
    void count_threadless() { section_->threadless_calls.fetch_add(1, std::memory_order_relaxed); }

    /// Index of a communicator; 0: of none. Local; makes an entry for one that it meets for the first time.
    std::uint16_t communicator(MPI_Comm comm, ThreadState& thread) {
        if (comm == thread.last_comm && thread.last_generation == generation_.load(std::memory_order_acquire))
            return thread.last_communicator;
        return find_communicator(comm, thread);
    }
    /// `made` was created from `parent` by a call that has returned. Local.
    void made_communicator(MPI_Comm parent, MPI_Comm made);
    void freed_communicator(MPI_Comm comm);
    std::uint64_t next_instance(std::uint16_t communicator);

    trace::Aggregate& aggregate(std::uint64_t key);
    template <class Value>
    void add(trace::Shared<Value>& counter, Value value) {
        // A locked instruction costs 5 ns, which only threads that call at the same time need.
        if (concurrent_)
            counter.fetch_add(value, std::memory_order_relaxed);
        else
            counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
    }
    void update_clock();
    PathTable& paths() { return paths_; }

  private:
    bool open(const std::string& folder, bool records_calls);
    std::uint16_t find_communicator(MPI_Comm comm, ThreadState& thread);
    std::uint16_t add_communicator(MPI_Comm comm, std::uint64_t id);
    std::uint64_t leader(MPI_Comm comm) const;
    template <class Entry>
    Entry* table(const trace::Table& where) {
        return trace::entries<Entry>(*section_, where);
    }

    trace::SectionHeader* section_ = nullptr;
    trace::Aggregate* aggregates_ = nullptr;
    std::uint32_t aggregate_mask_ = 0;
    bool concurrent_ = false;
    bool records_calls_ = false;
    bool has_world_ = false;
    std::atomic<int> sessions_{0};
    PathTable paths_;
    std::mutex mutex_;
    pthread_key_t key_ = 0;  ///< whose destructor tells that a thread ends
    std::vector<std::uint32_t> free_threads_;
    std::atomic<std::uint64_t> generation_{1};
    struct Known {
        std::uint16_t index = 0;
        std::uint64_t children = 0;
    };
    std::unordered_map<std::uintptr_t, Known> communicators_;
};

/// One call of the program's, from before what comes next is called until after it has returned.
class Call {
  public:
    Call(std::uint16_t function, const void* return_address, const void* frame) {
        Recorder* const current = active.load(std::memory_order_acquire);
        if (!current) return;
        ThreadState* thread = thread_state;
        if (!thread || thread->owner != current) [[unlikely]]
            thread = current->join_thread();
        thread_ = thread;
        if (thread->depth++ > 0) return;
        if (!thread->entry) [[unlikely]] {
            current->count_threadless();
            return;
        }
        recorder_ = current;
        function_ = function;
        path_ = thread->paths.find(current->paths(), return_address, frame);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
        if (recorder_) end();
        if (thread_) --thread_->depth;
    }

    /// Whether it is the outermost call, and recorded.
    explicit operator bool() const { return recorder_ != nullptr; }

    void on(MPI_Comm comm) { communicator_ = recorder_->communicator(comm, *thread_); }
    void collective() { instance_ = recorder_->next_instance(communicator_); }
    /// Payload: what this rank sends, or receives where it only does that.
    void bytes(std::int64_t count, MPI_Datatype type) {
        MPI_Count size = 0;
        if (count > 0 && runtime::is_plausible(type)) PMPI_Type_size_x(type, &size);
        if (count > 0 && size > 0) bytes_ += static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
    }
    /// The same, one count for each rank. O(ranks), as the call itself.
    template <class Count>
    void bytes_of_list(const Count* counts, MPI_Datatype type, MPI_Comm comm) {
        int inter = 0;
        int ranks = 0;
        if (counts == nullptr || communicator_ == 0 || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return;
        if (inter)
            PMPI_Comm_remote_size(comm, &ranks);
        else
            PMPI_Comm_size(comm, &ranks);
        std::int64_t sum = 0;
        for (int r = 0; r < ranks; ++r) sum += counts[r];
        bytes(sum, type);
    }
    void with(int peer, int tag) {
        peer_ = peer;
        tag_ = tag;
    }

    void begin() {
        trace::OpenCall& open = thread_->entry->open;
        open.path.store(path_, std::memory_order_relaxed);
        open.function.store(function_, std::memory_order_relaxed);
        open.communicator.store(communicator_, std::memory_order_relaxed);
        open.bytes.store(bytes_, std::memory_order_relaxed);
        open.peer.store(peer_, std::memory_order_relaxed);
        open.tag.store(tag_, std::memory_order_relaxed);
        open.instance.store(instance_, std::memory_order_relaxed);
        begin_ = now();
        open.ticks.store(begin_, std::memory_order_release);
    }

  private:
    void end();

    Recorder* recorder_ = nullptr;
    ThreadState* thread_ = nullptr;
    std::uint64_t begin_ = 0, bytes_ = 0, instance_ = 0;
    std::uint32_t path_ = 0;
    std::int32_t peer_ = -1, tag_ = 0;
    std::uint16_t function_ = 0, communicator_ = 0;
};

inline void Call::end() {
    const std::uint64_t ticks = now() - begin_;
    const int size_class = bytes_ == 0 ? 0 : 64 - __builtin_clzll(bytes_);
    const std::uint64_t key =
        (static_cast<std::uint64_t>(path_) << 32 | static_cast<std::uint64_t>(communicator_) << 16 |
         static_cast<std::uint64_t>(size_class > 40 ? 40 : size_class) << 10 | function_) +
        1;
    trace::Aggregate& sum = recorder_->aggregate(key);
    recorder_->add(sum.calls, std::uint64_t{1});
    recorder_->add(sum.bytes, bytes_);
    recorder_->add(sum.ticks, ticks);
    const int bin = ticks < 16 ? 0 : 59 - __builtin_clzll(ticks);
    recorder_->add(sum.histogram[static_cast<std::size_t>(bin < 27 ? bin : 27)], std::uint32_t{1});
    if (ticks > sum.longest_ticks.load(std::memory_order_relaxed))
        sum.longest_ticks.store(ticks, std::memory_order_relaxed);
    trace::ThreadEntry& entry = *thread_->entry;
    if (thread_->ring) {
        const bool peer = peer_ >= 0;
        trace::Record& record = thread_->ring[thread_->recorded & thread_->mask];
        record.begin_ticks = begin_;
        record.duration = trace::packed_duration(ticks);
        record.function = function_;
        record.communicator = communicator_;
        record.path = path_;
        record.tag = instance_ != 0 ? static_cast<std::int32_t>(instance_ & 0x7FFFFFFF) : tag_;
        const std::uint32_t who = peer          ? static_cast<std::uint32_t>(peer_)
                                  : peer_ == -2 ? trace::any_peer
                                                : trace::no_peer;
        record.bytes_and_peer = bytes_ << 24U | who;
    }
    // The record first: who reads takes those that are counted.
    entry.recorded.store(++thread_->recorded, std::memory_order_release);
    entry.open.ticks.store(0, std::memory_order_release);
    if ((thread_->recorded & 0xFFF) == 0) recorder_->update_clock();
}

}  // namespace palmette::record
