#include "palmette/node/spin_wait.hpp"

namespace palmette::runtime {
namespace {

using Clock = YieldBackoff::Clock;
using std::chrono::microseconds;

/// How long before we sleep as well: long with a core to ourselves, where nobody gains by it, short where others work.
constexpr microseconds awake_alone{2000};
constexpr microseconds awake_crowded{200};
constexpr std::uint32_t yields_between_progress = 4;

}  // namespace

bool SpinWait::give_way() {
    if (yields_ == 0) begin_ = Clock::now();
    const Clock::time_point now = way_.yield();
    const bool progress = ++yields_ % yields_between_progress == 0 || !crowded();
    if (now - begin_ < (crowded() ? awake_crowded : awake_alone)) return progress;
    YieldBackoff::nap(now - begin_);
    return true;
}

}  // namespace palmette::runtime
