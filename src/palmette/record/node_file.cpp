#include "palmette/record/node_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#if defined(PALMETTE_ABI_SMPI)
#include <simgrid/host.h>
#endif

#include "palmette/trace/format.hpp"

namespace palmette::record {

std::string setting(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

#if defined(PALMETTE_ABI_SMPI)
std::string host_name() { return sg_host_self_get_name(); }
#else
std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}
#endif

void make_folder(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
        ::mkdir(path.substr(0, slash).c_str(), 0777);
    ::mkdir(path.c_str(), 0777);
}

namespace {

std::string first_line_of(const char* path) {
    std::array<char, 64> text{};
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return "";
    const ssize_t bytes = ::read(file, text.data(), text.size() - 1);
    ::close(file);
    std::string line(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return line.substr(0, line.find('\n'));
}

std::string boot_id() { return simulated ? "simulated" : first_line_of("/proc/sys/kernel/random/boot_id"); }

}  // namespace

std::vector<std::string> names_of_node() {
    constexpr std::size_t telling = 8;
    const std::string host = host_name();
    return {host, host + "-" + boot_id().substr(0, telling)};
}

std::uint64_t pid_namespace() {
    struct stat status{};
    return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::uint64_t claim_section(int file, std::uint64_t bytes) {
    if (flock(file, LOCK_EX) != 0) return 0;
    std::uint64_t offset = 0;
    struct stat status{};
    trace::FileHeader header{};
    constexpr std::uint64_t header_bytes = trace::section_alignment;
    if (fstat(file, &status) == 0) {
        std::uint64_t end = header_bytes;
        bool good = true;
        if (status.st_size == 0) {
            header.magic = trace::file_magic;
            header.version = trace::format_version;
            header.header_bytes = static_cast<std::uint32_t>(header_bytes);
            put_text(header.host, host_name());
            put_text(header.boot_id, boot_id());
        } else {
            good = pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                   header.magic == trace::file_magic && header.version == trace::format_version;
            end = header.end.load();
            if (!good) errno = EEXIST;
            // Its clock is another one, and so may be what it sees of a shared mapping.
            if (good && boot_id() != header.boot_id.data()) {
                good = false;
                errno = EXDEV;
            }
        }
        header.end.store(end + bytes);
        // The section's length stands in it from now on, so that one whose process dies here can be passed over.
        if (good && ftruncate(file, static_cast<off_t>(end + bytes)) == 0 &&
            pwrite(file, &bytes, sizeof bytes, static_cast<off_t>(end + offsetof(trace::SectionHeader, bytes))) ==
                static_cast<ssize_t>(sizeof bytes) &&
            pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header))
            offset = end;
    }
    const int error = errno;
    flock(file, LOCK_UN);
    errno = error;
    return offset;
}

}  // namespace palmette::record
