// Which of a thread's calls are the program's own, and which are made inside of another one: by the library that it
// calls, or by a callback. A counter of calls that are entered and left doesn't tell, since a program may leave a call
// by a jump (an error handler's longjmp), or go on with another coroutine meanwhile; the stack does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "palmette/base/stack_walk.hpp"

namespace palmette::base {

/// One thread's calls that have begun and not returned, one on each stack that it uses. Fit for a thread's variables:
/// nothing is allocated, and zero bytes are an empty one.
class OuterCalls {
  public:
    /// Calls on several stacks of one thread at a time: more are taken to be inside of another one.
    static constexpr std::uint32_t most = 8;

    struct Place {
        std::uint32_t slot = most;  ///< `most`: inside of another call
        std::uint64_t serial = 0;
        explicit operator bool() const { return slot != most; }
    };

    /// A call begins, of a function with that frame (__builtin_frame_address(0)). Costs a nanosecond where no other is
    /// there, else a walk. `left(slot)`: the call there has ended without returning.
    template <class OnLeft>
    Place begin(const void* return_address, const void* frame, OnLeft left) {
        Standing standing{reinterpret_cast<std::uintptr_t>(frame), reinterpret_cast<std::uintptr_t>(return_address), 0};
        std::uint32_t slot = 0;
        if (active_ != 0) [[unlikely]] {
            Match found;
            look(standing, found);
            for (std::uint32_t i = 0; i < most; ++i)
                if ((found.left >> i & 1U) != 0) {
                    left(i);
                    forget(i);
                }
            if (found.inside) return {};
            while (slot < most && begun_[slot].standing.frame != 0) ++slot;
            if (slot == most) return {};
        }
        ++active_;
        begun_[slot].standing = standing;
        return {slot, ++begun_[slot].serial};
    }
    Place begin(const void* return_address, const void* frame) {
        return begin(return_address, frame, [](std::uint32_t) {});
    }
    /// Whether it has neither returned nor been found to be left.
    bool holds(Place place) const {
        return begun_[place.slot].serial == place.serial && begun_[place.slot].standing.frame != 0;
    }
    void end(Place place) {
        if (holds(place)) forget(place.slot);
    }
    /// Where its walk has ended, which a later one is compared with.
    void ends_at(Place place, std::uintptr_t bottom) { begun_[place.slot].standing.bottom = bottom; }
    /// All are gone: in a forked child, whose parent's they were.
    void forget_all() {
        for (std::uint32_t i = 0; i < most; ++i)
            if (begun_[i].standing.frame != 0) forget(i);
    }
    /// Whether a call is there.
    bool any() const { return active_ != 0; }
    bool any(std::uint32_t slot) const { return begun_[slot].standing.frame != 0; }

  private:
    struct OuterCall {
        Standing standing;
        std::uint64_t serial = 0;
    };
    struct Match {
        std::uint32_t left = 0;  ///< a bit for each slot
        bool inside = false;
    };
    void look(const Standing& standing, Match& found) const;
    void forget(std::uint32_t slot) {
        begun_[slot].standing.frame = 0;
        --active_;
    }

    std::uint32_t active_ = 0;
    std::array<OuterCall, most> begun_{};
};

}  // namespace palmette::base
