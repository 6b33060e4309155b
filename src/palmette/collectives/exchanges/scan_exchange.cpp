#include "palmette/collectives/exchanges/scan_exchange.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

std::vector<StepId> join(std::vector<StepId> list, const std::vector<StepId>& more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
}

HeldBlocks finish(const ReduceContext& context, const ScanPattern::Before& before) {
    const Blocks all = context.blocks_of(0, 1);
    const std::vector<StepId> waits = join(before.readers, context.ready);
    if (!before.prefix)
        return {context.result, {context.builder.copy(context.input, context.result, all, waits, context.slice)}};
    return {
        context.result,
        {context.reduce(before.prefix->buffer, context.input, context.result, all, join(before.prefix->ready, waits))}};
}

ScanPattern::Before chain(const ReduceContext& context) {
    const Blocks all = context.blocks_of(0, 1);
    const bool last = context.me == context.n - 1;
    if (context.me == 0) {
        if (last) return {};
        return {std::nullopt, {context.send(1, 0, context.input, all, context.ready)}};
    }
    const StepId got = context.recv(context.me - 1, 0, context.layer(0), all, {});
    if (last) return {HeldBlocks{context.layer(0), {got}}, {}};
    const StepId both =
        context.reduce(context.layer(0), context.input, context.layer(1), all, join(context.ready, {got}));
    context.send(context.me + 1, 0, context.layer(1), all, {both});
    return {HeldBlocks{context.layer(0), {got}}, {both}};
}

HeldBlocks inclusive_chain(const ReduceContext& context) {
    if (context.me == 0) return finish(context, chain(context));
    const Blocks all = context.blocks_of(0, 1);
    const StepId got = context.recv(context.me - 1, 0, context.layer(0), all, {});
    const StepId both =
        context.reduce(context.layer(0), context.input, context.result, all, join(context.ready, {got}));
    if (context.me + 1 < context.n) context.send(context.me + 1, 0, context.result, all, {both});
    return {context.result, {both}};
}

/// Layers 0 and 1 are receive buffers, 2 holds the exclusive prefix, 3 the window up to the own contribution.
ScanPattern::Before doubling(const ReduceContext& context) {
    const Blocks all = context.blocks_of(0, 1);
    ScanPattern::Before out;
    HeldBlocks window{context.input, context.ready};
    std::vector<StepId> sent;
    std::vector<StepId> used[2];
    std::int32_t stage = 0;
    for (std::int32_t distance = 1; distance < context.n; distance *= 2, ++stage) {
        if (context.me + distance < context.n) {
            sent.push_back(context.send(context.me + distance, stage, window.buffer, all, window.ready));
            if (window.buffer == context.input) out.readers.push_back(sent.back());
        }
        if (context.me < distance) continue;
        const bool first = !out.prefix;
        const Buffer landing = context.layer(first ? 2 : static_cast<std::size_t>(stage % 2));
        const StepId got =
            context.recv(context.me - distance, stage, landing, all, first ? std::vector<StepId>() : used[stage % 2]);
        std::vector<StepId> took{got};
        if (context.me + 2 * std::int64_t{distance} < context.n) {
            const bool from_input = window.buffer == context.input;
            const StepId wider =
                context.reduce(landing, window.buffer, context.layer(3), all, join(join(window.ready, sent), {got}));
            if (from_input) out.readers.push_back(wider);
            window = {context.layer(3), {wider}};
            sent.clear();
            took = {wider};
        }
        if (first) {
            out.prefix = HeldBlocks{landing, join(took, {got})};
            continue;
        }
        const StepId longer =
            context.reduce(landing, out.prefix->buffer, out.prefix->buffer, all, join(out.prefix->ready, {got}));
        out.prefix->ready = {longer};
        used[stage % 2] = join(took, {longer});
    }
    return out;
}

HeldBlocks inclusive_doubling(const ReduceContext& context) {
    if (context.me == 0) return finish(context, doubling(context));
    const Blocks all = context.blocks_of(0, 1);
    HeldBlocks window{context.input, context.ready};
    std::vector<StepId> sent;
    std::vector<StepId> used[2];
    std::int32_t stage = 0;
    for (std::int32_t distance = 1; distance < context.n; distance *= 2, ++stage) {
        if (context.me + distance < context.n)
            sent.push_back(context.send(context.me + distance, stage, window.buffer, all, window.ready));
        if (context.me < distance) continue;
        const Buffer landing = context.layer(static_cast<std::size_t>(stage % 2));
        const StepId got = context.recv(context.me - distance, stage, landing, all, used[stage % 2]);
        const StepId wider =
            context.reduce(landing, window.buffer, context.result, all, join(join(window.ready, sent), {got}));
        window = {context.result, {wider}};
        sent.clear();
        used[stage % 2] = {wider};
    }
    return window;
}

ScanPattern::Before from_all(const ReduceContext& context) {
    constexpr std::int32_t layers = ScanPattern::most_layers - 1;
    const Blocks all = context.blocks_of(0, 1);
    ScanPattern::Before out;
    for (std::int32_t to = context.me + 1; to < context.n; ++to)
        out.readers.push_back(context.send(to, 0, context.input, all, context.ready));
    std::vector<std::vector<StepId>> used(layers);
    for (std::int32_t from = context.me - 1; from >= 0; --from) {
        const bool first = !out.prefix;
        const auto place = static_cast<std::size_t>(from % layers);
        const Buffer landing = context.layer(first ? layers : place);
        const StepId got = context.recv(from, 0, landing, all, first ? std::vector<StepId>() : used[place]);
        if (first) {
            out.prefix = HeldBlocks{landing, {got}};
            continue;
        }
        const StepId longer =
            context.reduce(landing, out.prefix->buffer, out.prefix->buffer, all, join(out.prefix->ready, {got}));
        out.prefix->ready = {longer};
        used[place] = {longer};
    }
    return out;
}

}  // namespace

ScanPattern ScanPattern::parse(std::string_view text) {
    if (text == "linear") return {Kind::linear};
    if (text == "recursive_doubling") return {Kind::recursive_doubling};
    if (text == "all") return {Kind::all};
    base::fail("'", text, "' is no pattern of prefixes: there are linear, recursive_doubling and all");
}

ScanPattern::Before ScanPattern::exclusive(const ReduceContext& context) const {
    switch (kind) {
        case Kind::linear:
            return chain(context);
        case Kind::recursive_doubling:
            return doubling(context);
        case Kind::all:
            return from_all(context);
    }
    return {};
}

HeldBlocks ScanPattern::inclusive(const ReduceContext& context) const {
    switch (kind) {
        case Kind::linear:
            return inclusive_chain(context);
        case Kind::recursive_doubling:
            return inclusive_doubling(context);
        case Kind::all:
            return finish(context, from_all(context));
    }
    return {context.result, {}};
}

std::size_t level_of_groups(const Job& job, const Spec& spec) {
    const auto wanted = job.find_level(spec.find("level").value_or("node"));
    return wanted ? *wanted : *job.find_level("node");
}

void finish_prefix(plan::ProgramBuilder& builder, Collective collective, const std::optional<HeldBlocks>& before,
                   const std::vector<StepId>& readers, plan::Slice slice) {
    const Blocks all(0, 1);
    if (!before) {
        if (collective == Collective::scan) builder.copy(Buffer::send, Buffer::recv, all, readers, slice);
        return;
    }
    const std::vector<StepId> waits = join(before->ready, readers);
    if (collective == Collective::scan)
        builder.reduce(before->buffer, Buffer::send, Buffer::recv, all, waits, slice);
    else
        builder.copy(before->buffer, Buffer::recv, all, waits, slice);
}

}  // namespace palmette::collectives
