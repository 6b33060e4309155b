// FIFO queues of messages per connection (ordered pair of ranks) in a flow simulation: one is in transfer, the others
// are queued.
#pragma once

#include <vector>

#include "palmette/model/flow/flow_steps.hpp"

namespace palmette::model {

/// Messages between two ranks are ordered, so the transfers of a connection are serialised.
class FlowQueues {
  public:
    using Id = FlowSteps::Id;
    FlowQueues(Id connections, std::size_t steps)
        : queues_(connections), next_(connections > 0 ? steps : 0, FlowSteps::none) {}

    /// Appends a message to its queue; returns whether it is at the head, so that its transfer starts.
    bool join(Id connection, Id send) {
        Queue& queue = queues_[connection];
        const bool idle = queue.first == FlowSteps::none;
        (idle ? queue.first : next_[queue.last]) = send;
        queue.last = send;
        return idle;
    }
    /// Removes the completed head. Returns the new head, or FlowSteps::none.
    Id leave(Id connection) {
        Queue& queue = queues_[connection];
        queue.first = queue.first == queue.last ? FlowSteps::none : next_[queue.first];
        return queue.first;
    }

  private:
    struct Queue {
        Id first = FlowSteps::none, last = FlowSteps::none;
    };
    std::vector<Queue> queues_;
    std::vector<Id> next_;  ///< by send
};

}  // namespace palmette::model
