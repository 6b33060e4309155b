// Bounds of collectives that Python knows.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "palmette/trace/waits.hpp"

namespace palmette::bindings {

/// The world's ranks in a communicator, by rank in it; empty where one isn't known.
inline std::vector<std::int32_t> members(const trace::Trace& trace, std::uint32_t communicator) {
    const trace::TracedCommunicator& one = trace.communicators[communicator];
    std::vector<std::int32_t> ranks;
    if (one.size < 1 || one.process_of.size() != static_cast<std::size_t>(one.size)) return ranks;
    for (const std::int32_t process : one.process_of) {
        if (process < 0) return {};
        ranks.push_back(trace.processes[static_cast<std::size_t>(process)].rank);
    }
    return ranks;
}

/// Asks `bound_of(function, ranks, root, bytes) -> seconds` of a trace that is read later, without the interpreter's
/// lock held; none where that is None.
inline trace::BoundOf ask_bounds(const trace::Trace& trace, const nanobind::object& bound_of) {
    if (bound_of.is_none()) return {};
    return [&trace, &bound_of](std::uint32_t function, std::uint32_t communicator, std::int32_t root,
                               std::uint64_t bytes) {
        const nanobind::gil_scoped_acquire acquired;
        const auto ranks = members(trace, communicator);
        return ranks.empty() ? 0.0 : nanobind::cast<double>(bound_of(trace.functions[function], ranks, root, bytes));
    };
}

}  // namespace palmette::bindings
