#include "palmette/compose/named.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"
#include "palmette/base/never_destroyed.hpp"

namespace palmette::compose {
namespace {

using base::fail;
using Emit = Composition::Emit;

/// Blocks that belong to ranks, all alike or each with a length of its own.
Lengths by_rank(const NamedRequest& request) {
    if (request.bytes.size() == 1) return Lengths::uniform(request.ranks, request.bytes.front());
    return Lengths::list(request.bytes);
}
/// A vector in parts, one for each rank.
Lengths parts(const NamedRequest& request) {
    if (request.bytes.size() == 1) return Lengths::cut(request.ranks, request.bytes.front(), request.element_bytes);
    return Lengths::list(request.bytes);
}
/// A vector in one piece.
Lengths whole(const NamedRequest& request) {
    std::int64_t total = 0;
    for (const std::int64_t bytes : request.bytes) total += bytes;
    return Lengths::uniform(1, total);
}

/// Common start of all compositions here.
struct Start {
    Composition made;
    std::int32_t p;
    Rank root;
    RankSet all, only_root;
    std::uint8_t operation = 0;

    Start(const NamedRequest& request, Lengths lengths, bool reduces = false)
        : made(request.ranks, std::move(lengths), request.element_bytes),
          p(request.ranks),
          root(request.root),
          all(RankSet::all(request.ranks)),
          only_root(RankSet::one(request.root)) {
        if (reduces) operation = made.operation(request.operation);
    }
    /// A rule for block i of rank i, for all ranks.
    template <class Make>
    void for_ranks(Make make) {
        made.rule([p = p, make](const Emit& emit) {
            for (std::int32_t i = 0; i < p; ++i) emit(make(i));
        });
    }
};

Composition gather(const NamedRequest& request) {
    Start start(request, by_rank(request));
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv");
    start.for_ranks([send, recv, to = start.only_root](std::int32_t i) {
        return Primitive{false, {i}, to, {i, 1}, send, recv, 0};
    });
    return std::move(start.made);
}

/// As reductions with one source each: one primitive per rank, which ends at that rank.
Composition scatter(const NamedRequest& request) {
    Start start(request, by_rank(request));
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv");
    start.made.operation({"copy", true});
    start.for_ranks([send, recv, from = start.only_root](std::int32_t i) {
        return Primitive{true, {i}, from, {i, 1}, send, recv, 0};
    });
    return std::move(start.made);
}

Composition broadcast(const NamedRequest& request) {
    Start start(request, whole(request));
    const Buffer data = start.made.buffer("data");
    start.made.multicast(start.root, start.all, data, {0, 1}, data);
    return std::move(start.made);
}

Composition broadcast_scatter_allgather(const NamedRequest& request) {
    Start start(request, parts(request));
    const Buffer data = start.made.buffer("data");
    start.made.operation({"copy", true});
    start.for_ranks(
        [data, from = start.only_root](std::int32_t i) { return Primitive{true, {i}, from, {i, 1}, data, data, 0}; });
    start.made.fence();
    // The root already has all parts and receives none.
    start.made.rule([p = start.p, root = start.root.value, data](const Emit& emit) {
        std::vector<std::int32_t> others;
        for (std::int32_t r = 0; r < p; ++r)
            if (r != root) others.push_back(r);
        if (others.empty()) return;
        const RankSet to = RankSet::of(std::move(others));
        for (std::int32_t i = 0; i < p; ++i) emit({false, {i}, to, {i, 1}, data, data, 0});
    });
    return std::move(start.made);
}

Composition reduce(const NamedRequest& request) {
    Start start(request, whole(request), true);
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv");
    start.made.reduce(start.all, start.root, send, {0, 1}, recv, start.operation);
    return std::move(start.made);
}

Composition reduce_scatter_gather(const NamedRequest& request) {
    Start start(request, parts(request), true);
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv"), part = start.made.buffer("part");
    // The root's own part is reduced directly into the result.
    start.for_ranks([=, all = start.all, root = start.root, operation = start.operation](std::int32_t i) {
        return Primitive{true, {i}, all, {i, 1}, send, i == root.value ? recv : part, operation};
    });
    start.made.fence();
    start.for_ranks([=, to = start.only_root, root = start.root](std::int32_t i) {
        return Primitive{false, {i}, to, {i, 1}, i == root.value ? recv : part, recv, 0};
    });
    return std::move(start.made);
}

Composition alltoall(const NamedRequest& request) {
    const std::int64_t p = request.ranks;
    Start start(request, request.bytes.size() == 1 ? Lengths::uniform(p * p, request.bytes.front())
                                                   : Lengths::list(request.bytes));
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv");
    start.made.rule([p = start.p, send, recv](const Emit& emit) {
        for (std::int32_t from = 0; from < p; ++from)
            for (std::int32_t to = 0; to < p; ++to)
                emit({false, {from}, RankSet::one({to}), {std::int64_t{from} * p + to, 1}, send, recv, 0});
    });
    return std::move(start.made);
}

Composition allgather(const NamedRequest& request) {
    Start start(request, by_rank(request));
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv");
    start.for_ranks(
        [send, recv, all = start.all](std::int32_t i) { return Primitive{false, {i}, all, {i, 1}, send, recv, 0}; });
    return std::move(start.made);
}

Composition reduce_scatter(const NamedRequest& request) {
    Start start(request, by_rank(request), true);
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv");
    start.for_ranks([send, recv, all = start.all, operation = start.operation](std::int32_t i) {
        return Primitive{true, {i}, all, {i, 1}, send, recv, operation};
    });
    return std::move(start.made);
}

Composition allreduce(const NamedRequest& request) {
    Start start(request, parts(request), true);
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv");
    start.for_ranks([send, recv, all = start.all, operation = start.operation](std::int32_t i) {
        return Primitive{true, {i}, all, {i, 1}, send, recv, operation};
    });
    start.made.fence();
    start.for_ranks(
        [recv, all = start.all](std::int32_t i) { return Primitive{false, {i}, all, {i, 1}, recv, recv, 0}; });
    return std::move(start.made);
}

Composition allreduce_reduce_broadcast(const NamedRequest& request) {
    Start start(request, whole(request), true);
    const Buffer send = start.made.buffer("send"), recv = start.made.buffer("recv");
    start.made.reduce(start.all, start.root, send, {0, 1}, recv, start.operation);
    start.made.fence();
    start.made.multicast(start.root, start.all, recv, {0, 1}, recv);
    return std::move(start.made);
}

}  // namespace

const std::vector<NamedCollective>& named() {
    static const base::NeverDestroyed list(std::vector<NamedCollective>{
        {"gather", "p multicasts, each to the root", true, false, gather},
        {"scatter", "p reductions, each with the root as its one source", true, false, scatter},
        {"broadcast", "one multicast", true, false, broadcast},
        {"broadcast_scatter_allgather", "a scatter, a fence, an allgather of the parts", true, false,
         broadcast_scatter_allgather},
        {"reduce", "one reduction", true, true, reduce},
        {"reduce_scatter_gather", "a reduce-scatter, a fence, a gather of the parts", true, true,
         reduce_scatter_gather},
        {"alltoall", "p^2 multicasts to one rank each", false, false, alltoall},
        {"allgather", "p multicasts to all", false, false, allgather},
        {"reduce_scatter", "p reductions", false, true, reduce_scatter},
        {"allreduce", "p reductions, a fence, p multicasts to all", false, true, allreduce},
        {"allreduce_reduce_broadcast", "one reduction, a fence, one multicast", true, true, allreduce_reduce_broadcast},
    });
    return *list;
}

Composition compose(std::string_view name, const NamedRequest& request) {
    const auto at =
        std::find_if(named().begin(), named().end(), [&](const NamedCollective& row) { return row.name == name; });
    if (at == named().end()) {
        std::string known;
        for (const NamedCollective& row : named()) known += base::cat(known.empty() ? "" : ", ", row.name);
        fail("composition '", name, "' is unknown: there are ", known);
    }
    if (request.ranks < 1) fail(name, ": needs at least one rank, not ", request.ranks);
    if (at->rooted && (request.root.value < 0 || request.root.value >= request.ranks))
        fail(name, ": root ", request.root, " is outside of ", request.ranks, " ranks");
    const auto given = static_cast<std::int64_t>(request.bytes.size());
    const std::int64_t wanted = name == "alltoall" ? std::int64_t{request.ranks} * request.ranks : request.ranks;
    if (given != 1 && given != wanted) fail(name, ": expected one length or ", wanted, ", found ", given);
    if (request.element_bytes < 1) fail(name, ": an element can't have ", request.element_bytes, " bytes");
    for (const std::int64_t bytes : request.bytes)
        if (bytes < 0 || bytes % request.element_bytes != 0)
            fail(name, ": ", bytes, " bytes are no whole number of elements of ", request.element_bytes, " bytes");
    return at->make(request);
}

}  // namespace palmette::compose
