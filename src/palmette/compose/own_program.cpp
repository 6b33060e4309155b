#include "palmette/compose/own_program.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "palmette/base/error.hpp"
#include "palmette/base/hash.hpp"

namespace palmette::compose {

using base::fail;

OwnProgram::OwnProgram(const Factory& factory, Rank rank)
    : factory_(factory), composition_(factory.composition_), rank_(rank), me_(factory.job_.position_of(rank).value) {}

void OwnProgram::check_conflicts(std::int32_t phase, const Primitive& primitive, bool root, bool other) {
    if (phase != touched_phase_) touched_.clear();
    touched_phase_ = phase;
    const auto touch = [&](Buffer buffer, bool writes) {
        for (std::int64_t b = primitive.blocks.first; b < primitive.blocks.end(); ++b) {
            const auto [at, fresh] =
                touched_.try_emplace((static_cast<std::int64_t>(buffer) << 48) | b, Touch{primitive_, writes});
            Touch& before = at->second;
            if (!fresh && before.primitive != primitive_ && (writes || before.writes))
                fail("phase ", phase, ", ", primitive.reduces ? "reduce to rank " : "multicast from rank ",
                     primitive.root, ": ", writes ? "writes" : "reads", " block ", b, " of '",
                     composition_.buffers()[plan::caller_index(buffer)], "' on rank ", rank_,
                     ", which another primitive of the phase ", before.writes ? "writes" : "reads",
                     "; put a fence between them");
            before.writes = before.writes || writes;
            // Several readers: whichever primitive writes next conflicts with one of them.
            if (!fresh && !writes && !before.writes) before.primitive = -1;
        }
    };
    if (root) touch(primitive.reduces ? primitive.target : primitive.source, primitive.reduces);
    if (other) touch(primitive.reduces ? primitive.source : primitive.target, !primitive.reduces);
}

void OwnProgram::concern(std::int32_t phase, const Primitive& primitive) {
    const std::int32_t stages = factory_.router_.stages();
    const std::int32_t stripes = factory_.factoring_.stripes;
    const bool root = primitive.root == rank_;
    const bool other = primitive.others.contains(rank_.value);
    if (root || other) check_conflicts(phase, primitive, root, other);
    const Factory::PlacedPrimitive placed = factory_.placed(phase, primitive);

    Unit unit;
    unit.phase = phase;
    unit.reduces = primitive.reduces, unit.root = root, unit.other = other, unit.ordered = placed.manner.ordered;
    unit.operation = primitive.operation;
    unit.source = primitive.source, unit.target = primitive.target;
    for (std::int32_t stripe = 0; stripe < stripes; ++stripe) {
        edges_.clear();
        factory_.edges(me_, placed, stripe, edges_);
        if (edges_.empty() && !(root && other)) continue;
        unit.arrivals = static_cast<std::int32_t>(
            std::count_if(edges_.begin(), edges_.end(), [](const Edge& edge) { return !edge.sends; }));
        for (std::int64_t b = primitive.blocks.first; b < primitive.blocks.end(); ++b) {
            unit.block = block_of_stripe(b, stripes, stripe);
            const auto index = static_cast<std::uint32_t>(units_.size());
            units_.push_back(unit);
            for (const Edge& edge : edges_)
                events_.push_back({phase * stages + edge.stage, edge.sends, edge.peer, index});
            if (root && other) own_.push_back(index);
        }
    }
}

void OwnProgram::collect() {
    composition_.visit([&](std::int32_t phase, const Primitive& primitive) {
        ++primitive_;
        concern(phase, primitive);
    });
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
        return std::tuple(a.stage, a.sends, a.peer, a.unit) < std::tuple(b.stage, b.sends, b.peer, b.unit);
    });
}

Buffer OwnProgram::new_layer(std::int64_t block) {
    const std::size_t layer = layers_[block]++;
    if (layer >= plan::most_layers_of_scratch)
        fail("rank ", rank_, " would hold more than ", plan::most_layers_of_scratch, " versions of block ", block,
             "; take fewer landings, or a tree of smaller groups");
    return plan::scratch_layer(layer);
}

/// Where partial results are accumulated: at the root the result itself.
Buffer OwnProgram::accumulator(Unit& unit) {
    if (unit.root) return unit.target;
    if (unit.landing.empty()) unit.landing.push_back(new_layer(unit.block));
    return unit.landing.front();
}

void OwnProgram::add(std::vector<Combine>& list, std::size_t round, const Unit& unit, Buffer left, Buffer right,
                     Buffer target) {
    auto at = std::find_if(list.begin(), list.end(), [&](const Combine& some) {
        return some.operation == unit.operation && some.round == round;
    });
    if (at == list.end()) {
        at = std::find_if(list.begin(), list.end(), [&](const Combine& some) { return some.round > round; });
        at = list.insert(at, {unit.operation, round, {}, {}, {}});
    }
    Steps::append(at->left, left, unit.block);
    Steps::append(at->right, right, unit.block);
    Steps::append(at->target, target, unit.block);
}

/// The receive buffer for an arriving block; appends the combines to be done after the receive.
Buffer OwnProgram::take_in(Unit& unit, std::int32_t peer, std::vector<Combine>& combine) {
    ++unit.arrived;
    if (!unit.reduces) {
        const Buffer place = unit.other ? unit.target : new_layer(unit.block);
        unit.held = {place, true};
        return place;
    }
    const bool contributes = unit.other;
    if (unit.ordered && unit.arrivals + (contributes ? 1 : 0) > 1) {
        const Buffer place = new_layer(unit.block);
        unit.parts.emplace_back(factory_.job_.rank_at({peer}).value, place);
        if (unit.arrived == unit.arrivals) fold(unit, combine);
        return place;
    }
    const Buffer into = accumulator(unit);
    if (!unit.held.known) {
        unit.held = {into, true};
        if (!contributes) return into;
        const bool in_place = unit.root && unit.source == unit.target;
        if (!in_place) {
            add(combine, 0, unit, unit.source, into, into);
            return into;
        }
    }
    // Landings in addition to the accumulator, used round-robin.
    const std::size_t first_landing = unit.root ? 0 : 1;
    const auto landings = static_cast<std::size_t>(factory_.factoring_.landings);
    const std::size_t turn = first_landing + unit.landed++ % landings;
    while (unit.landing.size() <= turn) unit.landing.push_back(new_layer(unit.block));
    add(combine, 0, unit, into, unit.landing[turn], into);
    return unit.landing[turn];
}

/// All contributions have arrived: combines them from left to right.
void OwnProgram::fold(Unit& unit, std::vector<Combine>& combine) {
    if (unit.other) unit.parts.emplace_back(rank_.value, unit.source);
    std::sort(unit.parts.begin(), unit.parts.end());
    // Partial results stay in scratch until the last combine, as the result may alias the own contribution.
    Buffer sum = unit.parts.front().second;
    for (std::size_t i = 1; i < unit.parts.size(); ++i) {
        const Buffer next = unit.parts[i].second;
        const bool last = i + 1 == unit.parts.size();
        const Buffer into = last && unit.root ? unit.target : plan::is_scratch(sum) ? sum : next;
        add(combine, i, unit, sum, next, into);
        sum = into;
    }
    unit.held = {sum, true};
}

void OwnProgram::begin_phase(std::int32_t phase) {
    layers_.clear();
    const std::int32_t stage = phase * factory_.router_.stages();
    steps_.stage(stage, composition_.phases() > 1 ? base::cat("phase ", phase + 1, ": own blocks") : "own blocks");
    // Rank-local copies; reductions with contributions of other ranks use the own one later.
    std::vector<std::pair<Steps::Regions, Steps::Regions>> copies;
    for (; next_own_ < own_.size() && units_[own_[next_own_]].phase == phase; ++next_own_) {
        const Unit& unit = units_[own_[next_own_]];
        if (unit.source == unit.target || (unit.reduces && unit.arrivals > 0)) continue;
        if (copies.empty() || copies.back().first.back().buffer != unit.source ||
            copies.back().second.back().buffer != unit.target)
            copies.emplace_back();
        Steps::append(copies.back().first, unit.source, unit.block);
        Steps::append(copies.back().second, unit.target, unit.block);
    }
    for (const auto& [from, to] : copies) steps_.copy(from, to);
}

void OwnProgram::exchange(const Event* first, const Event* end) {
    const Rank peer = factory_.job_.rank_at({first->peer});
    Steps::Regions regions;
    if (first->sends) {
        for (const Event* event = first; event != end; ++event) {
            const Unit& unit = units_[event->unit];
            Steps::append(regions, unit.held.known ? unit.held.buffer : unit.source, unit.block);
        }
        steps_.send(peer, regions);
        return;
    }
    std::vector<Combine> combine;
    for (const Event* event = first; event != end; ++event) {
        Unit& unit = units_[event->unit];
        Steps::append(regions, take_in(unit, first->peer, combine), unit.block);
    }
    steps_.recv(peer, regions);
    for (const Combine& some : combine) steps_.reduce(some.operation, some.left, some.right, some.target);
}

std::uint64_t OwnProgram::balance() const {
    std::uint64_t sum = 0;
    for (const Event& event : events_) {
        const std::int64_t block = units_[event.unit].block;
        const std::array<std::int64_t, 5> message{event.stage, event.sends ? me_ : event.peer,
                                                  event.sends ? event.peer : me_, block,
                                                  bytes_of_stripe(composition_, factory_.factoring_.stripes, block)};
        std::uint64_t hash = base::fnv1a_start;
        base::hash_append(hash, {reinterpret_cast<const char*>(message.data()), sizeof message});
        sum += event.sends ? hash : -hash;
    }
    return sum;
}

Program OwnProgram::make() {
    collect();
    const std::int32_t stages = factory_.router_.stages();
    const auto phases_until = [&](std::int32_t phase) {
        while (phase_ < phase) begin_phase(++phase_);
    };
    for (std::size_t i = 0; i < events_.size();) {
        const Event& event = events_[i];
        phases_until(event.stage / stages);
        std::string name = factory_.router_.stage_name(event.stage % stages);
        if (composition_.phases() > 1) name = base::cat("phase ", phase_ + 1, ": ", name);
        steps_.stage(event.stage, name);
        std::size_t end = i;
        while (end < events_.size() && events_[end].stage == event.stage && events_[end].sends == event.sends &&
               events_[end].peer == event.peer)
            ++end;
        exchange(events_.data() + i, events_.data() + end);
        i = end;
    }
    phases_until(composition_.phases() - 1);
    return steps_.finish(rank_, composition_.blocks() * factory_.factoring_.stripes, factory_.factoring_.pipeline);
}

}  // namespace palmette::compose
