// Process: from MPI_Init to MPI_Finalize.
#include "palmette/runtime/state/process.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <new>
#include <thread>

#include "palmette/base/error.hpp"
#include "palmette/base/files.hpp"
#include "palmette/base/text.hpp"
#include "palmette/base/version.hpp"
#include "palmette/runtime/data/device_library.hpp"
#include "palmette/runtime/report/joblog.hpp"
#include "palmette/runtime/report/recording.hpp"
#include "palmette/runtime/report/reporting.hpp"
#include "palmette/runtime/start/discovery.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/outstanding.hpp"
#include "palmette/runtime/transport/simulated_services.hpp"

namespace palmette::runtime {

constinit thread_local Process::Recent Process::recent_;

bool Process::oversubscribed() const {
    // Simulated hosts have a core for each rank, whatever the machine has that simulates them.
    if (!world_ || settings_.mpi == "smpi") return false;
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const topology::Partition& nodes = world_->nodes().groups;
    const std::int32_t group = nodes.group_of(world_->position_of(topology::Rank{rank}).value);
    return nodes.size_of(group) > static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
}

void Process::prepare(Settings settings) {
    settings_ = std::move(settings);
    finished_ = false;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &Process::forget, &keyval_, nullptr);
    start_time_ = PMPI_Wtime();
    settings_.mpi = name_of_mpi();
    waiting_ = Waiting(settings_.waiting);
    int threads = MPI_THREAD_MULTIPLE;
    PMPI_Query_thread(&threads);
    several_threads_ = threads == MPI_THREAD_MULTIPLE;
    Report::Counter::concurrent = several_threads_;
    // Several threads would have to share the copies.
    settings_.copies_sends = settings_.mpi == "mpich" && !several_threads_;
    if (!settings_.enable) off_ = Refusal::switched_off;
    observers_.clear();
    if (!settings_.report.empty()) observers_.add(std::make_unique<Reporting>());
    if (RecordedCalls::possible()) observers_.add(std::make_unique<RecordedCalls>());
    if (settings_.verbose > 0) observers_.add(std::make_unique<VerboseLog>(settings_.verbose));
}

bool Process::all_are_present(const Presence& presence, int world_size) const {
    switch (presence.verdict(world_size)) {
        case Presence::Verdict::everyone:
            return true;
        case Presence::Verdict::unknown:
            wait_for_everyone();
            return true;
        default:
            break;
    }
    if (presence.reports())
        std::fprintf(stderr,
                     "palmette: %d of the job's %d ranks on this host run without palmette's library, so nothing is "
                     "served; start all "
                     "ranks under `palmette run`, or none (a wrapper that unsets LD_PRELOAD, or another program of the "
                     "job, leaves it out)\n",
                     presence.missing(), presence.missing() + presence.here());
    return false;
}

void Process::warn_of_differing_settings() {
    std::string names;
    // Another version's list of settings may be another one.
    const bool comparable = all_same(apart_, settings_.values.size()).value_or(false);
    reports_agree_ = comparable;
    for (std::size_t i = 0; comparable && i < settings_.values.size(); ++i) {
        const auto& [name, hash] = settings_.values[i];
        if (all_same(apart_, hash).value_or(false)) continue;
        names += (names.empty() ? "" : ", ") + name;
        if (name == "PALMETTE_REPORT") reports_agree_ = false;
    }
    if (names.empty()) names = "palmette's versions or PALMETTE_ settings";
    const std::string text = base::cat("between ranks ", names, " differ", off_ ? ", so nothing is served" : "",
                                       "; give all ranks the same environment");
    report_.note(text);
    if (world_rank_ == 0) std::fprintf(stderr, "palmette: %s\n", text.c_str());
}

void Process::meet_world(bool one_node) {
    MPI_Group world = MPI_GROUP_NULL;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    const int error = PMPI_Comm_create(MPI_COMM_WORLD, world, &apart_);
    PMPI_Group_free(&world);
    if (error != MPI_SUCCESS || apart_ == MPI_COMM_NULL) {
        apart_ = MPI_COMM_NULL;
        off_ = Refusal::no_state;
        return;
    }
    PMPI_Comm_set_errhandler(apart_, MPI_ERRORS_RETURN);
    const bool on_host = !settings_.device_check || !device_library_is_loaded();
    const auto agreement = agree(apart_, {settings_.hash, true, true, true, on_host, settings_.values_hash, true,
                                          RecordedCalls::are_recorded()});
    if (!agreement || !agreement->settings_agree) off_ = Refusal::settings_differ;
    if (!agreement) reports_agree_ = false;  // after an error of the MPI nothing more is sent there
    if (agreement && !(agreement->settings_agree && agreement->values_agree)) warn_of_differing_settings();
    if (agreement && agreement->recorded) RecordedCalls::synchronize(apart_);
    if (off_) return;
    if (!agreement->host_memory) {
        warn_of_device_memory(world_rank_);
        off_ = Refusal::device_memory;
        return;
    }
    try {
        Discovered found_job = discover(apart_, settings_, one_node);
        if (!found_job.note.empty()) {
            report_.note(found_job.note);
            if (world_rank_ == 0) std::fprintf(stderr, "palmette: %s\n", found_job.note.c_str());
        }
        world_ = std::move(found_job.job);
        settings_.oversubscribed = !all_true(apart_, !oversubscribed()).value_or(true);
        ranks_are_oversubscribed.store(settings_.oversubscribed, std::memory_order_relaxed);
    } catch (const std::exception& problem) {
        report_.note(problem.what());
    }
}

void Process::start(Settings settings, const Presence& presence) {
    const std::lock_guard lock(mutex_);
    if (started_world_) return;
    started_world_ = true;
    // A program may have used sessions before: their communicators keep what they have.
    if (!started_) {
        off_ = std::nullopt;
        prepare(std::move(settings));
    }
    int* tag_limit = nullptr;
    int found = 0;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &found);
    if (found) tag_limit_ = *tag_limit;
    int size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank_);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!settings_.joblog.empty() && world_rank_ == 0) {
        auto times = std::make_unique<JobTimes>();
        job_times_ = times.get();
        observers_.add(std::move(times));
    }
    if (!settings_.warnings.empty()) {
        report_.note(settings_.warnings);
        if (world_rank_ == 0) std::fprintf(stderr, "palmette: %s\n", settings_.warnings.c_str());
    }
    if (all_are_present(presence, size)) {
        meet_world(presence.one_node());
        // A nonblocking call can't make it, since that waits for the others; nor can a simulated service, without
        // ranks.
        Refusal refusal = Refusal::no_state;
        if (simulated_services > 0 || settings_.check || may_serve_nonblocking())
            find_communicator(MPI_COMM_WORLD, refusal, Making::makes);
    } else {
        off_ = Refusal::not_everywhere;
    }
    started_.store(true, std::memory_order_release);
}

bool Process::may_serve_nonblocking() const {
    if (off_ || !world_ || world_->size() < 2) return false;
    for (std::size_t f = 0; f < select::function_count; ++f) {
        const auto& forced = settings_.forced[f];
        if (forced ? forced->algorithm.has_value()
                   : !settings_.table.always_mpi(static_cast<select::Function>(f), *world_,
                                                 {settings_.mpi, settings_.oversubscribed, false}))
            return true;
    }
    return false;
}

void Process::start_without_world(Settings settings) {
    const std::lock_guard lock(mutex_);
    if (started_) return;
    off_ = std::nullopt;
    prepare(std::move(settings));
    settings_.copies_sends = false;  // there is no end at which to wait for them
    started_.store(true, std::memory_order_release);
}

void Process::end_without_world() {
    const std::lock_guard lock(mutex_);
    ends_.fetch_add(1, std::memory_order_acq_rel);
    if (!started_) return;
    // The next MPI doesn't know this key: it would never call `forget`, and a communicator with the same handle would
    // be taken for one of today's.
    close_bypasses();
    finished_ = true;
    PMPI_Comm_free_keyval(&keyval_);
    generation_.fetch_add(1, std::memory_order_acq_rel);
    shadow_count_ = 0;
    off_ = Refusal::before_init_or_after_finalize;
    started_.store(false, std::memory_order_release);
}

void Process::write_report() {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    const double seconds = PMPI_Wtime() - start_time_;
    // Messages of a collective that failed must not get in between.
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm apart = MPI_COMM_NULL;
    PMPI_Comm_group(apart_, &group);
    const int error = PMPI_Comm_create(apart_, group, &apart);
    PMPI_Group_free(&group);
    if (error != MPI_SUCCESS || apart == MPI_COMM_NULL) return;
    // The order of merging follows from the world's tree, so all must have it.
    const bool all_know = all_true(apart, world_ && world_->size() == size).value_or(false);
    report_.merge_to_root(apart, all_know ? &*world_ : nullptr);
    PMPI_Comm_free(&apart);
    if (rank == 0) put_report(size, seconds, -1);
}

void Process::put_report(int size, double seconds, int aborted_by) const {
    if (settings_.report == "1") {
        std::string page = report_.page(size, seconds, aborted_by);
        if (settings_.topology.empty())
            page.insert(page.find('\n') + 1, "  topology: none (levels from the MPI); --topology FILE\n");
        std::fputs(page.c_str(), stderr);
        return;
    }
    base::Json report = report_.to_json(size, seconds, world_ ? world_->to_json() : base::Json(), aborted_by);
    if (!settings_.topology.empty()) report.set("topology", settings_.topology);
    if (!base::replace_file(settings_.report, report.dump(1) + "\n"))
        std::fprintf(stderr, "palmette: %s: the report can't be written; check the path and its permissions\n",
                     settings_.report.c_str());
}

namespace {
/// Six digits are more than a job's times are exact, and the line goes into a database.
double rounded(double seconds) {
    const std::string text = base::number_text(seconds);
    std::from_chars(text.data(), text.data() + text.size(), seconds);
    return seconds;
}
}  // namespace

void Process::log_job() const {
    if (!job_times_) return;
    std::array<char, 4096> program{};
    const ssize_t length = readlink("/proc/self/exe", program.data(), program.size() - 1);
    const std::string path(program.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    std::array<char, 32> now{};
    const std::time_t seconds = std::time(nullptr);
    std::tm utc{};
    if (gmtime_r(&seconds, &utc)) std::strftime(now.data(), now.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    int size = 1;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto [served, left] = report_.own_calls();
    base::Json line = base::Json::object();
    line.set("palmette", version_text)
        .set("time", now.data())
        .set("job", base::printable(batch_job(), 100))
        .set("uid", static_cast<std::int64_t>(getuid()))
        .set("program", base::printable(path.substr(path.rfind('/') + 1), 100))
        .set("host", base::printable(host.data(), 100))
        .set("mpi", settings_.mpi)
        .set("ranks", size);
    if (world_) line.set("nodes", world_->nodes().groups.count());
    line.set("seconds", rounded(PMPI_Wtime() - start_time_))
        .set("calls_served", served)
        .set("calls_left", left)
        .set("served_seconds", rounded(job_times_->seconds()));
    if (const std::int64_t calls = job_times_->compared_calls(); calls > 0)
        line.set("compared_calls", calls).set("saved_seconds", rounded(job_times_->saved_seconds()));
    line.set("topology", base::printable(settings_.topology, 200));
    if (off_) line.set("off", sentence_of(*off_));
    if (!write_joblog(settings_.joblog, line.dump()) && settings_.verbose > 0)
        std::fprintf(stderr, "palmette: PALMETTE_JOBLOG=%s: the line of this job can't be written\n",
                     settings_.joblog.c_str());
}

void Process::abort() {
    if (!started_ || finished_ || settings_.report.empty() || apart_ == MPI_COMM_NULL || aborted_.exchange(true))
        return;
    close_bypasses();  // what went straight to the MPI is counted there
    int size = 1;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    put_report(size, PMPI_Wtime() - start_time_, world_rank_);
    // Launchers drop what they haven't read of a job's output when it aborts.
    if (settings_.report == "1") std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

void Process::finish() {
    if (!started_ || finished_) return;
    close_bypasses();
    if (settings_.copies_sends) BufferedSends::instance().drain();
    log_job();  // before other ranks' counts are added
    if (!settings_.report.empty() && apart_ != MPI_COMM_NULL && reports_agree_) write_report();
    if (apart_ != MPI_COMM_NULL) PMPI_Comm_free(&apart_);
    finished_ = true;
    off_ = Refusal::before_init_or_after_finalize;
    generation_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace palmette::runtime
