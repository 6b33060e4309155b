// Specifications of exscan that every test of algorithms goes through.
#pragma once

#include <string>
#include <vector>

namespace palmette::test {

inline std::vector<std::string> exscan_specs() {
    return {
        "linear",
        "linear:segment=20",
        "recursive_doubling",
        "recursive_doubling:segment=24",
        "all",
        "leaders",
        "leaders:between=linear",
        "leaders:level=leaf,between=recursive_doubling",
        "grouped",
        "grouped:inside=all,segment=20",
        "grouped:level=leaf,inside=linear",
    };
}

}  // namespace palmette::test
