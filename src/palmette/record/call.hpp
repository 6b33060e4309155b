// One call of the program's, as a generated wrapper records it.
#pragma once

#include "palmette/record/blocks.hpp"
#include "palmette/record/recorder.hpp"
#include "palmette/record/regions.hpp"
#include "palmette/record/sampler.hpp"
#include "palmette/runtime/data/plausible_handle.hpp"

namespace palmette::record {

/// One call of the program's, from before what comes next is called until after it has returned.
class Call {
  public:
    /// `sends`: of a function by which the program sends, or starts or frees requests that do so. What it has sent is
    /// counted even where the call isn't recorded.
    Call(std::uint16_t function, const void* return_address, const void* frame, bool sends = false) {
        Recorder* const current = active.load(std::memory_order_acquire);
        if (!current) {
            if (sends) count_only(return_address, frame);
            return;
        }
        ThreadState* thread = thread_state;
        if (!thread || thread->owner != current) [[unlikely]]
            thread = current->join_thread();
        first_ = thread;
        place_ = thread->calls.begin(
            return_address, frame, [&](std::uint32_t slot) { end_left(*current, *current->state_at(*thread, slot)); });
        if (!place_) [[unlikely]] {
            if (current->meet_nested(*thread, return_address, true) && sends) count_nested(*current, *thread);
            return;
        }
        thread->counts_sent = sends;
        if (sends) counter_ = current;
        if (place_.slot != 0) [[unlikely]]
            thread = current->state_at(*thread, place_.slot);
        first_->serving = thread_ = thread;
        if (!thread->entry) [[unlikely]] {
            current->count_threadless();
            return;
        }
        recorder_ = current;
        function_ = function;
        thread->plan = 0;
        if (!current->with_paths()) return;
        const PathTable::Lookup found = current->paths().find(first_->walk(), first_->unloads, return_address, frame);
        path_ = found.number;
        if (calls_have_python.load(std::memory_order_relaxed)) [[unlikely]]
            path_ = path_with_python(current->paths(), path_, return_address, frame);
        if (const std::uint32_t region = named_region()) [[unlikely]]
            path_ = current->paths().in_region(path_, region);
        first_->calls.ends_at(place_, found.bottom);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
        if (!place_ || !first_->calls.holds(place_)) return;
        if (recorder_) end();
        first_->calls.end(place_);
    }

    /// Whether it is the outermost call on its stack, and recorded; not any more once it was taken to be left.
    explicit operator bool() const { return recorder_ != nullptr && first_->calls.holds(place_); }

    /// The call that `thread` has begun has ended without returning: nobody knows when.
    static void end_left(Recorder& current, ThreadState& thread);

    void on(MPI_Comm comm) { communicator_ = recorder_->communicator(comm, *thread_); }
    void collective() { instance_ = recorder_->next_instance(communicator_); }
    /// Payload: what this rank sends, or receives where it only does that.
    void bytes(std::int64_t count, MPI_Datatype type) {
        if (count <= 0) return;
        if (const MPI_Count size = size_of(type); size > 0)
            bytes_ += static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
    }
    /// Adds the bytes of one message: none to or from MPI_PROC_NULL.
    void bytes_of_message(std::int64_t count, MPI_Datatype type) {
        if (peer_ != nobody) bytes(count, type);
    }
    /// Adds the bytes of one block for each rank.
    void bytes_for_all(std::int64_t count, MPI_Datatype type, MPI_Comm comm, bool of_local_group) {
        bytes(count * ranks_of(comm, of_local_group), type);
    }
    /// Adds the bytes of this rank's block, from a list by rank.
    template <class Count>
    void bytes_of_own(const Count* counts, MPI_Datatype type, MPI_Comm comm) {
        int rank = 0;
        if (counts != nullptr && is_known(comm) && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS)
            bytes(counts[rank], type);
    }
    /// Adds the bytes of blocks with one count for each rank. O(ranks), as the call itself.
    template <class Count>
    void bytes_of_list(const Count* counts, MPI_Datatype type, MPI_Comm comm, bool of_local_group) {
        if (counts == nullptr) return;
        const int ranks = ranks_of(comm, of_local_group);
        std::int64_t sum = 0;
        for (int r = 0; r < ranks; ++r) sum += counts[r];
        bytes(sum, type);
    }
    /// Adds the bytes of blocks with one count and one type for each rank.
    template <class Count, class Types>
    void bytes_of_lists(const Count* counts, const Types& types, MPI_Comm comm) {
        if (counts == nullptr) return;
        const int ranks = ranks_of(comm, false);
        for (int r = 0; r < ranks; ++r)
            if (counts[r] > 0) bytes(counts[r], types[r]);
    }
    /// Adds the bytes of one block for each neighbour: all of one size, or from lists.
    void bytes_for_neighbours(const Blocks& blocks, MPI_Comm comm) {
        if (is_known(comm))
            recorder_->peers().for_neighbours(comm, blocks,
                                              [&](const trace::PeerEntry&, std::uint64_t bytes) { bytes_ += bytes; });
    }
    /// Peer of a message, or root of a collective.
    void with(int peer, int tag) {
        peer_ = peer;
        tag_ = tag;
    }
    /// After a receive from any source or with any tag: what it got. Null: nobody says.
    void from(const MPI_Status* status) {
        if (!status) return;
        int& peer = receives_ ? received_from_ : peer_;
        int& tag = receives_ ? received_tag_ : tag_;
        if (peer == any_source) peer = status->MPI_SOURCE;
        if (tag == MPI_ANY_TAG) tag = status->MPI_TAG;
    }
    /// The receive of a call that sends as well.
    void receives(int peer, int tag, std::int64_t count, MPI_Datatype type) {
        receives_ = true;
        received_from_ = peer;
        received_tag_ = tag;
        if (peer == nobody) return;
        const std::uint64_t sent = bytes_;
        bytes_ = 0;
        bytes(count, type);
        received_bytes_ = bytes_;
        bytes_ = sent;
    }
    /// A matching probe has found a message, whose source and tag are known by now.
    void has_matched(MPI_Message message) {
        if (message != MPI_MESSAGE_NO_PROC && peer_ >= 0)
            recorder_->keep_matched(message, {peer_, tag_, communicator_, begin_});
    }
    /// The receive of that message: on its channel it stands where the probe did.
    void takes(MPI_Message message) {
        const std::optional<Recorder::MatchedMessage> found = recorder_->take_matched(message);
        if (!found) return;
        with(found->peer, found->tag);
        communicator_ = found->communicator;
        matched_ticks_ = found->ticks;
    }
    /// Whether only a status will tell whom a message is from, or its tag.
    bool needs_status() const {
        if (peer_ == any_source || tag_ == MPI_ANY_TAG) return true;
        if (receives_ && (received_from_ == any_source || received_tag_ == MPI_ANY_TAG)) return true;
        for (std::size_t i = 0; i < thread_->waited_count; ++i)
            if (const trace::RequestEntry* const entry = thread_->waited[i];
                entry && (entry->peer == any_source || entry->tag == MPI_ANY_TAG ||
                          entry->cancelled.load(std::memory_order_relaxed) != 0))
                return true;
        return false;
    }
    /// Statuses in the place of those that the program ignores.
    MPI_Status* own_statuses(int count) {
        thread_->statuses.resize(static_cast<std::size_t>(count > 0 ? count : 1));
        return thread_->statuses.data();
    }

    /// A request that the call has made; a persistent one is started later.
    void made(MPI_Request request, trace::Persistent persistent) {
        made_ = true;
        request_ = request;
        made_persistent_ = persistent;
    }
    /// The call returns an error: what the MPI didn't accept has moved nothing.
    void failed(int code) {
        if (!is_refused(code)) return;
        if (instance_ != 0) recorder_->withdraw_instance(communicator_);
        bytes_ = instance_ = matched_ticks_ = 0;
        peer_ = nobody;
        receives_ = false;
    }
    /// Requests that the call may complete. `List`: of MPI_Request by index.
    template <class List>
    void waits_for(int count, List list) {
        if (count <= 0 || !list) return;
        thread_->wait_for(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) {
            const MPI_Request request = list[i];
            trace::RequestEntry* const entry =
                request == MPI_REQUEST_NULL ? nullptr : recorder_->requests().find(request, thread_->number);
            thread_->waited[i] = entry;
            if (entry) ++requests_;
        }
    }
    /// What follows isn't the call's time.
    void returned() {
        if (recorder_) end_ = now();
    }

    /// Whether what it sends is counted: of the program's own outermost calls, and of those in callbacks of calls that
    /// send nothing.
    bool counts() const { return counter_ != nullptr; }
    /// The call has returned, and the MPI has taken what it sends, or not.
    bool has_sent(bool taken) {
        if (!counter_ || !taken || !counter_->counts_sent()) return false;
        if (end_ == 0) returned();
        return true;
    }
    /// After `has_sent`: elements for rank `dest` of the communicator.
    void sent(MPI_Comm comm, int dest, std::int64_t count, MPI_Datatype type) {
        if (dest < 0) return;
        const std::uint64_t bytes = count > 0 ? static_cast<std::uint64_t>(count * size_of(type)) : 0;
        if (trace::PeerEntry* const to = counter_->peer(comm, dest, *thread_))
            counter_->add_sent(*to, trace::SentBy::messages, bytes);
    }
    void sent_to_neighbours(MPI_Comm comm, const Blocks& blocks) {
        counter_->peers().for_neighbours(comm, blocks, [&](trace::PeerEntry& to, std::uint64_t bytes) {
            counter_->add_sent(to, trace::SentBy::neighbours, bytes);
        });
    }
    void exchanged(MPI_Comm comm, const Blocks& blocks) {
        counter_->peers().for_members(comm, blocks, [&](trace::PeerEntry& to, std::uint64_t bytes) {
            counter_->add_sent(to, trace::SentBy::exchanges, bytes);
        });
    }
    void one_sided() { counter_->count_one_sided(); }
    /// Counts what each start of the request that the call has made sends.
    void keeps(MPI_Request request, MPI_Comm comm, int dest, std::int64_t count, MPI_Datatype type);
    void keeps_for_neighbours(MPI_Request request, MPI_Comm comm, const Blocks& blocks);
    void keeps_exchange(MPI_Request request, MPI_Comm comm, const Blocks& blocks);
    /// One of them is complete; null: nobody says whom a message was from.
    void completed(int index, const MPI_Status* status);
    /// No other request is waited for; after an error those that are complete count as completed.
    /// `status_of(i)`: status of the i-th request; null: there is none.
    template <class List, class StatusOf>
    void stops_waiting(List list, bool succeeded, StatusOf status_of);
    /// One of the requests is found to be complete, and is left to be completed.
    template <class List>
    void noticed(List list, int index, const MPI_Status* status);
    /// Persistent requests that the call starts: the MPI may give them other handles (Open MPI does so where the last
    /// message of one isn't gone).
    template <class List>
    void starts(int count, List list);
    /// Marks the requests that the call has started: they send from then on.
    template <class List>
    void started(int count, List list);
    void cancels(MPI_Request request) {
        if (trace::RequestEntry* const entry = recorder_->requests().find(request, 0))
            entry->cancelled.store(1, std::memory_order_relaxed);
    }
    /// Nobody will complete it; one that was started goes on. Before the call, when there is a handle.
    void frees(MPI_Request request) {
        if (request != MPI_REQUEST_NULL) freed_ = counter_->requests().find(request, thread_->number);
    }
    void freed(bool succeeded);
    /// All that is outstanding ends here, as far as anybody will know.
    void ends_all();

    void begin() {
        trace::OpenCall& open = thread_->entry->open;
        // After it readers see that the call before has ended.
        std::atomic_thread_fence(std::memory_order_release);
        open.path.store(path_, std::memory_order_relaxed);
        open.function.store(function_, std::memory_order_relaxed);
        open.communicator.store(communicator_, std::memory_order_relaxed);
        open.bytes.store(bytes_, std::memory_order_relaxed);
        open.peer.store(peer_, std::memory_order_relaxed);
        open.tag.store(tag_, std::memory_order_relaxed);
        open.instance.store(instance_, std::memory_order_relaxed);
        open.requests.store(requests_, std::memory_order_relaxed);
        open.receives_from.store(receives_ ? received_from_ : -1, std::memory_order_relaxed);
        begin_ = now();
        if (begin_ - thread_->left_ticks > thread_->long_gap) [[unlikely]] {
            recorder_->account_for_gap(*thread_);
            begin_ = now();
        }
        open.ticks.store(begin_, std::memory_order_release);
    }

  private:
    /// A call that is ended by `end_left`.
    Call(Recorder& current, ThreadState& thread) : recorder_(&current), thread_(&thread) {}

    static constexpr int nobody = -1, any_source = -2;
    static constexpr std::uint64_t clock_interval = std::uint64_t{1} << 28;  ///< ticks: about a tenth of a second

    void end() {
        const std::uint64_t ended = end_ != 0 ? end_ : now();
        std::uint32_t plan = thread_->plan;
        if (made_) {
            follow(plan);
            plan = 0;  // it serves the request
        }
        if (receives_ && !made_)
            add(begin_, ended, function_, communicator_, path_, 0, received_bytes_, received_from_, received_tag_, 0,
                true);
        if (matched_ticks_ != 0 && !made_)
            add(matched_ticks_, ended, function_, communicator_, path_, 0, bytes_, peer_, tag_, 0, true);
        add(begin_, ended, function_, communicator_, path_, plan, bytes_, peer_, tag_, instance_, false);
        thread_->entry->open.ticks.store(0, std::memory_order_release);
        thread_->left_ticks = ended;
        if (ended - thread_->account.ticks > thread_->old_account) [[unlikely]]
            Recorder::renew_account(*thread_);
        // Now and then, so that a recording tells how far its process got, however it ends.
        if ((thread_->recorded - thread_->updated_at) > 4096 || ended - thread_->updated_ticks > clock_interval) {
            thread_->updated_at = thread_->recorded;
            thread_->updated_ticks = ended;
            recorder_->update_clock();
        }
    }
    /// Ranks that a collective on it exchanges data with: of an inter-communicator the other group's, unless the local
    /// ones are asked for; 0 where it is none.
    int ranks_of(MPI_Comm comm, bool of_local_group) const {
        int inter = 0;
        int ranks = 0;
        if (!is_known(comm) || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return 0;
        if (inter && !of_local_group)
            PMPI_Comm_remote_size(comm, &ranks);
        else
            PMPI_Comm_size(comm, &ranks);
        return ranks;
    }
    /// Size of a datatype in bytes; cached for types that the program used before, unless it has freed a type since.
    MPI_Count size_of(MPI_Datatype type) {
        ThreadState& thread = *thread_;
        const std::uint64_t freed = freed_types.load(std::memory_order_acquire);
        if (type == thread.last_type && thread.freed_types == freed) return thread.last_size;
        MPI_Count size = 0;
        if (runtime::is_plausible(type)) PMPI_Type_size_x(type, &size);
        thread.last_type = type;
        thread.last_size = size;
        thread.freed_types = freed;
        return size;
    }
    /// Whether a communicator can be asked; also one that there was no entry for.
    bool is_known(MPI_Comm comm) const { return communicator_ != 0 || recorder_->knows(comm); }
    void count_only(const void* return_address, const void* frame);
    void count_nested(Recorder& current, ThreadState& thread);
    void keep(MPI_Request request, std::unique_ptr<PersistentSend> sending);
    void follow(std::uint32_t plan);
    void complete(trace::RequestEntry& entry, const MPI_Status* status);
    void add_request(const trace::RequestEntry& entry, std::uint64_t end, std::int32_t peer, std::int32_t tag);
    void add(std::uint64_t begin, std::uint64_t end, std::uint32_t function, std::uint32_t communicator,
             std::uint32_t path, std::uint32_t plan, std::uint64_t bytes, std::int32_t peer, std::int32_t tag,
             std::uint64_t instance, bool is_request);

    Recorder* recorder_ = nullptr;   ///< null: the call isn't recorded
    Recorder* counter_ = nullptr;    ///< null: what it sends isn't counted
    ThreadState* first_ = nullptr;   ///< the thread's first state
    ThreadState* thread_ = nullptr;  ///< state for the stack that the call is on
    base::OuterCalls::Place place_;
    std::uint64_t begin_ = 0, end_ = 0, bytes_ = 0, instance_ = 0;
    MPI_Request request_{};
    std::unique_ptr<PersistentSend> sending_;  ///< what the request sends that it has made
    trace::RequestEntry* freed_ = nullptr;
    std::uint32_t path_ = 0, requests_ = 0;
    std::int32_t peer_ = -1, tag_ = 0;
    std::uint16_t function_ = 0, communicator_ = 0;
    bool made_ = false, receives_ = false;
    trace::Persistent made_persistent_ = trace::Persistent::no;
    std::uint64_t matched_ticks_ = 0;  ///< begin of the probe that found the message which the call receives
    std::int32_t received_from_ = -1, received_tag_ = 0;
    std::uint64_t received_bytes_ = 0;
};

inline void Call::add(std::uint64_t begin, std::uint64_t end, std::uint32_t function, std::uint32_t communicator,
                      std::uint32_t path, std::uint32_t plan, std::uint64_t bytes, std::int32_t peer, std::int32_t tag,
                      std::uint64_t instance, bool is_request) {
    const std::uint64_t ticks = end - begin;
    const int size_class = bytes == 0 ? 0 : 64 - __builtin_clzll(bytes);
    recorder_->add_call(static_cast<std::uint64_t>(path) << trace::key_path |
                            static_cast<std::uint64_t>(is_request) << trace::key_request |
                            static_cast<std::uint64_t>(recorder_->summed_as(communicator)) << trace::key_communicator |
                            static_cast<std::uint64_t>(size_class > 40 ? 40 : size_class) << trace::key_size_class |
                            function,
                        bytes, ticks, plan);
    if (thread_->ring) {
        trace::Record& record = thread_->ring[thread_->recorded & thread_->mask];
        record.begin_ticks = begin;
        record.duration = trace::packed_duration(ticks);
        record.function = function & trace::function_mask;
        record.communicator = communicator & trace::communicator_mask;
        record.is_request = is_request ? 1 : 0;
        record.plan = static_cast<std::uint16_t>(plan);
        record.path = static_cast<std::uint16_t>(path);
        record.tag = instance != 0 ? static_cast<std::int32_t>(instance & 0x7FFFFFFF) : tag;
        const std::uint32_t who = peer >= 0            ? static_cast<std::uint32_t>(peer)
                                  : peer == any_source ? trace::any_peer
                                                       : trace::no_peer;
        record.bytes_and_peer = bytes << 24U | who;
    }
    trace::ThreadEntry& entry = *thread_->entry;
    if (is_request) entry.requests.store(entry.requests.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    // The record first: who reads takes those that are counted.
    entry.recorded.store(++thread_->recorded, std::memory_order_release);
}

}  // namespace palmette::record
