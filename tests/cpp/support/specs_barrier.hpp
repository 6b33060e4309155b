// Specifications of barrier that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> barrier_specs() { return {}; }

}  // namespace palmette::test
