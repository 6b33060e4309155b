#include "palmette/mpi/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palmette/mpi/objects.hpp"
#include "palmette/mpi/offers.hpp"

namespace palmette::mpi {

#if defined(PALMETTE_ABI_SMPI)

void* next(const char* name) { return dlsym(RTLD_NEXT, name); }
void* find(const char* name) { return dlsym(RTLD_DEFAULT, name); }

#else

constinit std::atomic<Found> found{Found::not_yet};

namespace {

constexpr const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::mpich:
            return "mpich";
        case Kind::ompi:
            return "ompi";
        case Kind::standard:
            return "abi";
        default:
            return "";
    }
}

/// An object of this process, kept loaded as long as this lives.
class Object {
  public:
    explicit Object(const char* path) : handle_(dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) {}
    Object(Object&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Object& operator=(Object&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() {
        if (handle_) dlclose(handle_);
    }

    explicit operator bool() const { return handle_ != nullptr; }
    /// In it or in what it needs.
    void* symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }
    const link_map* map() const {
        link_map* map = nullptr;
        return handle_ && dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map : nullptr;
    }
    void* release() { return std::exchange(handle_, nullptr); }

  private:
    void* handle_;
};

std::vector<std::string> paths_of_objects() {
    std::vector<std::string> paths;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            if (info->dlpi_name && *info->dlpi_name)
                static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
            return 0;
        },
        &paths);
    return paths;
}

struct Library {
    Object object;
    Kind kind;
};

std::vector<Library> loaded_mpis() {
    std::vector<Library> mpis;
    for (const std::string& path : paths_of_objects()) {
        if (path.find("libmpi") == std::string::npos) continue;
        Object object(path.c_str());
        const link_map* map = object.map();
        const Kind kind = map ? kind_of(Symbols(map->l_addr, map->l_ld).own_name()) : Kind::none;
        if (kind != Kind::none && object.symbol("PMPI_Init")) mpis.push_back({std::move(object), kind});
    }
    return mpis;
}

/// The path of the object that holds an address; null for none.
const char* object_of(const void* address) {
    Dl_info info{};
    return address && dladdr(address, &info) ? info.dli_fname : nullptr;
}

/// The MPI that the caller was linked with, or else the first that the program as a whole sees.
Library* chosen(std::vector<Library>& mpis, const void* caller) {
    if (mpis.size() < 2) return mpis.empty() ? nullptr : &mpis.front();
    const char* path = object_of(caller);
    void* init = path ? Object(path).symbol("PMPI_Init") : nullptr;
    if (!init) init = dlsym(RTLD_DEFAULT, "PMPI_Init");
    const char* of_init = object_of(init);
    for (Library& mpi : mpis) {
        const link_map* map = mpi.object.map();
        if (of_init && map && std::string_view(map->l_name) == of_init) return &mpi;
    }
    return &mpis.front();
}

/// Set once with `found`. Never closed: our table points into it.
constinit void* library = nullptr;

/// What the program as a whole sees comes first: a program that isn't position-independent has variables of the MPI in
/// itself.
void* in_scope_or_library(const char* name) {
    void* symbol = dlsym(RTLD_DEFAULT, name);
    return symbol || !library ? symbol : dlsym(library, name);
}

std::mutex& mutex() {
    static auto* one = new std::mutex;
    return *one;
}

}  // namespace

Found locate(const void* caller) {
    const std::lock_guard lock(mutex());
    if (const Found known = found.load(std::memory_order_acquire); known != Found::not_yet) return known;
    std::vector<Library> mpis = loaded_mpis();
    Library* mpi = chosen(mpis, caller);
    if (!mpi) return Found::not_yet;
    Found result = Found::other;
    if (mpi->kind != our_kind && on_other_abi) on_other_abi(name_of(mpi->kind), mpi->object.map()->l_name);
    library = mpi->object.release();
    if (mpi->kind == our_kind) {
        void** place = symbol_places();
        for (const char* name : symbol_names()) *place++ = in_scope_or_library(name);
        result = Found::ours;
    }
    found.store(result, std::memory_order_release);
    settle_offers(result);
    return result;
}

void look_at_load() {
    begin_offers();
    if (dlsym(RTLD_DEFAULT, "PMPI_Init")) locate(nullptr);
}

void* next(const char* name) {
    void* symbol = dlsym(RTLD_NEXT, name);
    return symbol || !library ? symbol : dlsym(library, name);
}

void* find(const char* name) {
    void* symbol = nullptr;
    return find_all(name, {&symbol, 1}) == 1 ? symbol : nullptr;
}

std::size_t find_all(const char* name, std::span<void*> places) {
    std::size_t count = 0;
    const auto add = [&](void* symbol) {
        const auto end = places.begin() + static_cast<std::ptrdiff_t>(count);
        if (symbol && count < places.size() && std::find(places.begin(), end, symbol) == end) places[count++] = symbol;
    };
    add(dlsym(RTLD_DEFAULT, name));
    if (library) add(dlsym(library, name));
    for (const std::string& path : paths_of_objects()) {
        if (count == places.size()) break;
        add(Object(path.c_str()).symbol(name));
    }
    return count;
}

bool is_first_process() {
    for (const char* name : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"})
        if (const char* rank = std::getenv(name)) return std::string_view(rank) == "0";
    return true;
}

#endif

}  // namespace palmette::mpi
