// Traces whose calls are known, for tests of what is found in them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "palmette/trace/waits.hpp"

namespace palmette::trace {

/// A job on MPI_COMM_WORLD whose calls are given in microseconds.
class PlantedTrace {
  public:
    explicit PlantedTrace(int ranks) {
        trace_.paths = {"", "main"};
        trace_.communicators.resize(2);
        trace_.communicators[1].size = ranks;
        trace_.plans.resize(1);
        for (int r = 0; r < ranks; ++r) {
            TracedProcess process;
            process.rank = r;
            process.rank_in = {{1, r}};
            process.end_ns = 1'000'000;
            process.threads.resize(1);
            trace_.processes.push_back(process);
            trace_.communicators[1].process_of.push_back(r);
        }
    }

    Event& call(int rank, const std::string& function, double begin_us, double end_us, bool is_request = false) {
        Event event;
        event.function = number_of(function);
        event.begin_ns = static_cast<std::int64_t>(begin_us * 1e3);
        event.end_ns = static_cast<std::int64_t>(end_us * 1e3);
        event.path = 1;
        event.communicator = 1;
        event.is_request = is_request;
        auto& events = trace_.processes[static_cast<std::size_t>(rank)].threads[0].events;
        events.push_back(event);
        return events.back();
    }
    Event& collective(int rank, const std::string& function, std::uint64_t instance, double begin_us, double end_us,
                      int root = -1) {
        Event& event = call(rank, function, begin_us, end_us);
        event.instance = instance;
        event.peer = root;
        return event;
    }
    Event& message(int rank, const std::string& function, int peer, double begin_us, double end_us,
                   bool request = false) {
        Event& event = call(rank, function, begin_us, end_us, request);
        event.peer = peer;
        return event;
    }

    Trace& trace() { return trace_; }
    std::uint64_t calls_of(int rank, const std::string& function) {
        std::uint64_t calls = 0;
        for (const Row& row : find_waits(trace_).rows)
            if (row.process == rank && trace_.functions[row.function] == function) calls += row.split.calls;
        return calls;
    }
    /// Waiting and completion of a rank in all calls of a function, in microseconds.
    std::pair<double, double> of(int rank, const std::string& function) {
        const Waits waits = find_waits(trace_);
        Split sum;
        for (const Row& row : waits.rows)
            if (row.process == rank && trace_.functions[row.function] == function) sum.add(row.split);
        EXPECT_NEAR(sum.waiting_s + sum.bound_s + sum.excess_s + sum.completion_s, sum.seconds, 1e-12);
        return {std::round(sum.waiting_s * 1e9) / 1e3, std::round(sum.completion_s * 1e9) / 1e3};
    }

  private:
    std::uint16_t number_of(const std::string& function) {
        for (std::size_t i = 0; i < trace_.functions.size(); ++i)
            if (trace_.functions[i] == function) return static_cast<std::uint16_t>(i);
        trace_.functions.push_back(function);
        trace_.kinds.push_back(kind_of(function));
        return static_cast<std::uint16_t>(trace_.functions.size() - 1);
    }
    Trace trace_;
};

}  // namespace palmette::trace
