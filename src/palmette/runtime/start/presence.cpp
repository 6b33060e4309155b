#include "palmette/runtime/start/presence.hpp"
#include "palmette/base/hash.hpp"

#include <mpi.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "palmette/base/text.hpp"
#include "palmette/runtime/settings/control.hpp"

namespace palmette::runtime {
namespace {

std::string text_of(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

int number_of(const char* name) {
    const std::string text = text_of(name);
    return text.empty() || text.find_first_not_of("0123456789") != std::string::npos ? -1 : std::atoi(text.c_str());
}

/// "2(x3),1" -> 2 2 2 1; the entry of one node, or -1.
int tasks_on_node(const std::string& list, int node) {
    for (const std::string_view part : base::split(list, ',')) {
        int tasks = 0;
        int times = 1;
        if (std::sscanf(std::string(part).c_str(), "%d(x%d)", &tasks, &times) < 1) return -1;
        if (node < times) return tasks;
        node -= times;
    }
    return -1;
}

/// This process's place among the job's ranks, from the launcher's environment variables.
struct LauncherInfo {
    std::string job;
    int local_rank = -1, local_size = -1, size = -1;
    bool complete() const { return !job.empty() && local_rank >= 0 && local_rank < local_size && local_size <= size; }
};

#if defined(PALMETTE_ABI_OMPI)
LauncherInfo info_of_launcher() {
    return {"pmix " + text_of("PMIX_NAMESPACE"), number_of("OMPI_COMM_WORLD_LOCAL_RANK"),
            number_of("OMPI_COMM_WORLD_LOCAL_SIZE"), number_of("OMPI_COMM_WORLD_SIZE")};
}

#else
/// A process's start time, in clock ticks since boot: process ids are reused.
std::string start_of(pid_t process) {
    std::ifstream in(base::cat("/proc/", process, "/stat"));
    std::string line;
    std::getline(in, line);
    // The name, in parentheses, may hold anything.
    const std::size_t end = line.rfind(')');
    if (end == std::string::npos) return {};
    const auto fields = base::split(std::string_view(line).substr(end + 1), ' ');
    return fields.size() > 20 ? std::string(fields[20]) : std::string();
}

/// Identifies the peer of an inherited PMI socket: the process at its other end is the same for all ranks of the node,
/// and for no other job's.
std::string behind_socket(int descriptor) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (descriptor < 0 || getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0)
        return {};
    const std::string start = start_of(peer.pid);
    return start.empty() ? std::string() : base::cat("pmi ", peer.pid, " ", start);
}

/// Hydra: MPICH's, Intel's and others'.
LauncherInfo info_of_launcher() {
    // A spawned job may have the same server as its parent.
    const std::string behind = behind_socket(number_of("PMI_FD"));
    return {behind.empty() ? behind : base::cat(behind, " ", text_of("PMI_SPAWNED")), number_of("MPI_LOCALRANKID"),
            number_of("MPI_LOCALNRANKS"), number_of("PMI_SIZE")};
}

#endif

LauncherInfo info_of_slurm() {
    const std::string step = text_of("SLURM_STEP_ID");
    const int node = number_of("SLURM_NODEID");
    if (step.empty() || node < 0) return {};
    // Several of Slurm's nodes may be one machine, where all see all markers.
    return {base::cat("slurm ", text_of("SLURM_JOB_ID"), " ", step, " ", text_of("SLURM_RESTART_COUNT"), " ", node),
            number_of("SLURM_LOCALID"), tasks_on_node(text_of("SLURM_STEP_TASKS_PER_NODE"), node),
            number_of("SLURM_STEP_NUM_TASKS")};
}

LauncherInfo launcher_info() {
    const LauncherInfo first = info_of_launcher();
    return first.complete() ? first : info_of_slurm();
}

/// An abstract name begins with a zero byte.
socklen_t address_of(sockaddr_un& address, const std::string& name) {
    address = {};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

/// Synchronises two ranks.
void synchronize(MPI_Group world, int one, int other) {
    const std::array<int, 2> ranks{one, other};
    MPI_Group both = MPI_GROUP_NULL;
    MPI_Comm pair = MPI_COMM_NULL;
    PMPI_Group_incl(world, 2, ranks.data(), &both);
    constexpr int tag = 0;
    PMPI_Comm_create_group(MPI_COMM_WORLD, both, tag, &pair);
    PMPI_Group_free(&both);
    if (pair != MPI_COMM_NULL) PMPI_Comm_free(&pair);
}

std::string late_message(int rank, int other) {
    return base::cat("rank ", rank, " has waited 5 s in MPI_Init for rank ", other,
                     ", which may run without palmette's library: start all ranks of the job under `palmette run`, or "
                     "none (a wrapper that unsets LD_PRELOAD, or another program of the job, leaves it out)");
}

}  // namespace

Presence::Presence() {
    const LauncherInfo place = launcher_info();
    if (!place.complete()) return;
    std::uint64_t hash = base::fnv1a_start;
    hash_field(hash, place.job);
    job_ = base::cat("palmette-", getuid(), "-", hash, "-");
    local_rank_ = place.local_rank;
    local_size_ = place.local_size;
    size_ = place.size;
    const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made < 0) return;
    sockaddr_un address{};
    const socklen_t length = address_of(address, base::cat(job_, local_rank_));
    if (bind(made, reinterpret_cast<const sockaddr*>(&address), length) == 0)
        socket_ = made;
    else
        close(made);
}

Presence::~Presence() {
    // Where a rank is missing, the others of this node may not have checked yet, and no rank waits for them: the marker
    // stays as long as the process.
    if (socket_ >= 0 && missing_ == 0) close(socket_);
}

bool Presence::sees(int local_rank) const {
    sockaddr_un address{};
    const socklen_t length = address_of(address, base::cat(job_, local_rank));
    // EPERM: it exists, and is connected to another one itself.
    return connect(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0 || errno == EPERM;
}

Presence::Verdict Presence::verdict(int world_size) const {
#if defined(PALMETTE_ABI_SMPI)
    return Verdict::everyone;
#endif
    if (world_size == 1) return Verdict::everyone;
    // Another job's variables, which this one has inherited.
    if (job_.empty() || size_ != world_size) return Verdict::unknown;
    // The others don't see this one either.
    if (socket_ < 0) {
        missing_ = 1;
        here_ = local_size_ - 1;
        reports_ = local_rank_ == 0;
        return Verdict::missing;
    }
    int lowest = -1;
    for (int rank = 0; rank < local_size_; ++rank) {
        if (rank != local_rank_ && !sees(rank)) continue;
        if (lowest < 0) lowest = rank;
        ++here_;
    }
    missing_ = local_size_ - here_;
    reports_ = lowest == local_rank_;
    if (missing_ > 0) return Verdict::missing;
    return local_size_ == size_ ? Verdict::everyone : Verdict::unknown;
}

void wait_for_everyone() {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Group world = MPI_GROUP_NULL;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    // Up a binomial tree: when a rank synchronises with its parent, all of its subtree have arrived. What follows is
    // collective, so no rank gets ahead of the root.
    int distance = 1;
    for (; distance < size && rank % (2 * distance) == 0; distance *= 2) {
        if (rank + distance >= size) continue;
        const LateWarning line(late_message(rank, rank + distance));
        synchronize(world, rank, rank + distance);
    }
    if (rank != 0) {
        const LateWarning line(late_message(rank, rank - distance));
        synchronize(world, rank - distance, rank);
    }
    PMPI_Group_free(&world);
}

struct LateWarning::Clock {
    std::mutex mutex;
    std::condition_variable ended;
    bool over = false;
    std::thread thread;
};

LateWarning::LateWarning(std::string line) : clock_(new Clock) {
    try {
        clock_->thread = std::thread([clock = clock_, text = std::move(line)] {
            std::unique_lock lock(clock->mutex);
            if (!clock->ended.wait_for(lock, std::chrono::seconds(5), [clock] { return clock->over; }))
                std::fprintf(stderr, "palmette: %s\n", text.c_str());
        });
    } catch (const std::system_error&) {
        // No thread, no line.
    }
}

LateWarning::~LateWarning() {
    {
        const std::lock_guard lock(clock_->mutex);
        clock_->over = true;
    }
    clock_->ended.notify_one();
    if (clock_->thread.joinable()) clock_->thread.join();
    delete clock_;
}

}  // namespace palmette::runtime
