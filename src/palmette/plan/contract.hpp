// Specification of a composed plan, which the verifier checks it against where no MPI collective defines the result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "palmette/plan/blocks.hpp"
#include "palmette/plan/program.hpp"
#include "palmette/plan/terms.hpp"

namespace palmette::plan {

/// Used by tools, which hold all of a plan; not needed at run time.
class Contract {
  public:
    virtual ~Contract() = default;

    /// Blocks of all buffers together, and their lengths.
    virtual std::int64_t blocks() const = 0;
    virtual std::int64_t bytes_of(std::int64_t block) const = 0;
    /// The caller's buffers; caller_buffer() maps their numbers.
    virtual std::size_t buffers() const = 0;
    virtual std::string buffer_name(std::size_t index) const = 0;
    /// The blocks of one of the caller's buffers that a rank has. All may be read and written.
    virtual Blocks holds(Rank rank, Buffer buffer) const = 0;
    /// Indexed by Step::operation: whether it is commutative.
    virtual std::vector<bool> commutes() const = 0;
    /// Visits the required final contents of every block that a rank holds, as terms over the initial contents,
    /// `terms.leaf(rank, buffer, block)`. Values with the same handle must also be combined in the same association on
    /// all ranks.
    virtual void evaluate(
        Terms& terms,
        const std::function<void(Rank rank, Buffer buffer, std::int64_t block, Contents value)>& visit) const = 0;
};

}  // namespace palmette::plan
