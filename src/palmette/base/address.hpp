// Where a daemon listens: HOST:PORT.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace palmette::base {

struct Address {
    std::string host;
    std::uint16_t port = 0;

    /// "host:port" or "[address of IPv6]:port". Throws base::Error that names the text.
    static Address read(std::string_view text);
    std::string text() const;
};

}  // namespace palmette::base
