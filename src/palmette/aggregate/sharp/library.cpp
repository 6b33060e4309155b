#include "palmette/aggregate/sharp/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <vector>

#include "palmette/base/text.hpp"

namespace palmette::aggregate::sharp {
namespace {

constexpr const char* soname = "libsharp_coll.so.5";
constexpr const char* symbol_version = "SHARP_COLL_5";

/// Libraries with these have the structures of api.hpp; those of 2.x lack at least one.
constexpr std::array guards{"sharp_coll_do_allgather_nb", "sharp_coll_caps_query"};

/// Looks a symbol up, by the library's own version where it has versions.
void* symbol(void* handle, const char* name) {
    if (void* versioned = dlvsym(handle, name, symbol_version)) return versioned;
    return dlsym(handle, name);
}

std::string last_error() {
    const char* text = dlerror();
    return text ? text : "the loader doesn't say why";
}

/// Where it lies, and the name that it calls itself; empty: none.
std::pair<std::string, std::string> names_of(void* handle) {
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
    const char* strings = nullptr;
    std::size_t name = 0;
    bool named = false;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_SONAME) name = entry->d_un.d_val, named = true;
    }
    // glibc has added the library's address already, but where the section is read-only.
    if (strings && reinterpret_cast<std::uintptr_t>(strings) < map->l_addr) strings += map->l_addr;
    return {map->l_name ? map->l_name : "", strings && named ? strings + name : ""};
}

std::vector<std::string> places(const std::string& wanted) {
    if (wanted != "auto") return {wanted};
    std::vector<std::string> out{soname, "libsharp_coll.so"};
    std::vector<std::string> folders;
    if (const char* hpcx = std::getenv("HPCX_SHARP_DIR"); hpcx && *hpcx) folders.push_back(base::cat(hpcx, "/lib"));
    folders.emplace_back("/opt/mellanox/sharp/lib");
    for (const std::string& folder : folders)
        for (const char* name : {soname, "libsharp_coll.so"}) out.push_back(base::cat(folder, "/", name));
    return out;
}

/// Null where there is none; then `why` has the loader's first word on it.
void* open_any(const std::string& wanted, std::string& why) {
    // HPC-X may have it in the process already; a second one would share its environment and devices.
    if (wanted == "auto")
        if (void* loaded = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
    for (const std::string& place : places(wanted)) {
        if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
        const std::string error = last_error();
        // One that is there and can't be loaded tells more than that the next place has none.
        if (why.empty() || error.find("No such file") == std::string::npos) why = error;
    }
    return nullptr;
}

std::unique_ptr<Library> load(void* handle, std::string& missing) {
    auto out = std::make_unique<Library>();
    const auto get = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
            symbol(handle, base::cat("sharp_coll_", name).c_str()));
        if (!function && missing.empty()) missing = base::cat("sharp_coll_", name);
    };
    get(out->init, "init");
    get(out->finalize, "finalize");
    get(out->caps_query, "caps_query");
    get(out->progress, "progress");
    get(out->comm_init, "comm_init");
    get(out->comm_destroy, "comm_destroy");
    get(out->do_allreduce_nb, "do_allreduce_nb");
    get(out->req_test, "req_test");
    get(out->req_wait, "req_wait");
    get(out->reg_mr, "reg_mr");
    get(out->dereg_mr, "dereg_mr");
    get(out->strerror, "strerror");
    // Some MPIs define a global of this name themselves: the library's own is what its init expects.
    get(out->default_config, "default_config");
    return out;
}

LibraryLookup look_for(const std::string& wanted) {
    std::string why;
    void* handle = open_any(wanted, why);
    if (!handle) return {nullptr, Reason::no_library, why};
    const auto [path, name] = names_of(handle);
    constexpr std::string_view family = "libsharp_coll.so";
    if (name != family && name != soname)
        return {nullptr, Reason::other_library,
                base::cat(path, " calls itself '", name, "': palmette knows ", soname, " alone")};
    std::string missing;
    for (const char* guard : guards)
        if (!symbol(handle, guard) && missing.empty()) missing = guard;
    std::unique_ptr<Library> loaded = load(handle, missing);
    if (!missing.empty())
        return {nullptr, Reason::other_library,
                base::cat(path, " has no ", missing, ": it is older than SHARP 3, and its structures are others")};
    loaded->path = path;
    return {loaded.release(), Reason::none, ""};
}

}  // namespace

const LibraryLookup& find_library(const std::string& wanted) {
    static std::mutex mutex;
    static auto* const all = new std::map<std::string, LibraryLookup>;
    const std::lock_guard lock(mutex);
    const auto known = all->find(wanted);
    return known != all->end() ? known->second : all->emplace(wanted, look_for(wanted)).first->second;
}

std::string Library::error_text(int code) const {
    const char* text = strerror ? strerror(code) : nullptr;
    return base::cat(text ? text : "unknown error", " (", code, ")");
}

Reason reason_of(int code) noexcept {
    switch (code) {
        case success:
            return Reason::none;
        case error_unsupported:
            return Reason::unsupported;
        case error_group_alloc:
        case error_group_multicast:
        case error_group_trim:
            return Reason::group_alloc;
        case error_tree_connect:
            return Reason::tree_connect;
        case error_group_join:
        case error_group_id:
            return Reason::group_join;
        case error_quota:
            return Reason::quota;
        case error_session:
            return Reason::session;
        case error_device:
            return Reason::device;
        case error_job_create:
            return Reason::job_create;
        case error_tree_info:
        case error_no_tree:
            return Reason::no_tree;
        case error_out_of_band:
            return Reason::out_of_band;
        case error_lock_failed:
            return Reason::stream_lock;
        case error_lock_denied:
            return Reason::lock_denied;
        case error_memory:
        case error_no_resource:
            return Reason::no_resource;
        default:
            return Reason::library;
    }
}

}  // namespace palmette::aggregate::sharp
