// Communicators that follow the machine, through palmette.h and MPI_Comm_split_type. Status 77 without
// palmette.
//
//     machine_communicators LEVEL=G,G,... [LEVEL=...]
//
// G is the group in which each rank of the world is expected, by topology order of groups. Rank 0 prints the world
// ranks of reordered communicators: "order NAME: rank rank ...", by distances "matrix NAME: ...".
#include "palmette/interpose/palmette.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "support/outcome.hpp"

// The functions come with the preload; without it they are null.
#pragma weak palmette_error
#pragma weak palmette_positions
#pragma weak palmette_comm_split
#pragma weak palmette_reorder
#pragma weak palmette_distances

namespace {

using namespace test;

int rank = 0, size = 0;
Outcome outcome("machine_communicators");

/// The world's numbers of a communicator's ranks.
std::vector<int> members(MPI_Comm comm) {
    int count = 0;
    PMPI_Comm_size(comm, &count);
    std::vector<int> out(static_cast<std::size_t>(count));
    PMPI_Allgather(&rank, 1, MPI_INT, out.data(), 1, MPI_INT, comm);
    return out;
}

std::string listed(const std::vector<int>& ranks) {
    std::string out;
    for (const int one : ranks) out += " " + std::to_string(one);
    return out;
}

struct Level {
    std::string name;
    std::vector<int> group_of;  ///< by rank of the world

    int mine() const { return group_of[static_cast<std::size_t>(rank)]; }
    /// In order of ranks, or the other way round.
    std::vector<int> group(bool reversed = false) const {
        std::vector<int> out;
        for (int r = 0; r < size; ++r)
            if (group_of[static_cast<std::size_t>(r)] == mine()) out.push_back(r);
        if (reversed) std::reverse(out.begin(), out.end());
        return out;
    }
    /// First ranks, by group.
    std::vector<int> leaders() const {
        std::vector<int> out;
        for (int g = 0; g <= *std::max_element(group_of.begin(), group_of.end()); ++g)
            out.push_back(static_cast<int>(std::find(group_of.begin(), group_of.end(), g) - group_of.begin()));
        return out;
    }
};

Level level_of(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    Level out{argument.substr(0, equals), {}};
    for (std::size_t at = equals; at != std::string::npos; at = argument.find(',', at + 1))
        out.group_of.push_back(std::atoi(argument.c_str() + at + 1));
    return out;
}

void expect_group(MPI_Comm made, const std::vector<int>& wanted, const std::string& what) {
    if (!outcome.check(made != MPI_COMM_NULL, "%s: no communicator", what.c_str())) return;
    const std::vector<int> found = members(made);
    outcome.check(found == wanted, "%s:%s instead of%s", what.c_str(), listed(found).c_str(), listed(wanted).c_str());
    PMPI_Comm_free(&made);
}

void split(const Level& level) {
    MPI_Comm group = MPI_COMM_NULL, leaders = MPI_COMM_NULL;
    int code = palmette_comm_split(MPI_COMM_WORLD, level.name.c_str(), 0, &group, &leaders);
    outcome.check(code == MPI_SUCCESS, "%s: code %d, %s", level.name.c_str(), code, palmette_error());
    expect_group(group, level.group(), level.name);
    const std::vector<int> leading = level.leaders();
    const bool leads = std::find(leading.begin(), leading.end(), rank) != leading.end();
    outcome.check((leaders != MPI_COMM_NULL) == leads, "%s: leads without being first, or the reverse",
                  level.name.c_str());
    if (leaders != MPI_COMM_NULL) expect_group(leaders, leading, level.name + ", leaders");
    code = palmette_comm_split(MPI_COMM_WORLD, level.name.c_str(), -rank, &group, nullptr);
    outcome.check(code == MPI_SUCCESS, "%s by key: code %d, %s", level.name.c_str(), code, palmette_error());
    expect_group(group, level.group(true), level.name + " by key");
}

#if defined(MPI_COMM_TYPE_HW_GUIDED) || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

MPI_Comm split_type(const std::string& resource, int type, int key, MPI_Comm of = MPI_COMM_WORLD) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", resource.c_str());
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_split_type(of, type, key, info, &made);
    outcome.check(code == MPI_SUCCESS, "split_type by %s: code %d", resource.c_str(), code);
    MPI_Info_free(&info);
    return made;
}

void split_types(const std::vector<Level>& levels) {
    if (size == 1) return;  // nothing is known of a job of one rank, and the MPI answers
    expect_group(split_type("node", MPI_COMM_TYPE_HW_GUIDED, 0, MPI_COMM_SELF), {rank}, "type node of one rank");
    for (const Level& level : levels) {
        if (level.name == "socket" || level.name == "core") continue;  // the MPI's own to know
        expect_group(split_type(level.name, MPI_COMM_TYPE_HW_GUIDED, -rank), level.group(true), "type " + level.name);
        // One rank takes no part, and can't know what the others ask for.
        const bool apart = rank == size - 1;
        const MPI_Comm made = split_type(level.name, apart ? MPI_UNDEFINED : MPI_COMM_TYPE_HW_GUIDED, 0);
        std::vector<int> others = level.group();
        others.erase(std::remove(others.begin(), others.end(), size - 1), others.end());
        if (apart)
            outcome.check(made == MPI_COMM_NULL, "undefined %s: a communicator", level.name.c_str());
        else
            expect_group(made, others, "type " + level.name + " without the last");
    }
    // Others are the MPI's, with and without ranks that take no part.
    MPI_Comm made = split_type("nothing that is known", MPI_COMM_TYPE_SHARED, 0);
    outcome.check(made != MPI_COMM_NULL, "shared: no communicator");
    if (made != MPI_COMM_NULL) PMPI_Comm_free(&made);
    made = split_type("leaf", rank == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0);
    outcome.check((made == MPI_COMM_NULL) == (rank == 0), "shared without rank 0");
    if (made != MPI_COMM_NULL) PMPI_Comm_free(&made);
    made = split_type("no such level", MPI_COMM_TYPE_HW_GUIDED, 0);
    if (made != MPI_COMM_NULL) PMPI_Comm_free(&made);
}

#else

void split_types(const std::vector<Level>&) {}

#endif

const char* const orders[] = {"greedy", "ring", "recursive_doubling", "binomial_gather", "binomial_bcast"};

void reorder() {
    // Places on a line, in an order of their own.
    std::vector<double> matrix;
    for (int a = 0; a < size; ++a)
        for (int b = 0; b < size; ++b) matrix.push_back(std::abs(a * 7 % size - b * 7 % size) + 0.01 * a * b);
    for (const char* order : orders) {
        MPI_Comm made = MPI_COMM_NULL;
        int code = palmette_reorder(MPI_COMM_WORLD, order, nullptr, &made);
        if (!outcome.check(code == MPI_SUCCESS, "%s: code %d, %s", order, code, palmette_error())) continue;
        std::vector<int> found = members(made);
        if (rank == 0) std::printf("order %s:%s\n", order, listed(found).c_str());
        PMPI_Comm_free(&made);
        code = palmette_reorder(MPI_COMM_WORLD, order, rank == 0 ? matrix.data() : nullptr, &made);
        if (!outcome.check(code == MPI_SUCCESS, "%s: code %d, %s", order, code, palmette_error())) continue;
        found = members(made);
        if (rank == 0) std::printf("matrix %s:%s\n", order, listed(found).c_str());
        PMPI_Comm_free(&made);
    }
}

void measure() {
    std::vector<double> found(rank == 0 ? static_cast<std::size_t>(size) * static_cast<std::size_t>(size) : 0, -1.0);
    int code = palmette_distances(MPI_COMM_WORLD, 1000, rank == 0 ? found.data() : nullptr);
    outcome.check(code == MPI_SUCCESS, "distances: code %d, %s", code, palmette_error());
    const auto at = [&](int a, int b) { return found[static_cast<std::size_t>(a * size + b)]; };
    for (int a = 0; rank == 0 && a < size; ++a)
        for (int b = 0; b < size; ++b)
            outcome.check(a == b ? at(a, b) == 0 : at(a, b) > 0 && at(a, b) < 10 && at(a, b) == at(b, a),
                          "%d to %d: %g s", a, b, at(a, b));
    MPI_Comm made = MPI_COMM_NULL;
    code = palmette_reorder(MPI_COMM_WORLD, "ring", rank == 0 ? found.data() : nullptr, &made);
    if (!outcome.check(code == MPI_SUCCESS, "measured ring: code %d, %s", code, palmette_error())) return;
    std::vector<int> sorted = members(made);
    PMPI_Comm_free(&made);
    std::sort(sorted.begin(), sorted.end());
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    outcome.check(sorted == all, "measured ring:%s", listed(sorted).c_str());
}

/// On all ranks alike, and with a sentence, whichever rank is wrong.
void refuse(int code, MPI_Comm made, const char* what) {
    outcome.check(code == MPI_ERR_ARG && made == MPI_COMM_NULL && *palmette_error(), "%s: code %d, '%s'", what, code,
                  palmette_error());
}

void mistakes() {
    MPI_Comm made = MPI_COMM_NULL;
    refuse(palmette_comm_split(MPI_COMM_WORLD, "shelf", 0, &made, nullptr), made, "no such level");
    outcome.check(std::string(palmette_error()).find("node") != std::string::npos, "levels aren't listed: %s",
                  palmette_error());
    refuse(palmette_comm_split(MPI_COMM_WORLD, nullptr, 0, &made, nullptr), made, "no level");
    std::vector<double> negative(static_cast<std::size_t>(size) * static_cast<std::size_t>(size), -1.0);
    refuse(palmette_reorder(MPI_COMM_WORLD, "sorted", nullptr, &made), made, "no such order");
    if (size == 1) return;
    refuse(palmette_comm_split(MPI_COMM_WORLD, rank == 1 ? "socket" : "node", 0, &made, nullptr), made, "two levels");
    refuse(palmette_comm_split(MPI_COMM_WORLD, "node", 0, rank == 1 ? nullptr : &made, nullptr), made, "no group");
    MPI_Comm leading = MPI_COMM_NULL;
    refuse(palmette_comm_split(MPI_COMM_WORLD, "node", 0, &made, rank == 1 ? nullptr : &leading), made, "some leaders");
    refuse(palmette_reorder(MPI_COMM_WORLD, "ring", negative.data(), &made), made, "negative distances");
    refuse(palmette_reorder(MPI_COMM_WORLD, rank == 1 ? "ring" : "greedy", nullptr, &made), made, "two orders");
    refuse(palmette_reorder(MPI_COMM_WORLD, "ring", nullptr, rank == 1 ? nullptr : &made), made, "no communicator");
    refuse(palmette_distances(MPI_COMM_WORLD, rank == 1 ? 8 : 9, negative.data()), made, "two lengths");
    refuse(palmette_distances(MPI_COMM_WORLD, -1, negative.data()), made, "negative length");
    refuse(palmette_distances(MPI_COMM_WORLD, 8, nullptr), made, "no matrix");
}

}  // namespace

int main(int argc, char** argv) {
    if (!&palmette_comm_split) return 77;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world_rank = rank;
    watch(60);
    std::vector<Level> levels;
    for (int i = 1; i < argc; ++i) levels.push_back(level_of(argv[i]));
    for (const Level& level : levels) split(level);
    split_types(levels);
    reorder();
    measure();
    mistakes();
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
