// Recursive multiplying; with radix 2 it is recursive doubling, with a radix of n a single exchange of all with all.
//
//   p = 8, radix 2:   0─1 2─3 4─5 6─7    then 0─2 1─3 4─6 5─7    then 0─4 1─5 2─6 3─7
//   p = 9, radix 3:   0─1─2 3─4─5 6─7─8  then 0─3─6 1─4─7 2─5─8
#include <algorithm>
#include <deque>

#include "palmette/collectives/exchanges/reduce_exchange.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

// Receive buffers for the arrivals of two consecutive rounds, up to a limit.
constexpr std::size_t most_layers = 32;

/// Layers of scratch, used round-robin: the one that has been free for longest is next.
class Landing {
  public:
    Landing(const ReduceContext& context, std::size_t layers) : context_(context) {
        for (std::size_t place = 0; place < layers; ++place) free_.push_back({place, {}});
    }
    struct Arrival {
        std::size_t place = 0;
        Buffer buffer = Buffer::scratch;
        StepId step = 0;
    };
    bool any() const { return !free_.empty(); }
    Arrival recv(std::int32_t from, std::int32_t tag, const Blocks& blocks) {
        const auto [place, waits] = std::move(free_.front());
        free_.pop_front();
        const Buffer buffer = context_.layer(place);
        return {place, buffer, context_.recv(from, tag, buffer, blocks, waits)};
    }
    void free(std::size_t place, StepId after) { free_.push_back({place, {after}}); }

  private:
    struct Place {
        std::size_t place;
        std::vector<StepId> after;
    };
    const ReduceContext& context_;
    std::deque<Place> free_;
};

/// A round of recursive multiplying: every member of a group of `peers` sends what it holds to all others and combines
/// the arrivals. From left to right on all members, so that all evaluate the same expression; up to the own
/// contribution the sum stays in the buffer of the first arrival.
HeldBlocks exchange_and_combine(const ReduceContext& context, Landing& landing, const std::vector<std::int32_t>& peers,
                                std::size_t digit, std::int32_t tag, const Blocks& all, const HeldBlocks& held) {
    const std::size_t n = peers.size();
    std::vector<Landing::Arrival> arrivals(n);
    std::size_t posted = 0;
    const auto post = [&] {
        for (; posted < n && (posted == digit || landing.any()); ++posted)
            if (posted != digit) arrivals[posted] = landing.recv(peers[posted], tag, all);
    };
    post();
    std::vector<StepId> sent;
    for (std::size_t j = 1; j < n; ++j)
        sent.push_back(context.send(peers[(digit + j) % n], tag, held.buffer, all, held.ready));
    HeldBlocks sum = digit == 0 ? held : HeldBlocks{arrivals[0].buffer, {arrivals[0].step}};
    for (std::size_t j = 1; j < n; ++j) {
        std::vector<StepId> waits = sum.ready;
        if (j == digit)
            waits.insert(waits.end(), held.ready.begin(), held.ready.end());
        else
            waits.push_back(arrivals[j].step);
        // From here on the sum overwrites the own contribution, once that has been sent.
        const bool own_is_in = j >= digit;
        if (own_is_in) waits.insert(waits.end(), sent.begin(), sent.end());
        const Buffer target = own_is_in ? context.work : sum.buffer;
        const StepId reduced =
            context.reduce(sum.buffer, j == digit ? held.buffer : arrivals[j].buffer, target, all, waits);
        landing.free(arrivals[j == digit ? 0 : j].place, reduced);
        sum = {target, {reduced}};
        post();
    }
    return sum;
}

}  // namespace

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

std::size_t recursive_multiplying_layers(std::int32_t n, std::int32_t radix) {
    if (n < 2) return 0;
    const std::size_t layers = n <= radix ? static_cast<std::size_t>(n) - 1 : 2 * (static_cast<std::size_t>(radix) - 1);
    return std::min(layers, most_layers);
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
    const bool once = rounds == 1 && fold.extra() == 0;
    Landing landing(context, std::min(once ? widest : std::max<std::size_t>(2 * widest, 2), most_layers));
    HeldBlocks held{context.input, context.ready};
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
        std::vector<std::int32_t> peers;
        for (std::int32_t j = 0; j < factor; ++j) peers.push_back(fold.participant(self + (j - digit) * stride));
        held = exchange_and_combine(context, landing, peers, static_cast<std::size_t>(digit), 1 + round, all, held);
        stride *= factor;
    }
    if (fold.takes(context.me)) {
        const StepId sent = context.send(context.me + 1, rounds + 1, held.buffer, all, held.ready);
        if (context.readers) context.readers->push_back(sent);
    }
    return held.ready;
}

}  // namespace palmette::collectives
