// Collects the arguments of a call that PALMETTE_CHECK compares.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "palmette/runtime/check/check.hpp"
#include "palmette/runtime/data/call_arguments.hpp"

namespace palmette::runtime {

/// The calling rank and the size of the communicator.
struct Caller {
    int rank = 0;
    int size = 1;
};

/// No argument is trusted: one that is invalid by itself becomes the call's fault.
CheckedCall checked_call(Caller caller, const CallArguments& arguments);

}  // namespace palmette::runtime
