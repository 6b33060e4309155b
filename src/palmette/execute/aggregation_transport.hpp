// Messages with service positions: chunks of operations of the aggregation service (aggregate/client).
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "palmette/aggregate/client/client.hpp"
#include "palmette/execute/transport.hpp"

namespace palmette::runtime {

/// One of a rank's memberships: in the group of one channel of one aggregator.
struct AggregationChannel {
    std::int32_t peer = 0;     ///< the service position
    std::int32_t channel = 0;  ///< a message's tag modulo the program's channels
    std::unique_ptr<aggregate::Client> client;
};

/// What the aggregators combine in an operation: the same on all ranks.
struct AggregatedElements {
    Operator op{};
    Element element{};
};

/// A send and the recv of the same tag are one operation of the service; those of a channel are posted in the order of
/// their steps, as all members have to.
///
/// It never fails the plan: when a group has ended, the rest of the operation's steps complete without effect, so that
/// no rank waits for this one, and `failed` says why. Results are then undefined; the ranks have to agree whether to
/// repeat the operation by other means (runtime/state/aggregation.hpp).
class AggregationTransport final : public Transport {
  public:
    /// For the next operations; `channels` must outlive them. Null: none is in service.
    void use(std::vector<AggregationChannel>* channels, AggregatedElements elements) {
        channels_ = channels;
        elements_ = elements;
    }

    const char* name() const override { return "aggregation"; }
    bool can(const StepOffer& step) const override { return step.service; }
    void prepare(const BoundProgram& program) override;
    bool begin(Executor& executor, int& error) override;
    int start(Executor& executor, std::uint32_t step, bool last, Started& started) override;
    int progress(Executor& executor, bool& any) override;
    int wait(Executor& executor) override;
    std::size_t pending() const override { return pending_; }
    void end(Executor& executor, bool failed) override;

    /// Of the last operation.
    struct Failure {
        aggregate::Reason reason;
        std::string_view detail;  ///< as long as the channels live
    };
    const std::optional<Failure>& failure() const { return failure_; }

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

    Lane* lane_of(const BoundProgram& program, const BoundStep& step);
    void post(Executor& executor, Lane& lane);
    bool complete(Executor& executor, Lane& lane);
    void fail(aggregate::Reason reason, std::string_view detail);

    std::vector<AggregationChannel>* channels_ = nullptr;
    AggregatedElements elements_;
    std::vector<Lane> lanes_;
    std::vector<Exchange> exchanges_;
    std::vector<std::uint32_t> exchange_of_step_;
    std::size_t pending_ = 0;
    std::optional<Failure> failure_;
    int patience_ms_ = 1;
};

}  // namespace palmette::runtime
