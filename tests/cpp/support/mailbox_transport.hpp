// A transport to start from: short messages inside of a node go through mailboxes, one for each pair of ranks and tag.
//
// docs/guide/add-a-transport.md walks through this file.
#pragma once

#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "palmette/execute/executor.hpp"

namespace palmette::test {

/// What the ranks of a node share. Here all are in one process; a real one would lie in shared memory.
using Mailboxes = std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<char>>;

class MailboxTransport : public execute::Transport {
  public:
    static constexpr std::int64_t longest = 256;  ///< bytes

    MailboxTransport(Mailboxes& boxes, std::int32_t rank) : boxes_(boxes), rank_(rank) {}

    const char* name() const override { return "mailbox"; }

    // From what both ends know of the step: its kind, its length, and whether they share a node.
    bool can(const execute::StepOffer& step) const override {
        return plan::is_message(step.kind) && step.same_node && step.bytes <= longest;
    }

    int start(execute::Executor& executor, std::uint32_t index, bool /*last*/, execute::Started& started) override {
        const execute::BoundStep& step = executor.step(index);
        if (step.kind == plan::StepKind::send) {
            const char* data = executor.message_data(step);
            boxes_[{rank_, step.peer, executor.environment().first_tag + step.tag}].assign(data, data + step.bytes);
            ++carried;
            started = execute::Started::done;
            return 0;
        }
        bool done = false;
        const int error = poll(executor, index, done);
        started = done ? execute::Started::done : execute::Started::polled;
        return error;
    }

    int poll(execute::Executor& executor, std::uint32_t index, bool& done) override {
        const execute::BoundStep& step = executor.step(index);
        const auto box = boxes_.find({step.peer, rank_, executor.environment().first_tag + step.tag});
        done = box != boxes_.end();
        if (!done) return 0;
        if (step.bytes > 0) executor.memory().copy(executor.message_data(step), box->second.data(), step.bytes);
        boxes_.erase(box);
        return 0;
    }

    std::int64_t carried = 0;

  private:
    Mailboxes& boxes_;
    std::int32_t rank_;
};

}  // namespace palmette::test
