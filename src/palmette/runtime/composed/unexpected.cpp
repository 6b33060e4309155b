#include "palmette/runtime/composed/unexpected.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <numeric>
#include <optional>

#include "palmette/base/error.hpp"
#include "palmette/runtime/composed/composed.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

namespace {

using base::fail;

std::string complaint_about(const Outgoing& outgoing, int ranks) {
    std::vector<int> sorted = outgoing.to;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        return base::cat("rank ", *twice, " is named twice; put what it gets into one block");
    for (std::size_t i = 0; i < outgoing.to.size(); ++i) {
        if (outgoing.to[i] < 0 || outgoing.to[i] >= ranks)
            return base::cat("to[", i, "] is ", outgoing.to[i], "; the communicator has ", ranks, " ranks");
        if (outgoing.counts[i] < 0 || outgoing.counts[i] > std::numeric_limits<int>::max())
            return base::cat("counts[", i, "] is ", outgoing.counts[i], "; expected 0 to 2^31 - 1 elements");
    }
    const bool any = std::any_of(outgoing.counts.begin(), outgoing.counts.end(), [](auto count) { return count > 0; });
    return any && !outgoing.data ? "data is null" : "";
}

/// One exchange on a communicator. Its tag is no other operation's, so that any sender may be received from.
class Exchange {
  public:
    Exchange(MPI_Comm shadow, int tag, const Outgoing& outgoing) : shadow_(shadow), tag_(tag), outgoing_(outgoing) {}

    /// Starts all sends. Counted messages are received anyway; others tell when they are.
    void send(bool synchronous) {
        const char* from = static_cast<const char*>(outgoing_.data);
        sends_.resize(outgoing_.to.size(), MPI_REQUEST_NULL);
        for (std::size_t i = 0; i < outgoing_.to.size(); ++i) {
            const auto start = synchronous ? PMPI_Issend : PMPI_Isend;
            check(start(from, static_cast<int>(outgoing_.counts[i]), outgoing_.type, outgoing_.to[i], tag_, shadow_,
                        &sends_[i]));
            if (from) from += outgoing_.counts[i] * outgoing_.element_bytes;
        }
    }
    bool sent() {
        int all = 0;
        check(PMPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &all, MPI_STATUSES_IGNORE));
        return all != 0;
    }

    /// Receives one message if there is any.
    void receive() {
        int found = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        if (!check(PMPI_Improbe(MPI_ANY_SOURCE, tag_, shadow_, &found, &message, &status)) || !found) return;
        int count = 0;
        if (!check(PMPI_Get_count(&status, outgoing_.type, &count))) count = 0;
        if (count < 0) wrong_type_ = status.MPI_SOURCE, count = 0;
        std::vector<char> block;
        try {
            block.resize(static_cast<std::size_t>(count * outgoing_.element_bytes));
        } catch (const std::bad_alloc&) {
            out_of_memory_ = true, count = 0;
        }
        // Too short a buffer drops the message, which completes at its sender.
        const int code = PMPI_Mrecv(block.data(), count, outgoing_.type, &message, MPI_STATUS_IGNORE);
        if (wrong_type_ < 0 && !out_of_memory_) check(code);
        arrived_.push_back({status.MPI_SOURCE, count, std::move(block)});
    }
    std::size_t received() const { return arrived_.size(); }
    /// Whether the MPI has reported no error.
    bool well() const { return well_; }
    bool check(int code) {
        well_ = well_ && code == MPI_SUCCESS;
        return code == MPI_SUCCESS;
    }

    Arrivals arrivals() {
        if (!well_) fail("the MPI reports an error while ranks send to each other");
        if (out_of_memory_) throw std::bad_alloc();
        if (wrong_type_ >= 0) fail("rank ", wrong_type_, " sends elements of another type");
        std::sort(arrived_.begin(), arrived_.end(), [](const One& a, const One& b) { return a.from < b.from; });
        Arrivals out;
        for (One& one : arrived_) {
            out.from.push_back(one.from);
            out.counts.push_back(one.count);
            out.blocks.push_back(std::move(one.block));
        }
        return out;
    }

  private:
    struct One {
        int from;
        std::int64_t count;
        std::vector<char> block;
    };
    MPI_Comm shadow_;
    int tag_;
    const Outgoing& outgoing_;
    std::vector<MPI_Request> sends_;
    std::vector<One> arrived_;
    bool well_ = true, out_of_memory_ = false;
    int wrong_type_ = -1;
};

}  // namespace

Arrivals exchange_unexpected(MPI_Comm comm, const Outgoing& outgoing, const Settings& settings, int most_counted) {
    Communicator& state = composing_state(comm, settings);
    const int ranks = state.job().size();
    std::optional<TagSpace::Range> tags;
    {
        Background& background = Background::instance();
        const auto lock = background.lock();
        tags = state.tags.take(1);
        if (!tags) fail("the MPI has too few tags");
        background.wait_for_tags(state, *tags);
    }
    const std::string wrong = outgoing.complaint.empty() ? complaint_about(outgoing, ranks) : outgoing.complaint;
    const auto refuse = [&wrong](bool any) {
        if (!wrong.empty()) fail(wrong);
        if (any) fail("another rank refuses the exchange; its error says why");
    };
    Exchange exchange(state.shadow_comm(), tags->first, outgoing);
    if (ranks <= most_counted) {
        // For each rank the number of messages to it, and of ranks that can't take part.
        std::vector<std::array<int, 2>> told(static_cast<std::size_t>(ranks), {0, wrong.empty() ? 0 : 1});
        if (wrong.empty())
            for (const int to : outgoing.to) told[static_cast<std::size_t>(to)][0] = 1;
        std::array<int, 2> mine{};
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = PMPI_Ireduce_scatter_block(told.data(), mine.data(), 2, MPI_INT, MPI_SUM, comm, &request);
        if (complete(code, request) != MPI_SUCCESS) fail("the MPI reports an error while ranks count their messages");
        refuse(mine[1] > 0);
        exchange.send(false);
        wait_until([&] {
            if (exchange.received() < static_cast<std::size_t>(mine[0])) exchange.receive();
            return !exchange.well() || (exchange.received() == static_cast<std::size_t>(mine[0]) && exchange.sent());
        });
        return exchange.arrivals();
    }
    const int bad = wrong.empty() ? 0 : 1;
    int any_bad = 0, over = 0;
    MPI_Request barrier = MPI_REQUEST_NULL;
    bool entered = false;
    if (wrong.empty()) exchange.send(true);
    wait_until([&] {
        exchange.receive();
        if (!entered && (bad != 0 || exchange.sent()))
            entered = exchange.check(PMPI_Iallreduce(&bad, &any_bad, 1, MPI_INT, MPI_MAX, comm, &barrier));
        else if (entered)
            exchange.check(PMPI_Test(&barrier, &over, MPI_STATUS_IGNORE));
        return !exchange.well() || over != 0;
    });
    refuse(any_bad != 0);
    return exchange.arrivals();
}

}  // namespace palmette::runtime
