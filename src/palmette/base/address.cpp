#include "palmette/base/address.hpp"

#include <charconv>
#include <system_error>

#include "palmette/base/error.hpp"

namespace palmette::base {

Address Address::read(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    Address address;
    unsigned port = 65536;
    if (colon != std::string_view::npos) {
        const std::string_view digits = text.substr(colon + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
        if (error != std::errc() || end != digits.data() + digits.size()) port = 65536;
    }
    if (port > 65535) fail("'", text, "': expected HOST:PORT, with a port up to 65535");
    std::string_view host = text.substr(0, colon);
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    address.host = host;
    address.port = static_cast<std::uint16_t>(port);
    return address;
}

std::string Address::text() const {
    return host.find(':') == std::string::npos ? cat(host, ":", port) : cat("[", host, "]:", port);
}

}  // namespace palmette::base
