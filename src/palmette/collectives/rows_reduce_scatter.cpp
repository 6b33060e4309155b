// The algorithms of reduce_scatter.
#include "palmette/collectives/reduce_scatter_rows.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> reduce_scatter_rows() {
    return {reduce_scatter_ring, reduce_scatter_recursive_halving, reduce_scatter_pairwise, reduce_scatter_direct,
            reduce_scatter_leaders};
}

}  // namespace palmette::collectives
