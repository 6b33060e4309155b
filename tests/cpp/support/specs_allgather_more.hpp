// Specifications of allgather more that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> allgather_more_specs() { return {}; }

}  // namespace palmette::test
