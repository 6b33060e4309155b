#include "palmette/runtime/check/check.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

namespace palmette::runtime {
namespace {

using Fault = CheckedCall::Fault;

/// Serialises a call into one message.
class Writer {
  public:
    void number(std::int64_t value) {
        const auto* bytes = reinterpret_cast<const char*>(&value);
        data_.insert(data_.end(), bytes, bytes + sizeof value);
    }
    void text(const std::string& value) {
        number(static_cast<std::int64_t>(value.size()));
        data_.insert(data_.end(), value.begin(), value.end());
    }
    void amounts(const Amounts& value) {
        number(static_cast<std::int64_t>(value.kind));
        number(static_cast<std::int64_t>(value.bytes.size()));
        for (const std::int64_t bytes : value.bytes) number(bytes);
    }
    const std::vector<char>& data() const { return data_; }

  private:
    std::vector<char> data_;
};

class Reader {
  public:
    explicit Reader(const std::vector<char>& data) : at_(data.data()) {}
    std::int64_t number() {
        std::int64_t value = 0;
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::string text() {
        const auto length = static_cast<std::size_t>(number());
        std::string value(at_, length);
        at_ += length;
        return value;
    }
    Amounts amounts() {
        Amounts value;
        value.kind = static_cast<Amounts::Kind>(number());
        value.bytes.resize(static_cast<std::size_t>(number()));
        for (std::int64_t& bytes : value.bytes) bytes = number();
        return value;
    }

  private:
    const char* at_;
};

std::vector<char> pack(const CheckedCall& call) {
    Writer out;
    out.text(call.function);
    out.number(call.root);
    out.number(call.bytes);
    out.number(call.type_bytes);
    out.text(call.op);
    out.amounts(call.to);
    out.amounts(call.from);
    out.number(static_cast<std::int64_t>(call.fault));
    out.text(call.faulty);
    return out.data();
}

CheckedCall unpack(const std::vector<char>& data) {
    Reader in(data);
    CheckedCall call;
    call.function = in.text();
    call.root = in.number();
    call.bytes = in.number();
    call.type_bytes = in.number();
    call.op = in.text();
    call.to = in.amounts();
    call.from = in.amounts();
    call.fault = static_cast<Fault>(in.number());
    call.faulty = in.text();
    return call;
}

int error_class(Fault fault) {
    switch (fault) {
        case Fault::none:
            return MPI_SUCCESS;
        case Fault::root:
            return MPI_ERR_ROOT;
        case Fault::count:
            return MPI_ERR_COUNT;
        case Fault::type:
            return MPI_ERR_TYPE;
        case Fault::op:
            return MPI_ERR_OP;
        case Fault::function:
        case Fault::other:
            break;
    }
    return MPI_ERR_OTHER;
}

std::string comm_text(MPI_Comm comm, int size) {
    std::array<char, MPI_MAX_OBJECT_NAME + 1> name{};
    int length = 0;
    if (PMPI_Comm_get_name(comm, name.data(), &length) != MPI_SUCCESS || length == 0)
        return "a communicator of " + std::to_string(size) + " ranks";
    return std::string(name.data()) + " (" + std::to_string(size) + " ranks)";
}

/// Rank 0's part: receives all calls and judges them. Stops at an MPI error.
int collect(const CheckedCall& mine, MPI_Comm shadow_comm, int size, int tag, std::optional<Verdict>& verdict) {
    std::vector<CheckedCall> calls{mine};
    std::vector<char> data;
    for (int rank = 1; rank < size; ++rank) {
        MPI_Status status;
        if (const int error = PMPI_Probe(rank, tag, shadow_comm, &status)) return error;
        int bytes = 0;
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        data.resize(static_cast<std::size_t>(bytes));
        if (const int error = PMPI_Recv(data.data(), bytes, MPI_BYTE, rank, tag, shadow_comm, MPI_STATUS_IGNORE))
            return error;
        calls.push_back(unpack(data));
    }
    verdict = judge(calls);
    return MPI_SUCCESS;
}

}  // namespace

int check_call(const CheckedCall& mine, MPI_Comm comm, MPI_Comm shadow_comm, int tag) {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(shadow_comm, &rank);
    PMPI_Comm_size(shadow_comm, &size);
    int result = MPI_SUCCESS;
    if (rank != 0) {
        const std::vector<char> data = pack(mine);
        if (const int error = PMPI_Send(data.data(), static_cast<int>(data.size()), MPI_BYTE, 0, tag, shadow_comm))
            return error;
        const int error = PMPI_Recv(&result, 1, MPI_INT, 0, tag, shadow_comm, MPI_STATUS_IGNORE);
        return error != MPI_SUCCESS ? error : result;
    }
    std::optional<Verdict> verdict;
    if (const int error = collect(mine, shadow_comm, size, tag, verdict)) return error;
    if (verdict) {
        result = error_class(verdict->fault);
        // Reported before any rank gets the error: its error handler may end the job.
        std::fprintf(stderr, "palmette: %s on %s: %s\n",
                     verdict->fault == Fault::function ? "a collective" : mine.function.c_str(),
                     comm_text(comm, size).c_str(), verdict->text.c_str());
        std::fflush(stderr);
    }
    for (int other = 1; other < size; ++other)
        if (const int error = PMPI_Send(&result, 1, MPI_INT, other, tag, shadow_comm)) return error;
    return result;
}

std::string op_text(MPI_Op op) {
    const std::array<std::pair<MPI_Op, const char*>, 14> known = {{{MPI_MAX, "MPI_MAX"},
                                                                   {MPI_MIN, "MPI_MIN"},
                                                                   {MPI_SUM, "MPI_SUM"},
                                                                   {MPI_PROD, "MPI_PROD"},
                                                                   {MPI_LAND, "MPI_LAND"},
                                                                   {MPI_BAND, "MPI_BAND"},
                                                                   {MPI_LOR, "MPI_LOR"},
                                                                   {MPI_BOR, "MPI_BOR"},
                                                                   {MPI_LXOR, "MPI_LXOR"},
                                                                   {MPI_BXOR, "MPI_BXOR"},
                                                                   {MPI_MAXLOC, "MPI_MAXLOC"},
                                                                   {MPI_MINLOC, "MPI_MINLOC"},
                                                                   {MPI_REPLACE, "MPI_REPLACE"},
                                                                   {MPI_NO_OP, "MPI_NO_OP"}}};
    for (const auto& [handle, name] : known)
        if (handle == op) return name;
    if (op == MPI_OP_NULL) return "MPI_OP_NULL";
    int commutes = 1;
    PMPI_Op_commutative(op, &commutes);
    return commutes ? "(user-defined, commutative)" : "(user-defined, non-commutative)";
}

}  // namespace palmette::runtime
