#include "palmette/base/outer_calls.hpp"

namespace palmette::base {

void OuterCalls::look(const Standing& standing, Match& found) const {
    StackWalk& walk = StackWalk::own();
    for (std::uint32_t i = 0; i < most; ++i) {
        const Standing& begun = begun_[i].standing;
        if (begun.frame == 0) continue;
        switch (walk.relation(begun, standing.return_address, standing.frame)) {
            case StackWalk::Relation::inside:
                found.inside = true;
                break;
            case StackWalk::Relation::left:
                found.left |= 1U << i;
                break;
            case StackWalk::Relation::elsewhere:
                break;
        }
    }
}

}  // namespace palmette::base
