#include <algorithm>
#include <charconv>

#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/trees/bine.hpp"
#include "palmette/collectives/trees/circulant.hpp"

namespace palmette::collectives {

Schedule ring(std::int32_t n, std::int32_t me) {
    Schedule out;
    const std::int32_t next = (me + 1) % n;
    const std::int32_t previous = (me + n - 1) % n;
    for (std::int32_t i = 0; i + 1 < n; ++i) {
        out.push_back({true, next, {(me - i + n) % n, 1}, i});
        out.push_back({false, previous, {(me - 1 - i + n) % n, 1}, i});
    }
    return out;
}

Schedule nested_ring(std::int32_t n, std::int32_t me, const std::vector<topology::Partition>& nested) {
    // The sender of `source`'s contribution to `to`: the last member of the innermost group that `to` begins and that
    // contains `source`, else the predecessor.
    const auto sender = [&](std::int32_t to, std::int32_t source) {
        for (auto level = nested.rbegin(); level != nested.rend(); ++level) {
            const std::int32_t group = level->group_of(to);
            if (level->first(group) == to && level->group_of(source) == group) return level->end(group) - 1;
        }
        return (to + n - 1) % n;
    };
    std::vector<std::int32_t> targets{(me + 1) % n};
    for (auto level = nested.rbegin(); level != nested.rend(); ++level) {
        const std::int32_t group = level->group_of(me);
        const std::int32_t first = level->first(group);
        if (level->end(group) - 1 == me && first != me &&
            std::find(targets.begin(), targets.end(), first) == targets.end())
            targets.push_back(first);
    }
    Schedule out;
    // Ordered by distance from the source, as contributions arrive; the tag is the receiver's distance.
    for (std::int32_t distance = 0; distance < n; ++distance) {
        const std::int32_t source = (me - distance + n) % n;
        if (distance > 0) out.push_back({false, sender(me, source), {source, 1}, distance});
        for (const std::int32_t to : targets)
            if (to != source && sender(to, source) == me) out.push_back({true, to, {source, 1}, (to - source + n) % n});
    }
    return out;
}

Schedule recursive_doubling(std::int32_t n, std::int32_t me) {
    Schedule out;
    std::int32_t stage = 0;
    for (std::int32_t distance = 1; distance < n; distance *= 2, ++stage) {
        const std::int32_t peer = me ^ distance;
        out.push_back({true, peer, {me & ~(distance - 1), distance}, stage});
        out.push_back({false, peer, {peer & ~(distance - 1), distance}, stage});
    }
    return out;
}

Schedule bruck(std::int32_t n, std::int32_t me, std::int32_t radix) {
    Schedule out;
    std::int32_t tag = 0;
    for (std::int64_t have = 1; have < n; have *= radix)
        for (std::int64_t digit = 1; digit < radix && digit * have < n; ++digit, ++tag) {
            const auto distance = static_cast<std::int32_t>(digit * have);
            const auto count = static_cast<std::int32_t>(std::min<std::int64_t>(have, n - distance));
            const std::int32_t from = (me + distance) % n;
            out.push_back({true, (me - distance + n) % n, {me, count}, tag});
            out.push_back({false, from, {from, count}, tag});
        }
    return out;
}

Schedule neighbor_exchange(std::int32_t n, std::int32_t me) {
    Schedule out;
    const bool even = me % 2 == 0;
    const auto wrap = [n](std::int32_t i) { return ((i % n) + n) % n; };
    const std::int32_t neighbour[2] = {wrap(even ? me + 1 : me - 1), wrap(even ? me - 1 : me + 1)};
    const std::int32_t turn[2] = {even ? 2 : -2, even ? -2 : 2};
    const std::int32_t pair = even ? me : wrap(me - 1);
    out.push_back({true, neighbour[0], {me, 1}, 0});
    out.push_back({false, neighbour[0], {neighbour[0], 1}, 0});
    std::int32_t next[2] = {pair, pair};
    std::int32_t held = pair;
    for (std::int32_t step = 1; step < n / 2; ++step) {
        const std::int32_t side = step % 2;
        next[side] = wrap(next[side] + turn[side]);
        out.push_back({true, neighbour[side], {held, 2}, step});
        out.push_back({false, neighbour[side], {next[side], 2}, step});
        held = next[side];
    }
    return out;
}

Schedule all_to_all(std::int32_t n, std::int32_t me) {
    Schedule out;
    for (std::int32_t i = 1; i < n; ++i) {
        const std::int32_t from = (me + n - i) % n;
        out.push_back({true, (me + i) % n, {me, 1}, 0});
        out.push_back({false, from, {from, 1}, 0});
    }
    return out;
}

std::vector<SkipStep> circulant_steps(std::int32_t n) {
    std::vector<SkipStep> out;
    const std::vector<std::int32_t> skips = circulant_skips(n);
    // A participant that has the skip[k] contributions from its own on receives the next ones, up to skip[k + 1].
    for (std::size_t k = 0; k + 1 < skips.size(); ++k) out.push_back({skips[k], skips[k + 1] - skips[k], 1});
    return out;
}

std::vector<SkipStep> pat_steps(std::int32_t n) {
    std::vector<SkipStep> out;
    std::int64_t skip = 1;
    while (skip * 2 < n) skip *= 2;
    // A participant has the contributions at multiples of 2 skip from its own on, and receives those halfway between.
    for (; skip > 0 && n > 1; skip /= 2)
        out.push_back({static_cast<std::int32_t>(skip), static_cast<std::int32_t>((n + skip - 1) / (2 * skip)),
                       static_cast<std::int32_t>(2 * skip)});
    return out;
}

namespace {

Schedule by_skips(std::int32_t n, std::int32_t me, const std::vector<SkipStep>& steps) {
    Schedule out;
    std::int32_t tag = 0;
    for (const SkipStep& step : steps) {
        const auto from = static_cast<std::int32_t>((std::int64_t{me} + step.skip) % n);
        out.push_back({true, (me - step.skip + n) % n, {me, step.count, step.stride}, tag});
        out.push_back({false, from, {from, step.count, step.stride}, tag});
        ++tag;
    }
    return out;
}

}  // namespace

Schedule circulant(std::int32_t n, std::int32_t me) { return by_skips(n, me, circulant_steps(n)); }

Schedule pat(std::int32_t n, std::int32_t me) { return by_skips(n, me, pat_steps(n)); }

Schedule bine(std::int32_t n, std::int32_t me) {
    Schedule out;
    const BineButterfly butterfly{n};
    for (std::int32_t step = 0; step < butterfly.steps(); ++step) {
        const std::int32_t peer = butterfly.partner(me, step);
        const std::int32_t count = std::int32_t{1} << step;
        out.push_back({true, peer, {butterfly.first_held(me, step), count}, step});
        out.push_back({false, peer, {butterfly.first_held(peer, step), count}, step});
    }
    return out;
}

Pattern Pattern::parse(std::string_view text) {
    if (text == "ring") return {Kind::ring};
    if (text == "recursive_doubling") return {Kind::recursive_doubling};
    if (text == "neighbor_exchange") return {Kind::neighbor_exchange};
    if (text == "all") return {Kind::all};
    if (text == "circulant") return {Kind::circulant};
    if (text == "pat") return {Kind::pat};
    if (text == "bine") return {Kind::bine};
    if (text == "bruck") return {Kind::bruck, 2};
    if (text.starts_with("bruck.")) {
        std::int32_t radix = 0;
        const std::string_view digits = text.substr(6);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), radix);
        if (error == std::errc() && end == digits.data() + digits.size() && radix >= 2) return {Kind::bruck, radix};
    }
    base::fail(
        "'", text,
        "' is no exchange: there are ring, recursive_doubling, bruck, bruck.K, neighbor_exchange, all, circulant, "
        "pat and bine");
}

std::optional<std::string> Pattern::refuse(std::int32_t n) const {
    if (kind == Kind::recursive_doubling && (n & (n - 1)) != 0)
        return base::cat("recursive doubling needs a power of two participants, not ", n);
    if (kind == Kind::bine && (n & (n - 1)) != 0)
        return base::cat("a Bine butterfly needs a power of two participants, not ", n);
    if (kind == Kind::neighbor_exchange && n > 1 && n % 2 != 0)
        return base::cat("neighbour exchange needs an even number of participants, not ", n);
    return std::nullopt;
}

Schedule Pattern::schedule(std::int32_t n, std::int32_t me, const std::vector<topology::Partition>& nested) const {
    if (n < 2) return {};
    switch (kind) {
        case Kind::ring:
            return nested.empty() ? ring(n, me) : nested_ring(n, me, nested);
        case Kind::recursive_doubling:
            return recursive_doubling(n, me);
        case Kind::bruck:
            return bruck(n, me, radix);
        case Kind::neighbor_exchange:
            return neighbor_exchange(n, me);
        case Kind::all:
            return all_to_all(n, me);
        case Kind::circulant:
            return circulant(n, me);
        case Kind::pat:
            return pat(n, me);
        case Kind::bine:
            return bine(n, me);
    }
    return {};
}

}  // namespace palmette::collectives
