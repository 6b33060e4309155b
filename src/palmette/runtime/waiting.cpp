#include "palmette/runtime/waiting.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <thread>

#include "palmette/runtime/under_way.hpp"

namespace palmette::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// A yield to nobody returns within a microsecond; one that took this long gave the core to somebody.
constexpr microseconds long_yield{10};
/// How many quiet yields it takes to believe that the core is ours again.
constexpr int stays_crowded = 64;
/// With the core to ourselves we spin this long before we sleep as well.
constexpr microseconds spin_alone{2000};
constexpr int tests_between_yields = 16;
constexpr microseconds shortest_nap{50};
constexpr microseconds longest_nap{200};

}  // namespace

std::string name_of_mpi() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
    int length = 0;
    if (PMPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return {};
    const std::string_view version(text.data(), static_cast<std::size_t>(length));
    // Intel MPI names MPICH too.
    if (version.find("Intel") != std::string_view::npos) return "impi";
    if (version.find("Open MPI") != std::string_view::npos) return "openmpi";
    if (version.find("SMPI") != std::string_view::npos) return "smpi";
    return version.find("MPICH") != std::string_view::npos ? "mpich" : "";
}

Waiting::Waiting(Policy policy)
    : polls_(policy == Policy::poll || (policy == Policy::automatic && name_of_mpi() == "mpich")) {}

int Waiting::some(int count, MPI_Request* requests, int* finished_count, int* finished) {
    if (polls_ || any_under_way()) return poll(count, requests, finished_count, finished);
    return PMPI_Waitsome(count, requests, finished_count, finished, MPI_STATUSES_IGNORE);
}

int Waiting::poll(int count, MPI_Request* requests, int* finished_count, int* finished) {
    const Clock::time_point begin = Clock::now();
    for (int round = 1;; ++round) {
        const int error = PMPI_Testsome(count, requests, finished_count, finished, MPI_STATUSES_IGNORE);
        if (error != MPI_SUCCESS || *finished_count > 0) return error;
        if (any_under_way()) progress_background();
        if (crowded_ == 0 && round % tests_between_yields != 0) continue;
        const Clock::time_point before = Clock::now();
        sched_yield();
        const Clock::time_point after = Clock::now();
        if (after - before >= long_yield)
            crowded_ = stays_crowded;
        else if (crowded_ > 0)
            --crowded_;
        if (crowded_ == 0 && after - begin < spin_alone) continue;
        // The longer it has taken, the less a longer nap adds.
        const auto waited = std::chrono::duration_cast<microseconds>(after - begin);
        std::this_thread::sleep_for(std::clamp(waited / 8, shortest_nap, longest_nap));
    }
}

}  // namespace palmette::runtime
