// Messages with service positions: chunks of operations of an aggregation service (aggregate/service).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/aggregate/service.hpp"
#include "palmette/execute/kept_exchange.hpp"
#include "palmette/execute/transport.hpp"

namespace palmette::execute {

/// One of a rank's memberships: in the group of one channel of one aggregator.
struct AggregationChannel {
    std::int32_t peer = 0;     ///< the service position
    std::int32_t channel = 0;  ///< a message's tag modulo the program's channels
    std::unique_ptr<aggregate::Service> service;
};

/// Service position and channel of the messages that a program has with aggregators, each pair once. `ranks`: the
/// job's.
std::vector<std::pair<std::int32_t, std::int32_t>> channels_of(const BoundProgram& program, std::int32_t ranks);

/// A rank without such messages has the outcome to agree on all the same: its program gets a step for that, carried by
/// the transport of this index.
void add_agreement(BoundProgram& program, std::int32_t ranks, std::uint8_t transport);

/// A rank's place in the tree by which all ranks agree.
struct AgreementTree {
    std::int32_t rank = 0;
    std::int32_t parent = -1;  ///< -1: none
    std::vector<std::int32_t> children;
};
/// Binomial among positions: neighbours first, so that few messages take the long ways.
AgreementTree agreement_tree(const topology::Job& job, topology::Rank rank);
/// What a rank with this failure contributes to the agreement, of which the smallest number counts: less than 0, with
/// the rank in it. Failures that tell more than that others have ended the group come first.
std::int64_t agreement_code(aggregate::Reason reason, std::int32_t rank);
/// The rank in a code below 0.
std::int32_t rank_in(std::int64_t code);

/// A send and the recv of the same tag are one operation of the service; those of a channel are posted in the order of
/// their steps, as all members have to.
///
/// This transport never fails the plan: when a group has ended, the rest of the operation's steps complete without
/// effect, so that no rank waits for this one. Daemons can't decide whether all members have a result (two generals),
/// and a rank that has returned can't help the others any more. So the last of these steps completes only when all
/// ranks have agreed by messages whether all have all results, while the rest of the plan goes on; `agreed` is the
/// outcome. After a failure the operation's result is undefined, and has to be made by other means
/// (runtime/network/aggregation.hpp).
///
/// Programs that keep results (BoundProgram::keeps) need no agreement where members have met (KeptGroup): each of their
/// operations ends with its result.
class AggregationTransport final : public Transport {
  public:
    /// `messages`: by which ranks agree.
    explicit AggregationTransport(Messages& messages) : messages_(messages), kept_exchange_(messages) {}

    /// For the next operations; both must outlive them. Null: none is in service. `background`: other operations need
    /// progress meanwhile. `kept`: of programs that keep results; nothing: all ranks agree.
    void use(std::vector<AggregationChannel>* channels, const AgreementTree* tree, AggregatedElements elements,
             bool background = false, const std::optional<KeptGroup>& kept = std::nullopt) {
        channels_ = channels;
        tree_ = tree;
        elements_ = elements;
        background_ = background;
        keeps_ = kept.has_value();
        if (kept) kept_exchange_.use(*kept, kept->peers ? channels->front().service.get() : nullptr, elements);
    }

    const char* name() const override { return "aggregation"; }
    bool can(const StepOffer& step) const override { return step.service; }
    void prepare(const BoundProgram& program) override;
    bool takes_part(const BoundProgram& program) const override { return program.channels != 0; }
    bool begin(Executor& executor, int& error) override;
    int start(Executor& executor, std::uint32_t step, bool last, Started& started) override;
    int progress(Executor& executor, bool& any) override;
    int wait(Executor& executor) override;
    std::size_t pending() const override { return keeps_ ? kept_exchange_.pending() : pending_; }
    int posted_complete(Executor& executor, std::uint32_t step) override;
    void end(Executor& executor, bool failed) override;

    /// Why the last operation failed.
    struct Failure {
        aggregate::Reason reason;
        std::string_view detail;  ///< as long as the channels live
    };
    const std::optional<Failure>& failure() const { return failure_; }
    /// 0 where all ranks have their results, or the agreement_code of one that has not. Of the last operation, the same
    /// on all ranks.
    std::int64_t agreed() const { return agreed_; }

  private:
    /// A send and its recv.
    struct Exchange {
        std::uint32_t recv = 0;
        const char* input = nullptr;
        char* output = nullptr;
        std::uint32_t number = 0;  ///< the service's
        bool ready = false;
        bool empty = false;
    };
    struct Lane {
        AggregationChannel* channel = nullptr;
        std::size_t first = 0, count = 0;      ///< of exchanges_
        std::size_t posted = 0, complete = 0;  ///< in order
    };

    /// Each message's channel is one of the rank's: all plans of a job and level have the same.
    Lane& lane_of(const BoundProgram& program, const BoundStep& step);
    void post(Executor& executor, Lane& lane);
    /// An exchange has ended, with or without a result.
    int ended(Executor& executor, const Exchange& exchange);
    int agree(Executor& executor);
    int exchange_codes(Executor& executor, plan::StepKind kind, std::span<const std::int32_t> peers);
    int complete(Executor& executor, Lane& lane, bool& any);
    void fail(aggregate::Reason reason, std::string_view detail);
    bool waits_for(std::size_t channel) const;

    std::vector<AggregationChannel>* channels_ = nullptr;
    AggregatedElements elements_;
    std::vector<Lane> lanes_;
    std::vector<Exchange> exchanges_;
    std::vector<std::uint32_t> exchange_of_step_;
    std::size_t pending_ = 0;  ///< exchanges that wait for an aggregator
    std::size_t left_ = 0;     ///< exchanges that haven't ended
    std::uint32_t last_recv_ = 0;
    std::optional<Failure> failure_;

    /// The agreement's stages: messages that are outstanding.
    enum class Agreeing : std::uint8_t { not_yet, with_children, with_parent, telling, done };
    Messages& messages_;
    bool keeps_ = false;
    KeptExchange kept_exchange_;
    const AgreementTree* tree_ = nullptr;
    Agreeing agreeing_ = Agreeing::not_yet;
    std::int64_t agreed_ = 0;          ///< the least code so far: the subtree's, then all ranks'
    std::vector<std::int64_t> codes_;  ///< received from the children, then from the parent
    bool background_ = false;
    int patience_ms_ = 1;
};

}  // namespace palmette::execute
