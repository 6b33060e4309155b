// Specifications of exscan that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

#include "support/specs_scan.hpp"

namespace palmette::test {

inline std::vector<std::string> exscan_specs() { return scan_specs(); }

}  // namespace palmette::test
