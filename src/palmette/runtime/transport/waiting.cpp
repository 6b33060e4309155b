#include "palmette/runtime/transport/waiting.hpp"

#include <array>
#include <chrono>
#include <string_view>

#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

using Clock = node::YieldBackoff::Clock;

/// Spin limit: where not oversubscribed, we poll this long before we sleep as well.
constexpr std::chrono::microseconds spin_limit{2000};
constexpr int tests_between_yields = 16;

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

/// MPI_ERR_IN_STATUS says no more than that one of several has failed.
int Waiting::error_of(int code, int finished_count) const {
    int error_class = MPI_SUCCESS;
    if (code == MPI_SUCCESS || PMPI_Error_class(code, &error_class) != MPI_SUCCESS || error_class != MPI_ERR_IN_STATUS)
        return code;
    for (int i = 0; i < finished_count; ++i) {
        const int error = statuses_[static_cast<std::size_t>(i)].MPI_ERROR;
        if (error != MPI_SUCCESS && error != MPI_ERR_PENDING) return error;
    }
    return code;
}

int Waiting::test(int count, MPI_Request* requests, int* finished_count, int* finished) {
    if (statuses_.size() < static_cast<std::size_t>(count)) statuses_.resize(static_cast<std::size_t>(count));
    const int code = PMPI_Testsome(count, requests, finished_count, finished, statuses_.data());
    return error_of(code, *finished_count);
}

int Waiting::some(int count, MPI_Request* requests, int* finished_count, int* finished) {
    if (polls_ || has_outstanding()) return poll(count, requests, finished_count, finished);
    if (statuses_.size() < static_cast<std::size_t>(count)) statuses_.resize(static_cast<std::size_t>(count));
    const int code = PMPI_Waitsome(count, requests, finished_count, finished, statuses_.data());
    return error_of(code, *finished_count);
}

int Waiting::poll(int count, MPI_Request* requests, int* finished_count, int* finished) {
    const Clock::time_point begin = Clock::now();
    for (int round = 1;; ++round) {
        const int error = test(count, requests, finished_count, finished);
        if (error != MPI_SUCCESS || *finished_count > 0) return error;
        if (has_outstanding()) progress_background();
        if (!backoff_.oversubscribed() && round % tests_between_yields != 0) continue;
        const Clock::time_point now = backoff_.yield();
        if (backoff_.oversubscribed() || now - begin >= spin_limit) node::YieldBackoff::sleep(now - begin);
    }
}

}  // namespace palmette::runtime
