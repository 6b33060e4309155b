// Explains a decision of the table: for each row, why it does or doesn't match a call.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "palmette/select/table.hpp"

namespace palmette::select {

/// Result of matching one row against a call.
struct RowMatch {
    std::size_t row = 0;
    std::string mismatch;     ///< first failing limit, or why the algorithm refuses; empty: the row matches and decides
    bool measurable = false;  ///< the failing limit depends on link latency or load, which a measurement may change
};

/// Matches the rows of the function in order, up to the one that decides or to the last. Consistent with Table::choose;
/// throws the same errors.
std::vector<RowMatch> match_rows(const Table& table, Function function, const Job& job, const plan::Request& request,
                                 const Surroundings& surroundings = {});

}  // namespace palmette::select
