#include "palmette/record/sampler.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "palmette/record/node_file.hpp"

namespace palmette::record {

const SamplingWish& sampling_wish() {
    static const SamplingWish wish = [] {
        SamplingWish out;
        const std::string text = simulated ? "" : setting("PALMETTE_SAMPLE");
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        if (!(value > 0)) return out;
        constexpr double least_hertz = 1, most_hertz = 10'000, most_percent = 50;
        out.by_events = std::string_view(end) == ":events";
        if (*end == '%')
            out.budget = std::min(value, most_percent) / 100;
        else
            out.hertz = std::clamp(value, least_hertz, most_hertz);
        return out;
    }();
    return wish;
}

void size_sampling(trace::SamplingHeader& header) {
    // Address space alone: what isn't written to takes no memory.
    const bool wished = static_cast<bool>(sampling_wish());
    header.contexts.capacity = wished ? 1U << 17U : 0;
    header.ring.capacity = wished ? 1U << 18U : 0;
    header.threads.capacity = wished ? 4096 : 0;
    header.modules.capacity = wished ? 1024 : 0;
    header.texts.capacity = wished ? 1U << 20U : 0;
    header.accounts.capacity = wished ? 1U << 16U : 0;
}

}  // namespace palmette::record

#if defined(PALMETTE_ABI_SMPI) || !defined(__x86_64__)

namespace palmette::record {

void start_sampling(trace::SectionHeader&) {
    // Simulated ranks share a thread, whose time isn't theirs.
    if (!simulated && sampling_wish() && speaks_for_node())
        std::fputs("palmette: --sample: not on this processor yet; no samples are taken\n", stderr);
}
void stop_sampling() {}
void sample_this_thread() {}
void move_samples_to(int) {}
void before_unload() {}
constinit std::atomic<bool> calls_have_python{false};
std::uint32_t path_with_python(PathTable&, std::uint32_t native, const void*, const void*) { return native; }
void after_unload() {}

}  // namespace palmette::record

#else

#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "palmette/base/loaded_module.hpp"
#include "palmette/record/call_paths.hpp"
#include "palmette/record/clock.hpp"
#include "palmette/record/contexts.hpp"
#include "palmette/record/last_stack.hpp"
#include "palmette/record/python_frames.hpp"
#include "palmette/record/recorder.hpp"
#include "palmette/record/regions.hpp"
#include "palmette/record/sample_clock.hpp"
#include "palmette/record/sample_signal.hpp"
#include "palmette/record/sampled_stack.hpp"

namespace palmette::record {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
/// What a budget can lead to.
constexpr double least_adapted_hertz = 20, most_adapted_hertz = 1000, first_adapted_hertz = 100;

/// What a thread needs when it is interrupted. Made by itself, before it may be.
struct SampledState {
    pthread_t thread{};
    pid_t thread_id = 0;
    StackBounds bounds;
    SampleClock clock;
    trace::SampledThread* entry = nullptr;
    std::uint32_t number = 0;
    std::uint64_t taken = 0, taken_ticks = 0;  ///< since the rate was adapted
    SampledFrames frames, frames_of_call;      ///< `frames`: where `last` doesn't do
    LastStack last;
};

constinit thread_local SampledState* sampled __attribute__((tls_model("initial-exec"))) = nullptr;

class Sampler {
  public:
    /// Never destroyed: threads go on at the end of a program.
    static Sampler& own() {
        static Sampler* const made = new Sampler;
        return *made;
    }

    void start(trace::SectionHeader& section);
    void stop();
    void join();
    void leave(SampledState& state);
    void take_signal(int signal);
    std::uint32_t path_of_call(PathTable& paths, std::uint32_t native, const void* return_address, const void* frame);
    void sample(const ucontext_t& context, const siginfo_t& signal);
    CodeRules& rules() { return rules_; }
    static constinit std::atomic<Sampler*> started;

  private:
    Sampler() {
        has_key_ = pthread_key_create(&key_, [](void* state) { own().leave(*static_cast<SampledState*>(state)); }) == 0;
        pthread_atfork([] { own().mutex_.lock(); }, [] { own().mutex_.unlock(); }, [] { own().forget(); });
    }
    /// In a forked child, which has no timers and no section: their numbers may become those of its own.
    void forget() {
        started.store(nullptr, std::memory_order_release);
        is_child_ = true;
        is_on_.store(false, std::memory_order_seq_cst);
        for (SampledState* const state : threads_) state->clock.forget();
        sampled = nullptr;
        mutex_.unlock();
    }
    int choose_clock();
    void give_clock(SampledState& state);
    void give_entry(SampledState& state) const;
    void measure_signal();
    void adapt(SampledState& state) const;
    bool walk(SampledState& state, SampledFrames& frames, std::uint32_t generation, const Registers& registers,
              bool with_python);
    LastStack::Result find(SampledState& state, std::uint32_t generation, const Registers& registers);
    void count(SampledState& state, std::uint32_t context, std::uint64_t ticks, std::uint64_t cpu_ns);

    std::mutex mutex_;
    std::vector<SampledState*> threads_;
    pthread_key_t key_ = 0;
    bool has_key_ = false, is_child_ = false;
    std::atomic<bool> is_on_{false};
    trace::SectionHeader* section_ = nullptr;
    trace::SamplingHeader* header_ = nullptr;
    trace::Sample* ring_ = nullptr;
    CodeRules rules_;
    Contexts contexts_;
    PythonFrames python_;
    std::uint64_t period_ns_ = 0;
    trace::SampledBy by_ = trace::SampledBy::thread_cpu_timer;
};
constinit std::atomic<Sampler*> Sampler::started{nullptr};
constinit std::atomic<bool> measures_signal{false};

void on_signal(int signal, siginfo_t* info, void* context) {
    const int kept = errno;
    Sampler* const sampler = Sampler::started.load(std::memory_order_acquire);
    if (sampler && sampled && sampled->clock.is_from(*info))
        sampler->sample(*static_cast<const ucontext_t*>(context), *info);
    else if (signal == SIGTRAP && !SampleClock::may_be_from_one(*info) && !measures_signal.load())
        act_as_unhandled(signal);
    errno = kept;
}

void Sampler::start(trace::SectionHeader& section) {
    const std::lock_guard lock(mutex_);
    if (section_ || is_child_) return;
    const auto refuse = [](const char* why) {
        if (speaks_for_node()) std::fprintf(stderr, "palmette: --sample: %s; no samples are taken\n", why);
    };
    if (!base::know_how_modules_are_found())
        return refuse("this C library is older than glibc 2.35 and can't find modules in a signal handler");
    const int signal = choose_clock();
    if (signal == 0) return refuse("the program uses all real-time signals");
    section_ = &section;
    header_ = &section.sampling;
    ring_ = trace::entries<trace::Sample>(section, header_->ring);
    rules_.attach(section);
    contexts_.attach(section);
    header_->modules.count.store(1);
    header_->texts.count.store(1);
    python_.look_for(section);
    header_->signal.store(static_cast<std::uint32_t>(signal));
    const SamplingWish& wish = sampling_wish();
    const double hertz = wish.hertz > 0 ? wish.hertz : first_adapted_hertz;
    period_ns_ = static_cast<std::uint64_t>(static_cast<double>(second_ns) / hertz);
    header_->period_ns.store(period_ns_);
    measure_signal();
    started.store(this, std::memory_order_release);
    is_on_.store(true, std::memory_order_seq_cst);
    bool is_any = false;
    for (SampledState* const state : threads_) {
        give_clock(*state);
        is_any = is_any || state->clock.is_on();
    }
    if (!is_any) return refuse("the kernel gives no timers on threads' CPU clocks");
    header_->by.store(by_, std::memory_order_release);
    calls_have_python.store(python_.is_known());
}

/// Chooses by what threads are interrupted, and returns the signal; 0: there is none.
int Sampler::choose_clock() {
    if (!sampling_wish().by_events) return claim_signal(&on_signal);
    if (may_use_events() && claim_trap(&on_signal)) {
        by_ = trace::SampledBy::thread_event;
        return SIGTRAP;
    }
    if (speaks_for_node())
        std::fprintf(
            stderr,
            "palmette: --sample: the kernel's events aren't allowed (perf_event_paranoid above 1, a debugger, or "
            "the program handles SIGTRAP); timers take %.0f samples a second of a thread at most\n",
            most_timer_hertz());
    return claim_signal(&on_signal);
}

void Sampler::stop() {
    is_on_.store(false, std::memory_order_seq_cst);
    const std::lock_guard lock(mutex_);
    for (SampledState* const state : threads_) state->clock.end();
}

/// Finds what a signal takes whose handler does nothing.
void Sampler::measure_signal() {
    constexpr int signals = 32;
    measures_signal.store(true);
    std::uint64_t least = UINT64_MAX;
    const auto signal = static_cast<int>(header_->signal.load());
    for (int i = 0; i < signals; ++i) {
        const std::uint64_t begin = now();
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
        least = std::min(least, now() - begin);
    }
    measures_signal.store(false);
    header_->signal_ticks.store(least);
}

void Sampler::join() {
    if (sampled || is_child_) return;
    auto* const state = new (std::nothrow) SampledState;
    if (!state) return;
    state->thread = pthread_self();
    state->thread_id = static_cast<pid_t>(syscall(SYS_gettid));
    state->bounds = own_stack_bounds();
    if (has_key_) pthread_setspecific(key_, state);
    const std::lock_guard lock(mutex_);
    sampled = state;
    threads_.push_back(state);
    if (is_on_.load()) give_clock(*state);
}

void Sampler::leave(SampledState& state) {
    const std::lock_guard lock(mutex_);
    state.clock.end();
    sampled = nullptr;  // a signal that is under way finds nothing
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state.entry && !is_child_) state.entry->ended.store(1);
    threads_.erase(std::remove(threads_.begin(), threads_.end(), &state), threads_.end());
    delete &state;
}

void Sampler::give_entry(SampledState& state) const {
    trace::Table& table = header_->threads;
    const std::uint32_t count = table.count.load();
    // The last one is for all that come when there is no other.
    const std::uint32_t index = std::min(count, table.capacity - 1);
    state.entry = trace::entries<trace::SampledThread>(*section_, table) + index;
    state.number = index + 1;
    state.entry->thread_id.store(index + 1 < table.capacity ? state.thread_id : 0);
    if (index == count) table.count.store(index + 1, std::memory_order_release);
}

void Sampler::give_clock(SampledState& state) {
    if (!state.entry) give_entry(state);
    const auto signal = static_cast<int>(header_->signal.load());
    // Events take a file each, and a program may have no more of them.
    if (state.clock.begin(by_, state.thread, state.thread_id, signal, period_ns_)) return;
    if (by_ != trace::SampledBy::thread_cpu_timer)
        state.clock.begin(trace::SampledBy::thread_cpu_timer, state.thread, state.thread_id, signal, period_ns_);
}

void Sampler::take_signal(int signal) {
    const std::lock_guard lock(mutex_);
    if (!is_on_.load()) return;
    if (signal == 0) {
        is_on_.store(false);
        for (SampledState* const state : threads_) state->clock.end();
        return;
    }
    header_->signal.store(static_cast<std::uint32_t>(signal));
    by_ = trace::SampledBy::thread_cpu_timer;
    header_->by.store(by_, std::memory_order_release);
    for (SampledState* const state : threads_) {
        state->clock.end();
        give_clock(*state);
    }
}

void Sampler::adapt(SampledState& state) const {
    constexpr std::uint64_t samples = 32;
    if (state.taken < samples) return;
    const double cost_ticks = static_cast<double>(state.taken_ticks) / static_cast<double>(state.taken) +
                              static_cast<double>(header_->signal_ticks.load(std::memory_order_relaxed));
    const auto since_ticks = static_cast<double>(now() - section_->first.ticks.load(std::memory_order_relaxed));
    const auto since_ns =
        static_cast<double>(monotonic_now_ns() - section_->first.monotonic_ns.load(std::memory_order_relaxed));
    if (since_ticks <= 0 || since_ns <= 0 || cost_ticks <= 0) return;
    const double cost_ns = cost_ticks * since_ns / since_ticks;
    state.taken = state.taken_ticks = 0;
    const double hertz = std::clamp(sampling_wish().budget * static_cast<double>(second_ns) / cost_ns,
                                    least_adapted_hertz, most_adapted_hertz);
    const auto period = static_cast<std::uint64_t>(static_cast<double>(second_ns) / hertz);
    // Not for a few per cent.
    const std::uint64_t before = state.clock.period_ns();
    if (period > before - before / 8 && period < before + before / 8) return;
    header_->period_ns.store(period, std::memory_order_relaxed);
    state.clock.set_period(period);
}

void Sampler::sample(const ucontext_t& context, const siginfo_t& signal) {
    SampledState& state = *sampled;
    const std::uint64_t begin = now();
    const std::uint64_t spent_ns = state.clock.take_spent_ns(signal);
    if (!is_on_.load(std::memory_order_relaxed) || !active.load(std::memory_order_relaxed)) return;
    const auto& words = context.uc_mcontext.gregs;
    const Registers registers{static_cast<std::uintptr_t>(words[REG_RIP]),
                              static_cast<std::uintptr_t>(words[REG_RSP]),
                              static_cast<std::uintptr_t>(words[REG_RBP]),
                              true,
                              true,
                              static_cast<std::uintptr_t>(words[REG_RBX])};
    const auto generation = static_cast<std::uint32_t>(unloads.load(std::memory_order_acquire));
    const LastStack::Result found = find(state, generation, registers);
    if (found.is_lost) header_->incomplete.fetch_add(1, std::memory_order_relaxed);
    if (found.is_short) header_->shortened.fetch_add(1, std::memory_order_relaxed);
    count(state, found.node, begin, spent_ns);
    const std::uint64_t ticks = now() - begin;
    header_->ticks.fetch_add(ticks, std::memory_order_relaxed);
    if (sampling_wish().budget > 0) {
        ++state.taken;
        state.taken_ticks += ticks;
        adapt(state);
    }
}

std::uint32_t Sampler::path_of_call(PathTable& paths, std::uint32_t native, const void* return_address,
                                    const void* frame) {
    SampledState* const state = sampled;
    if (!state) return native;
    const auto at = reinterpret_cast<std::uintptr_t>(frame);
    Registers registers;
    registers.pc = reinterpret_cast<std::uintptr_t>(return_address);
    registers.sp = at + 2 * sizeof(std::uintptr_t);
    registers.fp = *static_cast<const std::uintptr_t*>(frame);
    registers.is_exact = false;
    const auto generation = static_cast<std::uint32_t>(unloads.load(std::memory_order_acquire));
    SampledFrames& frames = state->frames_of_call;
    if (!walk(*state, frames, generation, registers, true)) return native;
    std::array<SampledFrame, PathTable::deepest> found{};
    bool has_python = false;
    const std::size_t count = std::min(frames.size(), found.size());
    for (std::size_t i = 0; i < count; ++i) {
        found[i] = frames.from_outside(frames.size() - 1 - i);
        has_python = has_python || found[i].kind == trace::ContextKind::python;
    }
    return has_python ? paths.number_of_frames(found.data(), count) : native;
}

/// Fills in the frames. False: the Python frames among them can't be right.
bool Sampler::walk(SampledState& state, SampledFrames& frames, std::uint32_t generation, const Registers& registers,
                   bool with_python) {
    frames.clear();
    SampledWalk walk(rules_, generation, state.bounds, registers);
    std::optional<PythonFrames::Walk> python;
    if (with_python) python.emplace(python_, registers.sp, walk.is_on_own_stack() ? state.bounds.high : registers.sp);
    for (; walk.where() == SampledWalk::Where::frame; walk.step()) {
        if (python && python->is_in(walk.sp(), walk.caller_sp()))
            python->replace([&](const SampledFrame& frame) { frames.add(frame); });
        else
            frames.add(walk.frame());
    }
    const bool is_lost = walk.where() == SampledWalk::Where::lost;
    if (python && (is_lost ? python->is_wrong() : !python->is_done())) return false;
    if (is_lost) frames.add(walk.frame());
    return true;
}

LastStack::Result Sampler::find(SampledState& state, std::uint32_t generation, const Registers& registers) {
    LastStack::Result out;
    PythonFrames* const python = python_.is_known() ? &python_ : nullptr;
    Regions* const said = regions.load(std::memory_order_acquire);
    const std::uint32_t root = said ? said->context_of_samples(contexts_) : 0;
    if (state.last.find(rules_, python, generation, state.bounds, registers, contexts_, root, out)) return out;
    out = {};
    out.node = root;
    SampledFrames& frames = state.frames;
    if (!walk(state, frames, generation, registers, python != nullptr)) {
        header_->unmerged.fetch_add(1, std::memory_order_relaxed);
        walk(state, frames, generation, registers, false);
    }
    const std::size_t count = frames.size();
    out.is_lost = frames.from_outside(0).kind == trace::ContextKind::lost;
    if (frames.is_cut()) header_->cut.fetch_add(1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t next = contexts_.child_of(out.node, frames.from_outside(i));
        if (next == 0) {
            out.is_short = true;
            break;
        }
        out.node = next;
    }
    return out;
}

void Sampler::count(SampledState& state, std::uint32_t context, std::uint64_t ticks, std::uint64_t cpu_ns) {
    trace::ContextNode& node = contexts_.node(context);
    node.samples.fetch_add(1, std::memory_order_relaxed);
    node.cpu_ns.fetch_add(cpu_ns, std::memory_order_relaxed);
    state.entry->samples.fetch_add(1, std::memory_order_relaxed);
    state.entry->cpu_ns.fetch_add(cpu_ns, std::memory_order_relaxed);
    const std::uint64_t number = header_->samples.fetch_add(1, std::memory_order_acq_rel);
    trace::Sample& sample = ring_[number % header_->ring.capacity];
    sample.ticks.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    sample.context.store(context, std::memory_order_relaxed);
    sample.thread.store(state.number, std::memory_order_relaxed);
    sample.cpu_ns.store(cpu_ns, std::memory_order_relaxed);
    sample.ticks.store(ticks, std::memory_order_release);
}

}  // namespace

void start_sampling(trace::SectionHeader& section) {
    if (!sampling_wish()) return;
    Sampler::own().join();
    Sampler::own().start(section);
}

void sample_this_thread() { Sampler::own().join(); }

void stop_sampling() {
    if (Sampler* const sampler = Sampler::started.load(std::memory_order_acquire)) sampler->stop();
}

constinit std::atomic<bool> calls_have_python{false};

std::uint32_t path_with_python(PathTable& paths, std::uint32_t native, const void* return_address, const void* frame) {
    Sampler* const sampler = Sampler::started.load(std::memory_order_acquire);
    return sampler ? sampler->path_of_call(paths, native, return_address, frame) : native;
}

void before_unload() {
    if (Sampler* const sampler = Sampler::started.load(std::memory_order_acquire)) sampler->rules().begin_unload();
}

void after_unload() {
    if (Sampler* const sampler = Sampler::started.load(std::memory_order_acquire)) sampler->rules().end_unload();
}

void move_samples_to(int signal) {
    if (Sampler* const sampler = Sampler::started.load(std::memory_order_acquire)) sampler->take_signal(signal);
}

}  // namespace palmette::record

#endif
