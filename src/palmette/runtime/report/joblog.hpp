// PALMETTE_JOBLOG: one line of JSON at the end of a job, for the centre's database.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "palmette/runtime/observe/observer.hpp"

namespace palmette::runtime {

/// Adds up what this rank spends in served calls, and what comparing says that they save.
class JobTimes : public Observer {
  public:
    void call_ended(const CallEvent& call) override;
    void compared(const Communicator& state, const CachedPlan& plan) override;

    double seconds() const;
    /// Seconds saved in calls whose kind was compared with the MPI's own; 0 where `compared_calls` is 0.
    double saved_seconds() const;
    std::int64_t compared_calls() const;

  private:
    mutable std::mutex mutex_;
    double seconds_ = 0, saved_s_ = 0;
    std::int64_t compared_calls_ = 0;
    std::map<std::int64_t, double> saved_by_call_;  ///< by Comparison::number
};

/// The batch system's name of this job, or nothing.
std::string batch_job();

/// Writes a line to `target`: syslog, syslog:/SOCKET, a file, which it is added to, or a folder, in which it gets a
/// file of its own. Never waits; false where it can't be done.
bool write_joblog(const std::string& target, std::string_view line);

}  // namespace palmette::runtime
