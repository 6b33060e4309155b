// All collectives of libsharp_coll's interface, as another library than palmette may call them: blocking and
// nonblocking ones, in place, with registered memory and without. Every rank is a member.
//
//     sharp_calls LIBRARY

#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "palmette/aggregate/sharp/api.hpp"
#include "support/outcome.hpp"

using namespace test;
using namespace palmette::aggregate::sharp;

namespace {

void* library = nullptr;
int ranks = 0;

template <class Function>
Function* function(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
}

DataDescription describe(void* data, std::size_t bytes, void* memory) {
    DataDescription out{};
    out.buffer.data = data;
    out.buffer.bytes = bytes;
    out.buffer.memory = memory;
    return out;
}

int bcast(void* comm, void* data, int bytes, int root) {
    return MPI_Bcast(data, bytes, MPI_BYTE, root, *static_cast<MPI_Comm*>(comm));
}
int barrier(void* comm) { return MPI_Barrier(*static_cast<MPI_Comm*>(comm)); }
int gather(void* comm, int root, void* from, void* to, int bytes) {
    return MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, root, *static_cast<MPI_Comm*>(comm));
}

using Numbers = std::vector<std::int64_t>;

/// i-th number of a rank, and the sum of all ranks' numbers.
std::int64_t own(int rank, std::size_t i) { return (rank + 1) * (static_cast<std::int64_t>(i) % 1000 + 1); }
std::int64_t sum(std::size_t i) { return ranks * (ranks + 1) / 2 * (static_cast<std::int64_t>(i) % 1000 + 1); }

Numbers input(std::size_t count) {
    Numbers out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = own(world_rank, i);
    return out;
}

bool is_sum(const Numbers& numbers, std::size_t first = 0) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
        if (numbers[i] != sum(first + i)) return false;
    return true;
}

class Calls {
  public:
    Calls(Context* context, Comm* comm, Outcome& outcome) : context_(context), comm_(comm), outcome_(outcome) {}

    void run(std::size_t count) {
        const std::size_t bytes = count * sizeof(std::int64_t);
        Numbers from = input(count), to(count);
        ReduceSpec spec{};
        spec.type = type_int64;
        spec.op = op_sum;
        spec.count = count;
        spec.from = describe(from.data(), bytes, nullptr);
        spec.to = describe(to.data(), bytes, nullptr);
        const auto allreduce = function<int(Comm*, ReduceSpec*)>("sharp_coll_do_allreduce");
        outcome_.check(allreduce(comm_, &spec) == 0 && is_sum(to), "allreduce of %zu", count);

        void* memory = nullptr;
        const int registered = function<int(Context*, void*, std::size_t, void**)>("sharp_coll_reg_mr")(
            context_, from.data(), bytes, &memory);
        spec.from = spec.to = describe(from.data(), bytes, memory);
        void* handle = nullptr;
        const auto begin = function<int(Comm*, ReduceSpec*, void**)>("sharp_coll_do_allreduce_nb");
        outcome_.check(registered == 0 && begin(comm_, &spec, &handle) == 0 && finish(handle) && is_sum(from),
                       "nonblocking allreduce of %zu in place", count);
        spec.from = describe(to.data(), bytes, memory);
        outcome_.check(begin(comm_, &spec, &handle) == error_invalid, "memory that isn't registered");
        outcome_.check(function<int(Context*, void*)>("sharp_coll_dereg_mr")(context_, memory) == 0, "dereg_mr");

        from = input(count);
        to.assign(count, -1);
        spec.from = describe(from.data(), bytes, nullptr);
        spec.to = describe(to.data(), bytes, nullptr);
        spec.root = ranks - 1;
        const int reduced = function<int(Comm*, ReduceSpec*)>("sharp_coll_do_reduce")(comm_, &spec);
        const bool right = world_rank == ranks - 1 ? is_sum(to) : to == Numbers(count, -1);
        outcome_.check(reduced == 0 && right, "reduce of %zu", count);

        const auto all = static_cast<std::size_t>(ranks);
        from = input(count * all);
        spec.from = describe(from.data(), bytes * all, nullptr);
        const int scattered = function<int(Comm*, ReduceSpec*)>("sharp_coll_do_reduce_scatter")(comm_, &spec);
        outcome_.check(scattered == 0 && is_sum(to, count * static_cast<std::size_t>(world_rank)),
                       "reduce_scatter of %zu", count);

        Numbers data = world_rank == 1 ? input(count) : Numbers(count);
        BcastSpec broadcast{};
        broadcast.root = 1;
        broadcast.data = describe(data.data(), bytes, nullptr);
        broadcast.bytes = bytes;
        const int sent = function<int(Comm*, BcastSpec*)>("sharp_coll_do_bcast")(comm_, &broadcast);
        bool same = true;
        for (std::size_t i = 0; i < count; ++i) same = same && data[i] == own(1, i);
        outcome_.check(sent == 0 && same, "bcast of %zu", count);

        data = input(count);
        Numbers gathered(count * all);
        GatherSpec collect{};
        collect.from = describe(data.data(), bytes, nullptr);
        collect.to = describe(gathered.data(), bytes * all, nullptr);
        collect.type = type_int64;
        collect.size = count;
        const auto gather_nb = function<int(Comm*, GatherSpec*, void**)>("sharp_coll_do_allgather_nb");
        same = gather_nb(comm_, &collect, &handle) == 0 && finish(handle);
        for (int rank = 0; rank < ranks; ++rank)
            for (std::size_t i = 0; i < count; ++i)
                same = same && gathered[static_cast<std::size_t>(rank) * count + i] == own(rank, i);
        outcome_.check(same, "allgather of %zu", count);
        outcome_.check(function<int(Comm*)>("sharp_coll_do_barrier")(comm_) == 0, "barrier");

        spec.op = op_prod;
        outcome_.check(allreduce(comm_, &spec) == error_unsupported, "products");
    }

  private:
    bool finish(void* handle) {
        while (function<int(void*)>("sharp_coll_req_test")(handle) == 0)
            function<int(Context*)>("sharp_coll_progress")(context_);
        return function<int(void*)>("sharp_coll_req_free")(handle) == 0;
    }

    Context* context_;
    Comm* comm_;
    Outcome& outcome_;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm world = MPI_COMM_WORLD;
    Outcome outcome;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    InitSpec spec{};
    spec.job_id = 7;
    spec.world_rank = world_rank;
    spec.world_size = ranks;
    spec.config = *function<const Config>("sharp_coll_default_config");
    spec.out_of_band = {bcast, barrier, gather};
    spec.out_of_band_context = &world;
    Context* context = nullptr;
    Comm* comm = nullptr;
    outcome.check(function<int(InitSpec*, Context**)>("sharp_coll_init")(&spec, &context) == 0, "init");
    CommSpec members{};
    std::vector<std::uint32_t> numbers(static_cast<std::size_t>(ranks));
    std::iota(numbers.begin(), numbers.end(), 0);
    members.rank = world_rank;
    members.size = ranks;
    members.out_of_band_context = &world;
    members.group_world_ranks = numbers.data();
    outcome.check(function<int(Context*, CommSpec*, Comm**)>("sharp_coll_comm_init")(context, &members, &comm) == 0,
                  "comm_init");
    for (const std::size_t count : {1, 17, 5000}) Calls(context, comm, outcome).run(count);
    outcome.check(function<int(Comm*)>("sharp_coll_comm_destroy")(comm) == 0, "comm_destroy");
    outcome.check(function<int(Context*)>("sharp_coll_finalize")(context) == 0, "finalize");
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
