#include "palmette/collectives/exchanges/reduce_exchange.hpp"

#include <algorithm>
#include <charconv>

#include "palmette/base/error.hpp"

namespace palmette::collectives {

ReducePattern ReducePattern::parse(std::string_view text) {
    if (text == "recursive_doubling") return {Kind::recursive_multiplying, 2};
    if (text == "recursive_multiplying") return {Kind::recursive_multiplying, 4};
    if (text == "all") return {Kind::recursive_multiplying, INT32_MAX};
    if (text == "rabenseifner") return {Kind::rabenseifner};
    if (text == "circulant") return {Kind::circulant};
    if (text == "pat") return {Kind::pat};
    if (text == "ring") return {Kind::ring};
    if (text == "direct") return {Kind::direct};
    constexpr std::string_view prefix = "recursive_multiplying.";
    if (text.starts_with(prefix)) {
        const std::string_view digits = text.substr(prefix.size());
        std::int32_t radix = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), radix);
        if (error == std::errc() && end == digits.data() + digits.size() && radix >= 2)
            return {Kind::recursive_multiplying, radix};
    }
    base::fail("'", text,
               "' is no pattern of reductions: there are recursive_doubling, recursive_multiplying, "
               "recursive_multiplying.K, all, rabenseifner, circulant, pat, ring and direct");
}

std::optional<std::string> ReducePattern::refuse(std::int32_t n, bool ordered) const {
    if (kind == Kind::ring && ordered && n > 1)
        return std::string("a ring doesn't combine contributions in rank order");
    if ((kind == Kind::circulant || kind == Kind::pat) && ordered && n > 1)
        return std::string("exchanges round a circle don't combine contributions in rank order");
    return std::nullopt;
}

std::int32_t ReducePattern::parts(std::int32_t n) const {
    switch (kind) {
        case Kind::recursive_multiplying:
            return 1;
        case Kind::rabenseifner:
            return power_of_two_in(n);
        case Kind::circulant:
        case Kind::pat:
        case Kind::ring:
        case Kind::direct:
            return n;
    }
    return 1;
}

std::int32_t ReducePattern::tags(std::int32_t n) const {
    switch (kind) {
        case Kind::recursive_multiplying:
            return 34;  // one per round, at most 31 rounds, and two to fold
        case Kind::rabenseifner:
        case Kind::circulant:
        case Kind::pat:
            return 64;  // two per stage, at most 31 stages, and two to fold
        case Kind::ring:
            return 2 * n;
        case Kind::direct:
            return 2;
    }
    return 1;
}

std::vector<plan::StepId> ReducePattern::allreduce(const ReduceContext& context,
                                                   const std::vector<topology::Partition>& nested) const {
    if (context.n == 1) {
        if (context.input == context.result) return context.ready;
        return {
            context.builder.copy(context.input, context.result, context.blocks_of(0, 1), context.ready, context.slice)};
    }
    switch (kind) {
        case Kind::recursive_multiplying:
            return recursive_multiplying(context, radix);
        case Kind::rabenseifner:
            return Halving(context).allreduce();
        case Kind::circulant:
        case Kind::pat: {
            SkipExchange exchange(context, kind == Kind::pat ? pat_steps(context.n) : circulant_steps(context.n));
            return exchange.collect_parts(exchange.reduce_parts().ready);
        }
        case Kind::ring: {
            ReduceRing ring(context, nested);
            ring.reduce_scatter();
            return ring.allgather();
        }
        case Kind::direct: {
            DirectExchange direct(context);
            return direct.allgather(direct.reduce_scatter());
        }
    }
    return {};
}

bool positions_are_ranks(const Job& job) {
    for (std::int32_t p = 0; p < job.size(); ++p)
        if (job.rank_at({p}).value != p) return false;
    return true;
}

std::optional<std::string> refuse_scattered(const Job& job, const Request& request) {
    if (!request.ordered || positions_are_ranks(job)) return std::nullopt;
    return std::string(
        "the operation isn't commutative and ranks are scattered over the machine, so that topology order isn't the "
        "order of ranks");
}

}  // namespace palmette::collectives
