// The algorithms of exscan.
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/scan_rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> exscan_rows() {
    std::vector<Algorithm> out;
    for (const ScanMethod& method : {scan_linear, scan_recursive_doubling, scan_all, scan_leaders, scan_grouped})
        out.push_back(method.row(Collective::exscan));
    return out;
}

}  // namespace palmette::collectives
