#include "palmette/device/loaded.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <string_view>

#include "palmette/device/driver.hpp"

namespace palmette::device {
namespace {

constinit const std::uint64_t never_matches = ~std::uint64_t{0};

/// glibc counts the libraries that it loads, and tells the count by dl_iterate_phdr alone, under a lock. The variable
/// is a member of `_rtld_global`, at an offset that differs between versions: it is the word there that has had the
/// value of the count at every look so far. The loaded ones' number in the second word equals it as long as nothing is
/// unloaded, so that one doesn't qualify.
class CountSearch {
  public:
    /// With the loader's lock held. The word, once it is certain: the only one that has followed two values.
    const std::uint64_t* observe(std::uint64_t count) {
        if (!started_) start();
        if (count == last_) return result();
        last_ = count;
        ++values_;
        if (values_ == 1) {
            for (std::size_t i = 2; i < words_ && found_ < candidates_.size(); ++i)
                if (value(i) == count) candidates_[found_++] = i;
            return nullptr;
        }
        const auto end = std::remove_if(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(found_),
                                        [&](std::size_t i) { return value(i) != count; });
        found_ = static_cast<std::size_t>(end - candidates_.begin());
        return result();
    }

  private:
    void start() {
        started_ = true;
        void* global = dlsym(RTLD_DEFAULT, "_rtld_global");
        Dl_info info{};
        ElfW(Sym)* symbol = nullptr;
        // Its first word is the head of the list of libraries, as in glibc's public _r_debug.
        if (!global || !dladdr1(global, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) || !symbol ||
            *static_cast<link_map* const*>(global) != _r_debug.r_map)
            return;
        base_ = static_cast<const std::uint64_t*>(global);
        words_ = symbol->st_size / sizeof(std::uint64_t);
    }
    std::uint64_t value(std::size_t i) const { return __atomic_load_n(base_ + i, __ATOMIC_RELAXED); }
    const std::uint64_t* result() const { return values_ >= 2 && found_ == 1 ? base_ + candidates_[0] : nullptr; }

    bool started_ = false;
    const std::uint64_t* base_ = nullptr;
    std::size_t words_ = 0;
    std::uint64_t last_ = 0;
    int values_ = 0;
    std::array<std::size_t, 16> candidates_{};
    std::size_t found_ = 0;
};

struct Look {
    std::uint64_t known = 0;  ///< the count at a look that has ended
    std::uint64_t now = 0;
    bool arrived = false;  ///< a driver, since then
};

/// What looks leave for the next one; guarded by `looking`.
struct Looked {
    CountSearch search;
    std::uint64_t known = 0;
    bool ignores = false;
};

constexpr std::array<std::string_view, 2> drivers{"libcuda.so", "libamdhip64.so"};

int look_at(dl_phdr_info* info, std::size_t, void* argument) {
    Look& look = *static_cast<Look*>(argument);
    look.now = info->dlpi_adds;
    if (look.now == look.known) return 1;
    const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
    const std::string_view name = path.substr(path.rfind('/') + 1);
    for (const std::string_view driver : drivers)
        look.arrived = look.arrived || name.substr(0, driver.size()) == driver;
    return 0;
}

struct Observed {
    CountSearch& search;
    const std::uint64_t* count = nullptr;
};

int observe_count(dl_phdr_info* info, std::size_t, void* argument) {
    Observed& observed = *static_cast<Observed*>(argument);
    observed.count = observed.search.observe(info->dlpi_adds);
    return 1;
}

constinit std::mutex looking;
constinit Looked looked;

}  // namespace

constinit DriverWatch driver_watch{&never_matches, 0, false};

bool look_for_drivers() {
    std::unique_lock lock(looking);
    if (looked.ignores) return false;
    Look look{looked.known};
    dl_iterate_phdr(look_at, &look);
    if (look.arrived) {
        // The loader's lock may be another thread's, which calls MPI in a library's constructor. Threads that look
        // meanwhile find the driver, too: until this look has ended, its libraries haven't been looked at.
        lock.unlock();
        // It may have been unloaded by another thread just now.
        const bool found = find_drivers();
        lock.lock();
        if (looked.ignores) return false;
        if (found) driver_watch.found.store(true, std::memory_order_relaxed);
    }
    looked.known = std::max(looked.known, look.now);
    Observed observed{looked.search};
    dl_iterate_phdr(observe_count, &observed);
    driver_watch.loads.store(observed.count ? observed.count : &never_matches, std::memory_order_relaxed);
    // Where one more library has come meanwhile, the next check looks again.
    driver_watch.seen.store(looked.known, std::memory_order_release);
    return driver_watch.found.load(std::memory_order_relaxed);
}

void ignore_drivers() {
    const std::lock_guard lock(looking);
    looked.ignores = true;
    driver_watch.found.store(false, std::memory_order_relaxed);
    driver_watch.seen.store(never_matches, std::memory_order_relaxed);
    driver_watch.loads.store(&never_matches, std::memory_order_relaxed);
}

const void* learned_count() {
    look_for_drivers();
    if (looked.ignores) return nullptr;
    const std::uint64_t* loads = driver_watch.loads.load(std::memory_order_relaxed);
    if (loads == &never_matches) {
        // Nothing was loaded since the first look: one of the small libraries that every glibc has makes the count move
        // once.
        for (const char* name : {"libanl.so.1", "libutil.so.1", "libBrokenLocale.so.1", "librt.so.1", "libdl.so.2"}) {
            void* there = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
            void* opened = there ? there : dlopen(name, RTLD_LAZY | RTLD_LOCAL);
            if (opened) dlclose(opened);
            if (opened && !there) break;
        }
        look_for_drivers();
        loads = driver_watch.loads.load(std::memory_order_relaxed);
    }
    return loads == &never_matches ? nullptr : loads;
}

}  // namespace palmette::device
