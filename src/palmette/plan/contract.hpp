// What a composed plan has to do: the verifier's other half where no collective of MPI's says it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "palmette/plan/blocks.hpp"
#include "palmette/plan/program.hpp"
#include "palmette/plan/terms.hpp"

namespace palmette::plan {

/// Known to tools, which hold all of a plan; a rank at run time needs none.
class Contract {
  public:
    virtual ~Contract() = default;

    /// Blocks of all buffers together, and their lengths.
    virtual std::int64_t blocks() const = 0;
    virtual std::int64_t bytes_of(std::int64_t block) const = 0;
    /// The caller's buffers; caller_buffer() gives each its number.
    virtual std::size_t buffers() const = 0;
    virtual std::string buffer_name(std::size_t index) const = 0;
    /// The blocks of one of the caller's buffers that a rank has. All may be read and written.
    virtual Blocks holds(Rank rank, Buffer buffer) const = 0;
    /// By operation, as Step::operation counts: whether it is commutative.
    virtual std::vector<bool> commutes() const = 0;
    /// What every block that a rank holds must contain in the end, from what all held at first: `terms.leaf(rank,
    /// buffer, block)`. Values that are one handle must also be put together in the same way wherever they end.
    virtual void evaluate(
        Terms& terms,
        const std::function<void(Rank rank, Buffer buffer, std::int64_t block, Contents value)>& visit) const = 0;
};

}  // namespace palmette::plan
