#include "palmette/record/recorder.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(PALMETTE_ABI_SMPI)
#include <simgrid/host.h>
#endif

#include "palmette/base/hash.hpp"
#include "palmette/record/call.hpp"
#include "palmette/record/functions.hpp"

namespace palmette::record {

constinit std::atomic<Recorder*> recorder{nullptr};
constinit std::atomic<Recorder*> active{nullptr};
#if defined(PALMETTE_ABI_SMPI)
constinit thread_local ThreadState* thread_state = nullptr;
#else
constinit thread_local ThreadState* thread_state __attribute__((tls_model("initial-exec"))) = nullptr;
#endif

#if defined(__x86_64__) && !defined(PALMETTE_ABI_SMPI)
namespace {
bool has_invariant_counter() {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d & (1U << 8U)) != 0;
}
}  // namespace
bool ticks_are_tsc = has_invariant_counter();
#endif

namespace {

constexpr std::uint32_t most_communicators = 1024, most_aggregates = 4096, most_paths = 4096, most_frames = 1U << 15U,
                        most_modules = 256, most_threads = 64, most_plans = 2048, most_sends = 1U << 16U;
constexpr std::uint64_t default_budget = std::uint64_t{16} << 20U;

/// A text of the environment; empty where it is unset.
std::string setting(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

void complain(const std::string& what, int error) {
    std::fprintf(stderr, "palmette: %s: %s; nothing is recorded by this process\n", what.c_str(), std::strerror(error));
}

#if defined(PALMETTE_ABI_SMPI)
// All ranks are of one process and on one thread; what tells real processes apart is left out, so that two simulations
// record the same.
constexpr bool simulated = true;
std::string host_name() { return sg_host_self_get_name(); }
#else
constexpr bool simulated = false;
std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}
#endif

template <std::size_t size>
void put_text(std::array<char, size>& to, std::string_view text) {
    std::memcpy(to.data(), text.data(), std::min(size - 1, text.size()));
}

/// With those above it, as mkdir -p. What fails shows when a file is made in it.
void make_folder(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
        ::mkdir(path.substr(0, slash).c_str(), 0777);
    ::mkdir(path.c_str(), 0777);
}

std::string first_line_of(const char* path) {
    std::array<char, 64> text{};
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return "";
    const ssize_t bytes = ::read(file, text.data(), text.size() - 1);
    ::close(file);
    std::string line(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return line.substr(0, line.find('\n'));
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

  private:
    std::uint64_t end_;
};

/// Begins a section of `bytes` in the file; its offset, or 0 with errno. Other processes of the node may do the same.
std::uint64_t claim_section(int file, std::uint64_t bytes) {
    if (flock(file, LOCK_EX) != 0) return 0;
    std::uint64_t offset = 0;
    struct stat status{};
    trace::FileHeader header{};
    constexpr std::uint64_t header_bytes = trace::page_bytes;
    if (fstat(file, &status) == 0) {
        std::uint64_t end = header_bytes;
        bool good = true;
        if (status.st_size == 0) {
            header.magic = trace::file_magic;
            header.version = trace::format_version;
            header.header_bytes = static_cast<std::uint32_t>(header_bytes);
            put_text(header.host, host_name());
            put_text(header.boot_id, simulated ? "simulated" : first_line_of("/proc/sys/kernel/random/boot_id"));
        } else {
            good = pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                   header.magic == trace::file_magic && header.version == trace::format_version;
            end = header.end.load();
            if (!good) errno = EEXIST;
        }
        header.end.store(end + bytes);
        // The section's length stands in it from now on, so that one whose process dies here can be passed over.
        if (good && ftruncate(file, static_cast<off_t>(end + bytes)) == 0 &&
            pwrite(file, &bytes, sizeof bytes, static_cast<off_t>(end + offsetof(trace::SectionHeader, bytes))) ==
                static_cast<ssize_t>(sizeof bytes) &&
            pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header))
            offset = end;
    }
    const int error = errno;
    flock(file, LOCK_UN);
    errno = error;
    return offset;
}

std::uint64_t hashed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    const std::array<std::uint64_t, 3> words{a, b, c};
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, {reinterpret_cast<const char*>(words.data()), sizeof words});
    return hash;
}

/// The rank in MPI_COMM_WORLD of a communicator's rank 0, which tells the parts of a split apart. Needs a world.
int leader_of(MPI_Comm comm) {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    int leader = -1;
    const int first = 0;
    if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS) return -1;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        PMPI_Group_translate_ranks(group, 1, &first, world, &leader);
        PMPI_Group_free(&world);
    }
    PMPI_Group_free(&group);
    return leader;
}

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
    // A child shares the mapping: what it calls isn't the parent's.
    static const int registered = pthread_atfork(nullptr, nullptr, [] {
        active.store(nullptr, std::memory_order_release);
        recorder.store(nullptr, std::memory_order_release);
    });
    (void)registered;
}

bool Recorder::open(const std::string& folder, bool records_calls) {
    records_calls_ = records_calls;
    with_paths_ = setting("PALMETTE_CALL_PATHS") != "0";
    concurrent_ = true;  // until it is known which threads call
    std::uint64_t budget = default_budget;
    if (const std::string wanted = setting("PALMETTE_TRACE_BYTES"); !wanted.empty())
        budget = std::clamp(std::strtoull(wanted.c_str(), nullptr, 10), 4ULL << 20U, 1ULL << 36U);
    trace::SectionHeader header{};
    Layout layout((sizeof header + trace::page_bytes - 1) / trace::page_bytes * trace::page_bytes);
    layout.place(header.functions, function_count, sizeof(trace::FunctionName));
    layout.place(header.communicators, most_communicators, sizeof(trace::CommunicatorEntry));
    layout.place(header.aggregates, most_aggregates, sizeof(trace::Aggregate));
    layout.place(header.paths, most_paths, sizeof(trace::PathEntry));
    layout.place(header.frames, most_frames, sizeof(trace::Frame));
    layout.place(header.modules, most_modules, sizeof(trace::ModuleEntry));
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

    // `palmette run` makes it where it is started; other nodes may have no shared file system.
    make_folder(folder);
    const std::string path = folder + "/" + host_name() + ".palmette";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) {
        complain(path, errno);
        return false;
    }
    const std::uint64_t offset = claim_section(file, layout.end());
    void* const memory =
        offset == 0 ? MAP_FAILED
                    : mmap(nullptr, layout.end(), PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    const int error = errno;
    ::close(file);
    if (memory == MAP_FAILED) {
        complain(path, error);
        return false;
    }
    section_ = new (memory) trace::SectionHeader{};
    trace::SectionHeader& section = *section_;
    section.bytes = layout.end();
    section.pid = simulated ? 0 : getpid();
    section.rank.store(-1);
    section.ticks_are_tsc = ticks_are_tsc ? 1 : 0;
    section.records_calls = records_calls ? 1 : 0;
    const auto place = [](trace::Table& to, const trace::Table& from) {
        to.offset = from.offset;
        to.capacity = from.capacity;
    };
    place(section.functions, header.functions);
    place(section.communicators, header.communicators);
    place(section.aggregates, header.aggregates);
    place(section.paths, header.paths);
    place(section.frames, header.frames);
    place(section.modules, header.modules);
    place(section.threads, header.threads);
    place(section.request_handles, header.request_handles);
    place(section.requests, header.requests);
    place(section.plans, header.plans);
    place(section.sends, header.sends);
    place(section.ring, header.ring);
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
    section.first.ticks.store(now());
    section.first.real_ns.store(real_now_ns());
    update_clock();
    // Last: who reads takes what begins so.
    section.magic = trace::file_magic;
    return true;
}

void Recorder::measure_cost() {
    constexpr std::uint64_t batches = 12;
    constexpr std::uint64_t calls = 100;
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
    // Nothing of it stays: what has no calls isn't read.
    for (std::uint32_t i = 1; i < section_->aggregates.count.load(); ++i) {
        trace::Aggregate& sum = aggregates_[i];
        for (trace::Shared<std::uint64_t>* const counter : {&sum.calls, &sum.bytes, &sum.ticks, &sum.longest_ticks})
            counter->store(0);
        for (trace::Shared<std::uint32_t>& bin : sum.histogram) bin.store(0);
    }
    section_->unwound_calls.store(0);
    section_->unwinding_ticks.store(0);
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
    section_->rank.store(rank, std::memory_order_release);
    section_->size.store(size, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    has_world_ = true;
    add_communicator(MPI_COMM_WORLD, 1);
    add_communicator(MPI_COMM_SELF, hashed(2, static_cast<std::uint64_t>(rank), 0));
    update_clock();
    section_->state.store(trace::State::running, std::memory_order_release);
}

void Recorder::session(int change) {
    const int now = sessions_.fetch_add(change) + change;
    update_clock();
    if (has_world_) return;
    section_->state.store(now > 0 ? trace::State::running : trace::State::finalized, std::memory_order_release);
}

void Recorder::stop() {
    update_clock();
    active.store(nullptr, std::memory_order_release);
    recorder.store(nullptr, std::memory_order_release);
    section_->state.store(trace::State::finalized, std::memory_order_release);
}

ThreadState* Recorder::join_thread() {
    const std::lock_guard lock(mutex_);
    ThreadState* thread = thread_state;
    if (!thread) thread_state = thread = new ThreadState;
    thread->owner = this;
    thread->entry = nullptr;
    thread->ring = nullptr;
    thread->last_generation = 0;
    if (!simulated) pthread_setspecific(key_, thread);
    std::uint32_t index = section_->threads.count.load(std::memory_order_relaxed);
    const bool again = !free_threads_.empty();
    if (again) {
        index = free_threads_.back();
        free_threads_.pop_back();
    }
    if (index >= section_->threads.capacity) return thread;
    trace::ThreadEntry& entry = table<trace::ThreadEntry>(section_->threads)[index];
    entry.thread_id = simulated ? 1 : syscall(SYS_gettid);
    // Half of the ring for the first thread, half of the rest for the second, and so on.
    const std::uint32_t capacity = index < 31 ? section_->ring.capacity >> (index + 1) : 0;
    if (records_calls_ && capacity >= 64) {
        entry.ring_first = section_->ring.capacity - (section_->ring.capacity >> index);
        entry.ring_capacity = capacity;
        thread->ring = table<trace::Record>(section_->ring) + entry.ring_first;
        thread->mask = capacity - 1;
    }
    thread->recorded = entry.recorded.load(std::memory_order_relaxed);
    thread->entry = &entry;
    thread->number = index + 1;
    if (!again) section_->threads.count.store(index + 1, std::memory_order_release);
    return thread;
}

void Recorder::leave_thread(ThreadState& thread) {
    const std::lock_guard lock(mutex_);
    if (thread.owner == this && thread.entry)
        free_threads_.push_back(
            static_cast<std::uint32_t>(thread.entry - table<trace::ThreadEntry>(section_->threads)));
    thread_state = nullptr;
    delete &thread;
}

std::uint64_t Recorder::leader(MPI_Comm comm) const {
    return has_world_ ? static_cast<std::uint64_t>(leader_of(comm)) : 0;
}

std::uint16_t Recorder::add_communicator(MPI_Comm comm, std::uint64_t id) {
    const std::uint32_t index = section_->communicators.count.load(std::memory_order_relaxed);
    if (index >= section_->communicators.capacity) {
        communicators_[trace::handle_word(comm)] = {};  // so that it isn't asked about at each call
        return 0;
    }
    auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[index];
    entry.id = id;
    PMPI_Comm_rank(comm, &entry.rank);
    PMPI_Comm_size(comm, &entry.size);
    section_->communicators.count.store(index + 1, std::memory_order_release);
    communicators_[trace::handle_word(comm)] = {static_cast<std::uint16_t>(index), 0};
    generation_.fetch_add(1, std::memory_order_acq_rel);
    return static_cast<std::uint16_t>(index);
}

std::uint16_t Recorder::find_communicator(MPI_Comm comm, ThreadState& thread) {
    if (comm == MPI_COMM_NULL || !(has_world_ || sessions_.load() > 0)) return 0;
    const std::lock_guard lock(mutex_);
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    const auto known = communicators_.find(trace::handle_word(comm));
    std::uint16_t index = 0;
    if (known != communicators_.end()) {
        index = known->second.index;
    } else {
        // Made in a way that wasn't seen; a handle that is none is the MPI's to complain about.
        int inter = 0;
        if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return 0;
        index = add_communicator(comm, hashed(3, leader(comm), 0));
        return index;
    }
    thread.last_comm = comm;
    thread.last_communicator = index;
    thread.last_generation = generation;
    return index;
}

void Recorder::made_communicator(MPI_Comm parent, MPI_Comm made) {
    const std::lock_guard lock(mutex_);
    std::uint64_t parent_id = 0;
    std::uint64_t order = 0;
    if (const auto known = communicators_.find(trace::handle_word(parent)); known != communicators_.end()) {
        parent_id = table<trace::CommunicatorEntry>(section_->communicators)[known->second.index].id;
        order = ++known->second.children;
    }
    if (made != MPI_COMM_NULL) add_communicator(made, hashed(parent_id, order, leader(made)));
}

void Recorder::will_make_communicator(MPI_Comm parent, MPI_Comm made) {
    const std::lock_guard lock(mutex_);
    const auto known = communicators_.find(trace::handle_word(parent));
    const std::uint32_t index = section_->communicators.count.load(std::memory_order_relaxed);
    if (known == communicators_.end() || index >= section_->communicators.capacity) return;
    auto* const entries = table<trace::CommunicatorEntry>(section_->communicators);
    const trace::CommunicatorEntry& like = entries[known->second.index];
    entries[index].id = hashed(like.id, ++known->second.children, leader(parent));
    entries[index].rank = like.rank;
    entries[index].size = like.size;
    section_->communicators.count.store(index + 1, std::memory_order_release);
    communicators_[trace::handle_word(made)] = {static_cast<std::uint16_t>(index), 0};
    generation_.fetch_add(1, std::memory_order_acq_rel);
}

std::uint32_t Recorder::add_plan(const trace::ServedPlan& plan) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t index = section_->plans.count.load(std::memory_order_relaxed);
    const std::uint32_t first = section_->sends.count.load(std::memory_order_relaxed);
    if (index >= section_->plans.capacity || plan.send_count > section_->sends.capacity - first) return 0;
    trace::PlanEntry& entry = plans_[index];
    put_text(entry.function, plan.function);
    put_text(entry.algorithm, plan.algorithm);
    const auto known = communicators_.find(plan.communicator);
    entry.communicator = known == communicators_.end() ? 0 : known->second.index;
    entry.root = plan.root;
    entry.block_bytes = plan.block_bytes;
    entry.bound_ns = plan.bound_ns;
    entry.first_send = first;
    entry.send_count = static_cast<std::uint32_t>(plan.send_count);
    std::copy_n(plan.sends, plan.send_count, table<trace::PlanSend>(section_->sends) + first);
    section_->sends.count.store(first + entry.send_count, std::memory_order_release);
    section_->plans.count.store(index + 1, std::memory_order_release);
    return index;
}

void Recorder::add_sends(std::uint32_t plan, const trace::PlanSend* sends, std::size_t count) {
    const trace::PlanEntry& entry = plans_[plan];
    trace::PlanSend* to = table<trace::PlanSend>(section_->sends) + entry.first_send;
    trace::PlanSend* const end = to + entry.send_count;
    // Both are in the order of their peers.
    for (std::size_t i = 0; i < count; ++i) {
        while (to != end && to->peer < sends[i].peer) ++to;
        if (to == end || to->peer != sends[i].peer) continue;
        to->messages += sends[i].messages;
        to->bytes += sends[i].bytes;
    }
}

void Recorder::freed_communicator(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    communicators_.erase(trace::handle_word(comm));
    generation_.fetch_add(1, std::memory_order_acq_rel);
}

std::uint64_t Recorder::next_instance(std::uint16_t communicator) {
    auto& entry = table<trace::CommunicatorEntry>(section_->communicators)[communicator];
    add(entry.collectives, std::uint64_t{1});
    return entry.collectives.load(std::memory_order_relaxed);
}

trace::Aggregate& Recorder::make_aggregate(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    std::uint64_t at = key * 0x9E3779B97F4A7C15ULL >> 40U;
    for (std::uint32_t tries = 0; tries < 32; ++tries, ++at) {
        AggregateSlot& slot = aggregate_index_[at % aggregate_slots];
        const std::uint64_t held = slot.key.load(std::memory_order_relaxed);
        if (held == key) return *slot.entry;  // made by another thread meanwhile
        if (held != 0) continue;
        const std::uint32_t index = section_->aggregates.count.load(std::memory_order_relaxed);
        if (index >= section_->aggregates.capacity) break;
        slot.entry = aggregates_ + index;
        slot.entry->key.store(key, std::memory_order_relaxed);
        section_->aggregates.count.store(index + 1, std::memory_order_release);
        slot.key.store(key, std::memory_order_release);
        return *slot.entry;
    }
    section_->unaggregated_calls.fetch_add(1, std::memory_order_relaxed);
    return aggregates_[0];
}

void Recorder::update_clock() {
    section_->last.ticks.store(now(), std::memory_order_relaxed);
    section_->last.real_ns.store(real_now_ns(), std::memory_order_release);
}

}  // namespace palmette::record

using palmette::record::recorder;
using palmette::record::thread_state;

std::uint32_t palmette_record_add_plan(const palmette::trace::ServedPlan* plan) {
    palmette::record::Recorder* const current = recorder.load(std::memory_order_acquire);
    return current ? current->add_plan(*plan) : 0;
}

void palmette_record_serve_by(std::uint32_t plan) {
    palmette::record::Recorder* const current = palmette::record::active.load(std::memory_order_acquire);
    // Progress that a call makes may serve another one, which the program began earlier: the outermost is what counts.
    if (!current || !thread_state || thread_state->owner != current) return;
    if (plan == 0) current->count_unplanned();
    thread_state->plan = plan;
}

void palmette_record_add_sends(std::uint32_t plan, const palmette::trace::PlanSend* sends, std::size_t count) {
    palmette::record::Recorder* const current = recorder.load(std::memory_order_acquire);
    if (current) current->add_sends(plan, sends, count);
}
