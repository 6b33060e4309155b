// Specifications of reduce scatter that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> reduce_scatter_specs() { return {}; }

}  // namespace palmette::test
