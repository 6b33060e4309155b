// One collective with random arguments that can be started in the background, and done again by PMPI_ for comparison.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <optional>

#include "device.hpp"
#include "rng.hpp"

// Open MPI 5 has the persistent collectives of MPI 4 without being MPI 4.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define TEST_HAS_PERSISTENT 1
#endif

namespace test {

enum class Kind {
    bcast,
    reduce,
    allreduce,
    reduce_scatter,
    reduce_scatter_block,
    gather,
    gatherv,
    scatter,
    scatterv,
    allgather,
    allgatherv,
    alltoall,
    alltoallv,
    barrier,
    scan,
    exscan
};
inline constexpr int kinds = 16;
inline const char* const kind_names[] = {
    "bcast",     "reduce",  "allreduce", "reduce_scatter", "reduce_scatter_block", "gather",
    "gatherv",   "scatter", "scatterv",  "allgather",      "allgatherv",           "alltoall",
    "alltoallv", "barrier", "scan",      "exscan"};

/// Integers, or pairs of which the second is a hole where data only moves.
class Background {
  public:
    /// `shared` gives the same numbers on all ranks of `comm`, `own` needn't.
    Background(Rng& shared, Rng& own, MPI_Comm comm) : comm_(comm) {
        PMPI_Comm_rank(comm, &rank_);
        PMPI_Comm_size(comm, &size_);
        kind_ = static_cast<Kind>(shared.below(kinds));
        root_ = shared.below(size_);
        in_place_ = shared.one_in(4);
        count_ = shared.one_in(10) ? 0 : shared.one_in(12) ? shared.between(1, 40000) : shared.between(1, 400);
        if (reduces()) {
            const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BXOR};
            op_ = ops[shared.below(3)];
        } else if (shared.one_in(3)) {
            PMPI_Type_vector(1, 1, 2, MPI_INT, &type_);
            MPI_Datatype wide = MPI_DATATYPE_NULL;
            PMPI_Type_create_resized(type_, 0, 2 * sizeof(int), &wide);
            PMPI_Type_free(&type_);
            PMPI_Type_commit(&wide);
            type_ = wide;
            extent_ = 2;
            PMPI_Type_dup(type_, &reference_type_);
        }
        int at = 0;
        for (int r = 0; r < size_; ++r) {
            counts_.push_back(shared.below(count_ + 1));
            at += shared.below(3);
            displs_.push_back(at);
            at += counts_.back();
        }
        if (kind_ == Kind::alltoallv) spread_alltoallv(shared);
        const std::size_t units = static_cast<std::size_t>(std::max(at, size_ * count_) + 4 * size_ + 64);
        send_.resize(units * static_cast<std::size_t>(extent_));
        recv_.resize(send_.size());
        for (int& value : send_) value = static_cast<int>(own.next() & 0xFFFFF);
        for (int& value : recv_) value = static_cast<int>(own.next() & 0xFFFFF);
        expected_send_ = send_;
        expected_recv_ = recv_;
        send_elsewhere_.emplace(own, reinterpret_cast<char*>(send_.data()), send_.size() * sizeof(int));
        recv_elsewhere_.emplace(own, reinterpret_cast<char*>(recv_.data()), recv_.size() * sizeof(int));
    }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;
    ~Background() {
        free_type();
        if (extent_ == 2) PMPI_Type_free(&reference_type_);
    }

    Kind kind() const { return kind_; }
    std::string name() const {
        char text[160];
        std::snprintf(text, sizeof text, "%s of %d%s, root %d of %d%s", kind_names[static_cast<int>(kind_)], count_,
                      extent_ == 2 ? " with holes" : "", root_, size_, in_place_ ? ", in place" : "");
        return text;
    }
    /// As a program may do while the operation is under way.
    void free_type() {
        if (extent_ == 2 && type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
    }

    /// By MPI_I..., to be completed by `request`.
    int start(MPI_Request* request) { return call(Nonblocking{}, send_there(), recv_there(), request); }
    /// By MPI_..._init.
    int init(MPI_Request* request) {
#ifdef TEST_HAS_PERSISTENT
        return call(Persistent{}, send_there(), recv_there(), request);
#else
        (void)request;
        return MPI_ERR_OTHER;
#endif
    }
    /// By MPI_ itself.
    int block() { return call(Blocking{}, send_there(), recv_there(), nullptr); }
    /// By PMPI_, on memory of its own with the same contents as before the start. Collective.
    int expect() {
        const MPI_Datatype kept = type_;
        if (extent_ == 2) type_ = reference_type_;
        const int code = call(Reference{}, expected_send_.data(), expected_recv_.data(), nullptr);
        type_ = kept;
        return code;
    }
    bool right() {
        send_elsewhere_->download();
        recv_elsewhere_->download();
        // In place these two leave what they like behind the result.
        const bool scatters = kind_ == Kind::reduce_scatter || kind_ == Kind::reduce_scatter_block;
        std::ptrdiff_t length = static_cast<std::ptrdiff_t>(recv_.size());
        if (scatters && in_place_)
            length = kind_ == Kind::reduce_scatter ? counts_[static_cast<std::size_t>(rank_)] : count_;
        return send_ == expected_send_ && std::equal(recv_.begin(), recv_.begin() + length, expected_recv_.begin());
    }
    /// New contents for the next round of a persistent operation.
    void renew(Rng& own) {
        for (std::size_t i = 0; i < send_.size(); ++i) {
            send_[i] = expected_send_[i] = static_cast<int>(own.next() & 0xFFFFF);
            recv_[i] = expected_recv_[i] = static_cast<int>(own.next() & 0xFFFFF);
        }
        send_elsewhere_->upload();
        recv_elsewhere_->upload();
    }

  private:
    struct Nonblocking {};
    struct Persistent {};
    struct Blocking {};
    struct Reference {};

    int* send_there() { return reinterpret_cast<int*>(send_elsewhere_->at(reinterpret_cast<char*>(send_.data()))); }
    int* recv_there() { return reinterpret_cast<int*>(recv_elsewhere_->at(reinterpret_cast<char*>(recv_.data()))); }
    bool reduces() const {
        return kind_ == Kind::reduce || kind_ == Kind::allreduce || kind_ == Kind::reduce_scatter ||
               kind_ == Kind::reduce_scatter_block || kind_ == Kind::scan || kind_ == Kind::exscan;
    }

    /// Rank a sends rank b as many units as a table says that both know.
    void spread_alltoallv(Rng& shared) {
        std::vector<int> table;
        for (int i = 0; i < size_ * size_; ++i) table.push_back(shared.below(count_ / size_ + 2));
        const auto between = [&](int from, int to) { return table[static_cast<std::size_t>(from * size_ + to)]; };
        int at = 0;
        int from = 0;
        for (int r = 0; r < size_; ++r) {
            counts_[static_cast<std::size_t>(r)] = between(r, rank_);
            displs_[static_cast<std::size_t>(r)] = at;
            at += between(r, rank_);
            send_counts_.push_back(in_place_ ? 0 : between(rank_, r));
            send_displs_.push_back(from);
            from += between(rank_, r);
        }
        // In place both directions have the same counts.
        if (in_place_) {
            at = 0;
            for (int r = 0; r < size_; ++r) {
                counts_[static_cast<std::size_t>(r)] = between(std::min(r, rank_), std::max(r, rank_));
                displs_[static_cast<std::size_t>(r)] = at;
                at += counts_[static_cast<std::size_t>(r)];
            }
        }
    }

#define TEST_FORMS(Name, name, ...)                                             \
    static int do_##name(Nonblocking, auto... a) { return MPI_I##name(a...); }  \
    TEST_PERSISTENT(Name, name)                                                 \
    static int do_##name(Blocking, auto... a) {                                 \
        return without_last([](auto... b) { return MPI_##Name(b...); }, a...);  \
    }                                                                           \
    static int do_##name(Reference, auto... a) {                                \
        return without_last([](auto... b) { return PMPI_##Name(b...); }, a...); \
    }
#ifdef TEST_HAS_PERSISTENT
#define TEST_PERSISTENT(Name, name)                                                \
    static int do_##name(Persistent, auto... a) {                                  \
        return with_info([](auto... b) { return MPI_##Name##_init(b...); }, a...); \
    }
#else
#define TEST_PERSISTENT(Name, name)
#endif

    /// Calls without the last argument, the request.
    template <class Function, class First, class... Rest>
    static int without_last(Function function, First first, Rest... rest) {
        if constexpr (sizeof...(Rest) == 1)
            return function(first);
        else
            return without_last([=](auto... more) { return function(first, more...); }, rest...);
    }
    /// Calls with MPI_INFO_NULL before the last argument.
    template <class Function, class First, class... Rest>
    static int with_info(Function function, First first, Rest... rest) {
        if constexpr (sizeof...(Rest) == 0)
            return function(MPI_INFO_NULL, first);
        else
            return with_info([=](auto... more) { return function(first, more...); }, rest...);
    }

    TEST_FORMS(Bcast, bcast)
    TEST_FORMS(Reduce, reduce)
    TEST_FORMS(Allreduce, allreduce)
    TEST_FORMS(Reduce_scatter, reduce_scatter)
    TEST_FORMS(Reduce_scatter_block, reduce_scatter_block)
    TEST_FORMS(Gather, gather)
    TEST_FORMS(Gatherv, gatherv)
    TEST_FORMS(Scatter, scatter)
    TEST_FORMS(Scatterv, scatterv)
    TEST_FORMS(Allgather, allgather)
    TEST_FORMS(Allgatherv, allgatherv)
    TEST_FORMS(Alltoall, alltoall)
    TEST_FORMS(Alltoallv, alltoallv)
    TEST_FORMS(Barrier, barrier)
    TEST_FORMS(Scan, scan)
    TEST_FORMS(Exscan, exscan)
#undef TEST_FORMS
#undef TEST_PERSISTENT

    template <class Form>
    int call(Form form, int* send, int* recv, MPI_Request* request) {
        const bool at_root = rank_ == root_;
        const int mine = counts_[static_cast<std::size_t>(rank_)];
        const void* in = in_place_ ? MPI_IN_PLACE : send;
        const void* in_at_root = in_place_ && at_root ? MPI_IN_PLACE : send;
        void* out_at_root = in_place_ && at_root ? MPI_IN_PLACE : static_cast<void*>(recv);
        switch (kind_) {
            case Kind::bcast:
                return do_bcast(form, static_cast<void*>(recv), count_, type_, root_, comm_, request);
            case Kind::reduce:
                return do_reduce(form, in_at_root, static_cast<void*>(recv), count_, MPI_INT, op_, root_, comm_,
                                 request);
            case Kind::allreduce:
                return do_allreduce(form, in, static_cast<void*>(recv), count_, MPI_INT, op_, comm_, request);
            case Kind::reduce_scatter:
                return do_reduce_scatter(form, in, static_cast<void*>(recv), counts_.data(), MPI_INT, op_, comm_,
                                         request);
            case Kind::reduce_scatter_block:
                return do_reduce_scatter_block(form, in, static_cast<void*>(recv), count_, MPI_INT, op_, comm_,
                                               request);
            case Kind::gather:
                return do_gather(form, in_at_root, count_, type_, static_cast<void*>(recv), count_, type_, root_, comm_,
                                 request);
            case Kind::gatherv:
                return do_gatherv(form, in_at_root, mine, type_, static_cast<void*>(recv), counts_.data(),
                                  displs_.data(), type_, root_, comm_, request);
            case Kind::scatter:
                return do_scatter(form, static_cast<const void*>(send), count_, type_, out_at_root, count_, type_,
                                  root_, comm_, request);
            case Kind::scatterv:
                return do_scatterv(form, static_cast<const void*>(send), counts_.data(), displs_.data(), type_,
                                   out_at_root, mine, type_, root_, comm_, request);
            case Kind::allgather:
                return do_allgather(form, in, count_, type_, static_cast<void*>(recv), count_, type_, comm_, request);
            case Kind::allgatherv:
                return do_allgatherv(form, in, mine, type_, static_cast<void*>(recv), counts_.data(), displs_.data(),
                                     type_, comm_, request);
            case Kind::alltoall:
                return do_alltoall(form, in, count_, type_, static_cast<void*>(recv), count_, type_, comm_, request);
            case Kind::alltoallv:
                return do_alltoallv(form, in, send_counts_.data(), send_displs_.data(), type_, static_cast<void*>(recv),
                                    counts_.data(), displs_.data(), type_, comm_, request);
            case Kind::barrier:
                return do_barrier(form, comm_, request);
            case Kind::scan:
                return do_scan(form, in, static_cast<void*>(recv), count_, MPI_INT, op_, comm_, request);
            case Kind::exscan:
                return do_exscan(form, in, static_cast<void*>(recv), count_, MPI_INT, op_, comm_, request);
        }
        return MPI_ERR_OTHER;
    }

    MPI_Comm comm_;
    int rank_ = 0, size_ = 1;
    Kind kind_ = Kind::barrier;
    int root_ = 0, count_ = 0;
    bool in_place_ = false;
    MPI_Op op_ = MPI_SUM;
    MPI_Datatype type_ = MPI_INT;
    MPI_Datatype reference_type_ = MPI_DATATYPE_NULL;  ///< stays when the program has freed the other
    int extent_ = 1;
    std::vector<int> counts_, displs_, send_counts_, send_displs_;
    std::vector<int> send_, recv_, expected_send_, expected_recv_;
    std::optional<Elsewhere> send_elsewhere_, recv_elsewhere_;
};

}  // namespace test
