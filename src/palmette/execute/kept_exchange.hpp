// One short operation of an aggregation service, which ends with the right result whatever happens to the service, and
// without an agreement of the ranks: members keep what others may need (aggregate/kept).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "palmette/aggregate/kept/peers.hpp"
#include "palmette/aggregate/service.hpp"
#include "palmette/execute/executor.hpp"
#include "palmette/kernels/kernels.hpp"

namespace palmette::execute {

/// What the aggregators combine in an operation: the same on all ranks.
struct AggregatedElements {
    kernels::Operator op{};
    kernels::Element element{};
};

/// Members of a group that keep results, as one of them.
struct KeptGroup {
    aggregate::kept::Peers* peers = nullptr;  ///< null: this rank is no member
    std::span<const std::int32_t> ranks;      ///< of the members, by number
};

/// A program has at most one, a send and its recv. Where a verdict leaves it to the hosts, member 0 gathers the
/// contributions along a binomial tree and combines them in the service's order, so that the result has the same bits.
/// After the first such verdict all later operations of the group are for the hosts.
class KeptExchange {
  public:
    explicit KeptExchange(Messages& messages) : messages_(messages) {}

    void use(const KeptGroup& group, aggregate::Service* service, AggregatedElements elements) {
        group_ = group;
        service_ = service;
        elements_ = elements;
    }

    int start(Executor& executor, std::uint32_t step, Started& started);
    int progress(Executor& executor, bool& any);
    std::size_t pending() const { return waits_for_ == Stage::service || waits_for_ == Stage::verdict ? 1 : 0; }
    int posted_complete(Executor& executor);
    /// The operation has ended on this rank, or failed in the MPI.
    void end(bool failed);

  private:
    enum class Stage : std::uint8_t { nothing, service, verdict, contributions, sum, others };

    int begin(Executor& executor);
    void lose(aggregate::Reason reason, std::string_view detail);
    int complete(Executor& executor, std::string_view result);
    int by_hosts(Executor& executor);
    int post(Executor& executor, plan::StepKind kind, char* data, std::size_t bytes, std::size_t member);
    void combine();
    /// Members below this one in the tree: it plus 1, 2, 4, ...
    template <class Visit>
    int each_child(Visit visit) const;

    Messages& messages_;
    KeptGroup group_;
    aggregate::Service* service_ = nullptr;
    AggregatedElements elements_;
    Stage waits_for_ = Stage::nothing;
    char* input_ = nullptr;
    char* output_ = nullptr;
    std::size_t bytes_ = 0;
    std::uint32_t recv_ = 0;
    std::uint32_t number_ = 0;         ///< the service's
    std::vector<char> contributions_;  ///< of this member and those behind it in the tree
};

}  // namespace palmette::execute
