// One rank's part of a plan: the steps that it takes, as data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/base/ids.hpp"
#include "palmette/plan/blocks.hpp"

namespace palmette::plan {

using base::Rank;

/// What a plan carries out. The v forms share the plans of these: counts come in when a program is bound to memory.
enum class Collective : std::uint8_t { gather, scatter, allgather };

const char* name_of(Collective collective);
/// Throws base::Error naming the known ones.
Collective collective_named(std::string_view name);

/// Memory that a block lies in. `send` and `recv` are the caller's, `scratch` belongs to the plan.
enum class Buffer : std::uint8_t { send, recv, scratch };
const char* name_of(Buffer buffer);

enum class StepKind : std::uint8_t { send, recv, copy };
const char* name_of(StepKind kind);

/// Consecutive blocks of one buffer.
struct Region {
    Buffer buffer = Buffer::send;
    Interval blocks;
};

/// Part `index` of `of` equal parts of every block: how segments cut a message for pipelining.
struct Slice {
    std::uint16_t index = 0;
    std::uint16_t of = 1;
    friend bool operator==(const Slice&, const Slice&) = default;
};

/// Bytes of a slice of a block of `length` bytes; the slices of a block add up to its length.
std::int64_t slice_begin(Slice slice, std::int64_t length);
std::int64_t slice_length(Slice slice, std::int64_t length);

using StepId = std::uint32_t;

/// One step. It starts when all steps that it waits for are complete; steps that don't wait for each other overlap.
/// A send and the recv with the same (sender, receiver, tag) are one message.
struct Step {
    StepKind kind = StepKind::send;
    std::uint8_t stage = 0;  ///< index into Program::stages
    Slice slice;
    Rank peer;  ///< send, recv: the other rank; copy: -1
    std::int32_t tag = 0;
    std::uint32_t first_region = 0;  ///< into Program::regions; steps may share a list
    std::uint32_t region_count = 0;
    std::uint32_t target_count = 0;  ///< copy: the last `target_count` regions are written, the others read
    std::uint32_t first_wait = 0;    ///< into Program::waits
    std::uint32_t wait_count = 0;
};

/// What the index of a block counts: positions in topology order, or ranks.
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

/// All that one rank does in a plan. Its size grows with the rank's own steps.
struct Program {
    Rank rank;
    BlockOrder order = BlockOrder::topology;
    std::vector<Step> steps;  ///< every step waits for earlier ones only
    std::vector<Region> regions;
    std::vector<StepId> waits;
    Blocks scratch;  ///< the blocks that need room in the scratch buffer
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

/// Builds a program step by step; the order of calls is the order in which steps that are ready together are started.
class ProgramBuilder {
  public:
    ProgramBuilder(Rank rank, BlockOrder order) { program_.rank = rank, program_.order = order; }

    /// Steps from now on belong to this stage; the same name again means the same stage.
    void stage(std::string_view name);

    StepId send(Rank to, std::int32_t tag, Buffer buffer, const Blocks& blocks, const std::vector<StepId>& waits,
                Slice slice = {});
    StepId recv(Rank from, std::int32_t tag, Buffer buffer, const Blocks& blocks, const std::vector<StepId>& waits,
                Slice slice = {});
    StepId copy(Buffer from, Buffer to, const Blocks& blocks, const std::vector<StepId>& waits, Slice slice = {});
    /// Room for these blocks in the scratch buffer.
    void reserve_scratch(const Blocks& blocks) { program_.scratch.unite(blocks); }

    Program finish() { return std::move(program_); }

  private:
    StepId add(StepKind kind, Rank peer, std::int32_t tag, const std::vector<StepId>& waits, Slice slice);
    void add_regions(Buffer buffer, const Blocks& blocks);
    void add_message_regions(Buffer buffer, const Blocks& blocks);

    Program program_;
    std::uint8_t stage_ = 0;
};

}  // namespace palmette::plan
