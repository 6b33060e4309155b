#include "palmette/trace/late.hpp"

#include <algorithm>

namespace palmette::trace {
namespace {

/// Calls `use` with the samples of a stretch, the last one first, or with what else lies at moments; returns how many
/// there are. `hint`: where the last stretch ended; stretches come mostly from the last one backwards, and a search
/// through all samples misses caches.
template <class One, class Use>
std::size_t for_samples(const std::vector<One>& samples, const Gap& gap, std::size_t& hint, Use use) {
    constexpr std::size_t near = 4;
    const auto is_end = [&](std::size_t i) {
        return (i == samples.size() || samples[i].at_ns >= gap.end_ns) && (i == 0 || samples[i - 1].at_ns < gap.end_ns);
    };
    hint = std::min(hint, samples.size());
    for (std::size_t i = 0; i < near && hint > 0 && samples[hint - 1].at_ns >= gap.end_ns; ++i) --hint;
    if (!is_end(hint))
        hint = static_cast<std::size_t>(
            std::lower_bound(samples.begin(), samples.end(), gap.end_ns,
                             [](const One& one, std::int64_t time_ns) { return one.at_ns < time_ns; }) -
            samples.begin());
    auto at = samples.begin() + static_cast<std::ptrdiff_t>(hint);
    std::size_t count = 0;
    for (; at != samples.begin() && (at - 1)->at_ns >= gap.begin_ns; --at, ++count) use(*(at - 1));
    return count;
}

}  // namespace

void LateWorks::TimeSums::clear() {
    gaps.clear();
    last = nullptr;
    contexts.clear();
    beside.clear();
}

void LateWorks::spend(TimeSums& out, const Side& side, double weight) {
    std::size_t looked_at = 0;
    for (const Gap& gap : *side.gaps) {
        if (looked_at > most_samples) break;
        Seconds& sum = out.at({gap.before_function, gap.before_path, gap.after_function, gap.after_path});
        sum.wall_s += weight * static_cast<double>(gap.end_ns - gap.begin_ns) * 1e-9;
        looked_at += for_samples(side.thread->samples, gap, *side.behind, [&](const StackSample& one) {
            sum.cpu_s += weight * static_cast<double>(one.cpu_s);
            out.contexts[one.context] += weight * static_cast<double>(one.cpu_s);
        });
        if (!side.thread->off.empty())
            for_samples(side.thread->off, gap, *side.behind_off,
                        [&](const OffBetween& one) { sum.off.add(one.off, weight); });
        if (side.process->beside.empty()) continue;
        std::size_t beside = side.process->beside.size();
        looked_at += for_samples(side.process->beside, gap, beside, [&](const StackSample& one) {
            out.beside[one.context] += weight * static_cast<double>(one.cpu_s);
        });
    }
}

void LateWorks::add(const Event& waiting, double waited_s, const At& at, const Side& late, const Side& waiter) {
    const Key key{waiting.function, waiting.path, late.number};
    if (!open_ || key != open_key_ || at.thread != open_at_.thread || at.event != open_at_.event) {
        flush();
        open_ = &sums_[key];
        open_key_ = key;
        open_at_ = at;
        ++open_->instances;
        spend(open_->late, late, 1);
    }
    open_->waiters[waiter.number] = true;
    spend(others_, waiter, waited_s);
    weight_ += waited_s;
}

void LateWorks::flush() {
    if (open_ && weight_ > 0) {
        const double scale = 1 / weight_;
        for (const auto& [key, one] : others_.gaps) {
            Seconds& sum = open_->other.gaps[key];
            sum.wall_s += scale * one.wall_s;
            sum.cpu_s += scale * one.cpu_s;
            sum.off.add(one.off, scale);
        }
        for (const auto& [context, seconds] : others_.contexts) open_->other.contexts[context] += scale * seconds;
        for (const auto& [context, seconds] : others_.beside) open_->other.beside[context] += scale * seconds;
    }
    others_.clear();
    weight_ = 0;
    open_ = nullptr;
}

std::vector<ProcessorTime> processor_times(const Trace& trace, std::int64_t begin_ns, std::int64_t end_ns) {
    std::vector<ProcessorTime> out;
    const auto is_in = [&](const StackSample& one) { return one.at_ns >= begin_ns && one.at_ns < end_ns; };
    for (const TracedProcess& process : trace.processes) {
        ProcessorTime& sum = out.emplace_back();
        for (const TracedThread& thread : process.threads) {
            for (const OffBetween& one : thread.off)
                if (one.at_ns >= begin_ns && one.at_ns < end_ns) sum.off.add(one.off, 1);
            std::size_t next = 0;
            const auto take_until = [&](std::int64_t until_ns, double& to) {
                for (; next < thread.samples.size() && thread.samples[next].at_ns < until_ns; ++next)
                    if (is_in(thread.samples[next])) to += static_cast<double>(thread.samples[next].cpu_s);
            };
            if (thread.samples.empty()) continue;
            thread.for_each([&](const Event& call) {
                if (call.is_request) return;
                take_until(call.begin_ns, sum.computing_s);
                take_until(call.end_ns, sum.in_calls_s);
            });
            take_until(end_ns, sum.computing_s);
        }
        for (const StackSample& one : process.beside)
            if (is_in(one)) sum.beside_s += static_cast<double>(one.cpu_s);
    }
    return out;
}

std::vector<LateWork> LateWorks::take() {
    flush();
    const auto both = [](const std::unordered_map<std::uint32_t, double>& late,
                         const std::unordered_map<std::uint32_t, double>& other) {
        std::map<std::uint32_t, ContextTime> rows;
        for (const auto& [context, seconds] : late) rows[context].late_s = seconds;
        for (const auto& [context, seconds] : other) rows[context].other_s = seconds;
        std::vector<ContextTime> out;
        for (auto& [context, row] : rows) {
            row.context = context;
            out.push_back(row);
        }
        return out;
    };
    std::vector<LateWork> out;
    for (auto& [key, one] : sums_) {
        LateWork& work = out.emplace_back();
        std::tie(work.function, work.path, work.process) = key;
        work.instances = one.instances;
        for (const auto& [process, waited] : one.waiters) work.waiters.push_back(process);
        std::map<GapKey, GapTime> gaps;
        for (const auto& [gap, seconds] : one.late.gaps) {
            gaps[gap].late_s = seconds.wall_s;
            gaps[gap].late_cpu_s = seconds.cpu_s;
            gaps[gap].late_off = seconds.off;
        }
        for (const auto& [gap, seconds] : one.other.gaps) {
            gaps[gap].other_s = seconds.wall_s;
            gaps[gap].other_cpu_s = seconds.cpu_s;
            gaps[gap].other_off = seconds.off;
        }
        for (auto& [gap, time] : gaps) {
            std::tie(time.before_function, time.before_path, time.after_function, time.after_path) = gap;
            work.gaps.push_back(time);
        }
        work.contexts = both(one.late.contexts, one.other.contexts);
        work.beside = both(one.late.beside, one.other.beside);
    }
    return out;
}

}  // namespace palmette::trace
