// The algorithms of allreduce.
#include "palmette/collectives/allreduce_rows.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> allreduce_rows() {
    return {allreduce_recursive_doubling,
            allreduce_recursive_multiplying,
            allreduce_all,
            allreduce_rabenseifner,
            allreduce_ring,
            allreduce_direct,
            allreduce_reduce_bcast,
            allreduce_leaders,
            allreduce_node_aware,
            allreduce_node_pieces};
}

}  // namespace palmette::collectives
