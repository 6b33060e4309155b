#include "palmette/runtime/reorder/level_groups.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "palmette/base/error.hpp"
#include "palmette/base/text.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/transport/agreement.hpp"

namespace palmette::runtime {
namespace {

using base::fail;
using topology::Rank;

constexpr const char* resource_key = "mpi_hw_resource_type";

/// Hash of what all ranks must pass alike; the lowest bit isn't compared (all_same).
std::uint64_t hash_of(std::string_view level, bool leaders) {
    return (std::hash<std::string_view>{}(level) * 31 + (leaders ? 1 : 0)) << 1;
}

std::string listed(const std::vector<std::string>& levels) {
    std::string out;
    for (const std::string& level : levels) out += base::cat(out.empty() ? "" : ", ", level);
    return out;
}

void check(int code, const char* what) {
    if (code != MPI_SUCCESS) fail("MPI reports an error in ", what);
}

#if defined(MPI_COMM_TYPE_HW_GUIDED) || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

/// What a rank passes to MPI_Comm_split_type.
namespace asks {
constexpr int nothing = -1;  ///< MPI_UNDEFINED
constexpr int the_mpi = 0;   ///< what the MPI must judge; from 1 on: a level's number
}  // namespace asks

/// The job of a communicator's ranks, of a single rank too; nothing where its levels can't be found.
std::optional<topology::Job> job_of(MPI_Comm comm) {
    const Process& process = Process::instance();
    Refusal refusal = Refusal::no_state;
    if (auto job = process.job_of(comm, refusal)) return job;
    int size = 0;
    const bool alone = refusal == Refusal::one_rank && PMPI_Comm_size(comm, &size) == MPI_SUCCESS && size == 1;
    if (!alone || !process.world()) return std::nullopt;
    return process.world()->restricted_to({Rank{process.world_rank()}});
}

/// From 1 on: the level of the job's machine that the info names; 0: none outside of hosts.
int level_of(MPI_Info info, const topology::Job& job) {
    std::array<char, 128> text{};
    int found = 0;
    if (info == MPI_INFO_NULL ||
        PMPI_Info_get(info, resource_key, static_cast<int>(text.size()) - 1, text.data(), &found) != MPI_SUCCESS ||
        !found)
        return asks::the_mpi;
    const std::string_view wanted(text.data());
    const auto& levels = job.machine_levels();
    const auto node = std::find(levels.begin(), levels.end(), "node");
    for (auto level = levels.begin(); level != levels.end() && level <= node; ++level)
        if (*level == wanted) return static_cast<int>(level - levels.begin()) + 1;
    // Other names, as Job::groups_named has them.
    if (wanted == "host") return static_cast<int>(node - levels.begin()) + 1;
    const bool alias = wanted == "switch" || wanted == "leaf";
    return alias && node != levels.begin() ? static_cast<int>(node - levels.begin()) : asks::the_mpi;
}

#endif

}  // namespace

void split_by_level(MPI_Comm comm, Communicator& state, std::string_view level, int key, MPI_Comm* group,
                    MPI_Comm* leaders) {
    before_blocking(comm);
    const topology::Job& job = state.job();
    const auto same = all_same(state.shadow_comm(), hash_of(level, leaders != nullptr));
    const auto ready = all_true(state.shadow_comm(), group != nullptr);
    if (!same || !ready) fail("the ranks can't compare what they ask for: MPI reports an error");
    if (!*ready) fail(group ? "another rank passes no group" : "group is null");
    if (!*same)
        fail("level '", level, "': other ranks name another level, or ask otherwise for leaders; pass the same");
    const auto groups = job.groups_named(level);
    if (!groups)
        fail("level '", level, "': this machine has ", listed(job.machine_levels()),
             "; name one of these, or give the topology file that has it (PALMETTE_TOPOLOGY)");
    const std::int32_t mine = groups->group_of(job.position_of(Rank{state.rank()}).value);
    MPI_Comm made = MPI_COMM_NULL;
    check(PMPI_Comm_split(comm, mine, key, &made), "MPI_Comm_split");
    if (leaders) {
        int rank = 0;
        PMPI_Comm_rank(made, &rank);
        MPI_Comm others = MPI_COMM_NULL;
        if (const int code = PMPI_Comm_split(comm, rank == 0 ? 0 : MPI_UNDEFINED, mine, &others)) {
            PMPI_Comm_free(&made);
            check(code, "MPI_Comm_split");
        }
        *leaders = others;
    }
    *group = made;
}

std::optional<int> split_by_resource(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
#if defined(MPI_COMM_TYPE_HW_GUIDED) || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    if (comm == MPI_COMM_NULL || !made) return std::nullopt;
    const auto job = job_of(comm);
    if (!job) return std::nullopt;
    before_blocking(comm);
    const int asked = type == MPI_UNDEFINED             ? asks::nothing
                      : type == MPI_COMM_TYPE_HW_GUIDED ? level_of(info, *job)
                                                        : asks::the_mpi;
    const std::array<int, 2> mine{asked, asked == asks::nothing ? INT32_MIN : -asked};
    std::array<int, 2> most{};
    if (PMPI_Allreduce(mine.data(), most.data(), 2, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) return std::nullopt;
    if (most[0] <= asks::the_mpi || most[0] != -most[1]) return std::nullopt;
    const auto& name = job->machine_levels()[static_cast<std::size_t>(most[0] - 1)];
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    const std::int32_t group = job->groups_named(name)->group_of(job->position_of(Rank{rank}).value);
    return PMPI_Comm_split(comm, asked == asks::nothing ? MPI_UNDEFINED : group, key, made);
#else
    static_cast<void>(comm), static_cast<void>(type), static_cast<void>(key), static_cast<void>(info);
    static_cast<void>(made);
    return std::nullopt;
#endif
}

}  // namespace palmette::runtime
