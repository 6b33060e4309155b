#include "palmette/node/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "palmette/base/text.hpp"

namespace palmette::node {
namespace {

#ifndef MFD_NOEXEC_SEAL
constexpr unsigned MFD_NOEXEC_SEAL = 8;  // Linux 6.3; older kernels answer EINVAL
#endif

std::string what(std::string_view call, std::string_view of) {
    return base::cat(call, of.empty() ? "" : " ", of, ": ", std::strerror(errno));
}

std::string hex(std::uint64_t word) {
    char text[17];
    const auto end = std::to_chars(text, text + sizeof text, word, 16).ptr;
    return {text, end};
}

template <class Integer>
bool parse(std::string_view text, Integer& out, int radix) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, radix);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// "memfd:PROCESS:DESCRIPTOR:TOKEN" or "named:NAME:TOKEN".
struct Address {
    std::string path;  ///< in /proc, or of shm_open
    bool named = false;
    std::uint64_t token = 0;
};

bool parse(std::string_view name, Address& out) {
    const std::vector<std::string_view> parts = base::split(name, ':');
    std::int64_t process = 0;
    std::int64_t descriptor = 0;
    if (parts.size() == 4 && parts[0] == "memfd" && parse(parts[1], process, 10) && parse(parts[2], descriptor, 10)) {
        out.path = base::cat("/proc/", process, "/fd/", descriptor);
        return parse(parts[3], out.token, 16);
    }
    if (parts.size() != 3 || parts[0] != "named" || parts[1].find('/') != std::string_view::npos) return false;
    out.path = base::cat("/", parts[1]);
    out.named = true;
    return parse(parts[2], out.token, 16);
}

}  // namespace

std::uint64_t random_word() {
    std::uint64_t word = 0;
    if (getrandom(&word, sizeof word, 0) == sizeof word) return word;
    // Without a source of randomness, time and process number still distinguish the segments of one node.
    const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
    return static_cast<std::uint64_t>(ticks) * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(getpid());
}

bool SharedSegment::map(std::int64_t bytes, std::string& why) {
    void* base = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (base == MAP_FAILED) {
        why = what("mmap of shared memory", base::cat("(", bytes, " bytes)"));
        return false;
    }
    base_ = static_cast<char*>(base);
    bytes_ = bytes;
    return true;
}

std::unique_ptr<SharedSegment> SharedSegment::create(int members, const SharedShape& shape, Backing backing,
                                                     std::string& name, std::string& why) {
    const std::int64_t ring = members > 0 ? shape.ring_for(members) : 0;
    if (ring == 0) {
        why = base::cat("shared memory of ", shape.limit_bytes, " bytes is too little for ", members,
                        " ranks: raise its limit");
        return nullptr;
    }
    std::unique_ptr<SharedSegment> out(new SharedSegment);
    const std::int64_t bytes = SharedShape::segment_bytes(members, ring);
    const std::uint64_t token = random_word();
    if (backing == Backing::memfd) {
        out->descriptor_ = memfd_create("palmette", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (out->descriptor_ < 0 && errno == EINVAL)
            out->descriptor_ = memfd_create("palmette", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (out->descriptor_ < 0 || ftruncate(out->descriptor_, bytes) != 0) {
            why = what("memfd_create", "");
            return nullptr;
        }
        // Seals: a process that truncated the segment would kill the others with SIGBUS.
        if (fcntl(out->descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
            why = what("sealing shared memory", "");
            return nullptr;
        }
        name = base::cat("memfd:", getpid(), ":", out->descriptor_, ":", hex(token));
    } else {
        const std::string plain = base::cat("palmette-", hex(random_word()));
        const std::string path = "/" + plain;
        out->descriptor_ = shm_open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (out->descriptor_ < 0) {
            why = what("shm_open", path);
            return nullptr;
        }
        out->unlink_ = path;
        // /dev/shm is often small in containers. Allocating now gives an error that can be handled; a later page fault
        // gives SIGBUS.
        if (const int error = posix_fallocate(out->descriptor_, 0, bytes); error != 0) {
            errno = error;
            why = what("allocating in /dev/shm", base::cat("(", bytes, " bytes)"));
            return nullptr;
        }
        name = base::cat("named:", plain, ":", hex(token));
    }
    if (!out->map(bytes, why)) return nullptr;
    new (out->base_) SharedHeader{SharedHeader::magic_word, token, members, ring};
    return out;
}

std::unique_ptr<SharedSegment> SharedSegment::open(const std::string& name, int members, std::string& why) {
    Address address;
    if (!parse(name, address)) {
        why = base::cat("`", name, "` names no shared memory");
        return nullptr;
    }
    std::unique_ptr<SharedSegment> out(new SharedSegment);
    out->descriptor_ = address.named ? shm_open(address.path.c_str(), O_RDWR | O_CLOEXEC, 0)
                                     : ::open(address.path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (out->descriptor_ < 0) {
        why = what("opening shared memory", address.path);
        return nullptr;
    }
    struct stat status{};
    if (fstat(out->descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < shared_page) {
        why = base::cat(address.path, " is no shared memory of palmette");
        return nullptr;
    }
    if (!out->map(status.st_size, why)) return nullptr;
    const SharedHeader& header = out->header();
    if (header.magic != SharedHeader::magic_word)
        why = base::cat(address.path, " is no shared memory of palmette, or of another version");
    else if (header.token != address.token)
        why = base::cat(address.path, " is another shared memory than `", name, "`");
    else if (header.members != members)
        why = base::cat(address.path, " is for ", header.members, " ranks, not for ", members);
    else if (header.ring_bytes <= 0 || header.ring_bytes > status.st_size ||
             SharedShape::segment_bytes(header.members, header.ring_bytes) != status.st_size)
        why = base::cat(address.path, " has ", status.st_size, " bytes, which contradicts its header");
    else {
        // Only the creator's descriptor is needed, for others to open.
        ::close(out->descriptor_);
        out->descriptor_ = -1;
        return out;
    }
    return nullptr;
}

void SharedSegment::forget_name() {
    if (!unlink_.empty()) shm_unlink(unlink_.c_str());
    unlink_.clear();
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
}

SharedSegment::~SharedSegment() {
    forget_name();
    if (base_) munmap(base_, static_cast<std::size_t>(bytes_));
}

}  // namespace palmette::node
