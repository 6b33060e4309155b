// Why a table decides as it does: for each row what keeps it from matching.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "palmette/select/table.hpp"

namespace palmette::select {

/// One row of the function's, looked at in its turn.
struct Look {
    std::size_t row = 0;
    std::string why_not;  ///< the first limit that fails, or why the algorithm refuses the job; empty: this row decides
    bool measurable = false;  ///< that limit is about links, of which a measurement might tell something else
};

/// The rows of the function in order, up to the one that decides or to the last. Agrees with Table::choose. Throws what
/// that throws.
std::vector<Look> looks(const Table& table, Function function, const Job& job, const plan::Request& request,
                        const Surroundings& surroundings = {});

}  // namespace palmette::select
