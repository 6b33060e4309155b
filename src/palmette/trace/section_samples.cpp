#include "palmette/trace/section_samples.hpp"

#include <algorithm>

namespace palmette::trace {
SampleColumns samples_in(const SectionReader& section) {
    ProcessInfo process;
    section.read_clock(process);
    struct SampleRow {
        std::int64_t real_ns;
        std::uint32_t context, thread;
        std::uint64_t cpu_ns;
    };
    std::vector<SampleRow> rows;
    const SamplingHeader& from = section.header().sampling;
    const auto* const ring = section.entries<Sample>(from.ring);
    const std::uint32_t contexts = SectionReader::used(from.contexts);
    const std::uint64_t count = std::min<std::uint64_t>(from.samples.load(), from.ring.capacity);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t ticks = ring[i].ticks.load(std::memory_order_acquire);
        const SampleRow row{section.real_ns(process, ticks), ring[i].context.load(std::memory_order_relaxed),
                            ring[i].thread.load(std::memory_order_relaxed),
                            ring[i].cpu_ns.load(std::memory_order_relaxed)};
        std::atomic_thread_fence(std::memory_order_acquire);
        if (ticks == 0 || ring[i].ticks.load(std::memory_order_relaxed) != ticks) continue;
        if (row.context < contexts) rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const SampleRow& a, const SampleRow& b) { return a.real_ns < b.real_ns; });
    SampleColumns out;
    for (const SampleRow& row : rows) {
        out.real_ns.push_back(row.real_ns);
        out.context.push_back(row.context);
        out.thread.push_back(row.thread);
        out.cpu_s.push_back(static_cast<double>(row.cpu_ns) * 1e-9);
    }
    return out;
}

std::vector<AccountedInfo> accounts_in(const SectionReader& section) {
    ProcessInfo process;
    section.read_clock(process);
    const SamplingHeader& from = section.header().sampling;
    if (from.accounts.capacity == 0) return {};
    const auto* const ring = section.entries<AccountedGap>(from.accounts);
    const std::uint64_t count = std::min<std::uint64_t>(from.accounted_gaps.load(), from.accounts.capacity);
    std::vector<AccountedInfo> out;
    for (std::uint64_t i = 0; i < count; ++i) {
        const AccountedGap& gap = ring[i];
        const std::uint64_t ticks = gap.ticks.load(std::memory_order_acquire);
        AccountedInfo one;
        one.end_real_ns = section.real_ns(process, ticks);
        one.thread = gap.thread.load(std::memory_order_relaxed);
        const double io = gap.io.load(std::memory_order_relaxed);
        const double ran_s = static_cast<double>(gap.ran_ns.load(std::memory_order_relaxed)) * 1e-9;
        const double waited_s = static_cast<double>(gap.waited_ns.load(std::memory_order_relaxed)) * 1e-9;
        const auto seconds = [&](std::uint64_t since) {
            return std::max(0.0, static_cast<double>(static_cast<std::int64_t>(ticks - since)) * process.tick_s);
        };
        const double gap_s = seconds(gap.begin_ticks.load(std::memory_order_relaxed));
        const double whole_s = seconds(gap.since_ticks.load(std::memory_order_relaxed));
        std::atomic_thread_fence(std::memory_order_acquire);
        if (ticks == 0 || gap.ticks.load(std::memory_order_relaxed) != ticks) continue;
        // Before it there were short calls with short gaps, in which it ran, as far as that can be.
        const double ran_in_gap_s = std::clamp(ran_s - std::max(0.0, whole_s - gap_s), 0.0, gap_s);
        one.put_aside_s = std::min(waited_s, gap_s - ran_in_gap_s);
        const double blocked_s = gap_s - ran_in_gap_s - one.put_aside_s;
        (io > 0 ? one.io_s : one.asleep_s) = blocked_s;
        out.push_back(one);
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const AccountedInfo& a, const AccountedInfo& b) { return a.end_real_ns < b.end_real_ns; });
    return out;
}

void read_sampling(const SectionReader& section, ProcessInfo& out) {
    const SamplingHeader& from = section.header().sampling;
    SamplingInfo& to = out.sampling;
    to.by = from.by.load(std::memory_order_acquire);
    if (to.by > SampledBy::thread_event) fail(section.where(), ": samples of an unknown kind; the file is damaged");
    to.signal = from.signal.load();
    to.period_s = static_cast<double>(from.period_ns.load()) * 1e-9;
    to.samples = from.samples.load(std::memory_order_acquire);
    to.dropped = to.samples > from.ring.capacity ? to.samples - from.ring.capacity : 0;
    to.lost = from.lost.load();
    to.incomplete = from.incomplete.load();
    to.cut = from.cut.load();
    to.shortened = from.shortened.load();
    to.unmerged = from.unmerged.load();
    to.seconds = static_cast<double>(from.ticks.load()) * out.tick_s;
    to.signal_s = static_cast<double>(from.signal_ticks.load()) * out.tick_s;
    to.python = from.python.load();
    to.python_is_refused = from.python_is_refused.load() != 0;
    const auto* const threads = section.entries<SampledThread>(from.threads);
    const auto* const callers = section.entries<ThreadEntry>(section.header().threads);
    for (std::uint32_t i = 0; i < SectionReader::used(from.threads); ++i) {
        SampledThreadInfo& one = to.threads.emplace_back();
        one.thread_id = threads[i].thread_id.load();
        one.samples = threads[i].samples.load(std::memory_order_relaxed);
        one.cpu_s = static_cast<double>(threads[i].cpu_ns.load(std::memory_order_relaxed)) * 1e-9;
        one.ended = threads[i].ended.load() != 0;
        for (std::uint32_t c = 0; c < SectionReader::used(section.header().threads) && one.calls_as == 0; ++c)
            if (callers[c].thread_id == one.thread_id) one.calls_as = c + 1;
    }
}

SectionContexts::SectionContexts(const SectionReader& section)
    : section_(section),
      contexts_(section.entries<ContextNode>(section.header().sampling.contexts)),
      modules_(section.entries<ModuleEntry>(section.header().sampling.modules)),
      count_(SectionReader::used(section.header().sampling.contexts)),
      module_count_(SectionReader::used(section.header().sampling.modules)) {}

std::string SectionContexts::text(std::uint64_t at) const {
    return text_at(section_, section_.header().sampling.texts, at);
}

std::string SectionContexts::region(std::uint64_t at) const {
    return text_at(section_, section_.header().regions.texts, at);
}

std::vector<ContextInfo> contexts_in(const SectionReader& section) {
    const SectionContexts tree(section);
    std::vector<ContextInfo> out(tree.size());
    for (std::uint32_t i = 1; i < tree.size(); ++i) {
        ContextInfo& to = out[i];
        const ContextNode& from = tree.at(i);
        to.parent = from.parent;
        to.kind = from.kind;
        to.is_innermost = from.is_innermost != 0;
        to.samples = from.samples.load(std::memory_order_relaxed);
        to.cpu_s = static_cast<double>(from.cpu_ns.load(std::memory_order_relaxed)) * 1e-9;
        if (to.kind == ContextKind::native) {
            to.offset = from.offset;
            if (from.module != 0 && from.module < tree.modules()) {
                to.module = tree.module(from.module);
                to.build_id = tree.build_id(from.module);
            }
        } else if (to.kind == ContextKind::python) {
            to.module = tree.text(from.module);
            to.function = tree.text(from.offset >> 32U);
            to.line = static_cast<std::uint32_t>(from.offset);
        } else if (to.kind == ContextKind::region) {
            to.function = tree.region(from.offset);
        }
    }
    return out;
}

}  // namespace palmette::trace
