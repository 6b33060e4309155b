#include "palmette/base/files.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace palmette::base {
namespace {

bool write(const std::string& path, std::string_view text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    return static_cast<bool>(out.flush());
}

}  // namespace

bool replace_file(const std::string& path, std::string_view text) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    error.clear();  // that there is none yet is no error
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return write(path, text);
    // Through a link, which stays.
    const std::filesystem::path target =
        std::filesystem::exists(status) ? std::filesystem::canonical(path, error) : std::filesystem::path(path);
    if (error) return false;
    const std::string partial = target.string() + "." + std::to_string(getpid()) + ".partial";
    if (!write(partial, text)) {
        std::filesystem::remove(partial, error);
        return false;
    }
    if (std::filesystem::exists(status)) std::filesystem::permissions(partial, status.permissions(), error);
    std::filesystem::rename(partial, target, error);
    if (!error) return true;
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    return false;
}

}  // namespace palmette::base
