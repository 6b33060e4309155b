// Walks up a thread's stack, from a call to the callers of its function. What was met once is kept as a tree of return
// addresses, each with the rule that leads on (frame_rules.hpp), so that a walk along known frames is some loads for
// each. Nothing is read that can't be: on the thread's own stack bounds tell, on others (coroutines', signals') the
// kernel is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "palmette/base/frame_rules.hpp"

namespace palmette::base {

/// What is known of a call that has begun and not returned: to find out whether it is still on the stack.
struct Standing {
    std::uintptr_t frame = 0;  ///< the address of the called function's frame; 0: there is no such call
    std::uintptr_t return_address = 0;
    std::uintptr_t bottom = 0;  ///< the outermost stack pointer of its walk; 0: it wasn't walked
};

/// One thread's. Not to be shared.
class StackWalk {
  public:
    StackWalk();
    ~StackWalk();
    StackWalk(const StackWalk&) = delete;
    StackWalk& operator=(const StackWalk&) = delete;

    /// The calling thread's, made at its first use and kept until the thread ends.
    static StackWalk& own();

    struct Node;
    struct End {
        Node* node =
            nullptr;  ///< the outermost frame that was met; null: a frame isn't known, and none was to be learnt
        bool is_complete = false;    ///< the frame has no caller, or none that a table tells
        bool met = false;            ///< the other call's frame is the last of these
        bool passed_bottom = false;  ///< a frame met has the other walk's stack pointer
        std::uintptr_t sp = 0;       ///< stack pointer of `node`'s frame at its call
    };
    /// From a function with that frame (__builtin_frame_address(0)) that returns to `return_address`, over up to `most`
    /// frames. Ends without a node where a frame is new. 3 ns a frame, or 0.3 along the path that was met last from
    /// there if its frames have one size each.
    End follow(std::uintptr_t return_address, std::uintptr_t frame, std::size_t most);
    /// As follow(), but looks up frames that are new, a microsecond each. `other`: ends at its frame.
    End walk(std::uintptr_t return_address, std::uintptr_t frame, std::size_t most, const Standing* other = nullptr);

    /// Return addresses from the innermost up to the node's. How many there are, at most as many as fit.
    static std::size_t addresses(const Node* node, std::span<std::uintptr_t> out);
    /// A word that the caller keeps with a node; 0 at first.
    static std::uint32_t& word(Node* node);

    /// What became of a call that has begun, seen from a later one of the same thread.
    enum class Relation : std::uint8_t {
        inside,    ///< the later call is inside of the earlier one
        left,      ///< the earlier call's frame is gone: a jump or an exception went past it
        elsewhere  ///< the earlier call stands on another stack, a coroutine's
    };
    /// Microseconds at the first time of a place, tenths of one afterwards.
    Relation relation(const Standing& begun, std::uintptr_t return_address, std::uintptr_t frame);

    /// Forgets all frames: code may have gone, and other code come to its addresses.
    void forget();

  private:
    static constexpr std::size_t nodes_of_block = 256, most_blocks = 256;

    /// A path whose frames all have one size each: where its return addresses lie above the function's frame address.
    struct StraightPath {
        struct Slot {
            std::uintptr_t offset, address;
        };
        std::vector<Slot> slots;
        Node* end = nullptr;
        std::uintptr_t reach = 0;  ///< offset of its outermost stack pointer
    };
    std::unique_ptr<StraightPath> straight_to(Node* end) const;

    Node* find(const Node* parent, std::uintptr_t address) const;
    Node* add(Node* parent, std::uintptr_t address, bool after_signal);
    void place(Node* node);
    std::size_t slot_of(const Node* parent, std::uintptr_t address) const;
    bool can_read(std::uintptr_t address) {
        return address >= from_ && address % sizeof(std::uintptr_t) == 0 &&
               (address <= until_ || can_read_beyond(address));
    }
    bool can_read_beyond(std::uintptr_t address);
    bool step(const Node& node, std::uintptr_t sp, std::uintptr_t fp, std::uintptr_t& cfa, std::uintptr_t& ra_at,
              std::uintptr_t& caller_fp);
    bool is_own(std::uintptr_t address) const { return address >= low_ && address < high_; }
    bool may_be_own(std::uintptr_t address) const {
        return address < high_ && (address >= low_ || (address >= lowest_ && address > not_below_));
    }
    void begin_on(std::uintptr_t frame);
    void know_bounds();

    std::vector<std::unique_ptr<Node[]>> blocks_;
    std::size_t count_ = 0;                                 ///< number of nodes
    std::vector<Node*> places_ = std::vector<Node*>(1024);  ///< open addressing
    /// The thread's own stack from `low_` on, as far as it is known to be there, and where it may begin.
    std::uintptr_t low_ = 0, high_ = 0, lowest_ = 0, not_below_ = 0;
    bool bounds_known_ = false;
    /// What this walk may read.
    std::uintptr_t from_ = 0, until_ = 0, page_ = 0;
    std::uint64_t unloaded_ = 0;
};

}  // namespace palmette::base
