// The six collectives with random arguments through MPI_ and through PMPI_: every byte of every buffer must be equal,
// those between and around the data included.
//
//     random_arguments [--seed N] [--first N] [--cases N] [--patience SECONDS] [--by-packing 1]

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/buffer.hpp"
#include "support/call.hpp"
#include "support/layouts.hpp"
#include "support/outcome.hpp"
#include "support/rng.hpp"

using namespace test;

namespace {

struct Communicator {
    std::string name;
    MPI_Comm comm;
};

/// The communicators of a run. Some ranks may have no part in one (MPI_COMM_NULL).
std::vector<Communicator> communicators(std::uint64_t seed) {
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<Communicator> result = {{"world", MPI_COMM_WORLD}, {"self", MPI_COMM_SELF}};
    auto add = [&](const char* name, int color, int key) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
        result.push_back({name, comm});
    };
    MPI_Comm dup = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    result.push_back({"dup", dup});
    add("parity", rank % 2, rank);
    add("reversed", 0, -rank);
    std::vector<int> order;
    for (int i = 0; i < size; ++i) order.push_back(i);
    Rng rng(seed, 1U << 30, 0);
    rng.shuffle(order);
    add("shuffled", 0, order[static_cast<std::size_t>(rank)]);
    add("some", order[static_cast<std::size_t>(rank)] % 3 == 0 ? MPI_UNDEFINED : 1, rank);
    return result;
}

/// Units of data that each rank contributes or gets, and the number that divides all of them.
struct Sizes {
    std::vector<int> units;
    int grain;
};

Sizes sizes(Rng& shared, Function function, int ranks, int unit_bytes, bool large) {
    static const std::vector<int> grains = {1, 2, 3, 4, 6, 12};
    Sizes result{{}, shared.pick(grains)};
    // Mostly small, to get through many; some beyond the sizes at which MPIs change their protocol.
    int limit = shared.one_in(25) ? 100000 : shared.one_in(4) ? 9000 : 300;
    if (!large) limit = std::min(limit, 1000);
    const int most = std::max(1, limit / unit_bytes / result.grain);
    const int common = shared.one_in(8) ? 0 : shared.between(1, most);
    for (int i = 0; i < ranks; ++i) {
        int count = common;
        if (is_v(function)) count = shared.one_in(5) ? 0 : shared.between(0, most);
        result.units.push_back(count * result.grain);
    }
    return result;
}

/// One side of a call: its type and number of items.
struct Side {
    Layout layout;
    int count(int units) const { return layout.units() == 0 ? 3 : units / layout.units(); }
};

int divisor(Rng& rng, int grain) {
    int units = 0;
    do units = rng.between(1, grain);
    while (grain % units != 0);
    return units;
}

/// Counts and displacements of a v form: blocks in any order, with gaps.
struct Spread {
    std::vector<int> counts, displs;
    int items = 0;
};

Spread spread(Rng& rng, const Side& side, const std::vector<int>& units) {
    Spread result;
    const std::size_t ranks = units.size();
    result.counts.resize(ranks);
    result.displs.resize(ranks);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < ranks; ++i) order.push_back(i);
    if (rng.one_in(2)) rng.shuffle(order);
    const bool gaps = rng.one_in(2);
    for (std::size_t rank : order) {
        if (gaps) result.items += rng.below(3);
        result.counts[rank] = side.count(units[rank]);
        result.displs[rank] = result.items;
        result.items += result.counts[rank];
    }
    return result;
}

/// How a run compares, and what it leaves out because of the MPI underneath.
struct Mode {
    /// With data that were packed and unpacked instead of with what PMPI_ does.
    bool by_packing;
    /// Basic types only: Intel MPI 2021.18 writes outside of buffers when its collectives meet derived types.
    bool plain;
};

bool is_intel() {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    return std::strstr(version, "Intel") != nullptr;
}

/// What a call returned and left in memory.
struct Result {
    Buffer one, many;
    int code = MPI_SUCCESS;
    bool operator==(const Result& other) const = default;
};

class Case {
  public:
    Case(std::uint64_t seed, long number, const Communicator& where, const Mode& mode)
        : number_(number),
          where_(where),
          mode_(mode),
          shared_(seed, static_cast<std::uint64_t>(number), 0),
          own_(seed, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(world_rank) + 1) {}

    /// `rival`: counts the cases in which PMPI_ is wrong and MPI_ isn't.
    void run(Outcome& outcome, Outcome& rival) {
        MPI_Comm_rank(where_.comm, &rank_);
        MPI_Comm_size(where_.comm, &size_);
        const auto function = static_cast<Function>(shared_.below(6));
        const Unit unit(shared_);
        // MPICH 5.0.2 ends the job ("signature does not match") in its own gather of structures that take several parts.
        const bool large_blocks = mode_.by_packing || unit.members() == 1;
        const Sizes blocks = sizes(shared_, function, size_, unit.size_bytes(), large_blocks);
        const int root = static_cast<int>(shared_.next() % static_cast<std::uint64_t>(size_));
        const bool in_place = shared_.one_in(4);
        const int mine = blocks.units[static_cast<std::size_t>(rank_)];
        const int all = size_ * (*std::max_element(blocks.units.begin(), blocks.units.end()) + 3);
        const bool holds_all = !is_rooted(function) || rank_ == root;

        // "one": this rank's block; "many": the blocks of all ranks, on those that have them.
        // A zero-size type is everyone's or nobody's: MPICH and Open MPI hang when a count of 0 meets a size of 0.
        const bool nothing = shared_.one_in(2) && !is_v(function) && mine == 0 && !mode_.plain;
        // The MPIs choose algorithms and cut messages for allgather by size and extent of a type as if these were the
        // same on all ranks, and hang or truncate where only signatures are equal: ranks differ only where PMPI_ isn't
        // called.
        Rng& layouts = is_rooted(function) || mode_.by_packing ? own_ : shared_;
        const int one_units = mode_.plain ? 1 : divisor(layouts, blocks.grain);
        const int many_units = mode_.plain ? 1 : divisor(layouts, blocks.grain);
        auto layout = [&](int units) {
            if (nothing) return unit.nothing(layouts);
            return mode_.plain ? unit.plain() : unit.layout(layouts, units, all);
        };
        const Side one = {layout(one_units)};
        const Side many = {layout(many_units)};
        Spread places = spread(own_, many, blocks.units);
        if (!is_v(function)) places.items = many.count(mine) * size_;
        Buffer one_buffer(own_, one.layout, 0, one.count(mine));
        Buffer many_buffer(own_, many.layout, 0, holds_all ? places.items : 0);

        Call call{function};
        call.root = root;
        call.comm = where_.comm;
        call.sendcount = call.recvcount = one.count(mine);
        call.sendtype = call.recvtype = one.layout.type();
        int& many_count = is_scatter(function) ? call.sendcount : call.recvcount;
        MPI_Datatype& many_type = is_scatter(function) ? call.sendtype : call.recvtype;
        if (holds_all) {
            many_count = many.count(mine);
            many_type = many.layout.type();
            call.counts = places.counts.data();
            call.displs = places.displs.data();
        } else {  // not significant here: nothing may look at it
            many_count = -7;
            many_type = MPI_DATATYPE_NULL;
        }
        const bool place_now = in_place && holds_all;
        describe(function, one, many, mine, root, place_now);

        std::vector<int> block_bytes;
        for (int units : blocks.units)
            block_bytes.push_back(units * (mode_.plain ? unit.plain_bytes() : unit.size_bytes()));
        const int naps = shared_.one_in(6) ? own_.below(3) : 0;
        const bool mpi_first = shared_.one_in(2);
        const bool large = shared_.one_in(5) && !mode_.by_packing;  // not served: they would meet the MPI's limits
        Result ours{one_buffer, many_buffer};
        Result theirs{one_buffer, many_buffer};
        Result packed{one_buffer, many_buffer};
        for (int turn = 0; turn < 2; ++turn) {
            if (naps > 0) usleep(static_cast<unsigned>(naps) * 500);
            if ((turn == 0) == mpi_first) {
                ours.code = through_mpi(with_buffers(call, holds_all, place_now, ours.one, ours.many), large);
            } else if (!mode_.by_packing) {
                theirs.code = call_pmpi(with_buffers(call, holds_all, place_now, theirs.one, theirs.many));
            }
        }
        packed.code =
            call_by_packing(with_buffers(call, holds_all, place_now, packed.one, packed.many), block_bytes, rank_);
        if (!mode_.by_packing && theirs != ours && ours == packed) {
            rival.check(false, "by PMPI_ alone, %s", doing);
            return;
        }
        const Result& right = mode_.by_packing ? packed : theirs;
        outcome.check(ours.code == right.code, "%s: MPI_ returned %d, not %d", doing, ours.code, right.code);
        outcome.check(ours.one == right.one, "%s: own block, first at byte %ld", doing,
                      ours.one.first_difference(right.one));
        outcome.check(ours.many == right.many, "%s: all blocks, first at byte %ld", doing,
                      ours.many.first_difference(right.many));
    }

  private:
    int through_mpi(const Call& call, bool large) const {
#ifdef TEST_HAS_LARGE_COUNTS
        if (large) return call_large(call, size_);
#endif
        (void)large;
        return call_mpi(call);
    }

    /// MPI_IN_PLACE stands for the own block; the count and type with it mean nothing, so they are garbage.
    static Call with_buffers(Call call, bool holds_all, bool in_place, Buffer& one, Buffer& many) {
        const bool scatter = is_scatter(call.function);
        if (scatter) {
            call.sendbuf = holds_all ? many.address() : nullptr;
            call.recvbuf = in_place ? MPI_IN_PLACE : one.address();
            if (in_place) {
                call.recvcount = 0;
                call.recvtype = MPI_DATATYPE_NULL;
            }
        } else {
            call.sendbuf = in_place ? MPI_IN_PLACE : one.address();
            call.recvbuf = holds_all ? many.address() : nullptr;
            if (in_place) {
                call.sendcount = 0;
                call.sendtype = MPI_DATATYPE_NULL;
            }
        }
        return call;
    }

    void describe(Function function, const Side& one, const Side& many, int units, int root, bool in_place) const {
        std::snprintf(doing, sizeof doing, "case %ld: %s on %s (rank %d of %d), root %d%s, %d units, own %s, all %s",
                      number_, function_names[static_cast<int>(function)], where_.name.c_str(), rank_, size_, root,
                      in_place ? ", in place" : "", units, one.layout.name().c_str(), many.layout.name().c_str());
    }

    long number_;
    const Communicator& where_;
    const Mode& mode_;
    Rng shared_, own_;
    int rank_ = 0, size_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1));
    const long first = option(argc, argv, "--first", 0);
    const long cases = option(argc, argv, "--cases", 200);
    const auto patience = static_cast<unsigned>(option(argc, argv, "--patience", 60));

    const bool by_packing = option(argc, argv, "--by-packing", 0) != 0;
    const Mode mode{by_packing, !by_packing && is_intel()};

    std::vector<Communicator> all = communicators(seed);
    Outcome outcome;
    Outcome rival;
    for (long number = first; number < first + cases; ++number) {
        watch(patience);
        Rng choice(seed, static_cast<std::uint64_t>(number), 1U << 20);
        // Half of the cases on the world: most programs use nothing else.
        const Communicator& where = choice.one_in(2) ? all[0] : choice.pick(all);
        if (where.comm != MPI_COMM_NULL) Case(seed, number, where, mode).run(outcome, rival);
    }
    std::snprintf(doing, sizeof doing, "freeing communicators and MPI_Finalize");
    watch(patience);
    for (Communicator& one : all) {
        if (one.comm != MPI_COMM_NULL && one.name != "world" && one.name != "self") MPI_Comm_free(&one.comm);
    }
    rival.tell("where only the MPI is wrong", MPI_COMM_WORLD);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
