// Specifications of exscan that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> exscan_specs() { return {}; }

}  // namespace palmette::test
