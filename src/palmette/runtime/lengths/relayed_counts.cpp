#include "palmette/runtime/lengths/relayed_counts.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

using plan::Collective;

void RelayedCounts::set(std::int64_t key, std::int64_t bytes) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                     [](const auto& entry, std::int64_t k) { return entry.first < k; });
    if (at != entries_.end() && at->first == key)
        at->second = bytes;
    else
        entries_.insert(at, {key, bytes});
}

void RelayedCounts::add(execute::Layout::RelayedCounts entries) {
    entries_.insert(entries_.end(), entries.begin(), entries.end());
    std::sort(entries_.begin(), entries_.end());
}

void RelayedCounts::add_own(const Work& work) {
    const int rank = work.state->rank();
    const bool in_send = work.in_place == Work::InPlace::own_block_of_send;
    const bool in_recv = work.in_place == Work::InPlace::own_block_of_recv;
    if (work.plan->route.request.collective == Collective::gather)
        set(rank, in_recv ? work.recv.bytes(rank) : work.send.bytes());
    if (work.plan->route.request.collective == Collective::scatter)
        set(rank, in_send ? work.send.bytes(rank) : work.recv.bytes());
}

namespace {

/// Lengths that a rank sends for its blocks, and receives for those that it gets.
struct ExchangedCounts {
    std::vector<std::int64_t> send, recv;

    explicit ExchangedCounts(const Work& work) {
        const auto ranks = static_cast<std::size_t>(work.state->size());
        const int rank = work.state->rank();
        const bool root = rank == work.plan->key.root;
        switch (work.plan->collective()) {
            case Collective::gather:
                send = {work.in_place == Work::InPlace::no ? work.send.bytes() : work.recv.bytes(rank)};
                recv.resize(root ? ranks : 1);
                break;
            case Collective::scatter:
                for (int r = 0; root && r < work.state->size(); ++r) send.push_back(work.send.bytes(r));
                recv.resize(1);
                break;
            default:
                for (int r = 0; r < work.state->size(); ++r) send.push_back(work.send.bytes(r));
                recv.resize(ranks);
        }
    }
};

}  // namespace

int exchange_counts(Work& work, RelayedCounts& some, bool* expected) {
    constexpr std::int64_t word = sizeof(std::int64_t);
    const CachedPlan& plan = *work.plan;
    execute::Layout layout;
    layout.uniform_bytes = word;
    layout.transports = &work.state->executor().transports();
    const execute::BoundProgram bound = execute::bind(plan.collective(), plan.program, *plan.route.job, layout);
    ExchangedCounts counts(work);
    MpiExecutor& executor = work.state->executor();
    execute::Environment environment = work.environment(executor);
    environment.bases = {reinterpret_cast<char*>(counts.send.data()), reinterpret_cast<char*>(counts.recv.data())};
    environment.data = nullptr;  // that of the call itself
    executor.prepare(bound);
    if (const int error = executor.run(bound, environment)) return mpi_code(error);
    const std::int64_t ranks = work.state->size();
    for (std::int64_t r = 0; expected && r < ranks; ++r)
        *expected = *expected && counts.recv[static_cast<std::size_t>(r)] == work.recv.bytes(static_cast<int>(r));
    execute::Layout::RelayedCounts found;
    for (std::size_t layer = 0; layer < plan.program.scratch.size(); ++layer) {
        const char* at = executor.scratch() + bound.layer_at[layer];
        for (const plan::Interval& interval : plan.program.scratch[layer].intervals())
            for (std::int64_t block = interval.first; block < interval.end(); ++block, at += word) {
                std::int64_t bytes = 0;
                std::memcpy(&bytes, at, word);
                const auto owner = [&](std::int64_t index) {
                    return plan::owner_of(*plan.route.job, plan.program.order, index).value;
                };
                const std::int64_t key = plan.route.request.collective == Collective::alltoall
                                             ? owner(block / ranks) * ranks + owner(block % ranks)
                                             : owner(block);
                found.emplace_back(key, bytes);
            }
    }
    some.add(std::move(found));
    return MPI_SUCCESS;
}

}  // namespace palmette::runtime
