// The chunks of one group in one daemon: where members' payloads go, in which order they are combined, and which
// results may be sent to whom. No sockets: whoever owns it moves the bytes.
//
// Memory is fixed when the group is made: `slots` chunks for each member and for results. A member may send chunk j
// only once it has been sent the result of chunk j - slots, so nothing is ever buffered beyond that, and a result's
// place is free again when the last member's next chunk has come.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "palmette/aggregate/frame.hpp"
#include "palmette/aggregate/messages.hpp"

namespace palmette::aggregate {

class Window {
  public:
    /// `inner`: results come from a daemon above. Throws std::bad_alloc.
    Window(unsigned members, const Shape& shape, bool only_sharp, bool inner);
    /// Bytes that it takes; saturates instead of wrapping around.
    static std::uint64_t bytes_of(unsigned members, const Shape& shape);

    /// Checks a DATA frame's header. Reason::none: the payload goes to `to`; else `why` says what is wrong with it.
    Reason accept(unsigned member, const Header& header, char*& to, Detail& why) noexcept;
    /// The payload is there. Combines what can be; false where a chunk was given by nobody, or by two.
    bool arrived(unsigned member, Detail& why) noexcept;

    std::uint64_t received(unsigned member) const { return members_[member].received; }
    /// Chunks that all members have sent, and that are combined.
    std::uint64_t combined() const { return combined_; }
    /// Chunks whose results may be sent to the members.
    std::uint64_t results() const { return inner_ ? from_above_ : combined_; }

    /// The next result for a member; false while there is none.
    bool next_result(unsigned member, Header& header, const char*& payload) noexcept;
    /// The member's next result has left the daemon.
    void result_sent(unsigned member) noexcept { ++members_[member].results_sent; }
    /// Whether all that was combined has been sent to all.
    bool drained() const;

    /// Members that haven't sent the first chunk that isn't combined, and the first of them.
    unsigned missing(unsigned& first) const;

    // Towards the daemon above.
    bool next_above(std::uint64_t chunk, Header& header, const char*& payload) noexcept;
    bool place_from_above(const Header& header, char*& to) noexcept;
    void arrived_from_above(const Header& header) noexcept;

  private:
    struct Member {
        std::uint64_t received = 0;
        std::uint64_t results_sent = 0;
    };
    struct Slot {
        Header first;  ///< header of the first frame that came for the slot
        unsigned begun = 0;
        unsigned givers = 0;
        unsigned giver = 0;
        bool wanted = false;
        Header result;
    };

    Slot& slot_of(std::uint64_t chunk) { return slots_[chunk % shape_.slots]; }
    char* place_of(unsigned row, std::uint64_t chunk) {
        return memory_.get() + (row * std::uint64_t{shape_.slots} + chunk % shape_.slots) * shape_.chunk_bytes;
    }
    char* result_of(std::uint64_t chunk) { return place_of(static_cast<unsigned>(members_.size()), chunk); }
    char& wants_of(unsigned member, std::uint64_t chunk) {
        return wants_[member * std::uint64_t{shape_.slots} + chunk % shape_.slots];
    }
    Reason check(unsigned member, const Header& header, Detail& why) noexcept;
    void combine_one(unsigned member) noexcept;
    bool finish(Detail& why) noexcept;

    Shape shape_;
    bool only_sharp_;
    bool inner_;
    std::vector<Member> members_;
    std::vector<Slot> slots_;
    std::vector<char> wants_;  ///< by member and slot
    std::unique_ptr<char[]> memory_;
    std::uint64_t combined_ = 0;
    unsigned next_ = 0;  ///< member to be combined next into chunk `combined_`
    std::uint64_t from_above_ = 0;
};

}  // namespace palmette::aggregate
