// More algorithms of allgather, gather and scatter.
#include "palmette/collectives/allgather_more.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> allgather_more_rows() {
    return {allgather_linear,      allgather_circulant, allgather_bine, allgather_locality_bruck,
            allgather_by_topology, gather_bine,         scatter_bine};
}

}  // namespace palmette::collectives
