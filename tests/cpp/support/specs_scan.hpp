// Specifications of scan that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> scan_specs() { return {}; }

}  // namespace palmette::test
