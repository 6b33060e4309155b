// The algorithms of alltoall.
#include "palmette/collectives/alltoall_rows.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> alltoall_rows() {
    return {alltoall_linear, alltoall_pairwise, alltoall_bruck, alltoall_node_aware, alltoall_leaders};
}

}  // namespace palmette::collectives
