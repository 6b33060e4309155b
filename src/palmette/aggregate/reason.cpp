#include "palmette/aggregate/reason.hpp"

#include <cstdarg>
#include <cstdio>

namespace palmette::aggregate {

void Detail::set(const char* format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
}

}  // namespace palmette::aggregate
