// Binding of a program to memory: blocks become buffer offsets and lengths.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "palmette/plan/plan.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::execute {

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
        const std::int64_t* lengths = nullptr;  ///< null: uniform_bytes each
        const std::int64_t* offsets = nullptr;  ///< null: rank r's block lies at r * stride
    };
    /// Lengths of blocks that a rank handles for others, sorted by key: the rank, or source * p + target for alltoall.
    using RelayedCounts = std::vector<std::pair<std::int64_t, std::int64_t>>;

    /// The length of every block, unless a list says otherwise; of the whole vector where the plan cuts one.
    std::int64_t uniform_bytes = 0;
    std::int64_t stride = 0;  ///< 0: uniform_bytes
    std::int64_t element_bytes = 1;
    /// Contiguous exposures of at least so many bytes are read in place by single copy, and need no space in shared
    /// memory.
    std::int64_t by_address_from = INT64_MAX;
    /// What rank r's block is in the send or the recv buffer: for alltoall both are set, otherwise the one that holds
    /// all ranks' blocks; the other buffer holds the rank's own block alone, at offset 0.
    Ranks send, recv;
    /// Where the blocks of a composition lie; all other fields but element_bytes are ignored then. Null: no
    /// composition.
    const Places* places = nullptr;
    /// Whether both ends of a message know its blocks' lengths, so that empty ones are left out.
    bool ends_know_lengths = false;
    const RelayedCounts* relayed_counts = nullptr;
    /// Transports of the executor that will run it; each remote step is assigned one. Null: assigned later.
    const std::vector<std::unique_ptr<Transport>>* transports = nullptr;
};

/// Some bytes of one buffer.
struct Piece {
    plan::Buffer buffer;
    std::int64_t offset;
    std::int64_t bytes;
};
/// Pseudo-buffer of a piece: the data that a peer exposes.
inline constexpr plan::Buffer exposed_buffer = static_cast<plan::Buffer>(255);

/// What both ends know of a step, so that both choose the same transport.
struct StepOffer {
    plan::StepKind kind;
    std::int64_t bytes;
    bool same_node;
    bool single_copy;      ///< message: the factoring asks for single copy
    bool service = false;  ///< message with a service position
    bool ipc = false;      ///< message: the factoring asks for copies between devices
    bool nccl = false;     ///< message: the factoring asks for NCCL
};

struct BoundStep {
    plan::StepKind kind;
    std::int32_t peer;  ///< of a message: its rank; of a pull: which member of the node
    std::int32_t tag;
    bool copied;             ///< expose: never read in the caller's own memory
    bool single_copy;        ///< message: the factoring asks for single copy
    bool ipc, nccl;          ///< message: the factoring asks for copies between devices, or NCCL
    bool stages_itself;      ///< message: its transport packs it, in staging, where it must
    std::uint8_t operation;  ///< reduce: which of a composition's operations
    std::uint8_t transport;  ///< remote: index into the executor's transports
    std::uint32_t readers;
    std::int64_t bytes;
    /// Pieces of a message or an expose; of a copy's or pull's source; of a left operand.
    std::uint32_t first_piece, piece_count;
    std::uint32_t first_right, right_count;    ///< right operand
    std::uint32_t first_target, target_count;  ///< copy, reduce, pull, pull_reduce
    std::int64_t staging;                      ///< offset in the staging buffer, for packed messages; -1: in place
    std::uint32_t waits;
    std::uint32_t first_waiter, waiter_count;
};

/// Bound once, run many times with any base addresses.
struct BoundProgram {
    std::vector<BoundStep> steps;
    std::vector<Piece> pieces;
    std::vector<std::uint32_t> waiters;
    std::vector<std::uint32_t> first_ready;  ///< steps that wait for nothing
    std::vector<std::int64_t> layer_at;      ///< where each layer of scratch begins
    std::int64_t scratch_bytes = 0;
    std::int64_t staging_bytes = 0;
    std::int64_t most_requests = 0;   ///< upper bound of outstanding requests, with all messages by the MPI
    std::int64_t single_copies = 0;   ///< messages for which the factoring asks for a rendezvous
    std::int64_t exposed_bytes = 0;   ///< upper bound of ring space for exposures, each rounded up to 64
    std::uint32_t transports = 0;     ///< bit mask of those that it has steps for
    std::uint32_t taking_part = ~0U;  ///< of those that its operations begin and end; all until they are chosen
    std::int32_t channels = 0;        ///< as in plan::Program
    std::int32_t agreement_tag = 0;   ///< then: of the messages by which ranks agree on aggregators' results
    bool keeps = false;               ///< then: one short exchange a rank at most, whose members keep its result
};

/// Longer messages are split; the MPI's counts are int.
inline constexpr std::int64_t most_message_bytes = std::int64_t{1} << 30;

/// Time and memory grow with the blocks that the program touches.
BoundProgram bind(plan::Collective collective, const plan::Program& program, const topology::Job& job,
                  const Layout& layout);

/// Packs all messages of bytes in such buffers, also those in one piece: no transport can reach them there. What
/// travels stays the same, so that the peers needn't know. `that_stage`: bit mask of transports that pack what they
/// must themselves; `that_reach`: of those that move such bytes from where they lie, in any number of pieces.
void pack_messages(BoundProgram& program, const std::function<bool(plan::Buffer)>& unreachable,
                   std::uint32_t that_stage = 0, std::uint32_t that_reach = 0);

/// A bound program cached with its lengths, as calls tend to repeat them.
struct BoundLengths {
    BoundProgram program;

    /// Whether `program` was bound to this layout of so many ranks. If not, bind it and call `keep`.
    bool holds(const Layout& layout, std::int64_t ranks);
    /// `program` is bound to the layout that was asked for last.
    void keep() { key_.swap(asked_); }

  private:
    std::vector<std::int64_t> key_, asked_;
};

}  // namespace palmette::execute
