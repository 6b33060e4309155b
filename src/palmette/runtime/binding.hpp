// A program bound to memory: blocks have become addresses and lengths.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::runtime {

/// Where the blocks of the caller's buffers lie, in bytes from the buffer's start, and how long blocks are. Ranks are those of the communicator.
struct Layout {
    /// The length of every block, unless one of the next two is set.
    std::int64_t uniform_bytes = 0;
    /// Lengths by rank.
    const std::int64_t* lengths = nullptr;
    /// Lengths of the blocks that this rank handles, sorted by rank: for ranks that don't know the others.
    const std::vector<std::pair<std::int32_t, std::int64_t>>* some_lengths = nullptr;
    /// Offsets by rank in the buffer that holds all ranks' blocks; absent: rank r's block lies at r * uniform_bytes.
    const std::int64_t* offsets = nullptr;
    /// The buffer that holds all ranks' blocks. The other one holds the rank's own block alone, at offset 0.
    plan::Buffer all_ranks = plan::Buffer::recv;

    std::int64_t length(std::int32_t rank) const;
};

/// Some bytes of one buffer.
struct Piece {
    plan::Buffer buffer;
    std::int64_t offset;
    std::int64_t bytes;
};

struct BoundStep {
    plan::StepKind kind;
    std::int32_t peer;
    std::int32_t tag;
    std::int64_t bytes;
    std::uint32_t first_piece, piece_count;  ///< of a message, or a copy's sources and then its targets
    std::uint32_t source_count;              ///< copy: how many pieces are sources
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
    std::int64_t scratch_bytes = 0;
    std::int64_t staging_bytes = 0;
    std::int64_t most_requests = 0;
};

/// Messages longer than this go in several; the MPI's counts are int.
inline constexpr std::int64_t most_message_bytes = std::int64_t{1} << 30;

/// Time and memory grow with the blocks that the program touches.
BoundProgram bind(const plan::Program& program, const topology::Job& job, const Layout& layout);

}  // namespace palmette::runtime
