// The algorithms of reduce_scatter.
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> reduce_scatter_rows() { return {}; }

}  // namespace palmette::collectives
