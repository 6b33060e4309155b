// How the members of a group of switches reach each other without it.
#pragma once

#include "palmette/aggregate/reason.hpp"

namespace palmette::aggregate::sharp {

/// Members call bcast, barrier and gather in the same order; they return 0, or another number where a member has
/// aborted or messages fail. So a member whose part of a library's call has failed early leaves nobody waiting.
class OutOfBand {
  public:
    OutOfBand() = default;
    OutOfBand(const OutOfBand&) = delete;
    OutOfBand& operator=(const OutOfBand&) = delete;
    virtual ~OutOfBand() = default;

    virtual int bcast(void* buffer, int bytes, int root) noexcept = 0;
    virtual int barrier() noexcept = 0;
    virtual int gather(int root, const void* from, void* to, int bytes) noexcept = 0;

    /// Tells all other members that this one goes no further, and why. Waits for nobody.
    virtual void abort(Reason reason) noexcept = 0;
    struct AbortNotice {
        int member = -1;  ///< -1: nobody has
        Reason reason = Reason::none;
    };
    virtual AbortNotice aborted() noexcept = 0;
    /// Collective, also after abort: receives what is still under way, and forgets who has aborted. False where
    /// messages fail.
    virtual bool settle() noexcept = 0;
    /// Whether all later calls fail at once, until the next settle().
    virtual void refuse() noexcept = 0;
    /// While a member waits: other work of the process goes on.
    virtual void idle() noexcept = 0;
};

/// Collective: the smallest of all members' numbers; nothing below -1000 is one.
inline constexpr int no_number = -1000;
int smallest(OutOfBand& out_of_band, int rank, int size, int mine) noexcept;

}  // namespace palmette::aggregate::sharp
