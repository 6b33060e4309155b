// Messages between ranks' device memory by NCCL's sends and receives.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "palmette/device/nccl.hpp"
#include "palmette/execute/transport.hpp"

namespace palmette::execute {

/// For messages of compositions whose factoring asks for NCCL (BoundStep::nccl).
///
/// NCCL runs what a rank issues one group after the other, and a group ends only when the peers have issued their sides
/// of all its messages: ranks that group them differently would wait for each other for ever. So a group is all of a
/// rank's messages with one tag, and groups are issued in ascending order of tags, once all of a group's sends are
/// ready. Receives that aren't, since their place is still in use, go to a buffer on the device.
///
/// This terminates on any plan in which a send waits only for messages with smaller tags, as compositions' do (a
/// message's tag is its stage, and what it carries has come in earlier ones: compose/route.hpp). By induction over
/// tags: all messages with smaller tags arrive at some time, so this rank's groups with smaller tags are complete then,
/// and its sends of this tag ready; so it issues its group, as the peers do theirs, and both ends have a message in the
/// group of the same tag. Messages of two ranks in one group and direction are matched in the order of their steps.
///
/// Data in the host's memory, and what a message has in several pieces, goes through buffers on the device.
///
/// A failure doesn't fail the plan, as other ranks wait for messages that go another way: after it what is left
/// completes without effect, and `why` tells. Results are undefined then, and the ranks have to agree on that.
class NcclTransport final : public Transport {
  public:
    /// `index`: its own in the executor's list.
    explicit NcclTransport(std::uint8_t index) : index_(index) {}

    ~NcclTransport() override;

    /// For the next operations, with programs whose peers are NCCL's ranks; null: none, and messages complete without
    /// effect. `limit`: for each group.
    void use(device::Nccl* nccl, std::chrono::seconds limit) {
        nccl_ = nccl;
        limit_ = limit;
    }
    /// Whether the limits count: not as long as some rank may not have begun the operation.
    void count_time(bool counts) { counts_time_ = counts; }
    /// From elsewhere: the operation has failed.
    void give_up(const std::string& why) { fail(why); }

    const char* name() const override { return "nccl"; }
    bool can(const StepOffer& step) const override {
        return step.nccl && !step.service && step.bytes > 0 && plan::is_message(step.kind);
    }
    bool begin(Executor& executor, int& error) override;
    int start(Executor& executor, std::uint32_t step, bool last, Started& started) override;
    int progress(Executor& executor, bool& any) override;
    std::size_t pending() const override { return started_ - completed_ + (under_way_ ? 1 : 0); }
    void end(Executor& executor, bool failed) override;

    /// Why the last operation failed; empty: it has succeeded on this rank.
    const std::string& why() const { return why_; }

  private:
    struct Message {
        std::int32_t tag = 0;
        std::uint32_t step = 0;
        char* data = nullptr;           ///< on the device
        device::DeviceBlock bounced{};  ///< where it goes through; null: it doesn't
        bool sends = false, started = false, arrived = false;
    };
    bool take_address(Executor& executor, Message& message);
    template <class Copy>
    void each_part(Executor& executor, const Message& message, const Copy& copy);
    void deliver(Executor& executor, const Message& message);
    void finish_deliveries();
    void give_back(Message& message);
    void issue(Executor& executor);
    void fail(const std::string& why);
    void end_by_abort();
    void complete_started(Executor& executor);

    std::uint8_t index_;
    device::Nccl* nccl_ = nullptr;
    std::chrono::seconds limit_{};
    std::vector<Message> messages_;               ///< by tag, then by step
    std::vector<std::uint32_t> message_of_step_;  ///< index into messages_
    std::vector<std::uint32_t> doomed_;           ///< started ones, when it fails
    std::size_t first_ = 0, end_ = 0;             ///< the group that is next, or under way
    std::size_t started_ = 0, completed_ = 0;
    bool under_way_ = false, counts_time_ = true;
    std::string why_;
};

}  // namespace palmette::execute
