// What an error says.
#pragma once

#include <string>

#include "palmette/base/error.hpp"

namespace palmette::test {

/// The text of the base::Error that `call` throws, or "no error".
template <class Call>
std::string error_of(const Call& call) {
    try {
        call();
    } catch (const base::Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace palmette::test
