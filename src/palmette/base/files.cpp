#include "palmette/base/files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "palmette/base/error.hpp"

namespace palmette::base {
namespace {

bool write(const std::string& path, std::string_view text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    return static_cast<bool>(out.flush());
}

/// Larger files are no input of ours: listings of the largest fabrics are a tenth of it.
constexpr std::size_t most_bytes = std::size_t{1} << 28;
constexpr int pipe_wait_ms = 1000;

/// A descriptor that is closed at the end.
struct Descriptor {
    explicit Descriptor(const std::string& path) : number(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number >= 0) close(number);
    }
    int number;
};

/// What keeps an open file from being read, or nothing.
const char* unreadable(const Descriptor& file, const std::string& path) {
    struct stat status{};
    if (file.number < 0 || fstat(file.number, &status) != 0) return std::strerror(errno);
    if (S_ISDIR(status.st_mode)) return std::strerror(EISDIR);
    if (S_ISREG(status.st_mode))
        return static_cast<std::size_t>(status.st_size) > most_bytes ? "larger than 256 MB" : nullptr;
    if (path == "/dev/null") return nullptr;
    if (!S_ISFIFO(status.st_mode)) return "neither a file nor a pipe";
    pollfd waiting{file.number, POLLIN, 0};
    return poll(&waiting, 1, pipe_wait_ms) > 0 ? nullptr : "a pipe that nothing writes to";
}

}  // namespace

std::string read_file(const std::string& path) {
    // Opening a pipe that nothing writes to would wait for ever.
    const Descriptor file(path);
    if (const char* reason = unreadable(file, path))
        fail(path, ": can't be read (", reason, "); check the path and its permissions");
    const int flags = fcntl(file.number, F_GETFL);
    fcntl(file.number, F_SETFL, flags & ~O_NONBLOCK);
    std::string text;
    std::array<char, 65536> part{};
    while (true) {
        const ssize_t got = read(file.number, part.data(), part.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(path, ": can't be read (", std::strerror(errno), "); check the path and its permissions");
        if (got == 0) return text;
        text.append(part.data(), static_cast<std::size_t>(got));
        if (text.size() > most_bytes) fail(path, ": can't be read (larger than 256 MB); give another file");
    }
}

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
