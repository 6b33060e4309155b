#include "palmette/runtime/some_lengths.hpp"

#include <algorithm>
#include <cstring>

namespace palmette::runtime {

void SomeLengths::set(std::int32_t rank, std::int64_t bytes) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), rank,
                                     [](const auto& entry, std::int32_t r) { return entry.first < r; });
    if (at != entries_.end() && at->first == rank)
        at->second = bytes;
    else
        entries_.insert(at, {rank, bytes});
}

int learn_lengths(Communicator& state, const CachedPlan& plan, std::int64_t own, const std::int64_t* all,
                  SomeLengths& some) {
    const bool gathers = select::collective_of(plan.function) == plan::Collective::gather;
    Layout layout;
    layout.uniform_bytes = sizeof(std::int64_t);
    layout.all_ranks = gathers ? plan::Buffer::recv : plan::Buffer::send;
    const BoundProgram bound = bind(plan.program, state.job(), layout);
    const bool at_root = state.rank() == plan.root;
    std::vector<std::int64_t> arriving(gathers && at_root ? static_cast<std::size_t>(state.size()) : 0);
    std::int64_t told = own;
    Bases bases;
    if (gathers) {
        bases.send = reinterpret_cast<char*>(&own);
        bases.recv = reinterpret_cast<char*>(arriving.data());
    } else {
        bases.send = reinterpret_cast<char*>(const_cast<std::int64_t*>(all));
        bases.recv = reinterpret_cast<char*>(&told);
    }
    state.executor().prepare(bound);
    if (const int error = state.executor().run(bound, bases, state.hidden())) return error;
    const char* at = state.executor().scratch();
    for (const plan::Interval& interval : plan.program.scratch.intervals())
        for (std::int64_t block = interval.first; block < interval.end(); ++block, at += sizeof(std::int64_t)) {
            std::int64_t bytes = 0;
            std::memcpy(&bytes, at, sizeof bytes);
            some.set(plan::owner_of(state.job(), plan.program.order, block).value, bytes);
        }
    some.set(state.rank(), told);
    return MPI_SUCCESS;
}

}  // namespace palmette::runtime
