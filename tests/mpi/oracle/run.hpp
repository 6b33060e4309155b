// One random program: what it has made so far, and what all of its steps use. All ranks draw the same numbers, so that
// each knows what the others do; a rank's own choices (how it completes requests) come from numbers of its own.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>

#include "../support/rng.hpp"
#include "account.hpp"

namespace oracle {

/// Types of messages: each begins with four bytes that lie together, for the message's number.
struct Type {
    MPI_Datatype handle;
    int bytes;
};
inline std::vector<Type> types;
inline constexpr int room = 1 << 17;  ///< bytes of a collective's buffer

inline void make_types() {
    MPI_Datatype vector = MPI_DATATYPE_NULL;
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    PMPI_Type_vector(3, 1, 2, MPI_INT, &vector);
    PMPI_Type_contiguous(3, MPI_DOUBLE, &pair);
    PMPI_Type_commit(&vector);
    PMPI_Type_commit(&pair);
    types = {{MPI_BYTE, 1}, {MPI_INT, 4}, {MPI_DOUBLE, 8}, {vector, 12}, {pair, 24}};
}

enum class Shape { plain, cart, graph };

/// Every rank knows of every communicator, also of those that it is no member of.
struct Comm {
    MPI_Comm handle = MPI_COMM_NULL;
    int label = none;
    std::vector<int> members;  ///< ranks of MPI_COMM_WORLD by rank in it; of the first group
    std::vector<int> others;   ///< of an inter-communicator: the other group's
    int rank = none;           ///< this process's, in its group; none: it is no member
    bool second = false;       ///< this process is in the other group
    int collectives = 0;
    Shape shape = Shape::plain;
    std::vector<int> sources, targets;  ///< neighbours of this rank, by rank in it; MPI_PROC_NULL among them
    bool is_wild = false;               ///< messages on it are received from any source
    bool lasting = false;               ///< persistent requests are on it: freed last

    bool is_inter() const { return !others.empty(); }
    int size() const { return static_cast<int>(members.size()); }
    const std::vector<int>& own_group() const { return second ? others : members; }
    const std::vector<int>& peers() const { return is_inter() && !second ? others : members; }
    bool has_me() const { return rank != none; }
    void find_me() {
        const auto in = [](const std::vector<int>& list) {
            const auto found = std::find(list.begin(), list.end(), world_rank);
            return found == list.end() ? none : static_cast<int>(found - list.begin());
        };
        rank = in(members);
        second = rank == none && is_inter();
        if (second) rank = in(others);
        if (rank == none) second = false;
    }
};

struct Message {
    int number = 0;
    Comm* comm = nullptr;
    int from = 0, to = 0;  ///< in their groups
    int from_world = 0, to_world = 0;
    int tag = 0;
    int type = 0, count = 0, capacity = 0;

    long long bytes() const { return static_cast<long long>(count) * types[static_cast<std::size_t>(type)].bytes; }
    long long most() const { return static_cast<long long>(capacity) * types[static_cast<std::size_t>(type)].bytes; }
    MPI_Datatype datatype() const { return types[static_cast<std::size_t>(type)].handle; }
    bool numbered() const { return bytes() >= 4; }
    bool sent_here() const { return from_world == world_rank && comm->has_me(); }
    bool received_here() const { return to_world == world_rank && comm->has_me(); }
};

/// What is outstanding of this rank: completed in some later step.
struct Pending {
    MPI_Request handle = MPI_REQUEST_NULL;
    std::size_t request = 0;       ///< in the account
    const char* buffer = nullptr;  ///< of a receive
    int number = none;             ///< of the message that it gets; none: any, which the buffer tells
    bool alone = false;            ///< completed by itself
};

class Run {
  public:
    Run(Account& own_account, std::uint64_t seed, std::uint64_t stream, int first_label)
        : account(own_account),
          rng(seed, stream, 0),
          own(seed, stream, 1 + static_cast<std::uint64_t>(world_rank)),
          next_label_(first_label) {}
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    Account& account;
    test::Rng rng, own;
    std::list<Comm> comms;
    std::vector<Pending> pending;
    bool failed = false;
    int base_label = none;  ///< of a thread's own communicator

    char* buffer(std::size_t bytes = room) {
        buffers_.push_back(std::make_unique<char[]>(bytes));
        return buffers_.back().get();
    }
    /// A list that lives as long as the program.
    template <class Value>
    Value* list(const std::vector<Value>& values) {
        auto* const memory = reinterpret_cast<Value*>(buffer(values.size() * sizeof(Value) + 1));
        std::copy(values.begin(), values.end(), memory);
        return memory;
    }
    Comm& add(std::vector<int> members, std::vector<int> others = {}) {
        Comm& comm = comms.emplace_back();
        comm.label = next_label_++;
        comm.members = std::move(members);
        comm.others = std::move(others);
        comm.find_me();
        if (comm.has_me()) {
            const std::lock_guard lock(accounts_mutex);
            known[comm.label] = {comm.members, comm.others};
        }
        return comm;
    }
    Comm& any_comm() {
        return *pick([](const Comm& comm) { return !comm.is_wild; });
    }
    /// Null: there is none.
    template <class Good>
    Comm* pick(Good good) {
        std::vector<Comm*> found;
        for (Comm& comm : comms)
            if (good(comm)) found.push_back(&comm);
        return found.empty() ? nullptr : rng.pick(found);
    }
    Comm* any_intra() {
        return pick([](const Comm& comm) { return !comm.is_inter() && !comm.is_wild; });
    }

    static constexpr int first_own_tag = 100;
    int own_tag() { return next_tag_++; }

    /// `numbered`: large enough for its number.
    Message message(Comm& comm, int tag, bool numbered) {
        Message m;
        m.number = next_message_++;
        m.comm = &comm;
        m.tag = tag;
        const bool back = comm.is_inter() && rng.one_in(2);
        const std::vector<int>& from = back ? comm.others : comm.members;
        const std::vector<int>& to = comm.is_inter() && !back ? comm.others : comm.members;
        m.from = rng.below(static_cast<int>(from.size()));
        m.to = rng.below(static_cast<int>(to.size()));
        m.from_world = from[static_cast<std::size_t>(m.from)];
        m.to_world = to[static_cast<std::size_t>(m.to)];
        m.type = rng.below(static_cast<int>(types.size()));
        static const std::vector<int> sizes{0, 1, 4, 16, 100, 1024, 3000, 50000};
        m.count = std::min(rng.pick(sizes), room / 32);
        if (rng.one_in(12)) m.count = std::min(70000, room / 2) / types[static_cast<std::size_t>(m.type)].bytes;
        if (numbered && m.bytes() < 4) m.count = 4;
        m.capacity = m.count + (rng.one_in(3) ? rng.below(20) : 0);
        messages_.push_back(m);
        return m;
    }
    /// Replaces a message that is changed before it is sent.
    void update(const Message& m) {
        for (Message& one : messages_)
            if (one.number == m.number) one = m;
    }
    /// The number of the next one like it.
    int again(Message m) {
        m.number = next_message_++;
        messages_.push_back(m);
        return m.number;
    }
    const Message* message_of(int number) const {
        for (const Message& m : messages_)
            if (m.number == number) return &m;
        return nullptr;
    }
    /// Types have gaps.
    char* space(const Message& m) { return buffer(static_cast<std::size_t>(2 * m.most() + 64)); }
    char* filled(const Message& m) {
        char* const out = space(m);
        if (m.numbered()) std::memcpy(out, &m.number, 4);
        return out;
    }
    /// Which message a buffer got, which is `expected` unless that is `none`.
    int number_in(const char* in, int expected) {
        const Message* const m = expected == none ? nullptr : message_of(expected);
        if (m && !m->numbered()) return expected;
        int got = none;
        std::memcpy(&got, in, 4);
        if (expected != none && got != expected) fail("another message than expected");
        return got;
    }
    void fail(const char* what) {
        std::fprintf(stderr, "oracle: rank %d, thread %d: %s\n", world_rank, account.thread, what);
        failed = true;
    }

    static void send_about(const Message& m, const char* function, About& about) {
        about = {function, m.comm->label, m.bytes(), m.to, m.tag, none, m.number, none};
    }
    static About sends(const char* function, const Message& m) {
        About about;
        send_about(m, function, about);
        return about;
    }
    static About gets(const char* function, const Message& m, bool says = true) {
        return {function, m.comm->label, m.most(), says ? m.from : unsaid, says ? m.tag : unsaid, none, none, m.number};
    }
    /// The call that was made last has started this.
    void starts(MPI_Request handle, const About& about, const char* in = nullptr, int number = none,
                bool alone = false) {
        account.start(about).handle = word_of(handle);
        if (handle == MPI_REQUEST_NULL) fail("a request that is none");
        pending.push_back({handle, account.requests.size() - 1, in, number, alone});
    }
    static unsigned long long word_of(MPI_Request request) {
        unsigned long long word = 0;
        std::memcpy(&word, &request, sizeof request);
        return word;
    }
    /// The request that was started last is freed while it is active.
    void frees(MPI_Request& request) {
        Request& one = account.requests.back();
        one.handle = word_of(request);
        made(account, {"MPI_Request_free", none}, MPI_Request_free, &request);
        one.end = account.last();
        one.end_thread = account.thread;
    }
    /// What has just been completed by the last call.
    void completed(const Pending& one, bool cancelled = false) {
        Request& request = account.requests[one.request];
        request.end = account.last();
        request.end_thread = account.thread;
        request.cancelled = cancelled;
        if (!one.buffer || cancelled) return;
        request.got = number_in(one.buffer, one.number);
        if (const Message* const m = message_of(request.got)) {
            request.peer = m->from;
            request.tag = m->tag;
        }
    }
    void counts(const Message& m) { sent_to.message(m.to_world, m.bytes()); }
    void free_buffers() { buffers_.clear(); }

    /// Members of all communicators that this rank has been in.
    static inline Members known;
    static inline int on_world = 0;  ///< collectives on MPI_COMM_WORLD

  private:
    std::vector<std::unique_ptr<char[]>> buffers_;
    std::vector<Message> messages_;
    int next_label_;
    int next_tag_ = first_own_tag;
    int next_message_ = next_label_ * 500;
};

}  // namespace oracle
