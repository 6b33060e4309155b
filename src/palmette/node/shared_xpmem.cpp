#include "palmette/node/shared_xpmem.hpp"

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "palmette/base/text.hpp"

namespace palmette::node {
namespace {

// The library's interface, declared here because its header is missing wherever it isn't installed.
using SegmentId = std::int64_t;
using AccessId = std::int64_t;
struct RemoteAddress {
    AccessId access;
    off_t offset;
};
constexpr int read_write = 2;
constexpr int by_mode = 1;
constexpr std::size_t whole_memory = ~std::size_t{0};

struct Xpmem {
    SegmentId (*make)(void*, std::size_t, int, void*) = nullptr;
    AccessId (*get)(SegmentId, int, int, void*) = nullptr;
    int (*release)(AccessId) = nullptr;
    void* (*attach)(RemoteAddress, std::size_t, void*) = nullptr;
    int (*detach)(void*) = nullptr;
    std::string missing;  ///< why XPMEM is unavailable; empty when it is available

    Xpmem() {
        if (access("/dev/xpmem", R_OK | W_OK) != 0) {
            missing = base::cat("/dev/xpmem: ", std::strerror(errno));
            return;
        }
        void* library = dlopen("libxpmem.so.0", RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            const char* reason = dlerror();
            missing = reason ? reason : "libxpmem.so.0 can't be loaded";
            return;
        }
        take(library, "xpmem_make", make);
        take(library, "xpmem_get", get);
        take(library, "xpmem_release", release);
        take(library, "xpmem_attach", attach);
        take(library, "xpmem_detach", detach);
    }

    template <class Function>
    void take(void* library, const char* name, Function& out) {
        out = reinterpret_cast<Function>(dlsym(library, name));
        if (!out && missing.empty()) missing = base::cat("libxpmem.so.0 has no ", name);
    }
};

const Xpmem& xpmem() {
    static const Xpmem* loaded = new Xpmem;
    return *loaded;
}

class XpmemAttacher : public SharedAttacher {
  public:
    explicit XpmemAttacher(const std::vector<std::int64_t>& segments)
        : segments_(segments), accesses_(segments.size(), -1) {}
    ~XpmemAttacher() override {
        for (const AccessId access : accesses_)
            if (access >= 0) xpmem().release(access);
    }

    char* attach(int member, std::uint64_t address, std::int64_t bytes) override {
        AccessId& access = accesses_[static_cast<std::size_t>(member)];
        if (access < 0) access = xpmem().get(segments_[static_cast<std::size_t>(member)], read_write, by_mode, nullptr);
        if (access < 0) return nullptr;
        void* mapped = xpmem().attach({access, static_cast<off_t>(address)}, static_cast<std::size_t>(bytes), nullptr);
        return mapped == reinterpret_cast<void*>(-1) ? nullptr : static_cast<char*>(mapped);
    }
    void detach(char* mapped, std::int64_t) override { xpmem().detach(mapped); }

  private:
    std::vector<SegmentId> segments_;
    std::vector<AccessId> accesses_;
};

}  // namespace

std::string xpmem_status() {
    return xpmem().missing.empty() ? "XPMEM is there (/dev/xpmem and libxpmem.so.0)" : "no XPMEM: " + xpmem().missing;
}

std::int64_t xpmem_segment() {
    if (!xpmem().missing.empty()) return -1;
    static const SegmentId segment =
        xpmem().make(nullptr, whole_memory, by_mode, reinterpret_cast<void*>(std::uintptr_t{0600}));
    return segment;
}

std::unique_ptr<SharedAttacher> xpmem_attacher(const std::vector<std::int64_t>& segments) {
    if (!xpmem().missing.empty() || std::any_of(segments.begin(), segments.end(), [](auto s) { return s < 0; }))
        return nullptr;
    return std::make_unique<XpmemAttacher>(segments);
}

}  // namespace palmette::node
