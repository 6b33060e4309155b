// A program bound to memory: blocks have become addresses and lengths.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "palmette/plan/plan.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::runtime {

class Transport;

/// Lengths of a composition's blocks, and where they lie in the caller's buffers, in bytes from each one's start.
class Places {
  public:
    virtual ~Places() = default;
    virtual std::int64_t length(std::int64_t block) const = 0;
    virtual std::int64_t offset(plan::Buffer buffer, std::int64_t block) const = 0;
};

/// Where the blocks of the caller's buffers lie, in bytes from the buffer's start, and how long blocks are. Ranks are
/// those of the communicator. Lists by rank must outlive the binding.
struct Layout {
    /// The blocks of one buffer that holds one for each rank.
    struct Ranks {
        const std::int64_t* lengths = nullptr;  ///< absent: uniform_bytes each
        const std::int64_t* offsets = nullptr;  ///< absent: rank r's block lies at r * stride
    };
    /// Lengths of blocks that a rank handles for others, sorted by key: the rank, or source * p + target for alltoall.
    using RelayedCounts = std::vector<std::pair<std::int64_t, std::int64_t>>;

    /// The length of every block, unless a list says otherwise; of the whole vector where the plan cuts one.
    std::int64_t uniform_bytes = 0;
    std::int64_t stride = 0;  ///< 0: uniform_bytes
    std::int64_t element_bytes = 1;
    /// Exposures of so many bytes in one piece are read where they are, and need no room in shared memory.
    std::int64_t by_address_from = INT64_MAX;
    /// What rank r's block is in the send or the recv buffer: for alltoall both are set, otherwise the one that holds
    /// all ranks' blocks; the other buffer holds the rank's own block alone, at offset 0.
    Ranks send, recv;
    /// Of a composition: where its blocks lie. Nothing else is looked at then but element_bytes.
    const Places* places = nullptr;
    const RelayedCounts* relayed_counts = nullptr;
    /// Those of the executor that will run it, among which each remote step takes one; absent: chosen later.
    const std::vector<std::unique_ptr<Transport>>* transports = nullptr;
};

/// Some bytes of one buffer.
struct Piece {
    plan::Buffer buffer;
    std::int64_t offset;
    std::int64_t bytes;
};
/// Stands in a piece for what a peer exposes.
inline constexpr plan::Buffer exposed_buffer = static_cast<plan::Buffer>(255);

/// What both ends of a step know of it, from which they choose the same transport.
struct StepOffer {
    plan::StepKind kind;
    std::int64_t bytes;
    bool same_node;
    bool single_copy;  ///< message: the factoring wants it read in the sender's memory
};

struct BoundStep {
    plan::StepKind kind;
    std::int32_t peer;  ///< of a message: its rank; of a pull: which member of the node
    std::int32_t tag;
    bool copied;             ///< expose: never read in the caller's own memory
    bool single_copy;        ///< message: wanted to be read in the sender's memory
    std::uint8_t operation;  ///< reduce: which of a composition's operations
    std::uint8_t transport;  ///< remote: index into the executor's transports
    std::uint32_t readers;
    std::int64_t bytes;
    /// Pieces of a message or an expose; of a copy's or pull's source; of a left operand.
    std::uint32_t first_piece, piece_count;
    std::uint32_t first_right, right_count;    ///< right operand
    std::uint32_t first_target, target_count;  ///< copy, reduce, pull, pull_reduce
    std::int64_t staging;  ///< offset in the staging area of a message in several pieces; -1: sent in place
    std::uint32_t waits;
    std::uint32_t first_waiter, waiter_count;
};

/// Made once, run many times with any base addresses.
struct BoundProgram {
    std::vector<BoundStep> steps;
    std::vector<Piece> pieces;
    std::vector<std::uint32_t> waiters;
    std::vector<std::uint32_t> first_ready;  ///< steps that wait for nothing
    std::vector<std::int64_t> layer_at;      ///< where each layer of scratch begins
    std::int64_t scratch_bytes = 0;
    std::int64_t staging_bytes = 0;
    std::int64_t most_requests = 0;  ///< outstanding at once, where all messages are sent
    std::int64_t single_copies = 0;  ///< messages that are wanted to be read in the sender's memory
    std::int64_t exposed_bytes = 0;  ///< what this rank exposes, each exposure rounded up to 64
    std::uint32_t transports = 0;    ///< a bit for each that it has steps for
};

/// Messages longer than this go in several; the MPI's counts are int.
inline constexpr std::int64_t most_message_bytes = std::int64_t{1} << 30;

/// Time and memory grow with the blocks that the program touches.
BoundProgram bind(plan::Collective collective, const plan::Program& program, const topology::Job& job,
                  const Layout& layout);

/// A program bound to lengths that tend to come again.
struct BoundLengths {
    BoundProgram program;

    /// Whether `program` was bound to this layout of so many ranks. If not, bind it and call `keep`.
    bool holds(const Layout& layout, std::int64_t ranks);
    /// `program` is bound to the layout that was asked for last.
    void keep() { key_.swap(asked_); }

  private:
    std::vector<std::int64_t> key_, asked_;
};

}  // namespace palmette::runtime
