#include "palmette/record/node_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <utility>
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

/// One process of the node at a time changes the file. Not every file system has flock (Lustre without its option), or
/// locks of ranges; a file that only one process can make is left to those.
class FileLock {
  public:
    FileLock(int file, std::string path) : file_(file), path_(std::move(path) + ".lock") {
        while (!(held_ = flock(file_, LOCK_EX) == 0) && errno == EINTR) {
        }
        if (held_) return;
        struct flock range{};
        range.l_type = F_WRLCK;
        range.l_whence = SEEK_SET;
        while (!(held_ = fcntl(file_, F_OFD_SETLKW, &range) == 0) && errno == EINTR) {
        }
        if (held_) return;
        made_ = held_ = make();
    }
    ~FileLock() {
        const int error = errno;
        if (made_)
            ::unlink(path_.c_str());
        else if (held_)
            unlock();
        errno = error;
    }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;
    explicit operator bool() const { return held_; }

  private:
    bool make() const {
        // Held for the time of a few system calls: whoever holds it longer is dead.
        constexpr int tries = 10'000;
        constexpr useconds_t pause_us = 1000;
        for (int i = 0; i < tries; ++i) {
            const int lock = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
            if (lock >= 0) {
                ::close(lock);
                return true;
            }
            if (errno != EEXIST) return false;
            usleep(pause_us);
        }
        return false;
    }
    void unlock() const {
        struct flock range{};
        range.l_type = F_UNLCK;
        range.l_whence = SEEK_SET;
        if (flock(file_, LOCK_UN) != 0) fcntl(file_, F_OFD_SETLK, &range);
    }

    int file_;
    std::string path_;
    bool held_ = false;
    bool made_ = false;
};

/// Whether `path` still names the open file, which a process that couldn't record may have removed.
bool names(const std::string& path, int file) {
    struct stat there{};
    struct stat open{};
    return stat(path.c_str(), &there) == 0 && fstat(file, &open) == 0 && there.st_dev == open.st_dev &&
           there.st_ino == open.st_ino;
}

constexpr std::uint64_t header_bytes = trace::section_alignment;

/// Reads the header, or makes one for a file that is new. False with errno where the file is another one's.
bool read_header(int file, std::uint64_t size, trace::FileHeader& header) {
    if (size == 0) {
        header.magic = trace::file_magic;
        header.version = trace::format_version;
        header.header_bytes = static_cast<std::uint32_t>(header_bytes);
        header.end.store(header_bytes);
        put_text(header.host, host_name());
        put_text(header.boot_id, boot_id());
        return true;
    }
    if (pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
        header.magic == trace::file_magic && header.version == trace::format_version) {
        // Another kernel's clock is another one, and so may be what it sees of a shared mapping.
        const bool is_ours = boot_id() == header.boot_id.data();
        errno = EXDEV;
        return is_ours;
    }
    errno = EEXIST;
    return false;
}

bool write_all(int file, const void* from, std::size_t bytes, std::uint64_t at) {
    return pwrite(file, from, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
}

void remove_empty(int file, const std::string& path) {
    const int error = errno;
    struct stat status{};
    if (fstat(file, &status) == 0 && status.st_size == 0) ::unlink(path.c_str());
    errno = error;
}

/// With the lock held: what others have begun stays as it is.
MappedSection begin_section(int file, const std::string& path, std::uint64_t bytes) {
    struct stat status{};
    trace::FileHeader header{};
    if (fstat(file, &status) != 0) return {};
    const auto size = static_cast<std::uint64_t>(status.st_size);
    void* memory = MAP_FAILED;
    std::uint64_t offset = 0;
    if (read_header(file, size, header)) {
        offset = header.end.load();
        header.end.store(offset + bytes);
        // The section's length stands in it from now on, so that one whose process dies here can be passed over.
        if (ftruncate(file, static_cast<off_t>(offset + bytes)) == 0 &&
            write_all(file, &bytes, sizeof bytes, offset + offsetof(trace::SectionHeader, bytes)))
            memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
        if (memory != MAP_FAILED && !write_all(file, &header, sizeof header, 0)) {
            munmap(memory, bytes);
            memory = MAP_FAILED;
        }
    }
    if (memory != MAP_FAILED) return {memory, offset == header_bytes};
    const int error = errno;
    if (size == 0)
        ::unlink(path.c_str());
    else if (offset != 0 && ftruncate(file, static_cast<off_t>(size)) != 0) {
        // What stands behind the end of the sections is read by nobody.
    }
    errno = error;
    return {};
}

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

MappedSection map_section(const std::string& path, std::uint64_t bytes) {
    constexpr int tries = 1000;
    for (int i = 0; i < tries; ++i) {
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (file < 0) return {};
        bool again = false;
        MappedSection made;
        {
            const FileLock lock(file, path);
            again = lock && !names(path, file);
            if (!lock)
                remove_empty(file, path);
            else if (!again)
                made = begin_section(file, path, bytes);
        }
        const int error = errno;
        ::close(file);
        errno = error;
        if (!again) return made;
    }
    errno = EAGAIN;
    return {};
}

bool speaks_for_node() {
    for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
        if (const std::string local = setting(name); !local.empty()) return local == "0";
    return true;
}

}  // namespace palmette::record
