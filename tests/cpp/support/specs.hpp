// Every algorithm with the specifications that its row has for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "palmette/base/text.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/program.hpp"

namespace palmette::test {

using NamedSpec = std::pair<plan::Collective, std::string>;

inline const std::vector<NamedSpec>& every_spec() {
    static const std::vector<NamedSpec> specs = [] {
        std::vector<NamedSpec> out;
        for (const collectives::Algorithm& row : collectives::algorithms())
            for (const std::string_view text : base::split(row.samples, ' ')) out.emplace_back(row.collective, text);
        return out;
    }();
    return specs;
}

}  // namespace palmette::test
