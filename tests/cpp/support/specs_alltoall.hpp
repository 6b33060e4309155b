// Specifications of alltoall that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> alltoall_specs() { return {}; }

}  // namespace palmette::test
