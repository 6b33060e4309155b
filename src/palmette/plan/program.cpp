#include "palmette/plan/program.hpp"

#include <algorithm>
#include <array>

#include "palmette/base/error.hpp"

namespace palmette::plan {

namespace {
constexpr std::array<const char*, collective_count> collective_names{
    "gather",         "scatter",  "allgather", "bcast", "reduce", "allreduce",
    "reduce_scatter", "alltoall", "barrier",   "scan",  "exscan"};
}

const char* name_of(Collective collective) {
    if (collective == Collective::composed) return "composed";
    return collective_names[static_cast<std::size_t>(collective)];
}

Collective collective_named(std::string_view name) {
    if (name == "composed") return Collective::composed;
    std::string known;
    for (std::size_t c = 0; c < collective_count; ++c) {
        if (name == collective_names[c]) return static_cast<Collective>(c);
        known += (c == 0 ? "" : c + 1 == collective_count ? " and " : ", ") + std::string(collective_names[c]);
    }
    base::fail("collective '", name, "' is unknown: there are ", known);
}

std::string name_of(Buffer buffer) {
    if (buffer == Buffer::send) return "send";
    if (buffer == Buffer::recv) return "recv";
    if (!is_scratch(buffer)) {
        const std::size_t index = caller_index(buffer) - 2;
        return index == 0 ? "named" : "named" + std::to_string(index);
    }
    return layer_of(buffer) == 0 ? "scratch" : "scratch" + std::to_string(layer_of(buffer));
}

std::int64_t slice_begin(Slice slice, std::int64_t length, std::int64_t element_bytes) {
    const std::int64_t elements = length / element_bytes;
    // elements * index may overflow for huge blocks, so quotient and remainder are scaled separately.
    return (elements / slice.of * slice.index + elements % slice.of * slice.index / slice.of) * element_bytes;
}

std::int64_t slice_length(Slice slice, std::int64_t length, std::int64_t element_bytes) {
    const Slice next{static_cast<std::uint16_t>(slice.index + 1), slice.of};
    return slice_begin(next, length, element_bytes) - slice_begin(slice, length, element_bytes);
}

std::string who(const Program& program) {
    return program.service < 0 ? "rank " + std::to_string(program.rank.value)
                               : "aggregator " + std::to_string(program.service);
}

void ProgramBuilder::stage(std::string_view name) {
    auto& stages = program_.stages;
    auto at = std::find(stages.begin(), stages.end(), name);
    if (at == stages.end()) at = stages.insert(stages.end(), std::string(name));
    stage_ = static_cast<std::uint8_t>(at - stages.begin());
}

StepId ProgramBuilder::add(StepKind kind, Rank peer, std::int32_t tag, const std::vector<StepId>& waits, Slice slice) {
    Step step;
    step.kind = kind;
    step.stage = stage_;
    step.slice = slice;
    step.peer = peer;
    step.tag = tag;
    step.first_region = static_cast<std::uint32_t>(program_.regions.size());
    step.first_wait = static_cast<std::uint32_t>(program_.waits.size());
    step.wait_count = static_cast<std::uint32_t>(waits.size());
    program_.waits.insert(program_.waits.end(), waits.begin(), waits.end());
    program_.steps.push_back(step);
    return static_cast<StepId>(program_.steps.size() - 1);
}

void ProgramBuilder::add_regions(Buffer buffer, const Blocks& blocks) {
    for (const Interval& interval : blocks.intervals()) program_.regions.push_back({buffer, interval});
    program_.steps.back().region_count += static_cast<std::uint32_t>(blocks.intervals().size());
}

void ProgramBuilder::add_message_regions(Buffer buffer, const Blocks& blocks) {
    // A leader sends the same blocks to many ranks: the previous step's region list is shared where it is equal.
    if (program_.steps.size() > 1) {
        const Step& before = program_.steps[program_.steps.size() - 2];
        const Span<Region> list = program_.regions_of(before);
        const auto equal = [buffer](const Region& region, const Interval& interval) {
            return region.buffer == buffer && region.blocks == interval;
        };
        if (before.target_count == 0 &&
            std::equal(list.begin(), list.end(), blocks.intervals().begin(), blocks.intervals().end(), equal)) {
            program_.steps.back().first_region = before.first_region;
            program_.steps.back().region_count = before.region_count;
            return;
        }
    }
    add_regions(buffer, blocks);
}

StepId ProgramBuilder::send(Rank to, std::int32_t tag, Buffer buffer, const Blocks& blocks,
                            const std::vector<StepId>& waits, Slice slice) {
    const StepId id = add(StepKind::send, to, tag, waits, slice);
    add_message_regions(buffer, blocks);
    return id;
}

StepId ProgramBuilder::recv(Rank from, std::int32_t tag, Buffer buffer, const Blocks& blocks,
                            const std::vector<StepId>& waits, Slice slice) {
    const StepId id = add(StepKind::recv, from, tag, waits, slice);
    add_message_regions(buffer, blocks);
    return id;
}

StepId ProgramBuilder::send(Rank to, std::int32_t tag, const std::vector<Region>& regions,
                            const std::vector<StepId>& waits, Slice slice) {
    const StepId id = add(StepKind::send, to, tag, waits, slice);
    program_.regions.insert(program_.regions.end(), regions.begin(), regions.end());
    program_.steps.back().region_count = static_cast<std::uint32_t>(regions.size());
    return id;
}

StepId ProgramBuilder::recv(Rank from, std::int32_t tag, const std::vector<Region>& regions,
                            const std::vector<StepId>& waits, Slice slice) {
    const StepId id = send(from, tag, regions, waits, slice);
    program_.steps.back().kind = StepKind::recv;
    return id;
}

StepId ProgramBuilder::reduce(Buffer left, Buffer right, Buffer target, const Blocks& blocks,
                              const std::vector<StepId>& waits, Slice slice) {
    const StepId id = add(StepKind::reduce, Rank{}, 0, waits, slice);
    add_regions(left, blocks);
    add_regions(right, blocks);
    add_regions(target, blocks);
    program_.steps.back().target_count = static_cast<std::uint32_t>(blocks.intervals().size());
    return id;
}

StepId ProgramBuilder::expose(std::int32_t tag, Buffer buffer, Interval blocks, std::size_t readers,
                              const std::vector<StepId>& waits, Slice slice) {
    const StepId id = add(StepKind::expose, Rank{}, tag, waits, slice);
    program_.steps.back().readers = static_cast<std::uint16_t>(readers);
    add_message_regions(buffer, blocks.count > 0 ? Blocks(blocks.first, blocks.count) : Blocks());
    return id;
}

StepId ProgramBuilder::expose_copy(std::int32_t tag, Buffer buffer, Interval blocks, std::size_t readers,
                                   const std::vector<StepId>& waits, Slice slice) {
    const StepId id = expose(tag, buffer, blocks, readers, waits, slice);
    program_.steps[id].copied = true;
    return id;
}

StepId ProgramBuilder::pull(Rank from, std::int32_t tag, Interval exposed, Buffer buffer, const Blocks& blocks,
                            const std::vector<StepId>& waits, Slice slice) {
    const StepId id = add(StepKind::pull, from, tag, waits, slice);
    program_.steps.back().exposed = exposed;
    add_message_regions(buffer, blocks);
    return id;
}

StepId ProgramBuilder::pull_reduce(Rank from, std::int32_t tag, Interval exposed, bool exposed_first, Buffer own,
                                   Buffer target, const Blocks& blocks, const std::vector<StepId>& waits, Slice slice) {
    const StepId id = add(StepKind::pull_reduce, from, tag, waits, slice);
    add_regions(own, blocks);
    add_regions(target, blocks);
    program_.steps.back().exposed = exposed;
    program_.steps.back().exposed_first = exposed_first;
    program_.steps.back().target_count = static_cast<std::uint32_t>(blocks.intervals().size());
    return id;
}

void ProgramBuilder::include(const Program& other, std::int64_t first_block, std::int64_t times, std::int32_t first_tag,
                             std::size_t first_layer) {
    const auto first_step = static_cast<StepId>(program_.steps.size());
    const auto first_region = static_cast<std::uint32_t>(program_.regions.size());
    const auto first_wait = static_cast<std::uint32_t>(program_.waits.size());
    const auto moved = [&](Interval blocks) {
        return Interval{first_block + blocks.first * times, blocks.count * times};
    };
    for (Region region : other.regions) {
        if (is_scratch(region.buffer)) region.buffer = scratch_layer(first_layer + layer_of(region.buffer));
        program_.regions.push_back({region.buffer, moved(region.blocks)});
    }
    for (const StepId wait : other.waits) program_.waits.push_back(first_step + wait);
    for (Step step : other.steps) {
        stage(other.stages[step.stage]);
        step.stage = stage_;
        if (has_peer(step.kind)) step.tag += first_tag;
        step.first_region += first_region;
        step.first_wait += first_wait;
        program_.steps.push_back(step);
    }
    for (std::size_t layer = 0; layer < other.scratch.size(); ++layer)
        for (const Interval& blocks : other.scratch[layer].intervals()) {
            const Interval here = moved(blocks);
            reserve_scratch({here.first, here.count}, scratch_layer(first_layer + layer));
        }
}

void ProgramBuilder::reserve_scratch(const Blocks& blocks, Buffer layer) {
    if (program_.scratch.size() <= layer_of(layer)) program_.scratch.resize(layer_of(layer) + 1);
    program_.scratch[layer_of(layer)].unite(blocks);
}

StepId ProgramBuilder::copy(Buffer from, Buffer to, const Blocks& blocks, const std::vector<StepId>& waits,
                            Slice slice) {
    const StepId id = add(StepKind::copy, Rank{}, 0, waits, slice);
    add_regions(from, blocks);
    add_regions(to, blocks);
    program_.steps.back().target_count = static_cast<std::uint32_t>(blocks.intervals().size());
    return id;
}

}  // namespace palmette::plan
