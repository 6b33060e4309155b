#include "palmette/record/recorder.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "palmette/base/shell.hpp"
#include "palmette/record/adapters.hpp"
#include "palmette/record/call_requests.hpp"
#include "palmette/record/functions.hpp"
#include "palmette/record/life.hpp"
#include "palmette/record/node_file.hpp"
#include "palmette/record/regions.hpp"
#include "palmette/record/sampler.hpp"

namespace palmette::record {

constinit std::atomic<std::uint64_t> freed_types{1};
constinit std::atomic<Recorder*> recorder{nullptr};
constinit std::atomic<Recorder*> active{nullptr};
#if defined(PALMETTE_ABI_SMPI)
constinit thread_local ThreadState* thread_state = nullptr;
#else
constinit thread_local ThreadState* thread_state __attribute__((tls_model("initial-exec"))) = nullptr;
#endif

namespace {

constexpr std::uint32_t most_communicators = 1U << 16U, most_aggregates = 4096, most_paths = 4096,
                        most_frames = 1U << 15U, most_modules = 256, most_threads = 64, most_plans = 2048,
                        most_sends = 1U << 16U;
static_assert(most_communicators <= trace::communicator_mask + 1 && most_paths <= 1U << 16U && most_plans <= 1U << 16U,
              "a record has 16 bits for each");
/// First aggregates of less detail, at the table's end: over all communicators, then over all call paths.
constexpr std::uint32_t most_of_communicators = 3072, most_of_places = 3584;
/// Limits of clock comparisons: all ranks reach MPI_Init soon, MPI_Finalize maybe not.
constexpr double start_limit_s = 10.0, end_limit_s = 1.0;
constexpr std::uint64_t default_budget = std::uint64_t{16} << 20U;

void complain(const std::string& what, int error) {
    if (!speaks_for_node()) return;
    const bool by_file_system = error == ENODEV || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
    std::fprintf(stderr, "palmette: %s: %s; nothing is recorded on %s: name another folder%s\n", what.c_str(),
                 std::strerror(error), host_name().c_str(),
                 by_file_system ? ", on a file system that processes can share files' pages of, such as /tmp" : "");
}

/// Whether a module belongs to an MPI, whose calls inside of a call are its own.
bool is_of_mpi(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    constexpr std::array<std::string_view, 7> beginnings{"libmpi", "libpmpi",  "libopen-", "libpalmette_",
                                                         "mca_",   "libromio", "libucc"};
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view beginning) { return name.starts_with(beginning); });
}

/// Tables one after the other, each on a page of its own.
class Layout {
  public:
    explicit Layout(std::uint64_t begin) : end_(begin) {}
    void place(trace::Table& table, std::uint32_t capacity, std::size_t entry_bytes) {
        table.offset = end_;
        table.capacity = capacity;
        end_ += (capacity * entry_bytes + trace::page_bytes - 1) / trace::page_bytes * trace::page_bytes;
    }
    std::uint64_t end() const { return end_; }
    std::uint64_t section_bytes() const {
        return (end_ + trace::section_alignment - 1) / trace::section_alignment * trace::section_alignment;
    }

  private:
    std::uint64_t end_;
};

}  // namespace

void Recorder::start() {
    if (recorder.load(std::memory_order_acquire)) return;
    const std::string trace = setting("PALMETTE_TRACE");
    const std::string folder = trace.empty() ? setting("PALMETTE_PROFILE") : trace;
    if (folder.empty()) return;
    // Never destroyed: other threads may be in a call.
    auto* const made = new Recorder;
    if (!simulated)
        pthread_key_create(&made->key_, [](void* thread) {
            auto* const state = static_cast<ThreadState*>(thread);
            state->owner->leave_thread(*state);
        });
    if (!made->open(folder, !trace.empty())) return;
    recorder.store(made, std::memory_order_release);
    active.store(made, std::memory_order_release);
    if (simulated) return;
    made->measure_cost();
    if (made->leads_node_) watch_adapters(*made->section_);
    start_sampling(*made->section_);
    // A child has no such mapping: what it calls isn't the parent's, nor are calls that it returns from.
    static const int registered = pthread_atfork(nullptr, nullptr, [] {
        active.store(nullptr, std::memory_order_release);
        recorder.store(nullptr, std::memory_order_release);
        if (thread_state) thread_state->calls.forget_all();
    });
    (void)registered;
}

bool Recorder::open(const std::string& folder, bool records_calls) {
    choose_clock();
    records_calls_ = records_calls;
    folder_ = folder;
    with_paths_ = setting("PALMETTE_CALL_PATHS") != "0";
    concurrent_ = true;  // until it is known which threads call
    std::uint64_t budget = default_budget;
    if (const std::string wanted = setting("PALMETTE_TRACE_BYTES"); !wanted.empty())
        budget = std::clamp(std::strtoull(wanted.c_str(), nullptr, 10), 4ULL << 20U, 1ULL << 36U);
    trace::SectionHeader header{};
    Layout layout((sizeof header + trace::page_bytes - 1) / trace::page_bytes * trace::page_bytes);
    layout.place(header.functions, function_count, sizeof(trace::FunctionName));
    layout.place(header.aggregates, most_aggregates, sizeof(trace::Aggregate));
    layout.place(header.paths, most_paths, sizeof(trace::PathEntry));
    layout.place(header.frames, most_frames, sizeof(trace::Frame));
    // With samples each function of Python's in a call path is a module of its own.
    layout.place(header.modules, sampling_wish() ? 16 * most_modules : most_modules, sizeof(trace::ModuleEntry));
    layout.place(header.threads, most_threads, sizeof(trace::ThreadEntry));
    layout.place(header.request_handles, RequestTable::capacity, sizeof(std::uint64_t));
    layout.place(header.requests, RequestTable::capacity, sizeof(trace::RequestEntry));
    layout.place(header.plans, most_plans, sizeof(trace::PlanEntry));
    layout.place(header.sends, most_sends, sizeof(trace::PlanSend));
    std::uint32_t records = 0;
    if (records_calls) {
        records = 1;
        while (layout.end() + 2 * sizeof(trace::Record) * records <= budget) records *= 2;
    }
    layout.place(header.ring, records, sizeof(trace::Record));
    // Of address space only: what isn't written to takes no memory, and few programs have many.
    std::uint32_t communicators = most_communicators;
    if (const std::string fewer = setting("PALMETTE_FAKE_COMMUNICATORS"); !fewer.empty())  // for tests
        communicators = std::clamp(static_cast<std::uint32_t>(std::atoi(fewer.c_str())), 4U, most_communicators);
    layout.place(header.communicators, communicators, sizeof(trace::CommunicatorEntry));
    layout.place(header.peers, PeerTable::most, sizeof(trace::PeerEntry));

    size_sampling(header.sampling);
    trace::SamplingHeader& samples = header.sampling;
    layout.place(samples.contexts, samples.contexts.capacity, sizeof(trace::ContextNode));
    layout.place(samples.ring, samples.ring.capacity, sizeof(trace::Sample));
    layout.place(samples.threads, samples.threads.capacity, sizeof(trace::SampledThread));
    layout.place(samples.modules, samples.modules.capacity, sizeof(trace::ModuleEntry));
    layout.place(samples.texts, samples.texts.capacity, 1);
    layout.place(samples.accounts, samples.accounts.capacity, sizeof(trace::AccountedGap));
    Regions::size(header.regions);
    layout.place(header.regions.nodes, header.regions.nodes.capacity, sizeof(trace::RegionNode));
    layout.place(header.regions.modules, header.regions.modules.capacity, sizeof(trace::ModuleEntry));
    layout.place(header.regions.texts, header.regions.texts.capacity, 1);
    size_adapters(header.adapters);
    layout.place(header.adapters.adapters, header.adapters.adapters.capacity, sizeof(trace::AdapterEntry));
    layout.place(header.adapters.readings, header.adapters.readings.capacity, sizeof(trace::AdapterReading));
    Snapshots::size(header.snapshots);
    layout.place(header.snapshots.moments, header.snapshots.moments.capacity, sizeof(trace::Snapshot));
    layout.place(header.snapshots.parts, header.snapshots.parts.capacity, sizeof(trace::SnapshotPart));
    // `palmette run` makes it where it is started; other nodes may have no shared file system.
    make_folder(folder);
    const std::uint64_t bytes = layout.section_bytes();
    std::string path;
    MappedSection made;
    for (const std::string& name : names_of_node()) {
        path = folder + "/" + name + ".palmette";
        made = map_section(path, bytes);
        if (made.memory || errno != EXDEV) break;
    }
    if (!made.memory) {
        complain(path, errno);
        return false;
    }
    leads_node_ = made.is_first;
    section_ = new (made.memory) trace::SectionHeader{};
    trace::SectionHeader& section = *section_;
    section.bytes = bytes;
    section.pid = simulated ? 0 : getpid();
    section.pid_namespace = simulated ? 0 : pid_namespace();
    if (!simulated) {
        // A child's calls aren't recorded here.
        madvise(made.memory, bytes, MADV_DONTFORK);
        // Without it the kernel's readahead makes thousands of pages of the sparse file's holes at each first touch.
        madvise(made.memory, bytes, MADV_RANDOM);
        begin_life(section.life);
    }
    section.rank.store(-1);
    section.ticks_are_tsc = ticks_are_tsc ? 1 : 0;
    section.records_calls = records_calls ? 1 : 0;
    const auto place = [](auto& to, const auto& from, auto... tables) {
        const auto one = [](trace::Table& its, const trace::Table& known) {
            its.offset = known.offset;
            its.capacity = known.capacity;
        };
        (one(to.*tables, from.*tables), ...);
    };
    using Header = trace::SectionHeader;
    place(section, header, &Header::functions, &Header::communicators, &Header::aggregates, &Header::paths,
          &Header::frames, &Header::modules, &Header::threads, &Header::request_handles, &Header::requests,
          &Header::plans, &Header::sends, &Header::ring, &Header::peers);
    using Samples = trace::SamplingHeader;
    place(section.sampling, header.sampling, &Samples::contexts, &Samples::ring, &Samples::threads, &Samples::modules,
          &Samples::texts, &Samples::accounts);
    using Said = trace::RegionsHeader;
    place(section.regions, header.regions, &Said::nodes, &Said::modules, &Said::texts);
    using Adapters = trace::AdaptersHeader;
    place(section.adapters, header.adapters, &Adapters::adapters, &Adapters::readings);
    using Taken = trace::SnapshotsHeader;
    place(section.snapshots, header.snapshots, &Taken::moments, &Taken::parts);
    put_text(section.executable, own_path());
    auto* const names = table<trace::FunctionName>(section.functions);
    for (std::uint32_t i = 0; i < function_count; ++i) put_text(names[i].name, function_names[i]);
    section.functions.count.store(function_count);
    section.communicators.count.store(1);  // 0: none
    aggregates_ = table<trace::Aggregate>(section.aggregates);
    section.aggregates.count.store(1);
    section.plans.count.store(1);  // 0: none
    plans_ = table<trace::PlanEntry>(section.plans);
    paths_.attach(section);
    requests_.attach(section);
    peers_.attach(section);
    if (simulated) regions.store(new Regions);
    if (Regions* const all = regions.load(std::memory_order_acquire)) all->attach(section);
    snapshots_.attach(section);
    begin_node_time();
    section.node_offset_ns.store(node_offset_ns);
    const BothClocks first = read_both_clocks();
    section.first.ticks.store(first.ticks);
    section.first.monotonic_ns.store(first.monotonic_ns);
    update_clock();
    // Last: who reads takes what begins so.
    std::atomic_thread_fence(std::memory_order_release);
    section.magic = trace::file_magic;
    return true;
}

void Recorder::measure_cost() {
    constexpr std::uint64_t batches = 12;
    constexpr std::uint64_t calls = 100;
    concurrent_ = false;  // as most programs are; no other thread is in MPI_Init
    std::uint64_t least = UINT64_MAX;
    std::uint64_t least_clock = UINT64_MAX;
    for (std::uint64_t batch = 0; batch < batches; ++batch) {
        const std::uint64_t begin = now();
        for (std::uint64_t i = 0; i < calls; ++i) {
            Call call(0, __builtin_return_address(0), __builtin_frame_address(0));
            if (call) call.begin();
        }
        const std::uint64_t between = now();
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 2 * calls; ++i) sum += now();
        asm volatile("" ::"r"(sum));
        least = std::min(least, between - begin);
        least_clock = std::min(least_clock, now() - between);
    }
    section_->call_cost_milliticks.store(static_cast<std::uint32_t>(least * 1000 / calls));
    section_->clock_cost_milliticks.store(static_cast<std::uint32_t>(least_clock * 1000 / calls));
    concurrent_ = true;
    // Nothing of it stays: what has no calls isn't read.
    for (std::uint32_t i = 1; i < section_->aggregates.count.load(); ++i) {
        trace::Aggregate& sum = aggregates_[i];
        for (trace::Shared<std::uint64_t>* const counter : {&sum.calls, &sum.bytes, &sum.ticks, &sum.longest_ticks})
            counter->store(0);
        for (trace::Shared<std::uint32_t>& bin : sum.histogram) bin.store(0);
    }
    section_->unwound_calls.store(0);
    section_->unwinding_ticks.store(0);
    section_->unpathed_calls.store(0);
    snapshots_.forget();
    if (thread_state && thread_state->entry) {
        thread_state->recorded = 0;
        thread_state->entry->recorded.store(0);
    }
}

void Recorder::know_world() {
    int rank = 0;
    int size = 1;
    int threads = MPI_THREAD_SINGLE;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Query_thread(&threads);
    concurrent_ = threads == MPI_THREAD_MULTIPLE;
    requests_.set_concurrent(concurrent_);
    section_->rank.store(rank, std::memory_order_release);
    section_->size.store(size, std::memory_order_release);
    peers_.know_world();
    const std::lock_guard lock(mutex_);
    has_world_ = true;
    add_communicator(MPI_COMM_WORLD, 1);
    add_communicator(MPI_COMM_SELF, own_id(rank));
    update_clock();
    section_->state.store(trace::State::running, std::memory_order_release);
}

void Recorder::synchronize(MPI_Comm comm) {
    if (simulated || leaders_ != MPI_COMM_NULL) return;
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    pretend_clock(rank);
    // The others get a communicator, too, and keep it: with ids of communicators in use on some ranks only, Intel MPI
    // 2021.18 now and then loses a message of an inter-communicator that is made later.
    MPI_Comm part = MPI_COMM_NULL;
    if (PMPI_Comm_split(comm, leads_node_ ? 0 : 1, rank, &part) != MPI_SUCCESS || !leads_node_) return;
    leaders_ = part;
    PMPI_Comm_set_errhandler(leaders_, MPI_ERRORS_RETURN);
    keep(section_->synced_first, synchronize_clocks(leaders_, 1, start_limit_s));
}

void Recorder::synchronize_again() {
    if (leaders_ != MPI_COMM_NULL) keep(section_->synced_last, synchronize_clocks(leaders_, 2, end_limit_s));
}

void Recorder::keep(trace::SyncPoint& point, const std::optional<ClockOffset>& found) {
    if (!found) return;
    point.offset_ns.store(found->offset_ns);
    point.error_ns.store(found->error_ns);
    // Last: who reads takes the point where it is known when it was.
    point.real_ns.store(node_now_ns(), std::memory_order_release);
}

void Recorder::session(int change) {
    const int now = sessions_.fetch_add(change) + change;
    update_clock();
    if (has_world_) return;
    section_->state.store(now > 0 ? trace::State::running : trace::State::finalized, std::memory_order_release);
}

void Recorder::tell_next() const {
#if !defined(PALMETTE_ABI_SMPI)
    if (!has_world_ || section_->rank.load() != 0) return;
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return;  // whoever spawned these ranks tells it
    std::fprintf(stderr, "palmette run: recorded in %s\n  next: palmette %s %s\n", folder_.c_str(),
                 records_calls_ ? "report" : "top --calls", base::shell_word(folder_).c_str());
#endif
}

void Recorder::stop() {
    stop_sampling();
    end_watch_of_adapters();
    update_clock(Moment::end);
    if (ticks_are_tsc && !counter_is_trusted()) section_->counter_distrusted.store(1);
    active.store(nullptr, std::memory_order_release);
    recorder.store(nullptr, std::memory_order_release);
    section_->state.store(trace::State::finalized, std::memory_order_release);
}

ThreadState* Recorder::join_thread() {
    const std::lock_guard lock(mutex_);
    ThreadState* thread = thread_state;
    if (!thread) thread_state = thread = new ThreadState;
    thread->owner = this;
    thread->next_stack = nullptr;
    if (!simulated) pthread_setspecific(key_, thread);
    take_entry(*thread);
    open_account(*thread);
    return thread;
}

ThreadState* Recorder::state_at(ThreadState& first, std::uint32_t slot) {
    ThreadState* thread = &first;
    for (std::uint32_t i = 0; i < slot; ++i) {
        if (!thread->next_stack) {
            auto made = std::make_unique<ThreadState>();
            made->owner = this;
            const std::lock_guard lock(mutex_);
            take_entry(*made);
            thread->next_stack = std::move(made);
        }
        thread = thread->next_stack.get();
    }
    return thread;
}

void Recorder::take_entry(ThreadState& thread) {
    thread.entry = nullptr;
    thread.ring = nullptr;
    thread.last_generation = 0;
    std::uint32_t index = section_->threads.count.load(std::memory_order_relaxed);
    const bool again = !free_threads_.empty();
    if (again) {
        index = free_threads_.back();
        free_threads_.pop_back();
    }
    if (index >= section_->threads.capacity) return;
    trace::ThreadEntry& entry = table<trace::ThreadEntry>(section_->threads)[index];
    entry.thread_id = simulated ? 1 : syscall(SYS_gettid);
    // Half of the ring for the first thread, half of the rest for the second, and so on.
    const std::uint32_t capacity = index < 31 ? section_->ring.capacity >> (index + 1) : 0;
    if (records_calls_ && capacity >= 64) {
        entry.ring_first = section_->ring.capacity - (section_->ring.capacity >> index);
        entry.ring_capacity = capacity;
        thread.ring = table<trace::Record>(section_->ring) + entry.ring_first;
        thread.mask = capacity - 1;
    }
    thread.recorded = entry.recorded.load(std::memory_order_relaxed);
    thread.entry = &entry;
    thread.number = index + 1;
    if (!again) section_->threads.count.store(index + 1, std::memory_order_release);
}

void Recorder::give_back_entry(ThreadState& thread) {
    if (thread.owner == this && thread.entry)
        free_threads_.push_back(
            static_cast<std::uint32_t>(thread.entry - table<trace::ThreadEntry>(section_->threads)));
}

void Recorder::leave_thread(ThreadState& thread) {
    const std::lock_guard lock(mutex_);
    // A call that a jump has left; one on a coroutine's stack may go on in another thread, and then finds that it has
    // ended.
    end_life(section_->life);  // if this thread holds it: the process goes on
    const bool kept = thread.calls.any();
    std::uint32_t slot = 0;
    for (ThreadState* one = &thread; one; one = one->next_stack.get(), ++slot) {
        if (thread.calls.any(slot)) Call::end_left(*this, *one);
        give_back_entry(*one);
    }
    thread.calls.forget_all();
    thread.account.close();
    thread_state = nullptr;
    if (!kept) delete &thread;
}

bool Recorder::meet_nested(ThreadState& thread, const void* return_address, bool counted) {
    if (thread.nested_from != return_address) {
        thread.nested_from = return_address;
        thread.nested_is_programs = !is_of_mpi(base::module_path_of(reinterpret_cast<std::uintptr_t>(return_address)));
    }
    if (thread.nested_is_programs && counted) section_->nested_calls.fetch_add(1, std::memory_order_relaxed);
    return thread.nested_is_programs;
}

trace::Aggregate& Recorder::coarse_aggregate(std::uint64_t key) {
    constexpr std::uint64_t of_all_places = std::uint64_t{1} << trace::key_request | trace::function_mask;
    constexpr std::uint64_t of_one_communicator = std::uint64_t{trace::communicator_mask} << trace::key_communicator;
    const std::uint64_t parts = key - 1;
    const std::array<std::pair<std::uint64_t, std::uint32_t>, 3> levels{
        {{key, most_of_communicators},
         {(parts & ~of_one_communicator) + 1, most_of_places},
         {(parts & of_all_places) + 1, section_->aggregates.capacity}}};
    for (std::size_t level = 0; level < levels.size(); ++level) {
        const auto [wanted, limit] = levels[level];
        trace::Aggregate* found = level > 0 ? find_aggregate(wanted) : nullptr;
        if (!found) found = make_aggregate(wanted, limit);
        if (!found) continue;
        if (level == 1 && wanted != key) section_->merged_calls.fetch_add(1, std::memory_order_relaxed);
        if (level == 2) section_->unaggregated_calls.fetch_add(1, std::memory_order_relaxed);
        return *found;
    }
    section_->unaggregated_calls.fetch_add(1, std::memory_order_relaxed);
    return aggregates_[0];
}

trace::Aggregate* Recorder::make_aggregate(std::uint64_t key, std::uint32_t limit) {
    // None is removed: what is full stays so, and needs no lock.
    if (section_->aggregates.count.load(std::memory_order_relaxed) >= limit) return nullptr;
    const std::lock_guard lock(mutex_);
    std::uint64_t at = first_slot(key);
    for (std::uint32_t tries = 0; tries < 32; ++tries, ++at) {
        AggregateSlot& slot = aggregate_index_[at % aggregate_slots];
        const std::uint64_t held = slot.key.load(std::memory_order_relaxed);
        if (held == key) return slot.entry;  // made by another thread meanwhile
        if (held != 0) continue;
        const std::uint32_t index = section_->aggregates.count.load(std::memory_order_relaxed);
        if (index >= limit) break;
        slot.entry = aggregates_ + index;
        slot.entry->key.store(key, std::memory_order_relaxed);
        section_->aggregates.count.store(index + 1, std::memory_order_release);
        slot.key.store(key, std::memory_order_release);
        return slot.entry;
    }
    return nullptr;
}

void Recorder::update_clock(Moment moment) {
    // Two threads would leave a pair of different moments.
    while (updating_clock_.test_and_set(std::memory_order_acquire))
        if (moment == Moment::any) return;
    const BothClocks last = read_both_clocks();
    section_->last.ticks.store(last.ticks, std::memory_order_relaxed);
    section_->last.monotonic_ns.store(last.monotonic_ns, std::memory_order_release);
    snapshots_.take(last, moment);
    updating_clock_.clear(std::memory_order_release);
}

}  // namespace palmette::record
