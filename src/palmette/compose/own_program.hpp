// Projects a composition onto one rank: its program, from the primitives that concern it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "palmette/compose/factor.hpp"
#include "palmette/compose/steps.hpp"

namespace palmette::compose {

/// First all messages of the rank are collected, primitive by primitive; then they are coalesced by stage and peer, and
/// turned into steps that wait for earlier steps on the same memory. Deadlock-free: a message waits only for messages
/// of earlier stages, and on the receiver's side for those of the same stage that precede it in one global order.
class OwnProgram {
  public:
    OwnProgram(const Factory& factory, Rank rank);
    Program make();
    /// Factory::program's; after `make`.
    std::uint64_t balance() const;

  private:
    /// Buffer that holds a unit's block.
    struct Place {
        Buffer buffer = Buffer::send;
        bool known = false;
    };
    /// One primitive's work on one block of the plan, as far as this rank takes part.
    struct Unit {
        std::int64_t block = 0;
        std::int32_t phase = 0;
        bool reduces = false, root = false, other = false, ordered = false;
        std::uint8_t operation = 0;
        Buffer source = Buffer::send, target = Buffer::recv;
        std::int32_t arrivals = 0, arrived = 0;
        Place held;                                          ///< what is forwarded
        std::vector<Buffer> landing;                         ///< layers allocated for partial results
        std::size_t landed = 0;                              ///< how often one other than the accumulator was used
        std::vector<std::pair<std::int32_t, Buffer>> parts;  ///< ordered: contributions that have arrived: rank, buffer
    };
    struct Event {
        std::int32_t stage;  ///< counted across all phases
        bool sends;
        std::int32_t peer;
        std::uint32_t unit;
    };
    /// Blocks that one reduce step combines after a message: of one operation, and of the same `round` of a unit's
    /// combines.
    struct Combine {
        std::uint8_t operation;
        std::size_t round;
        Steps::Regions left, right, target;
    };

    void collect();
    void concern(std::int32_t phase, const Primitive& primitive);
    void check_conflicts(std::int32_t phase, const Primitive& primitive, bool root, bool other);
    void begin_phase(std::int32_t phase);
    void exchange(const Event* first, const Event* end);
    Buffer take_in(Unit& unit, std::int32_t peer, std::vector<Combine>& combine);
    void fold(Unit& unit, std::vector<Combine>& combine);
    static void add(std::vector<Combine>& list, std::size_t round, const Unit& unit, Buffer left, Buffer right,
                    Buffer target);
    /// A layer of scratch in which no other unit of this phase has the block.
    Buffer new_layer(std::int64_t block);
    Buffer accumulator(Unit& unit);

    const Factory& factory_;
    const Composition& composition_;
    Rank rank_;
    std::int32_t me_;
    std::vector<Unit> units_;
    std::vector<Event> events_;
    std::vector<std::uint32_t> own_;  ///< units of which this rank is both root and among the others
    Steps steps_;
    std::unordered_map<std::int64_t, std::size_t> layers_;  ///< allocated in this phase, by block
    std::int32_t phase_ = -1;
    std::size_t next_own_ = 0;

    struct Touch {
        std::int64_t primitive;
        bool writes;
    };
    std::unordered_map<std::int64_t, Touch> touched_;
    std::int32_t touched_phase_ = -1;
    std::int64_t primitive_ = -1;
    std::vector<Edge> edges_;
};

}  // namespace palmette::compose
