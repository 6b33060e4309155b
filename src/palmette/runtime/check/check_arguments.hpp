// What PALMETTE_CHECK compares of a call's arguments.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "palmette/runtime/check/check.hpp"
#include "palmette/runtime/data/call_arguments.hpp"

namespace palmette::runtime {

/// The rank that calls, in the communicator that it passes.
struct Caller {
    int rank = 0;
    int size = 1;
};

/// None of the arguments is trusted: what is wrong by itself becomes the call's fault.
CheckedCall checked_call(Caller caller, const CallArguments& arguments);

}  // namespace palmette::runtime
