// Long stretches outside of calls, with what the kernel says of them.
#include <algorithm>

#include "palmette/record/recorder.hpp"
#include "palmette/record/sampler.hpp"

namespace palmette::record {
namespace {

// Ticks of some milliseconds, whatever the clock: a reading takes 2 us, at most 0.1 % of either.
constexpr std::uint64_t long_gap_ticks = std::uint64_t{1} << 22U, old_account_ticks = std::uint64_t{1} << 23U;

}  // namespace

void Recorder::open_account(ThreadState& thread) const {
    // What it says explains samples: of profiles there are no single gaps.
    if (!sampling_wish() || !records_calls_ || section_->sampling.accounts.capacity == 0) return;
    if (!thread.account.open()) return;
    thread.long_gap = long_gap_ticks;
    thread.old_account = old_account_ticks;
}

void Recorder::renew_account(ThreadState& thread) {
    const std::optional<AccountReading> found = thread.account.read();
    if (!found) {
        thread.long_gap = thread.old_account = UINT64_MAX;
        return;
    }
    thread.account.last = *found;
    thread.account.ticks = now();
}

void Recorder::account_for_gap(ThreadState& thread) {
    const std::uint64_t end = now();
    const std::uint64_t since = thread.account.ticks;
    const AccountReading before = thread.account.last;
    renew_account(thread);
    const AccountReading& after = thread.account.last;
    if (since == 0 || thread.account.ticks == since) return;
    if (after.ran_ns < before.ran_ns || after.waited_ns < before.waited_ns || after.io < before.io) return;
    trace::SamplingHeader& header = section_->sampling;
    const std::uint64_t number = header.accounted_gaps.fetch_add(1, std::memory_order_acq_rel);
    trace::AccountedGap& gap = table<trace::AccountedGap>(header.accounts)[number % header.accounts.capacity];
    gap.ticks.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    gap.begin_ticks.store(thread.left_ticks, std::memory_order_relaxed);
    gap.since_ticks.store(since, std::memory_order_relaxed);
    gap.ran_ns.store(after.ran_ns - before.ran_ns, std::memory_order_relaxed);
    gap.waited_ns.store(after.waited_ns - before.waited_ns, std::memory_order_relaxed);
    gap.thread.store(thread.number, std::memory_order_relaxed);
    gap.io.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(after.io - before.io, UINT32_MAX)),
                 std::memory_order_relaxed);
    gap.ticks.store(end, std::memory_order_release);
}

}  // namespace palmette::record
