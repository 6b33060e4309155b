#include "palmette/runtime/report/joblog.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "palmette/base/text.hpp"
#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {
namespace {

bool to_syslog(std::string_view socket_path, std::string_view line) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
    // Not syslog(3), which waits where the daemon doesn't read.
    const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) return false;
    constexpr int user_info = 14;
    const std::string text = base::cat("<", user_info, ">palmette[", getpid(), "]: ", line);
    const bool sent = sendto(made, text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                             sizeof address) == static_cast<ssize_t>(text.size());
    close(made);
    return sent;
}

bool to_file(const std::string& path, int flags, std::string_view line) {
    // A pipe that nobody reads is refused instead of waited for.
    const int file = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | flags, 0644);
    if (file < 0) return false;
    // One write, so that lines of jobs that end together don't mix.
    const std::string text = base::cat(line, "\n");
    const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    return close(file) == 0 && written;
}

}  // namespace

void JobTimes::call_ended(const CallEvent& call) {
    const std::lock_guard lock(mutex_);
    seconds_ += call.end_s - call.begin_s;
    if (!call.plan->tally.comparison) return;
    const auto known = saved_by_call_.find(call.plan->tally.comparison->number());
    if (known == saved_by_call_.end()) return;
    saved_s_ += known->second;
    ++compared_calls_;
}

void JobTimes::compared(const Communicator&, const CachedPlan& plan) {
    const Comparison& comparison = *plan.tally.comparison;
    // As a report has it: pairs that don't tell yet would add up to savings that nobody has seen.
    if (!comparison.comparable() || comparison.verdict() == select::Verdict::open) return;
    const double saved_s = comparison.mpi_s() - comparison.ours_s();
    const std::lock_guard lock(mutex_);
    saved_by_call_[comparison.number()] = saved_s;
}

double JobTimes::seconds() const {
    const std::lock_guard lock(mutex_);
    return seconds_;
}

double JobTimes::saved_seconds() const {
    const std::lock_guard lock(mutex_);
    return saved_s_;
}

std::int64_t JobTimes::compared_calls() const {
    const std::lock_guard lock(mutex_);
    return compared_calls_;
}

std::string batch_job() {
    for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "OAR_JOB_ID"})
        if (const char* job = std::getenv(name); job && *job) return job;
    return {};
}

bool write_joblog(const std::string& target, std::string_view line) {
    constexpr std::string_view syslog = "syslog";
    if (target == syslog) return to_syslog("/dev/log", line);
    if (target.starts_with("syslog:")) return to_syslog(std::string_view(target).substr(syslog.size() + 1), line);
    struct stat status{};
    if (stat(target.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
        std::array<char, 256> host{};
        gethostname(host.data(), host.size() - 1);
        std::string job = batch_job();
        for (char& one : job)
            if (one == '/') one = '_';
        return to_file(base::cat(target, "/", job.empty() ? "job" : job, "-", host.data(), "-", getpid(), ".json"),
                       O_CREAT | O_EXCL, line);
    }
    return to_file(target, O_CREAT | O_APPEND, line);
}

}  // namespace palmette::runtime
