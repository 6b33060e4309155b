// Compositions from C++: palmette.h with owners that free what they hold, and errors as exceptions. Header only;
// everything that it calls is C, so that it works with any compiler and standard library.
//
//     palmette::Composition halo(ranks, {.blocks = ranks, .count = 1000}, MPI_DOUBLE);
//     const int field = halo.buffer("field"), ghost = halo.buffer("ghost");
//     for (int r = 0; r < ranks; ++r) halo.multicast(r, {(r + 1) % ranks}, field, {r, 1}, ghost);
//     palmette::Plan plan(halo, MPI_COMM_WORLD, "method=direct/1 stripes=2");
//     palmette::Run run = plan.bind({mine.data(), left.data()});
//     run.start();  ...  run.wait();
//
// All owners must be gone before MPI_Finalize.
#pragma once

#include <palmette.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace palmette {

/// What palmette_error() says, with the MPI's class of the error.
class Error : public std::runtime_error {
  public:
    Error(int code, const char* text) : std::runtime_error(text), code_(code) {}
    int code() const noexcept { return code_; }

  private:
    int code_;
};

inline void check(int code) {
    if (code != MPI_SUCCESS) throw Error(code, palmette_error());
}

/// Consecutive blocks of a buffer.
struct Blocks {
    std::int64_t first = 0, count = 1;
};

/// `blocks` of `count` elements each; or one count for each block.
struct Lengths {
    std::int64_t blocks = 1, count = 1;
    std::vector<std::int64_t> counts = {};
};

/// Ranks by number; none named: all.
using Ranks = std::vector<int>;

/// See palmette_composition_ in palmette.h. Local.
class Composition {
  public:
    /// Throws Error.
    Composition(int ranks, const Lengths& lengths, MPI_Datatype type) {
        const std::int64_t one = lengths.count;
        const bool listed = !lengths.counts.empty();
        palmette_composition* made = nullptr;
        check(palmette_composition_create(ranks,
                                          listed ? static_cast<std::int64_t>(lengths.counts.size()) : lengths.blocks,
                                          listed ? lengths.counts.data() : &one,
                                          listed ? static_cast<std::int64_t>(lengths.counts.size()) : 1, type, &made));
        made_.reset(made);
    }
    /// One of MPI's collectives, with one count or one for each rank. Throws Error.
    static Composition named(const std::string& name, int ranks, int root, const std::vector<std::int64_t>& counts,
                             MPI_Datatype type, MPI_Op op = MPI_OP_NULL) {
        palmette_composition* made = nullptr;
        check(palmette_composition_named(name.c_str(), ranks, root, counts.data(),
                                         static_cast<std::int64_t>(counts.size()), type, op, &made));
        return Composition(made);
    }

    /// The number of the buffer of that name; buffers are bound in the order of their numbers. All of these throw
    /// Error.
    int buffer(const std::string& name) {
        int number = 0;
        check(palmette_composition_buffer(made_.get(), name.c_str(), &number));
        return number;
    }
    void multicast(int root, const Ranks& to, int source, Blocks blocks, int target) {
        check(palmette_composition_multicast(made_.get(), root, to.empty() ? nullptr : to.data(), size_of(to), source,
                                             blocks.first, blocks.count, target));
    }
    void reduce(const Ranks& from, int root, int source, Blocks blocks, int target, MPI_Op op) {
        check(palmette_composition_reduce(made_.get(), from.empty() ? nullptr : from.data(), size_of(from), root,
                                          source, blocks.first, blocks.count, target, op));
    }
    void hold(int rank, int buffer, Blocks blocks) {
        check(palmette_composition_hold(made_.get(), rank, buffer, blocks.first, blocks.count));
    }
    void fence() { check(palmette_composition_fence(made_.get())); }

    const palmette_composition* get() const noexcept { return made_.get(); }

  private:
    struct Free {
        void operator()(palmette_composition* made) const noexcept { palmette_composition_free(made); }
    };
    explicit Composition(palmette_composition* made) : made_(made) {}
    static int size_of(const Ranks& ranks) { return static_cast<int>(ranks.size()); }
    std::unique_ptr<palmette_composition, Free> made_;
};

/// A plan with its buffers. Freed in the same order on all ranks, after waiting for it.
class Run {
  public:
    /// Throws Error, with MPI_ERR_PENDING where it is in flight.
    void start() { check(palmette_start(made_.get())); }
    /// Whether it is complete; progresses all runs in flight.
    bool test() {
        int done = 0;
        check(palmette_test(made_.get(), &done));
        return done != 0;
    }
    void wait() { check(palmette_wait(made_.get())); }

  private:
    friend class Plan;
    struct Free {
        void operator()(palmette_run* made) const noexcept { palmette_run_free(made); }
    };
    explicit Run(palmette_run* made) : made_(made) {}
    std::unique_ptr<palmette_run, Free> made_;
};

/// A composition factored on a communicator.
class Plan {
  public:
    /// Collective: all ranks pass the same composition and factoring, such as "method=ring,tree.2 stripes=4
    /// pipeline=16". Throws Error on all ranks if it fails on one of them.
    Plan(const Composition& composition, MPI_Comm comm, const std::string& factoring = "") {
        palmette_plan* made = nullptr;
        check(palmette_plan_make(composition.get(), comm, factoring.c_str(), &made));
        made_.reset(made);
    }
    /// Bytes that this rank has in a buffer, and in the scratch of each run.
    std::int64_t buffer_bytes(int buffer) const {
        std::int64_t bytes = 0;
        check(palmette_plan_buffer_bytes(made_.get(), buffer, &bytes));
        return bytes;
    }
    std::int64_t scratch_bytes() const {
        std::int64_t bytes = 0;
        check(palmette_plan_scratch_bytes(made_.get(), &bytes));
        return bytes;
    }
    /// How many of this rank's messages are copied from device to device where both ends have them there.
    std::int64_t device_messages() const {
        std::int64_t messages = 0;
        check(palmette_plan_device_messages(made_.get(), &messages));
        return messages;
    }
    /// How many are read in the sender's memory.
    std::int64_t single_copies() const {
        std::int64_t messages = 0;
        check(palmette_plan_single_copies(made_.get(), &messages));
        return messages;
    }
    /// Local, in the same order on all ranks. The buffers stay where they are as long as the run lives. Throws Error.
    Run bind(const std::vector<void*>& buffers) const {
        palmette_run* made = nullptr;
        check(palmette_bind(made_.get(), buffers.data(), static_cast<int>(buffers.size()), &made));
        return Run(made);
    }

  private:
    friend class SparseSum;
    explicit Plan(palmette_plan* made) : made_(made) {}
    struct Free {
        void operator()(palmette_plan* made) const noexcept { palmette_plan_free(made); }
    };
    std::unique_ptr<palmette_plan, Free> made_;
};

/// Sums of irregular, overlapping footprints to their owners, and the way back: see palmette_sparse_make.
class SparseSum {
  public:
    struct Request {
        std::vector<std::int64_t> touched;  ///< indices, in any order
        std::int64_t first = 0, end = 0;    ///< owned
        int width = 1;                      ///< elements of an index
        std::int64_t coarsen = 1;           ///< 0: by the model
    };
    /// Collective. Throws Error on all ranks if it fails on one of them.
    SparseSum(const Request& request, MPI_Datatype type, MPI_Op op, MPI_Comm comm, const std::string& factoring = "") {
        palmette_sparse* made = nullptr;
        check(palmette_sparse_make(request.touched.data(), static_cast<std::int64_t>(request.touched.size()),
                                   request.first, request.end, request.width, type, op, request.coarsen, comm,
                                   factoring.c_str(), &made));
        made_.reset(made);
        std::int64_t partial = 0, mine = 0;
        check(palmette_sparse_size(made, &partial, &mine, &blocks_, &known_blocks_, &coarsen_));
        partial_rows_.resize(static_cast<std::size_t>(partial));
        own_rows_.resize(static_cast<std::size_t>(mine));
        check(palmette_sparse_rows(made, partial_rows_.data(), own_rows_.data()));
    }

    /// The index of each row of `partial`, and of each of `mine`.
    const std::vector<std::int64_t>& partial_rows() const noexcept { return partial_rows_; }
    const std::vector<std::int64_t>& own_rows() const noexcept { return own_rows_; }
    /// Number of blocks that any rank has, and of those that this rank knows.
    std::int64_t blocks() const noexcept { return blocks_; }
    std::int64_t known_blocks() const noexcept { return known_blocks_; }
    /// As given, or as chosen.
    std::int64_t coarsen() const noexcept { return coarsen_; }
    /// The sum, and its adjoint; both are bound to {partial, mine}. Throw Error.
    Plan sum() const { return plan(0); }
    Plan spread() const { return plan(1); }

  private:
    Plan plan(int back) const {
        palmette_plan* made = nullptr;
        check(palmette_sparse_plan(made_.get(), back, &made));
        return Plan(made);
    }
    struct Free {
        void operator()(palmette_sparse* made) const noexcept { palmette_sparse_free(made); }
    };
    std::unique_ptr<palmette_sparse, Free> made_;
    std::vector<std::int64_t> partial_rows_, own_rows_;
    std::int64_t blocks_ = 0, known_blocks_ = 0, coarsen_ = 1;
};

/// See palmette_comm_split: the caller frees both; `leaders` is MPI_COMM_NULL on ranks that lead no group.
struct Split {
    MPI_Comm group = MPI_COMM_NULL, leaders = MPI_COMM_NULL;
};
/// Collective. Throws Error on all ranks if it fails on one of them.
inline Split comm_split(MPI_Comm comm, const std::string& level, int key = 0) {
    Split made;
    check(palmette_comm_split(comm, level.c_str(), key, &made.group, &made.leaders));
    return made;
}

/// See palmette_reorder: by `distances` of rank 0, or, where they are empty there, by the topology. Collective, as all
/// of these. Throws Error on all ranks if it fails on one of them.
inline MPI_Comm reorder(MPI_Comm comm, const std::string& order, const std::vector<double>& distances = {}) {
    int rank = 0, size = 0;
    check(MPI_Comm_rank(comm, &rank));
    check(MPI_Comm_size(comm, &size));
    // What is too short is found wrong, and not read: the other ranks learn of it.
    std::vector<double> whole(distances);
    if (!whole.empty()) whole.resize(static_cast<std::size_t>(size) * static_cast<std::size_t>(size), -1.0);
    MPI_Comm made = MPI_COMM_NULL;
    check(palmette_reorder(comm, order.c_str(), rank == 0 && !whole.empty() ? whole.data() : nullptr, &made));
    return made;
}

/// See palmette_distances: the matrix at rank 0, empty elsewhere.
inline std::vector<double> distances(MPI_Comm comm, std::int64_t bytes) {
    int rank = 0, size = 0;
    check(MPI_Comm_rank(comm, &rank));
    check(MPI_Comm_size(comm, &size));
    const auto ranks = static_cast<std::size_t>(size);
    std::vector<double> seconds(rank == 0 ? ranks * ranks : 0);
    check(palmette_distances(comm, bytes, rank == 0 ? seconds.data() : nullptr));
    return seconds;
}

/// A region of the program from here to the end of the block: see palmette_region_begin.
class Region {
  public:
    /// `name` is there as long as this.
    explicit Region(const char* name) noexcept : name_(name) { palmette_region_begin(name); }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region() { palmette_region_end(name_); }

  private:
    const char* name_;
};

/// What came to this rank from others that it didn't expect: see palmette_exchange.
template <class T>
struct Arrivals {
    std::vector<int> from;             ///< ascending
    std::vector<std::int64_t> counts;  ///< elements of each sender
    std::vector<T> data;               ///< in that order
};
/// Collective: counts[i] elements go to rank to[i], one block after the other from `data`. `type`: MPI's for T. Throws
/// Error on all ranks if it fails on one of them.
template <class T>
Arrivals<T> exchange(const std::vector<int>& to, const std::vector<std::int64_t>& counts, const std::vector<T>& data,
                     MPI_Datatype type, MPI_Comm comm) {
    // A rank that knows that something is wrong takes part all the same.
    std::int64_t all = 0;
    for (const std::int64_t count : counts) all += count;
    const bool fits = to.size() == counts.size() && all == static_cast<std::int64_t>(data.size());
    palmette_arrivals* made = nullptr;
    check(palmette_exchange(to.data(), counts.data(), fits ? static_cast<int>(to.size()) : -1, data.data(), type, comm,
                            &made));
    struct Free {
        void operator()(palmette_arrivals* arrivals) const noexcept { palmette_arrivals_free(arrivals); }
    };
    const std::unique_ptr<palmette_arrivals, Free> owned(made);
    int senders = 0;
    std::int64_t elements = 0;
    check(palmette_arrivals_size(made, &senders, &elements));
    Arrivals<T> out{std::vector<int>(static_cast<std::size_t>(senders)),
                    std::vector<std::int64_t>(static_cast<std::size_t>(senders)),
                    std::vector<T>(static_cast<std::size_t>(elements))};
    check(palmette_arrivals_take(made, out.from.data(), out.counts.data(), out.data.data()));
    return out;
}

}  // namespace palmette
