#include "palmette/runtime/transport/sharing.hpp"

#include <array>

#include "palmette/node/single_copy_trial.hpp"
#include "palmette/runtime/transport/agreement.hpp"
#include "palmette/runtime/transport/simulated_memory.hpp"

namespace palmette::runtime {
namespace {

constexpr int tag = 12;

/// The ranks of one node, as one of them sees it.
class Node {
  public:
    Node(MPI_Comm comm, const topology::Job& job, int rank) : comm_(comm), job_(job) {
        const topology::Partition& nodes = job.nodes().groups;
        const std::int32_t position = job.position_of(topology::Rank{rank}).value;
        const std::int32_t group = nodes.group_of(position);
        first_ = nodes.first(group);
        members_ = nodes.size_of(group);
        me_ = position - first_;
    }
    int members() const { return members_; }

    /// The first member creates a segment and sends its name to the others.
    std::unique_ptr<node::SharedNode> open(const node::SharedShape& shape, node::SharedSegment::Backing backing,
                                           std::string& why) {
        std::array<char, node::SharedSegment::name_capacity + 1> name{};
        const int length = static_cast<int>(name.size());
        if (me_ == 0) {
            std::string made;
            auto node = node::SharedNode::create(members_, 0, shape, backing, made, why);
            // An empty name signals that it failed.
            if (node) made.copy(name.data(), node::SharedSegment::name_capacity);
            for (int m = 1; m < members_; ++m)
                if (PMPI_Send(name.data(), length, MPI_CHAR, rank_of(m), tag, comm_) != MPI_SUCCESS) return nullptr;
            return node;
        }
        if (PMPI_Recv(name.data(), length, MPI_CHAR, rank_of(0), tag, comm_, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return nullptr;
        if (name[0] == '\0') {
            why = "the node's first rank could not make shared memory";
            return nullptr;
        }
        return node::SharedNode::attach(name.data(), members_, me_, why);
    }

  private:
    int rank_of(int member) const { return job_.rank_at({first_ + member}).value; }

    MPI_Comm comm_;
    const topology::Job& job_;
    std::int32_t first_ = 0;
    int members_ = 1;
    int me_ = 0;
};

}  // namespace

Sharing share(MPI_Comm comm, const topology::Job& job, int rank, const node::SharedShape& shape) {
    Sharing out;
    Node node(comm, job, rank);
    for (const auto backing : {node::SharedSegment::Backing::memfd, node::SharedSegment::Backing::named}) {
        if (node.members() > 1) out.node = node.open(shape, backing, out.why_not);
        const bool mine = node.members() == 1 || out.node != nullptr;
        const auto all = all_true(comm, mine);
        if (!all) return {};
        if (*all) {
            out.works = true;
            break;
        }
        out.node.reset();
    }
    if (out.node && out.works) out.node->all_joined();
    // After this all ranks have tried to read the others' memory.
    if (out.works && !all_true(comm, true)) out.works = false;
    if (out.works && out.node) out.single_copy = out.node->single_copy().value_or(false);
#if defined(PALMETTE_ABI_SMPI)
    if (out.single_copy) out.single_copy_pays_from = share_simulated(*out.node);
#else
    if (out.single_copy) out.single_copy_pays_from = node::single_copy_pays_from(*out.node);
#endif
    return out;
}

}  // namespace palmette::runtime
