#include "palmette/plan/program.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::plan {

const char* name_of(Collective collective) {
    switch (collective) {
        case Collective::gather:
            return "gather";
        case Collective::scatter:
            return "scatter";
        case Collective::allgather:
            return "allgather";
    }
    return "?";
}

Collective collective_named(std::string_view name) {
    for (const Collective c : {Collective::gather, Collective::scatter, Collective::allgather})
        if (name == name_of(c)) return c;
    base::fail("collective '", name, "' is unknown: there are gather, scatter and allgather");
}

const char* name_of(Buffer buffer) {
    switch (buffer) {
        case Buffer::send:
            return "send";
        case Buffer::recv:
            return "recv";
        case Buffer::scratch:
            return "scratch";
    }
    return "?";
}

const char* name_of(StepKind kind) {
    switch (kind) {
        case StepKind::send:
            return "send";
        case StepKind::recv:
            return "recv";
        case StepKind::copy:
            return "copy";
    }
    return "?";
}

std::int64_t slice_begin(Slice slice, std::int64_t length) {
    // length * index may pass 2^63 for huge blocks, so the quotient and the rest are cut apart.
    return length / slice.of * slice.index + length % slice.of * slice.index / slice.of;
}

std::int64_t slice_length(Slice slice, std::int64_t length) {
    return slice_begin({static_cast<std::uint16_t>(slice.index + 1), slice.of}, length) - slice_begin(slice, length);
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
    // A leader hands the same blocks to many: the list of the step before is used again where it is equal.
    if (program_.steps.size() > 1) {
        const Step& before = program_.steps[program_.steps.size() - 2];
        const Span<Region> list = program_.regions_of(before);
        const auto equal = [buffer](const Region& region, const Interval& interval) {
            return region.buffer == buffer && region.blocks == interval;
        };
        if (before.kind != StepKind::copy &&
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

StepId ProgramBuilder::copy(Buffer from, Buffer to, const Blocks& blocks, const std::vector<StepId>& waits,
                            Slice slice) {
    const StepId id = add(StepKind::copy, Rank{}, 0, waits, slice);
    add_regions(from, blocks);
    add_regions(to, blocks);
    program_.steps.back().target_count = static_cast<std::uint32_t>(blocks.intervals().size());
    return id;
}

}  // namespace palmette::plan
