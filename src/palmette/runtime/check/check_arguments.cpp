#include "palmette/runtime/check/check_arguments.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/base/text.hpp"

namespace palmette::runtime {
namespace {

using base::cat;
using Fault = CheckedCall::Fault;

/// What a predefined type holds, for people; empty of others: MPI takes any that hold the same, in whatever pieces, and
/// programs take bytes and equal integers for each other.
std::string elements_of(MPI_Datatype type) {
    if (type == MPI_DATATYPE_NULL) return {};
    int numbers = 0, addresses = 0, types = 0, combiner = 0;
    if (PMPI_Type_get_envelope(type, &numbers, &addresses, &types, &combiner) != MPI_SUCCESS ||
        combiner != MPI_COMBINER_NAMED)
        return {};
    std::array<char, MPI_MAX_OBJECT_NAME + 1> text{};
    int length = 0;
    if (PMPI_Type_get_name(type, text.data(), &length) != MPI_SUCCESS) return {};
    const std::string_view name(text.data());
    const auto has = [&](const char* part) { return name.find(part) != std::string_view::npos; };
    if (has("BYTE") || has("PACKED") || has("CHAR")) return {};
    if (name.ends_with("_INT") && !has("LONG_LONG")) {
        if (has("FLOAT") || has("DOUBLE") || has("SHORT") || has("LONG")) return "pairs";
    }
    if (has("_2INT") || has("_2REAL") || has("_2DOUBLE")) return "pairs";
    if (has("COMPLEX")) return "complex numbers";
    if (has("FLOAT") || has("DOUBLE") || has("REAL")) return "floating-point numbers";
    if (has("BOOL") || has("LOGICAL")) return "logical values";
    return has("INT") || has("LONG") || has("SHORT") || has("UNSIGNED") || has("AINT") || has("COUNT") ? "integers"
                                                                                                       : "";
}

/// Collects a call's arguments, and the first one that is invalid by itself.
class Facts {
  public:
    Facts(select::Function function, Caller caller) : caller_(caller) {
        out_.function = cat("MPI_", select::name_of(function));
        out_.function[4] = static_cast<char>(out_.function[4] - 'a' + 'A');
    }

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
    /// Bytes of each rank's block of a side that has one for each; `name`: the parameter of its count.
    std::vector<std::int64_t> bytes_each(const Side& side, const char* name) {
        std::vector<std::int64_t> out;
        if (side.form == Side::Form::alike) {
            out.assign(static_cast<std::size_t>(caller_.size), bytes(side.count, side.type, name));
            return out;
        }
        const bool typed = side.form == Side::Form::typed;
        if (typed && !side.types) fault(Fault::type, cat("no types with its ", name, "s"));
        if (!side.counts) fault(Fault::count, cat("no ", name, "s"));
        for (int r = 0; side.counts && r < caller_.size; ++r) {
            MPI_Datatype type = !typed ? side.type : side.types ? side.types[r] : MPI_DATATYPE_NULL;
            out.push_back(bytes(side.counts[r], type, cat(name, "s[", r, "]").c_str()));
        }
        return out;
    }

    /// Notes the elements of a side that other ranks' sides must fit, where this rank's counts.
    Facts& elements(const Side& side) {
        if (side.form != Side::Form::typed) out_.elements = elements_of(side.type);
        return *this;
    }
    Facts& reduces(MPI_Datatype type, MPI_Op op) {
        if (op == MPI_OP_NULL) fault(Fault::op, "MPI_OP_NULL");
        out_.op = op_text(op);
        out_.type_bytes = bytes(1, type, "count");
        out_.elements = elements_of(type);
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

/// The root's side, which holds a block for each rank, is `all`; the root's own isn't compared where that is in place.
Amounts without_own(std::vector<std::int64_t> all, Caller caller, bool in_place) {
    if (in_place && !all.empty()) all[static_cast<std::size_t>(caller.rank)] = -1;
    return Amounts::listed(std::move(all));
}

}  // namespace

CheckedCall checked_call(Caller caller, const CallArguments& arguments) {
    using select::Function;
    const Side& send = arguments.send;
    const Side& recv = arguments.recv;
    Facts facts(arguments.function, caller);
    switch (arguments.function) {
        case Function::gather:
        case Function::gatherv: {
            facts.root(arguments.root);
            const bool in_place = facts.at_root() && send.in_place();
            if (!in_place) facts.to(Amounts::root_only(facts.bytes(send.count, send.type, "sendcount")));
            facts.elements(facts.at_root() ? recv : send);
            if (facts.at_root()) facts.from(without_own(facts.bytes_each(recv, "recvcount"), caller, in_place));
            break;
        }
        case Function::scatter:
        case Function::scatterv: {
            facts.root(arguments.root);
            const bool in_place = facts.at_root() && recv.in_place();
            if (facts.at_root()) facts.to(without_own(facts.bytes_each(send, "sendcount"), caller, in_place));
            if (!in_place) facts.from(Amounts::root_only(facts.bytes(recv.count, recv.type, "recvcount")));
            facts.elements(facts.at_root() ? send : recv);
            break;
        }
        case Function::allgather:
        case Function::allgatherv: {
            std::vector<std::int64_t> all = facts.bytes_each(recv, "recvcount");
            std::int64_t own = -1;
            if (!send.in_place())
                own = facts.bytes(send.count, send.type, "sendcount");
            else if (!all.empty())
                own = all[static_cast<std::size_t>(caller.rank)];
            facts.to(Amounts::each(own)).from(Amounts::listed(std::move(all))).elements(recv);
            break;
        }
        case Function::alltoall:
        case Function::alltoallv:
        case Function::alltoallw: {
            std::vector<std::int64_t> from = facts.bytes_each(recv, "recvcount");
            facts.to(Amounts::listed(send.in_place() ? from : facts.bytes_each(send, "sendcount")));
            facts.from(Amounts::listed(std::move(from))).elements(recv);
            break;
        }
        case Function::barrier:
            break;
        case Function::bcast:
            facts.root(arguments.root);
            facts.alike(facts.bytes(send.count, send.type, "count")).elements(send);
            break;
        case Function::reduce:
            facts.root(arguments.root);
            [[fallthrough]];
        case Function::allreduce:
        case Function::scan:
        case Function::exscan:
            facts.reduces(send.type, arguments.op);
            facts.alike(facts.bytes(send.count, send.type, "count"));
            break;
        case Function::reduce_scatter_block:
            facts.reduces(recv.type, arguments.op);
            facts.alike(facts.bytes(recv.count, recv.type, "recvcount"));
            break;
        case Function::reduce_scatter: {
            facts.reduces(recv.type, arguments.op);
            std::vector<std::int64_t> counts = facts.bytes_each(recv, "recvcount");
            // What rank i contributes for rank j must be as long as what j receives.
            if (!counts.empty()) facts.from(Amounts::each(counts[static_cast<std::size_t>(caller.rank)]));
            facts.to(Amounts::listed(std::move(counts)));
            break;
        }
        case Function::neighbor_allgather:
        case Function::neighbor_allgatherv:
        case Function::neighbor_alltoall:
        case Function::neighbor_alltoallv:
        case Function::neighbor_alltoallw:
            break;
    }
    return facts.done();
}

}  // namespace palmette::runtime
