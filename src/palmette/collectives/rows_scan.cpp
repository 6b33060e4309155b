// The algorithms of scan.
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/scan_rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> scan_rows() {
    std::vector<Algorithm> out;
    for (const ScanMethod& method : {scan_linear, scan_recursive_doubling, scan_all, scan_leaders, scan_grouped})
        out.push_back(method.row(Collective::scan));
    return out;
}

}  // namespace palmette::collectives
