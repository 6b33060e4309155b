#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

std::vector<Algorithm> all_rows() {
#define PALMETTE_ROW(NAME) NAME,
    std::vector<Algorithm> all{PALMETTE_ALGORITHMS(PALMETTE_ROW)};
#undef PALMETTE_ROW
    // Rows of scan serve exscan, too: the two differ in a rank's own contribution only.
    const std::size_t listed = all.size();
    for (std::size_t i = 0; i < listed; ++i) {
        if (all[i].collective != Collective::scan) continue;
        all.push_back(all[i]);
        all.back().collective = Collective::exscan;
    }
    for (const Algorithm& row : shared_rows()) all.push_back(row);
    return all;
}

}  // namespace palmette::collectives
