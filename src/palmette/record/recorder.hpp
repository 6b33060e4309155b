// Records the program's MPI calls into a mapped file (palmette/trace/format.hpp): what is going on before a call, its
// time after it. Local: nothing is communicated, and nothing is lost when the process ends anyhow.
#pragma once

#include <mpi.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "palmette/base/outer_calls.hpp"
#include "palmette/record/call_paths.hpp"
#include "palmette/record/clock.hpp"
#include "palmette/record/kernel_account.hpp"
#include "palmette/record/peers.hpp"
#include "palmette/record/requests.hpp"
#include "palmette/record/snapshots.hpp"
#include "palmette/record/sync.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

class Recorder;
/// How many datatypes the program has freed: the next one may have the handle of one of them.
extern constinit std::atomic<std::uint64_t> freed_types;
/// The process's recorder from MPI_Init to the end of MPI_Finalize; null in forked children and without recording.
extern constinit std::atomic<Recorder*> recorder;
/// The process's recorder, but null while the program has switched recording off by MPI_Pcontrol(0).
extern constinit std::atomic<Recorder*> active;

/// What a thread needs at each call. Made at its first one. Calls on other stacks of the thread (coroutines'), begun
/// while one of its calls hasn't returned, are those of threads of their own here.
struct ThreadState {
    Recorder* owner = nullptr;
    base::OuterCalls calls;                   ///< calls that haven't returned, in the thread's first state
    std::unique_ptr<ThreadState> next_stack;  ///< its other states, one after the other, by slot of `calls`
    ThreadState* serving = nullptr;           ///< in the first state: the state that has begun a call last
    std::uint64_t unloads = 0;                ///< when its walk was last known to be right
    const void* nested_from = nullptr;        ///< where the last call inside of another one came from,
    bool nested_is_programs = false;          ///< whether `nested_from` is the program
    trace::ThreadEntry* entry = nullptr;      ///< null: no place for another thread, whose calls aren't recorded
    trace::Record* ring = nullptr;
    std::uint64_t mask = 0;  ///< records in the ring, less 1
    std::uint64_t recorded = 0;
    std::uint64_t updated_at = 0, updated_ticks = 0;  ///< when the section's last clock was
    std::uint32_t number = 0;                         ///< number of the thread's entry, + 1
    std::uint32_t plan = 0;                           ///< plan of the call that palmette serves; 0: none
    std::unique_ptr<trace::RequestEntry*[]> waited;   ///< requests that the call may complete; null: one isn't followed
    std::size_t waited_count = 0, waited_capacity = 0;
    std::vector<MPI_Status> statuses;
    MPI_Comm last_comm = MPI_COMM_NULL;
    std::uint16_t last_communicator = 0;
    std::uint64_t last_generation = 0;
    MPI_Datatype last_type = MPI_DATATYPE_NULL;
    MPI_Count last_size = 0;
    std::uint64_t freed_types = 0;
    std::uint64_t left_ticks = 0;  ///< end of the thread's last call
    /// Ticks outside of calls, and since the account was read, from which on the kernel is asked.
    std::uint64_t long_gap = UINT64_MAX, old_account = UINT64_MAX;
    KernelAccount account;
    bool counts_sent = false;  ///< in the first state: messages of the last call that it began count
    /// Whom the thread has sent to lately, by the communicator's index << 32 | rank in it.
    struct SentTo {
        std::uint64_t key = 0;
        trace::PeerEntry* entry = nullptr;
    };
    std::array<SentTo, 64> sent_to{};
    std::uint64_t sent_generation = 0;
    static std::size_t slot_of(std::uint64_t key) { return (key ^ key >> 32U) % 64; }

    /// Stack walk of the thread whose first state this is.
    base::StackWalk& walk() {
#if defined(PALMETTE_ABI_SMPI)
        // All ranks are on one thread, each with its own copy of this library: too many for keys of threads.
        if (!own_walk) own_walk = std::make_unique<base::StackWalk>();
        return *own_walk;
#else
        return base::StackWalk::own();
#endif
    }
    std::unique_ptr<base::StackWalk> own_walk;

    void wait_for(std::size_t count) {
        if (count > waited_capacity) {
            waited_capacity = 2 * count;
            waited = std::make_unique<trace::RequestEntry*[]>(waited_capacity);
        }
        waited_count = count;
    }
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
    /// Records this process's rank and size, after MPI_Init.
    void know_world();
    /// A session has begun (1) or ended (-1): of a program that never calls MPI_Init, which has no world and no rank.
    /// The last one's end isn't the program's: another may follow.
    void session(int change);
    /// Whether nothing can be communicated behind the end of the session that is about to end.
    bool is_last_session() const { return !has_world_ && sessions_.load() == 1; }
    /// Collective over `comm`, of all ranks: finds the nodes' leaders and compares their clocks.
    void synchronize(MPI_Comm comm);
    /// Compares the clocks once more at the end, where all leaders come in time.
    void synchronize_again();
    void set_state(trace::State state) { section_->state.store(state, std::memory_order_release); }
    /// Before the MPI's own MPI_Finalize: rank 0 says what to do with the recording, unless it is simulated.
    void tell_next() const;
    /// After it nothing is recorded any more.
    void stop();

    ThreadState* join_thread();
    /// The state for a call on another stack than the thread's first one.
    ThreadState* state_at(ThreadState& first, std::uint32_t slot);
    /// Seconds that recording a call costs here, as measured at the start.
    double call_cost_s() const;
    /// A call inside of another one. Whether it is the program's (a callback's), not the MPI's own; `counted`: it is to
    /// be told of, then.
    bool meet_nested(ThreadState& thread, const void* return_address, bool counted);
    void count_left() { section_->left_calls.fetch_add(1, std::memory_order_relaxed); }
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
    /// `tag_of_group`: of MPI_Comm_create_group, which only the new communicator's ranks call.
    void made_communicator(MPI_Comm parent, MPI_Comm made, std::optional<int> tag_of_group);
    /// Registers a duplicate that can't be used yet (MPI_Comm_idup).
    void will_make_communicator(MPI_Comm parent, MPI_Comm made);
    void freed_communicator(MPI_Comm comm);
    std::uint64_t next_instance(std::uint16_t communicator);
    /// The last one hasn't begun after all.
    void withdraw_instance(std::uint16_t communicator);
    /// Under which communicator calls are summed: sums of one whose entry was another's before are of none.
    std::uint32_t summed_as(std::uint32_t communicator) {
        return reuses_.load(std::memory_order_relaxed) ? summed_if_new(communicator) : communicator;
    }
    /// Whether it is a communicator, though none that is told apart from others.
    bool knows(MPI_Comm comm);

    /// Whether messages are counted: from MPI_Init on, also while recording is switched off.
    bool counts_sent() const { return has_world_; }
    PeerTable& peers() { return peers_; }
    /// Whoever has rank `dest` in a communicator; null: nobody has. Local.
    trace::PeerEntry* peer(MPI_Comm comm, int dest, ThreadState& thread) {
        const std::uint64_t key = std::uint64_t{communicator(comm, thread)} << 32U | static_cast<std::uint32_t>(dest);
        const ThreadState::SentTo& known = thread.sent_to[ThreadState::slot_of(key)];
        if (known.key == key && thread.sent_generation == generation_.load(std::memory_order_acquire) &&
            key >> 32U != 0)
            return known.entry;
        return find_peer(comm, dest, key, thread);
    }
    void add_sent(trace::PeerEntry& to, trace::SentBy by, std::uint64_t bytes) {
        trace::PeerEntry::Sum& sent = to.sent[static_cast<std::size_t>(by)];
        add(sent.messages, std::uint64_t{1});
        add(sent.bytes, bytes);
    }
    void count_one_sided() { add(section_->one_sided_calls, std::uint64_t{1}); }
    void count_uncounted() { add(section_->uncounted_requests, std::uint64_t{1}); }

    /// A message that a matching probe has found, and the probe.
    struct MatchedMessage {
        std::int32_t peer = -1, tag = 0;
        std::uint16_t communicator = 0;
        std::uint64_t ticks = 0;
    };
    void keep_matched(MPI_Message message, const MatchedMessage& what);
    std::optional<MatchedMessage> take_matched(MPI_Message message);
    /// Whom a persistent receive's message is from, by MPI_Request_get_status: MPICH's statuses don't tell it later.
    struct Source {
        std::int32_t peer = -1, tag = 0;
    };
    void keep_source(const trace::RequestEntry& request, const Source& source);
    std::optional<Source> take_source(const trace::RequestEntry& request);
    /// A cancelled request's message wasn't sent: the record of its call names nobody any more.
    void withdraw_message(const trace::RequestEntry& request);

    /// Forgets what is outstanding: its completions won't be seen.
    void forget_requests() { section_->unfollowed_requests.fetch_add(requests_.clear(), std::memory_order_relaxed); }
    RequestTable& requests() { return requests_; }
    void count_unfollowed() { section_->unfollowed_requests.fetch_add(1, std::memory_order_relaxed); }

    /// Adds a plan of palmette's; its number, 0 where there is no place for it.
    std::uint32_t add_plan(const trace::ServedPlan& plan);
    void add_sends(std::uint32_t plan, const trace::PlanSend* sends, std::size_t count);
    void count_unplanned() { section_->unplanned_calls.fetch_add(1, std::memory_order_relaxed); }
    /// What a call of one process is added to. `key`: an aggregate's, less 1.
    void add_call(std::uint64_t key, std::uint64_t bytes, std::uint64_t ticks, std::uint32_t plan) {
        trace::Aggregate& sum = aggregate(key + 1);
        add(sum.calls, std::uint64_t{1});
        add(sum.bytes, bytes);
        add(sum.ticks, ticks);
        const int bin = ticks < 16 ? 0 : 59 - __builtin_clzll(ticks);
        add(sum.histogram[static_cast<std::size_t>(bin < 27 ? bin : 27)], std::uint32_t{1});
        if (ticks > sum.longest_ticks.load(std::memory_order_relaxed))
            sum.longest_ticks.store(ticks, std::memory_order_relaxed);
        if (plan == 0) return;
        add(plans_[plan].calls, std::uint64_t{1});
        add(plans_[plan].ticks, ticks);
    }

    trace::Aggregate& aggregate(std::uint64_t key) {
        if (trace::Aggregate* const found = find_aggregate(key)) [[likely]]
            return *found;
        return coarse_aggregate(key);
    }
    trace::Aggregate* find_aggregate(std::uint64_t key) const {
        std::uint64_t at = first_slot(key);
        for (std::uint32_t tries = 0; tries < 32; ++tries, ++at) {
            const AggregateSlot& slot = aggregate_index_[at % aggregate_slots];
            if (slot.key.load(std::memory_order_acquire) == key) return slot.entry;
            if (slot.key.load(std::memory_order_relaxed) == 0) break;
        }
        return nullptr;
    }
    template <class Value>
    void add(trace::Shared<Value>& counter, Value value) {
        // A locked instruction costs 5 ns, which only threads that call at the same time need.
        if (concurrent_)
            counter.fetch_add(value, std::memory_order_relaxed);
        else
            counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
    }
    void update_clock(Moment moment = Moment::any);
    /// The thread has been outside of its calls for long, until now. Some 2 us.
    void account_for_gap(ThreadState& thread);
    /// Takes a new beginning for the next such gap, so that little lies before it.
    static void renew_account(ThreadState& thread);
    PathTable& paths() { return paths_; }
    bool with_paths() const { return with_paths_; }

  private:
    bool open(const std::string& folder, bool records_calls);
    /// Records some calls that nobody made, times them and forgets them: 0.1 ms.
    void measure_cost();
    void pretend_clock(int rank);
    static void keep(trace::SyncPoint& point, const std::optional<ClockOffset>& found);
    std::uint16_t find_communicator(MPI_Comm comm, ThreadState& thread);
    trace::PeerEntry* find_peer(MPI_Comm comm, int dest, std::uint64_t key, ThreadState& thread);
    std::uint16_t add_communicator(MPI_Comm comm, std::uint64_t id);
    std::uint64_t leader(MPI_Comm comm) const;
    void take_entry(ThreadState& thread);
    void open_account(ThreadState& thread) const;
    void give_back_entry(ThreadState& thread);
    static std::uint64_t own_id(int rank);  ///< id of MPI_COMM_SELF
    template <class Entry>
    Entry* table(const trace::Table& where) {
        return trace::entries<Entry>(*section_, where);
    }

    trace::SectionHeader* section_ = nullptr;
    std::string folder_;
    /// Open addressing with linear probing; an entry is written before its key, and none is removed.
    struct AggregateSlot {
        std::atomic<std::uint64_t> key{0};
        trace::Aggregate* entry = nullptr;
    };
    static constexpr std::uint32_t aggregate_slots = 8192;
    static std::uint64_t first_slot(std::uint64_t key) { return key * 0x9E3779B97F4A7C15ULL >> 40U; }
    /// A new one; where there is no place for it, one of less detail.
    trace::Aggregate& coarse_aggregate(std::uint64_t key);
    trace::Aggregate* make_aggregate(std::uint64_t key, std::uint32_t limit);
    std::uint32_t summed_if_new(std::uint32_t communicator);
    std::optional<std::uint16_t> new_communicator();
    void is_known_as(MPI_Comm comm, std::uint16_t index, std::uint64_t id);
    std::vector<AggregateSlot> aggregate_index_ = std::vector<AggregateSlot>(aggregate_slots);
    trace::Aggregate* aggregates_ = nullptr;
    bool concurrent_ = false;
    bool with_paths_ = true;
    bool records_calls_ = false;
    bool has_world_ = false;
    bool leads_node_ = false;  ///< the first of its node that has made a section
    MPI_Comm leaders_ = MPI_COMM_NULL;
    std::atomic<int> sessions_{0};
    std::atomic_flag updating_clock_;
    Snapshots snapshots_;
    PathTable paths_;
    RequestTable requests_;
    PeerTable peers_;
    trace::PlanEntry* plans_ = nullptr;
    std::mutex mutex_;
    pthread_key_t key_ = 0;  ///< key whose destructor tells that a thread ends
    std::vector<std::uint32_t> free_threads_;
    std::atomic<std::uint64_t> generation_{1};
    struct KnownCommunicator {
        std::uint16_t index = 0;  ///< 0: there was no entry for it
        std::uint64_t id = 0;
        std::uint64_t children = 0;
    };
    std::unordered_map<std::uint64_t, KnownCommunicator> communicators_;
    std::uint64_t communicators_made_ = 0;
    std::deque<std::uint16_t> freed_communicators_;  ///< entries, those that were freed first first
    std::atomic<bool> reuses_{false};                ///< entries of freed communicators
    std::unordered_map<std::uint64_t, MatchedMessage> matched_;
    std::unordered_map<const trace::RequestEntry*, Source> sources_;
};

}  // namespace palmette::record
