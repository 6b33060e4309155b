// How a communicator's ranks get into the groups that its plans' messages with service positions belong to.
#pragma once

#include <cstddef>
#include <vector>

#include "palmette/execute/aggregation_transport.hpp"
#include "palmette/kernels/kernels.hpp"

namespace palmette::runtime {

/// Each function but `combines` is called by all ranks at the same calls.
class Groups {
  public:
    Groups() = default;
    Groups(const Groups&) = delete;
    Groups& operator=(const Groups&) = delete;
    virtual ~Groups() = default;

    /// Joining takes so many stages. After each all ranks agree whether all have passed; what one of them finds in one
    /// stage the others needn't wait for in the next.
    virtual std::size_t stages() const = 0;
    virtual aggregate::Problem pass(std::size_t stage, const execute::BoundProgram& program) = 0;
    /// Leaves what has been joined, after a stage that has failed somewhere, or later.
    virtual void leave() = 0;
    /// Whether the groups combine so; the same on all ranks, once they have joined.
    virtual bool combine(kernels::Operator op, kernels::Element element) const = 0;

    std::vector<execute::AggregationChannel> channels;  ///< of this rank
};

}  // namespace palmette::runtime
