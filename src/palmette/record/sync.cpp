#include "palmette/record/sync.hpp"

#include <sched.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "palmette/record/clock.hpp"
#include "palmette/record/node_file.hpp"
#include "palmette/record/recorder.hpp"

namespace palmette::record {
namespace {

constexpr int rounds = 20;
/// The ping's number, time at the upper node, its offset and error; an error of -1: it doesn't know them.
using Reply = std::array<long long, 4>;
constexpr int reply_words = static_cast<int>(Reply().size());

class TimedMessages {
  public:
    /// `tag`: another one each time, so that messages of a comparison that was given up belong to no later one.
    TimedMessages(MPI_Comm comm, int tag, double limit_s)
        : comm_(comm), tag_(tag), end_ns_(nanoseconds(CLOCK_MONOTONIC) + static_cast<std::int64_t>(limit_s * 1e9)) {}

    bool send(const void* data, int count, int to) {
        MPI_Request request = MPI_REQUEST_NULL;
        auto* const kept = new Reply{};
        std::memcpy(kept->data(), data, static_cast<std::size_t>(count) * sizeof(long long));
        if (PMPI_Isend(kept->data(), count, MPI_LONG_LONG, to, tag_, comm_, &request) == MPI_SUCCESS &&
            complete(request)) {
            delete kept;
            return true;
        }
        // What it sends from stays for the MPI.
        if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
        return false;
    }
    bool receive(void* data, int count, int from) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (PMPI_Irecv(data, count, MPI_LONG_LONG, from, tag_, comm_, &request) != MPI_SUCCESS) return false;
        if (complete(request)) return true;
        // A receive can be cancelled locally; it may have matched meanwhile.
        MPI_Status status;
        int cancelled = 0;
        PMPI_Cancel(&request);
        PMPI_Wait(&request, &status);
        PMPI_Test_cancelled(&status, &cancelled);
        return cancelled == 0;
    }

  private:
    bool complete(MPI_Request& request) const {
        for (;;) {
            int done = 0;
            if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
            if (done != 0) return true;
            if (nanoseconds(CLOCK_MONOTONIC) > end_ns_) return false;
            sched_yield();
        }
    }

    MPI_Comm comm_;
    int tag_;
    std::int64_t end_ns_;
};

std::optional<ClockOffset> ask(TimedMessages& messages, int upper) {
    std::optional<ClockOffset> best;
    std::int64_t quickest = INT64_MAX;
    for (int i = 0; i < rounds; ++i) {
        Reply reply{};
        const long long ping = i;
        const std::int64_t sent = node_now_ns();
        if (!messages.send(&ping, 1, upper) || !messages.receive(reply.data(), reply_words, upper)) return std::nullopt;
        const std::int64_t received = node_now_ns();
        if (reply[0] != i || reply[3] < 0 || received - sent >= quickest) continue;
        quickest = received - sent;
        best = ClockOffset{reply[1] - (sent + quickest / 2) + reply[2], reply[3] + (quickest + 1) / 2};
    }
    return best;
}

void answer(TimedMessages& messages, int lower, const std::optional<ClockOffset>& own) {
    for (int i = 0; i < rounds; ++i) {
        long long ping = 0;
        if (!messages.receive(&ping, 1, lower)) return;
        const Reply reply{ping, node_now_ns(), own ? own->offset_ns : 0, own ? own->error_ns : -1};
        if (!messages.send(reply.data(), reply_words, lower)) return;
    }
}

}  // namespace

std::optional<ClockOffset> synchronize_clocks(MPI_Comm leaders, int tag, double limit_s) {
    int rank = 0;
    int size = 1;
    if (PMPI_Comm_rank(leaders, &rank) != MPI_SUCCESS || PMPI_Comm_size(leaders, &size) != MPI_SUCCESS)
        return std::nullopt;
    TimedMessages messages(leaders, tag, limit_s);
    std::optional<ClockOffset> own = ClockOffset{};
    if (rank != 0) own = ask(messages, rank & (rank - 1));
    // The farther ones first: they have others below them.
    int distance = 1;
    const int lowest_bit = rank & -rank;
    while (distance < size && (rank == 0 || distance < lowest_bit)) distance *= 2;
    for (distance /= 2; distance >= 1; distance /= 2)
        if (rank + distance < size) answer(messages, rank + distance, own);
    return own;
}

void Recorder::pretend_clock([[maybe_unused]] int rank) {
#if !defined(PALMETTE_ABI_SMPI)
    const std::string shifts = setting("PALMETTE_FAKE_CLOCKS");
    const char* at = shifts.c_str();
    for (int r = 0; *at != 0; ++r) {
        char* end = nullptr;
        const long long shift = std::strtoll(at, &end, 10);
        if (r == rank) node_offset_ns += shift;
        at = *end == ',' ? end + 1 : end;
        if (at == shifts.c_str()) return;
    }
    section_->node_offset_ns.store(node_offset_ns);
#endif
}

}  // namespace palmette::record
