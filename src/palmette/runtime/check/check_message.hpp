// A checked call as one message. Independent of MPI.
#pragma once

#include <vector>

#include "palmette/runtime/check/check_verdict.hpp"

namespace palmette::runtime {

std::vector<char> pack(const CheckedCall& call);
/// What `pack` has made in a process of the same job.
CheckedCall unpack(const std::vector<char>& data);

}  // namespace palmette::runtime
