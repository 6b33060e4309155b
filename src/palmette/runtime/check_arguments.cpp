#include "palmette/runtime/check_arguments.hpp"

#include <string>
#include <utility>
#include <vector>

#include "palmette/base/text.hpp"

namespace palmette::runtime {
namespace {

using base::cat;
using Fault = CheckedCall::Fault;

/// Gathers what a call says, and the first thing that is wrong by itself.
class Facts {
  public:
    Facts(const char* function, Caller caller) : caller_(caller) { out_.function = function; }

    Facts& root(int root) {
        out_.root = root;
        if (root < 0 || root >= caller_.size)
            fault(Fault::root, cat("root ", root, ", though ranks go from 0 to ", caller_.size - 1));
        return *this;
    }
    bool at_root() const { return out_.root == caller_.rank; }

    std::int64_t bytes(std::int64_t count, MPI_Datatype type, const char* name) {
        if (count < 0) fault(Fault::count, cat("a ", name, " of ", count));
        if (type == MPI_DATATYPE_NULL) {
            fault(Fault::type, cat("MPI_DATATYPE_NULL with its ", name));
            return 0;
        }
        MPI_Count size = 0;
        PMPI_Type_size_x(type, &size);
        return count < 0 ? 0 : count * static_cast<std::int64_t>(size);
    }
    template <class TypeOf>
    std::vector<std::int64_t> bytes_each(Counts counts, TypeOf type_of, const char* name) {
        std::vector<std::int64_t> out;
        if (!counts) fault(Fault::count, cat("no ", name));
        for (int r = 0; counts && r < caller_.size; ++r)
            out.push_back(bytes(counts[r], type_of(r), cat(name, "[", r, "]").c_str()));
        return out;
    }
    std::vector<std::int64_t> bytes_each(Counts counts, MPI_Datatype type, const char* name) {
        return bytes_each(counts, [type](int) { return type; }, name);
    }
    std::vector<std::int64_t> bytes_each(Counts counts, const MPI_Datatype* types, const char* name) {
        if (!types) fault(Fault::type, cat("no types with its ", name));
        return bytes_each(counts, [types](int r) { return types ? types[r] : MPI_DATATYPE_NULL; }, name);
    }

    Facts& reduces(MPI_Datatype type, MPI_Op op) {
        if (op == MPI_OP_NULL) fault(Fault::op, "MPI_OP_NULL");
        out_.op = op_text(op);
        out_.type_bytes = bytes(1, type, "count");
        return *this;
    }
    Facts& alike(std::int64_t bytes) {
        out_.bytes = bytes;
        return *this;
    }
    Facts& to(Amounts amounts) {
        out_.to = std::move(amounts);
        return *this;
    }
    Facts& from(Amounts amounts) {
        out_.from = std::move(amounts);
        return *this;
    }
    CheckedCall done() { return std::move(out_); }

  private:
    void fault(Fault fault, const std::string& text) {
        if (out_.fault != Fault::none) return;
        out_.fault = fault;
        out_.faulty = text;
    }

    Caller caller_;
    CheckedCall out_;
};

CheckedCall checked_vector(Facts facts, std::int64_t count, MPI_Datatype type, MPI_Op op) {
    facts.reduces(type, op);
    return facts.alike(facts.bytes(count, type, "count")).done();
}

/// The root's side, which holds a block for each rank, is `all`; nobody compares the root's own where that is in place.
Amounts without_own(std::vector<std::int64_t> all, Caller caller, bool in_place) {
    if (in_place && !all.empty()) all[static_cast<std::size_t>(caller.rank)] = -1;
    return Amounts::listed(std::move(all));
}

std::vector<std::int64_t> repeated(std::int64_t bytes, Caller caller) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(caller.size), bytes);
}

}  // namespace

CheckedCall checked_gather(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void*,
                           std::int64_t recvcount, MPI_Datatype recvtype, int root) {
    Facts facts("MPI_Gather", caller);
    facts.root(root);
    const bool in_place = facts.at_root() && sendbuf == MPI_IN_PLACE;
    if (!in_place) facts.to(Amounts::root_only(facts.bytes(sendcount, sendtype, "sendcount")));
    if (facts.at_root())
        facts.from(without_own(repeated(facts.bytes(recvcount, recvtype, "recvcount"), caller), caller, in_place));
    return facts.done();
}

CheckedCall checked_gatherv(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void*,
                            Counts recvcounts, Counts, MPI_Datatype recvtype, int root) {
    Facts facts("MPI_Gatherv", caller);
    facts.root(root);
    const bool in_place = facts.at_root() && sendbuf == MPI_IN_PLACE;
    if (!in_place) facts.to(Amounts::root_only(facts.bytes(sendcount, sendtype, "sendcount")));
    if (facts.at_root())
        facts.from(without_own(facts.bytes_each(recvcounts, recvtype, "recvcounts"), caller, in_place));
    return facts.done();
}

CheckedCall checked_scatter(Caller caller, const void*, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                            std::int64_t recvcount, MPI_Datatype recvtype, int root) {
    Facts facts("MPI_Scatter", caller);
    facts.root(root);
    const bool in_place = facts.at_root() && recvbuf == MPI_IN_PLACE;
    if (facts.at_root())
        facts.to(without_own(repeated(facts.bytes(sendcount, sendtype, "sendcount"), caller), caller, in_place));
    if (!in_place) facts.from(Amounts::root_only(facts.bytes(recvcount, recvtype, "recvcount")));
    return facts.done();
}

CheckedCall checked_scatterv(Caller caller, const void*, Counts sendcounts, Counts, MPI_Datatype sendtype,
                             void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root) {
    Facts facts("MPI_Scatterv", caller);
    facts.root(root);
    const bool in_place = facts.at_root() && recvbuf == MPI_IN_PLACE;
    if (facts.at_root()) facts.to(without_own(facts.bytes_each(sendcounts, sendtype, "sendcounts"), caller, in_place));
    if (!in_place) facts.from(Amounts::root_only(facts.bytes(recvcount, recvtype, "recvcount")));
    return facts.done();
}

CheckedCall checked_allgather(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void*,
                              std::int64_t recvcount, MPI_Datatype recvtype) {
    Facts facts("MPI_Allgather", caller);
    const std::int64_t recv = facts.bytes(recvcount, recvtype, "recvcount");
    const std::int64_t send = sendbuf == MPI_IN_PLACE ? recv : facts.bytes(sendcount, sendtype, "sendcount");
    return facts.to(Amounts::each(send)).from(Amounts::each(recv)).done();
}

CheckedCall checked_allgatherv(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void*,
                               Counts recvcounts, Counts, MPI_Datatype recvtype) {
    Facts facts("MPI_Allgatherv", caller);
    std::vector<std::int64_t> recv = facts.bytes_each(recvcounts, recvtype, "recvcounts");
    std::int64_t send = -1;
    if (sendbuf != MPI_IN_PLACE)
        send = facts.bytes(sendcount, sendtype, "sendcount");
    else if (!recv.empty())
        send = recv[static_cast<std::size_t>(caller.rank)];
    return facts.to(Amounts::each(send)).from(Amounts::listed(std::move(recv))).done();
}

CheckedCall checked_bcast(Caller caller, void*, std::int64_t count, MPI_Datatype type, int root) {
    Facts facts("MPI_Bcast", caller);
    facts.root(root);
    return facts.alike(facts.bytes(count, type, "count")).done();
}

CheckedCall checked_alltoall(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void*,
                             std::int64_t recvcount, MPI_Datatype recvtype) {
    Facts facts("MPI_Alltoall", caller);
    const std::int64_t recv = facts.bytes(recvcount, recvtype, "recvcount");
    const std::int64_t send = sendbuf == MPI_IN_PLACE ? recv : facts.bytes(sendcount, sendtype, "sendcount");
    return facts.to(Amounts::each(send)).from(Amounts::each(recv)).done();
}

CheckedCall checked_alltoallv(Caller caller, const void* sendbuf, Counts sendcounts, Counts, MPI_Datatype sendtype,
                              void*, Counts recvcounts, Counts, MPI_Datatype recvtype) {
    Facts facts("MPI_Alltoallv", caller);
    std::vector<std::int64_t> recv = facts.bytes_each(recvcounts, recvtype, "recvcounts");
    facts.to(Amounts::listed(sendbuf == MPI_IN_PLACE ? recv : facts.bytes_each(sendcounts, sendtype, "sendcounts")));
    return facts.from(Amounts::listed(std::move(recv))).done();
}

CheckedCall checked_alltoallw(Caller caller, const void* sendbuf, Counts sendcounts, Counts,
                              const MPI_Datatype* sendtypes, void*, Counts recvcounts, Counts,
                              const MPI_Datatype* recvtypes) {
    Facts facts("MPI_Alltoallw", caller);
    std::vector<std::int64_t> recv = facts.bytes_each(recvcounts, recvtypes, "recvcounts");
    facts.to(Amounts::listed(sendbuf == MPI_IN_PLACE ? recv : facts.bytes_each(sendcounts, sendtypes, "sendcounts")));
    return facts.from(Amounts::listed(std::move(recv))).done();
}

CheckedCall checked_barrier(Caller caller) { return Facts("MPI_Barrier", caller).done(); }

CheckedCall checked_reduce(Caller caller, const void*, void*, std::int64_t count, MPI_Datatype type, MPI_Op op,
                           int root) {
    return checked_vector(Facts("MPI_Reduce", caller).root(root), count, type, op);
}

CheckedCall checked_allreduce(Caller caller, const void*, void*, std::int64_t count, MPI_Datatype type, MPI_Op op) {
    return checked_vector(Facts("MPI_Allreduce", caller), count, type, op);
}

CheckedCall checked_reduce_scatter(Caller caller, const void*, void*, Counts recvcounts, MPI_Datatype type, MPI_Op op) {
    Facts facts("MPI_Reduce_scatter", caller);
    facts.reduces(type, op);
    std::vector<std::int64_t> counts = facts.bytes_each(recvcounts, type, "recvcounts");
    // What i has for j must be as much as what j gets.
    if (!counts.empty()) facts.from(Amounts::each(counts[static_cast<std::size_t>(caller.rank)]));
    return facts.to(Amounts::listed(std::move(counts))).done();
}

CheckedCall checked_reduce_scatter_block(Caller caller, const void*, void*, std::int64_t recvcount, MPI_Datatype type,
                                         MPI_Op op) {
    Facts facts("MPI_Reduce_scatter_block", caller);
    facts.reduces(type, op);
    return facts.alike(facts.bytes(recvcount, type, "recvcount")).done();
}

CheckedCall checked_scan(Caller caller, const void*, void*, std::int64_t count, MPI_Datatype type, MPI_Op op) {
    return checked_vector(Facts("MPI_Scan", caller), count, type, op);
}

CheckedCall checked_exscan(Caller caller, const void*, void*, std::int64_t count, MPI_Datatype type, MPI_Op op) {
    return checked_vector(Facts("MPI_Exscan", caller), count, type, op);
}

}  // namespace palmette::runtime
