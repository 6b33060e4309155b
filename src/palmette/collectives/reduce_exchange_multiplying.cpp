// Recursive multiplying; with radix 2 it is recursive doubling, with a radix of n a single exchange of all with all.
//
//   p = 8, radix 2:   0─1 2─3 4─5 6─7    then 0─2 1─3 4─6 5─7    then 0─4 1─5 2─6 3─7
//   p = 9, radix 3:   0─1─2 3─4─5 6─7─8  then 0─3─6 1─4─7 2─5─8
#include <algorithm>

#include "palmette/collectives/reduce_exchange.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

/// Largest divisors first; empty when a prime factor is too large.
std::vector<std::int32_t> divide(std::int32_t n, std::int32_t radix) {
    std::vector<std::int32_t> out;
    while (n > 1) {
        std::int32_t factor = std::min(radix, n);
        while (factor > 1 && n % factor != 0) --factor;
        if (factor == 1) return {};
        out.push_back(factor);
        n /= factor;
    }
    return out;
}

/// Layers of scratch in turn. A message may come in as soon as the one that had its layer before is used up.
class Landing {
  public:
    Landing(const ReduceContext& context, std::size_t layers) : context_(context), used_(layers) {}
    struct Arrival {
        std::size_t place;
        Buffer buffer;
        StepId step;
    };
    Arrival recv(std::int32_t from, std::int32_t tag, const Blocks& blocks) {
        const std::size_t place = next_++ % used_.size();
        const Buffer buffer = context_.layer(place);
        return {place, buffer, context_.recv(from, tag, buffer, blocks, used_[place])};
    }
    void free(std::size_t place, StepId after) { used_[place] = {after}; }

  private:
    const ReduceContext& context_;
    std::vector<std::vector<StepId>> used_;
    std::size_t next_ = 0;
};

}  // namespace

Factors factors_of(std::int32_t n, std::int32_t radix) {
    if (radix >= n) return {{n, n}, n > 1 ? std::vector<std::int32_t>{n} : std::vector<std::int32_t>{}};
    std::vector<std::int32_t> rounds;
    std::int64_t core = 1;
    while (core * radix <= n) {
        core *= radix;
        rounds.push_back(radix);
    }
    if (const auto factor = static_cast<std::int32_t>(n / core); factor > 1) {
        rounds.push_back(factor);
        core *= factor;
    }
    if (core == n) return {{n, n}, rounds};
    if (const auto exact = divide(n, radix); !exact.empty() && exact.size() <= rounds.size() + 2)
        return {{n, n}, exact};
    return {{n, static_cast<std::int32_t>(core)}, rounds};
}

std::vector<StepId> recursive_multiplying(const ReduceContext& context, std::int32_t radix) {
    const auto [fold, factors] = factors_of(context.n, radix);
    const Blocks all = context.blocks_of(0, 1);
    const auto rounds = static_cast<std::int32_t>(factors.size());
    if (fold.gives(context.me)) {
        const StepId sent = context.send(context.me - 1, 0, context.input, all, context.ready);
        return {context.recv(context.me - 1, rounds + 1, context.result, all, {sent})};
    }
    const auto widest = static_cast<std::size_t>(*std::max_element(factors.begin(), factors.end()) - 1);
    Landing landing(context, rounds == 1 && fold.extra() == 0 ? widest : std::max<std::size_t>(2 * widest, 2));
    Held held{context.input, context.ready};
    if (fold.takes(context.me)) {
        const auto got = landing.recv(context.me + 1, 0, all);
        std::vector<StepId> waits = held.ready;
        waits.push_back(got.step);
        const StepId reduced = context.reduce(held.buffer, got.buffer, context.work, all, waits);
        landing.free(got.place, reduced);
        held = {context.work, {reduced}};
    }
    const std::int32_t self = fold.core_index(context.me);
    std::int32_t stride = 1;
    for (std::int32_t round = 0; round < rounds; ++round) {
        const std::int32_t factor = factors[static_cast<std::size_t>(round)];
        const std::int32_t digit = self / stride % factor;
        const auto peer = [&](std::int32_t j) { return fold.participant(self + (j - digit) * stride); };
        std::vector<Landing::Arrival> arrivals(static_cast<std::size_t>(factor));
        std::vector<StepId> sent;
        for (std::int32_t j = 1; j < factor; ++j) {
            const std::int32_t from = (digit + factor - j) % factor;
            arrivals[static_cast<std::size_t>(from)] = landing.recv(peer(from), 1 + round, all);
            sent.push_back(context.send(peer((digit + j) % factor), 1 + round, held.buffer, all, held.ready));
        }
        // From left to right on everyone, so that all put the same expression together. What is left of the own contribution is
        // combined where it arrived.
        Held sum = held;
        if (digit > 0) sum = {arrivals[0].buffer, {arrivals[0].step}};
        for (std::int32_t j = 1; j < factor; ++j) {
            const auto& arrival = arrivals[static_cast<std::size_t>(j)];
            std::vector<StepId> waits = sum.ready;
            if (j == digit)
                waits.insert(waits.end(), held.ready.begin(), held.ready.end());
            else
                waits.push_back(arrival.step);
            const bool own_is_in = j >= digit;
            if (own_is_in) waits.insert(waits.end(), sent.begin(), sent.end());
            const Buffer target = own_is_in ? context.work : sum.buffer;
            const StepId reduced =
                context.reduce(sum.buffer, j == digit ? held.buffer : arrival.buffer, target, all, waits);
            if (j != digit) landing.free(arrival.place, reduced);
            if (digit > 0 && j <= digit) landing.free(arrivals[0].place, reduced);
            sum = {target, {reduced}};
        }
        held = sum;
        stride *= factor;
    }
    if (fold.takes(context.me)) context.send(context.me + 1, rounds + 1, held.buffer, all, held.ready);
    return held.ready;
}

}  // namespace palmette::collectives
