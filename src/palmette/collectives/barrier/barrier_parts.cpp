#include "palmette/collectives/barrier/barrier_parts.hpp"

#include <algorithm>

namespace palmette::collectives {

using plan::Blocks;
using plan::Buffer;

plan::StepId BarrierParts::receive(Rank from, std::int32_t tag) {
    return builder_.recv(from, tag, Buffer::recv, Blocks(), {});
}
void BarrierParts::notify(Rank to, std::int32_t tag, const Steps& ready) {
    builder_.send(to, tag, Buffer::send, Blocks(), ready);
}

BarrierParts::Steps BarrierParts::gather(const TreeNeighbours& near) {
    Steps entered;
    for (const TreeLink& child : near.children) {
        builder_.stage("gather to " + child.stage + " leader");
        const Rank peer = job_.rank_at(child.peer);
        entered.push_back(child.shared ? builder_.pull(peer, gather_tag, {0, 0}, Buffer::recv, Blocks(), {})
                                       : receive(peer, gather_tag));
    }
    if (!near.parent) return entered;
    builder_.stage("gather to " + near.parent->stage + " leader");
    if (near.parent->shared)
        builder_.expose(gather_tag, Buffer::send, {0, 0}, 1, entered);
    else
        notify(job_.rank_at(near.parent->peer), gather_tag, entered);
    return entered;
}

void BarrierParts::release(const TreeNeighbours& near, const Steps& ready) {
    Steps after = ready;
    if (near.parent) {
        builder_.stage("release by " + near.parent->stage + " leader");
        const Rank parent = job_.rank_at(near.parent->peer);
        after.push_back(near.parent->shared ? builder_.pull(parent, release_tag, {0, 0}, Buffer::recv, Blocks(), {})
                                            : receive(parent, release_tag));
    }
    for (const TreeLink& child : near.children) {
        if (child.shared) continue;
        builder_.stage("release by " + child.stage + " leader");
        notify(job_.rank_at(child.peer), release_tag, after);
    }
    const auto readers =
        std::count_if(near.children.begin(), near.children.end(), [](const TreeLink& child) { return child.shared; });
    if (readers == 0) return;
    builder_.stage("release inside of the node");
    builder_.expose(release_tag, Buffer::send, {0, 0}, static_cast<std::size_t>(readers), after);
}

}  // namespace palmette::collectives
