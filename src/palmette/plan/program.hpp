// A program: one rank's steps of a plan with their dependencies, as data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/base/ids.hpp"
#include "palmette/plan/blocks.hpp"
#include "palmette/plan/step_kind.hpp"

namespace palmette::plan {

using base::Rank;

/// The collective that a plan implements. The v and w variants share these plans: counts enter when a program is bound
/// to memory.
enum class Collective : std::uint8_t {
    gather,
    scatter,
    allgather,
    bcast,
    reduce,
    allreduce,
    reduce_scatter,
    alltoall,
    barrier,
    scan,
    exscan,
    composed  ///< specified by a contract (plan/contract.hpp); no MPI collective, so not in collective_count
};
inline constexpr std::size_t collective_count = 11;

const char* name_of(Collective collective);
/// Throws base::Error naming the known ones.
Collective collective_named(std::string_view name);

/// Buffer that a block lies in. `send` and `recv` are the caller's, `scratch` belongs to the plan. Scratch has layers,
/// so that a rank can hold several versions of a block; `scratch` is layer 0. Values from `named` on are further
/// caller's buffers, of compositions.
enum class Buffer : std::uint8_t { send, recv, scratch, named = 128 };
constexpr Buffer scratch_layer(std::size_t layer) { return static_cast<Buffer>(2 + layer); }
constexpr bool is_scratch(Buffer buffer) { return buffer >= Buffer::scratch && buffer < Buffer::named; }
inline constexpr std::size_t most_layers_of_scratch = 126;
/// The caller's buffers by number: send, recv, then the named ones.
inline constexpr std::size_t most_caller_buffers = 128;
constexpr Buffer caller_buffer(std::size_t index) {
    return index < 2 ? static_cast<Buffer>(index) : static_cast<Buffer>(126 + index);
}
constexpr std::size_t caller_index(Buffer buffer) {
    return buffer < Buffer::scratch ? static_cast<std::size_t>(buffer) : static_cast<std::size_t>(buffer) - 126;
}
constexpr std::size_t layer_of(Buffer buffer) { return static_cast<std::size_t>(buffer) - 2; }
/// send, recv, scratch, scratch1, scratch2, ..., named, named1, ...
std::string name_of(Buffer buffer);

/// Tags of exposes are smaller than this: each rank of a node has one entry per tag.
inline constexpr std::int32_t most_expose_tags = 64;
/// Consecutive blocks of one buffer.
struct Region {
    Buffer buffer = Buffer::send;
    Interval blocks;
};

/// Part `index` of `of` equal parts of every block: how messages are segmented for pipelining.
struct Slice {
    std::uint16_t index = 0;
    std::uint16_t of = 1;
    friend bool operator==(const Slice&, const Slice&) = default;
};

/// Bytes of a slice of a block of `length` bytes; the slices of a block add up to its length. Cuts lie between elements
/// of `element_bytes` bytes, of which `length` is a multiple.
std::int64_t slice_begin(Slice slice, std::int64_t length, std::int64_t element_bytes = 1);
std::int64_t slice_length(Slice slice, std::int64_t length, std::int64_t element_bytes = 1);

using StepId = std::uint32_t;

/// One step. It starts when all steps that it waits for are complete; independent steps may overlap. A send and the
/// recv with the same (sender, receiver, tag) are one message. A pull belongs to the expose of its peer with the same
/// tag, and reads some or all of its blocks; exposes have a tag space of their own.
struct Step {
    StepKind kind = StepKind::send;
    std::uint8_t stage = 0;  ///< index into Program::stages
    Slice slice;
    bool exposed_first = false;  ///< pull_reduce: what is pulled is the left operand
    bool copied = false;         ///< expose: readers read a copy, made when the step starts
    std::uint16_t readers = 0;   ///< expose: number of pulls that read it
    Rank peer;                   ///< the other rank; -1: none
    std::int32_t tag = 0;
    std::uint8_t operation = 0;      ///< reduce: which of a composition's operations
    std::uint32_t first_region = 0;  ///< into Program::regions; steps may share a list
    std::uint32_t region_count = 0;
    /// copy, reduce, pull_reduce: the last `target_count` regions are written, the others read; a reduce reads its left
    /// operand's blocks, then as many of its right one's
    std::uint32_t target_count = 0;
    Interval exposed;  ///< pull, pull_reduce: all that the peer exposes under this tag; a reader derives where
                       ///< its blocks lie
    std::uint32_t first_wait = 0;  ///< into Program::waits
    std::uint32_t wait_count = 0;
};

/// Numbering of blocks that belong to ranks: by position in topology order, or by rank.
enum class BlockOrder : std::uint8_t { topology, rank };

template <class T>
struct Span {
    const T* first;
    std::size_t count;
    const T* begin() const { return first; }
    const T* end() const { return first + count; }
    std::size_t size() const { return count; }
    const T& operator[](std::size_t i) const { return first[i]; }
};

/// All that one rank does in a plan. Its size is proportional to the rank's own steps.
struct Program {
    Rank rank;
    std::int32_t service = -1;  ///< index into Job::aggregators for a service position; -1: a rank's program
    BlockOrder order = BlockOrder::topology;
    std::vector<Step> steps;  ///< every step waits for earlier ones only
    std::vector<Region> regions;
    std::vector<StepId> waits;
    /// Number of blocks that the vector of bcast, reduce, allreduce, scan and exscan is cut in, as evenly as elements
    /// allow; the same on all ranks.
    std::int64_t cut = 1;
    /// Number of channels to each service position: a message's channel is its tag modulo this, ordered by tags; 0:
    /// none.
    std::int32_t channels = 0;
    std::vector<Blocks> scratch;  ///< by layer: the blocks to allocate
    std::vector<std::string> stages;

    Span<Region> regions_of(const Step& step) const { return {regions.data() + step.first_region, step.region_count}; }
    Span<Region> sources_of(const Step& step) const {
        return {regions.data() + step.first_region, step.region_count - step.target_count};
    }
    Span<Region> targets_of(const Step& step) const {
        return {regions.data() + step.first_region + step.region_count - step.target_count, step.target_count};
    }
    Span<StepId> waits_of(const Step& step) const { return {waits.data() + step.first_wait, step.wait_count}; }
};

/// "rank 3", or "aggregator 0" for a service position.
std::string who(const Program& program);

/// Builds a program step by step; steps that are ready at the same time start in the order of calls.
class ProgramBuilder {
  public:
    explicit ProgramBuilder(Rank rank, BlockOrder order = BlockOrder::topology, std::int64_t cut = 1) {
        program_.rank = rank, program_.order = order, program_.cut = cut;
    }

    /// The program is a service position's: of no rank, and without a contribution.
    void serve(std::int32_t service) { program_.service = service; }
    void channels(std::int32_t count) { program_.channels = count; }

    /// Steps from now on belong to this stage; the same name again means the same stage.
    void stage(std::string_view name);

    StepId send(Rank to, std::int32_t tag, Buffer buffer, const Blocks& blocks, const std::vector<StepId>& waits,
                Slice slice = {});
    StepId recv(Rank from, std::int32_t tag, Buffer buffer, const Blocks& blocks, const std::vector<StepId>& waits,
                Slice slice = {});
    /// Messages whose blocks lie in several buffers. Both sides must list the blocks in the same order.
    StepId send(Rank to, std::int32_t tag, const std::vector<Region>& regions, const std::vector<StepId>& waits,
                Slice slice = {});
    StepId recv(Rank from, std::int32_t tag, const std::vector<Region>& regions, const std::vector<StepId>& waits,
                Slice slice = {});
    StepId copy(Buffer from, Buffer to, const Blocks& blocks, const std::vector<StepId>& waits, Slice slice = {});
    /// target = left op right. `target` may be one of the operands.
    StepId reduce(Buffer left, Buffer right, Buffer target, const Blocks& blocks, const std::vector<StepId>& waits,
                  Slice slice = {});
    /// `readers`: number of pulls that read it, over all ranks.
    StepId expose(std::int32_t tag, Buffer buffer, Interval blocks, std::size_t readers,
                  const std::vector<StepId>& waits, Slice slice = {});
    /// Exposes a copy in the node's shared memory, so that the region may be overwritten at once.
    StepId expose_copy(std::int32_t tag, Buffer buffer, Interval blocks, std::size_t readers,
                       const std::vector<StepId>& waits, Slice slice = {});
    /// `exposed`: all blocks that `from` exposes under this tag; `blocks`: those that are read.
    StepId pull(Rank from, std::int32_t tag, Interval exposed, Buffer buffer, const Blocks& blocks,
                const std::vector<StepId>& waits, Slice slice = {});
    /// target = own op exposed; with `exposed_first`: exposed op own. `target` may be `own`.
    StepId pull_reduce(Rank from, std::int32_t tag, Interval exposed, bool exposed_first, Buffer own, Buffer target,
                       const Blocks& blocks, const std::vector<StepId>& waits, Slice slice = {});
    /// Adds the steps of another program of this rank, which works on blocks of its own: its block b is here the
    /// `times` blocks from first_block + b * times on, its tags and layers of scratch are shifted. It may not expose.
    void include(const Program& other, std::int64_t first_block, std::int64_t times, std::int32_t first_tag,
                 std::size_t first_layer);
    /// Allocates these blocks in a layer of the scratch buffer; each block at most once per layer.
    void reserve_scratch(const Blocks& blocks, Buffer layer = Buffer::scratch);

    Program finish() { return std::move(program_); }

  private:
    StepId add(StepKind kind, Rank peer, std::int32_t tag, const std::vector<StepId>& waits, Slice slice);
    void add_regions(Buffer buffer, const Blocks& blocks);
    void add_message_regions(Buffer buffer, const Blocks& blocks);

    Program program_;
    std::uint8_t stage_ = 0;
};

}  // namespace palmette::plan
