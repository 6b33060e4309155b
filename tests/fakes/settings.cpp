#include "settings.hpp"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

namespace fake {
namespace {

constexpr const char* variable = "PALMETTE_FAKE_CUDA";

std::uint64_t number(const std::string& key, const std::string& value) {
    char* end = nullptr;
    const std::uint64_t parsed = std::strtoull(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0') refuse(variable, key + "=" + value + " isn't a number");
    return parsed;
}

}  // namespace

void refuse(const char* which, const std::string& what) {
    std::fprintf(stderr, "fake driver: %s: %s\n", which, what.c_str());
    std::abort();
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        if (end > at) parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

Failure read_failure(const char* which, const std::string& text) {
    const std::vector<std::string> parts = split(text, ':');
    Failure failure;
    char* end = nullptr;
    if (parts.size() == 2 || parts.size() == 3) {
        failure.function = parts[0];
        failure.call = parts[1] == "*" ? 0 : std::strtoull(parts[1].c_str(), &end, 10);
        if (parts[1] == "*" || (*end == '\0' && failure.call > 0)) {
            if (parts.size() == 3) failure.result = std::atoi(parts[2].c_str());
            return failure;
        }
    }
    refuse(which, "'" + text + "' isn't FUNCTION:NUMBER[:RESULT] or FUNCTION:*");
}

Settings Settings::read() {
    Settings s;
    const auto flag = [](bool& target) {
        return [&target](const std::string& value) { target = value.empty() || number("", value) != 0; };
    };
    const std::map<std::string, std::function<void(const std::string&)>> keys{
        {"seed", [&](const std::string& v) { s.seed = number("seed", v); }},
        {"devices", [&](const std::string& v) { s.devices = static_cast<int>(number("devices", v)); }},
        {"delay_us", [&](const std::string& v) { s.delay_us = static_cast<unsigned>(number("delay_us", v)); }},
        {"slow_query_us",
         [&](const std::string& v) { s.slow_query_us = static_cast<unsigned>(number("slow_query_us", v)); }},
        {"pool_says_host", [&](const std::string& v) { s.pool_says_host = number("pool_says_host", v) != 0; }},
        {"vmm_says_host", [&](const std::string& v) { s.vmm_says_host = number("vmm_says_host", v) != 0; }},
        {"fail", [&](const std::string& v) { s.failures.push_back(read_failure(variable, v)); }},
        {"lazy", flag(s.lazy)},
        {"not_initialized", flag(s.not_initialized)},
        {"no_ipc", flag(s.no_ipc)},
        {"no_ipc_open", flag(s.no_ipc_open)},
        {"no_peer", flag(s.no_peer)},
        {"no_pin", flag(s.no_pin)},
        {"old", flag(s.old)},
    };
    if (const char* text = std::getenv(variable)) s.text = text;
    for (const std::string& part : split(s.text, ',')) {
        const std::size_t equals = part.find('=');
        const auto known = keys.find(part.substr(0, equals));
        if (known == keys.end()) refuse(variable, "'" + part + "' isn't known");
        known->second(equals == std::string::npos ? "" : part.substr(equals + 1));
    }
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible == nullptr) {
        for (int device = 0; device < s.devices; ++device) s.visible.push_back(device);
        return s;
    }
    for (const std::string& part : split(visible, ',')) {
        const int device = std::atoi(part.c_str());
        if (device < 0 || device >= s.devices) break;  // so does the real one
        s.visible.push_back(device);
    }
    return s;
}

}  // namespace fake
