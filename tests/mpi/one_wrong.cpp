// Arguments that are wrong at one rank alone: it gets the error of the MPI, and nobody waits for it; collectives go on
// working afterwards. Where the MPI finds the error before it communicates, this rank may also repeat the call alone.
//
//     one_wrong [--timeout SECONDS]

#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "support/outcome.hpp"
#include "support/predefined.hpp"

using namespace test;

namespace {

constexpr int count = 40;
int ranks = 1;

/// The arguments of one call as every rank has them when they are right, with room for twice as much.
struct Call {
    std::vector<int> from, to, counts, places;
    void *send, *recv;
    int sendcount = count, recvcount = count;
    MPI_Datatype sendtype = MPI_INT, recvtype = MPI_INT;

    Call()
        : from(static_cast<std::size_t>(2 * count * ranks), world_rank + 1),
          to(from.size(), -1),
          counts(static_cast<std::size_t>(ranks), count),
          send(from.data()),
          recv(to.data()) {
        for (int r = 0; r < ranks; ++r) places.push_back(r * count);
    }
};

struct Case {
    std::string name;
    int wrong;                         ///< the rank
    std::function<void(Call&)> spoil;  ///< there only
    std::function<void(Call&)> agree;  ///< on all ranks, so that nothing else is wrong
    std::function<int(Call&, MPI_Request*)> call;
    int error;
};

int class_of(int code) {
    int result = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &result);
    return result;
}

std::vector<Case> cases() {
    const int root = ranks - 1;
    MPI_Comm world = MPI_COMM_WORLD;
#ifdef OPEN_MPI
    // It doesn't look for input that is the output.
    const int aliased = MPI_SUCCESS;
#else
    const int aliased = MPI_ERR_BUFFER;
#endif
    const auto none_from_1 = [](Call& c) { c.counts[1] = 0; };
    const auto nothing = [](Call&) {};
    const auto gatherv = [=](Call& c, MPI_Request*) {
        return MPI_Gatherv(c.send, world_rank == 1 ? 0 : c.sendcount, c.sendtype, c.recv, c.counts.data(),
                           c.places.data(), c.recvtype, root, world);
    };
    const auto igatherv = [=](Call& c, MPI_Request* request) {
        return MPI_Igatherv(c.send, world_rank == 1 ? 0 : c.sendcount, c.sendtype, c.recv, c.counts.data(),
                            c.places.data(), c.recvtype, root, world, request);
    };
    const auto scatterv = [=](Call& c, MPI_Request*) {
        return MPI_Scatterv(c.send, c.counts.data(), c.places.data(), c.sendtype, c.recv,
                            world_rank == 1 ? 0 : c.recvcount, c.recvtype, root, world);
    };
    const auto alltoallv = [=](Call& c, MPI_Request*) {
        std::vector<int> mine =
            world_rank == 1 ? std::vector<int>(c.counts.size(), 0) : std::vector<int>(c.counts.size(), count);
        return MPI_Alltoallv(c.send, mine.data(), c.places.data(), c.sendtype, c.recv, c.counts.data(), c.places.data(),
                             c.recvtype, world);
    };
    const auto ialltoallv = [=](Call& c, MPI_Request* request) {
        // Kept until the operation has ended where there is no error; gone at once where there is one.
        static std::vector<int> mine;
        mine.assign(c.counts.size(), world_rank == 1 ? 0 : count);
        const int code = MPI_Ialltoallv(c.send, mine.data(), c.places.data(), c.sendtype, c.recv, c.counts.data(),
                                        c.places.data(), c.recvtype, world, request);
        if (code != MPI_SUCCESS) {
            mine.assign(mine.size(), -1234567);
            c.counts.assign(c.counts.size(), -1234567);
            c.places.assign(c.places.size(), -1234567);
            c.from.assign(c.from.size(), 0);
        }
        return code;
    };
    const auto ialltoall = [=](Call& c, MPI_Request* request) {
        return MPI_Ialltoall(c.send, c.sendcount, c.sendtype, c.recv, c.recvcount, c.recvtype, world, request);
    };
    const auto from_bottom = [=](Call& c, MPI_Request*) -> int {
        const auto at = [](void* buffer) {
            MPI_Aint address = 0;
            int length = 1;
            MPI_Datatype type = MPI_DATATYPE_NULL;
            MPI_Get_address(buffer, &address);
            MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &type);
            MPI_Type_commit(&type);
            return type;
        };
        const std::vector<int> ones(c.counts.size(), 1), zeros(c.counts.size(), 0);
        std::vector<MPI_Datatype> out, in;
        for (int r = 0; r < ranks; ++r) out.push_back(at(&c.from[static_cast<std::size_t>(r)]));
        for (int r = 0; r < ranks; ++r) in.push_back(at(&c.to[static_cast<std::size_t>(r)]));
        const int code = MPI_Alltoallw(MPI_BOTTOM, ones.data(), zeros.data(), out.data(), MPI_BOTTOM, ones.data(),
                                       zeros.data(), in.data(), world);
        for (std::vector<MPI_Datatype>* types : {&out, &in})
            for (MPI_Datatype& type : *types) MPI_Type_free(&type);
        for (int r = 0; r < ranks; ++r)
            if (c.to[static_cast<std::size_t>(r)] != r + 1) return MPI_ERR_OTHER;
        return code;
    };
    const auto gather = [=](Call& c, MPI_Request*) {
        return MPI_Gather(c.send, c.sendcount, c.sendtype, c.recv, c.recvcount, c.recvtype, root, world);
    };
    const auto scatter = [=](Call& c, MPI_Request*) {
        return MPI_Scatter(c.send, c.sendcount, c.sendtype, c.recv, c.recvcount, c.recvtype, root, world);
    };
    const auto allgather = [=](Call& c, MPI_Request*) {
        return MPI_Allgather(c.send, c.sendcount, c.sendtype, c.recv, c.recvcount, c.recvtype, world);
    };
    const auto alltoall = [=](Call& c, MPI_Request*) {
        return MPI_Alltoall(c.send, c.sendcount, c.sendtype, c.recv, c.recvcount, c.recvtype, world);
    };
    const auto allreduce = [=](Call& c, MPI_Request*) {
        return MPI_Allreduce(c.send, c.recv, c.sendcount, MPI_INT, MPI_SUM, world);
    };
    const auto reduce = [=](Call& c, MPI_Request*) {
        return MPI_Reduce(c.send, c.recv, c.sendcount, MPI_INT, MPI_SUM, root, world);
    };
    const auto no_type_to_send = [](Call& c) { c.sendtype = MPI_DATATYPE_NULL; };
    const auto no_type_to_get = [](Call& c) { c.recvtype = MPI_DATATYPE_NULL; };
    const auto alias = [](Call& c) { c.recv = c.send; };
    const auto alias_own_block = [](Call& c) { c.recv = c.from.data(), c.send = c.from.data() + world_rank * count; };
    return {
        {"gatherv: no type for no elements", 1, no_type_to_send, none_from_1, gatherv, MPI_ERR_TYPE},
        {"igatherv: no type for no elements", 1, no_type_to_send, none_from_1, igatherv, MPI_ERR_TYPE},
        {"ialltoallv: no type for no elements", 1, no_type_to_send, none_from_1, ialltoallv, MPI_ERR_TYPE},
        {"ialltoall: input is the output", 1, alias, nothing, ialltoall, aliased},
        {"scatterv: no type for no elements", 1, no_type_to_get, none_from_1, scatterv, MPI_ERR_TYPE},
        {"alltoallv: no type for no elements", 1, no_type_to_send, none_from_1, alltoallv, MPI_ERR_TYPE},
        {"gather: the root's count is too small", root, [](Call& c) { c.recvcount = count / 2; }, nothing, gather,
         MPI_ERR_TRUNCATE},
        {"gather: the root has no type", root, no_type_to_get, nothing, gather, MPI_ERR_TYPE},
        {"gather: the root's input is its output", root, alias_own_block, nothing, gather, aliased},
        {"reduce: the root's input is its output", root, alias, nothing, reduce, aliased},
        {"scatter: the root's count is negative", root, [](Call& c) { c.sendcount = -1; }, nothing, scatter,
         MPI_ERR_COUNT},
        {"allgather: one sends less", 1, [](Call& c) { c.sendcount = count / 2; }, nothing, allgather,
         MPI_ERR_TRUNCATE},
        {"allgather: one has no type", 1, no_type_to_get, nothing, allgather, MPI_ERR_TYPE},
        {"alltoall: one sends more", 1, [](Call& c) { c.sendcount = 2 * count; }, nothing, alltoall, MPI_ERR_TRUNCATE},
        {"alltoall: input is the output", 1, alias, nothing, alltoall, aliased},
        {"allreduce: input is the output", 1, alias, nothing, allreduce, aliased},
        {"alltoallw: both at MPI_BOTTOM, which is right", 1, nothing, nothing, from_bottom, MPI_SUCCESS},
    };
}

void run(const Case& one, Outcome& outcome) {
    std::snprintf(doing, sizeof doing, "%s", one.name.c_str());
    const bool wrong = world_rank == one.wrong;
    Call call;
    one.agree(call);
    if (wrong) one.spoil(call);
    MPI_Request request = MPI_REQUEST_NULL;
    int code = one.call(call, &request);
    if (code != MPI_SUCCESS) outcome.check(request == MPI_REQUEST_NULL, "%s: a request to wait for", one.name.c_str());
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    const int expected = wrong ? one.error : MPI_SUCCESS;
    outcome.check(class_of(code) == expected, "%s: class %d, not %d", one.name.c_str(), class_of(code), expected);
    std::snprintf(doing, sizeof doing, "after %s", one.name.c_str());
    int value = world_rank, sum = -1;
    code = MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    outcome.check(code == MPI_SUCCESS && sum == ranks * (ranks - 1) / 2, "after %s: %d", one.name.c_str(), sum);
    Call again;
    code = MPI_Allgather(again.send, count, MPI_INT, again.recv, count, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; ++r)
        outcome.check(code == MPI_SUCCESS && again.to[static_cast<std::size_t>(r * count)] == r + 1,
                      "block %d after %s", r, one.name.c_str());
}

/// The others make the call once.
void run_repeated(const Case& one, Outcome& outcome) {
    if (one.error == MPI_ERR_TRUNCATE || one.name.starts_with("i") || one.name.starts_with("alltoallv")) return;
    std::snprintf(doing, sizeof doing, "%s, repeated", one.name.c_str());
    for (int time = 0; time < 2; ++time) {
        Call call, again;
        for (Call* each : {&call, &again}) one.agree(*each);
        if (world_rank == one.wrong) one.spoil(call);
        MPI_Request request = MPI_REQUEST_NULL;
        int code = one.call(call, &request);
        const int expected = world_rank == one.wrong ? one.error : MPI_SUCCESS;
        outcome.check(class_of(code) == expected, "%s, to be repeated: class %d", one.name.c_str(), class_of(code));
        if (code != MPI_SUCCESS) {
            code = one.call(again, &request);
            outcome.check(code == MPI_SUCCESS, "%s, repeated: class %d", one.name.c_str(), class_of(code));
        }
        // The next one is the same, or another one.
        int value = world_rank + 1, sum = -1;
        if (time == 1) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        outcome.check(time == 0 || sum == ranks * (ranks + 1) / 2, "after %s was repeated: %d", one.name.c_str(), sum);
    }
}

/// An operation that one rank alone can't make; the next one is made and runs as if nothing had been.
void run_persistent(Outcome& outcome) {
#if MPI_VERSION >= 4 || defined(OPEN_MPI)
    std::snprintf(doing, sizeof doing, "persistent allgather");
    Call call;
    if (world_rank == 1) call.recvtype = MPI_DATATYPE_NULL;
    MPI_Request wrong = MPI_REQUEST_NULL, right = MPI_REQUEST_NULL;
    int code = MPI_Allgather_init(call.send, count, MPI_INT, call.recv, count, call.recvtype, MPI_COMM_WORLD,
                                  MPI_INFO_NULL, &wrong);
    const int expected = world_rank == 1 ? MPI_ERR_TYPE : MPI_SUCCESS;
    outcome.check(class_of(code) == expected, "persistent allgather: class %d, not %d", class_of(code), expected);
    for (int turn = 0; turn < 3; ++turn) {
        Call again;
        code = MPI_Allgather_init(again.send, count, MPI_INT, again.recv, count, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
                                  &right);
        outcome.check(code == MPI_SUCCESS, "persistent allgather after it: %d", code);
        MPI_Start(&right);
        MPI_Wait(&right, MPI_STATUS_IGNORE);
        for (int r = 0; r < ranks; ++r)
            outcome.check(again.to[static_cast<std::size_t>(r * count)] == r + 1, "block %d of persistent allgather",
                          r);
        MPI_Request_free(&right);
    }
    if (wrong != MPI_REQUEST_NULL) MPI_Request_free(&wrong);
#else
    (void)outcome;
#endif
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    Outcome outcome;
    for (const Case& one : cases()) {
        watch(static_cast<unsigned>(option(argc, argv, "--timeout", 30)));
        run(one, outcome);
        run_repeated(one, outcome);
    }
    watch(static_cast<unsigned>(option(argc, argv, "--timeout", 30)));
    run_persistent(outcome);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
