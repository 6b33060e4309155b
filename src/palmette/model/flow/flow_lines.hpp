// Messages of one rank to another in a simulation: one flows, the others stand in line.
#pragma once

#include <vector>

#include "palmette/model/flow/flow_steps.hpp"

namespace palmette::model {

/// A transport keeps what one rank sends another in order, so the messages of a connection flow one after the other.
class FlowLines {
  public:
    using Id = FlowSteps::Id;
    FlowLines(Id connections, std::size_t steps)
        : lines_(connections), next_(connections > 0 ? steps : 0, FlowSteps::none) {}

    /// Whether the message, now last in its line, is also the first, which flows.
    bool join(Id connection, Id send) {
        Line& line = lines_[connection];
        const bool idle = line.first == FlowSteps::none;
        (idle ? line.first : next_[line.last]) = send;
        line.last = send;
        return idle;
    }
    /// The first one is through. Returns who is first now, or FlowSteps::none.
    Id leave(Id connection) {
        Line& line = lines_[connection];
        line.first = line.first == line.last ? FlowSteps::none : next_[line.first];
        return line.first;
    }

  private:
    struct Line {
        Id first = FlowSteps::none, last = FlowSteps::none;
    };
    std::vector<Line> lines_;
    std::vector<Id> next_;  ///< by send
};

}  // namespace palmette::model
