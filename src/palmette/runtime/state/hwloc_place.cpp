#include "palmette/runtime/state/hwloc_place.hpp"

#if __has_include(<hwloc.h>)

#include <dlfcn.h>
#include <hwloc.h>

#include <cstdlib>

namespace palmette::runtime {
namespace {

/// hwloc is loaded, not linked: a preload library must start in programs and on hosts that don't have it. Where the MPI
/// brought its own copy under the same name, that one is taken.
class Library {
  public:
    Library() {
        const char* named = std::getenv("PALMETTE_HWLOC");
        if (named && *named) handle_ = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        if (!handle_) handle_ = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
        if (!handle_) return;
        found_ = load(topology_init, "hwloc_topology_init") && load(topology_load, "hwloc_topology_load") &&
                 load(topology_destroy, "hwloc_topology_destroy") && load(get_cpubind, "hwloc_get_cpubind") &&
                 load(bitmap_alloc, "hwloc_bitmap_alloc") && load(bitmap_free, "hwloc_bitmap_free") &&
                 load(bitmap_isincluded, "hwloc_bitmap_isincluded") && load(get_type_depth, "hwloc_get_type_depth") &&
                 load(get_nbobjs_by_depth, "hwloc_get_nbobjs_by_depth") &&
                 load(get_obj_by_depth, "hwloc_get_obj_by_depth") && load(get_api_version, "hwloc_get_api_version") &&
                 (get_api_version() >> 16) == (HWLOC_API_VERSION >> 16);
#if HWLOC_API_VERSION >= 0x00020100
        load(set_components, "hwloc_topology_set_components");
#endif
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library() {
        if (handle_) dlclose(handle_);
    }
    bool found() const { return found_; }

    decltype(&::hwloc_topology_init) topology_init = nullptr;
#if HWLOC_API_VERSION >= 0x00020100
    decltype(&::hwloc_topology_set_components) set_components = nullptr;
#endif
    decltype(&::hwloc_topology_load) topology_load = nullptr;
    decltype(&::hwloc_topology_destroy) topology_destroy = nullptr;
    decltype(&::hwloc_get_cpubind) get_cpubind = nullptr;
    decltype(&::hwloc_bitmap_alloc) bitmap_alloc = nullptr;
    decltype(&::hwloc_bitmap_free) bitmap_free = nullptr;
    decltype(&::hwloc_bitmap_isincluded) bitmap_isincluded = nullptr;
    decltype(&::hwloc_get_type_depth) get_type_depth = nullptr;
    decltype(&::hwloc_get_nbobjs_by_depth) get_nbobjs_by_depth = nullptr;
    decltype(&::hwloc_get_obj_by_depth) get_obj_by_depth = nullptr;
    decltype(&::hwloc_get_api_version) get_api_version = nullptr;

  private:
    template <class Function>
    bool load(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(handle_, name));
        return function != nullptr;
    }

    void* handle_ = nullptr;
    bool found_ = false;
};

/// The logical number of the object of a type that holds the whole set, or -1.
std::int32_t object_around(const Library& hwloc, hwloc_topology_t topology, hwloc_const_bitmap_t set,
                           hwloc_obj_type_t type) {
    const int depth = hwloc.get_type_depth(topology, type);
    // NUMA nodes have a special depth of their own, which is negative too, like the errors.
    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return -1;
    const unsigned count = hwloc.get_nbobjs_by_depth(topology, depth);
    for (unsigned i = 0; i < count; ++i) {
        const hwloc_obj_t object = hwloc.get_obj_by_depth(topology, depth, i);
        if (object && object->cpuset && hwloc.bitmap_isincluded(set, object->cpuset))
            return static_cast<std::int32_t>(i);
    }
    return -1;
}

}  // namespace

std::optional<NodePlace> hwloc_place() {
    const Library hwloc;
    if (!hwloc.found()) return std::nullopt;
    hwloc_topology_t topology = nullptr;
    if (hwloc.topology_init(&topology) != 0) return std::nullopt;
    // The x86 component binds the process to each processor in turn, and waits for those where another rank spins; the
    // kernel knows as much.
#if HWLOC_API_VERSION >= 0x00020100
    if (hwloc.set_components) hwloc.set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#endif
    std::optional<NodePlace> place;
    hwloc_bitmap_t bound = hwloc.bitmap_alloc();
    if (bound && hwloc.topology_load(topology) == 0 && hwloc.get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0) {
        place.emplace();
        place->socket = object_around(hwloc, topology, bound, HWLOC_OBJ_PACKAGE);
        place->numa = object_around(hwloc, topology, bound, HWLOC_OBJ_NUMANODE);
        place->l3 = object_around(hwloc, topology, bound, HWLOC_OBJ_L3CACHE);
        place->core = object_around(hwloc, topology, bound, HWLOC_OBJ_CORE);
    }
    if (bound) hwloc.bitmap_free(bound);
    hwloc.topology_destroy(topology);
    return place;
}

}  // namespace palmette::runtime

#else

namespace palmette::runtime {

std::optional<NodePlace> hwloc_place() { return std::nullopt; }

}  // namespace palmette::runtime

#endif
