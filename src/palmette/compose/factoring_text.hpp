// Parser of a factoring's text form, used where there is no command line.
#pragma once

#include <string>
#include <string_view>

#include "palmette/compose/factor.hpp"

namespace palmette::compose {

struct NamedFactoring {
    std::string hierarchy;  ///< empty: the machine's own levels
    Factoring factoring;
};

/// "hierarchy=3:8 method=ring,tree.2 stripes=4 pipeline=16 landings=2", in any order, each or none. Throws base::Error
/// that names the word.
NamedFactoring parse_factoring(std::string_view text);

}  // namespace palmette::compose
