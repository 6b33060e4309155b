// PALMETTE_CHECK compares a communicator's collectives from the first one on.
#pragma once

#include "palmette/interpose/guard.hpp"
#include "palmette/runtime/serve/checked.hpp"

namespace palmette::interpose {

/// Returns `code`, of the function that has made it.
inline int made_checkable(int code, const MPI_Comm* made) {
    if (code == MPI_SUCCESS && runtime::checks())
        if (const Guard guard; guard.entered()) runtime::make_checkable(*made);
    return code;
}

}  // namespace palmette::interpose
