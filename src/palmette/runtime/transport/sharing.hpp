// Sets up intra-node shared memory.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "palmette/node/shared_node.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

/// What a communicator's ranks share, node by node.
struct Sharing {
    bool works = false;                              ///< on all nodes; the same on all ranks
    std::unique_ptr<node::SharedNode> node;          ///< null for a rank that is alone on its node
    bool single_copy = false;                        ///< of this node: its ranks may read each other's memory
    std::int64_t single_copy_pays_from = INT64_MAX;  ///< bytes from which on that is faster, as measured
    std::string why_not;
};

/// Collective over `comm`, whose ranks are those of `job`. Members of a node have the order of their positions.
Sharing share(MPI_Comm comm, const topology::Job& job, int rank, const node::SharedShape& shape);

}  // namespace palmette::runtime
