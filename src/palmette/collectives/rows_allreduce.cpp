// The algorithms of allreduce.
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> allreduce_rows() { return {}; }

}  // namespace palmette::collectives
