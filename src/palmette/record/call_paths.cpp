#include "palmette/record/call_paths.hpp"

#include <dlfcn.h>
#include <link.h>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "palmette/base/hash.hpp"
#include "palmette/record/build_ids.hpp"
#include "palmette/record/clock.hpp"
#include "palmette/record/node_file.hpp"
#include "palmette/record/regions.hpp"
#include "palmette/record/sampler.hpp"

namespace palmette::record {

constinit std::atomic<std::uint64_t> unloads{0};

std::string own_path() {
#if defined(PALMETTE_ABI_SMPI)
    // The simulator runs a copy for each rank, which it removes.
    const char* const program = std::getenv("PALMETTE_SIMULATED_PROGRAM");
    return program ? program : "";
#else
    std::array<char, 512> path{};
    return readlink("/proc/self/exe", path.data(), path.size() - 1) > 0 ? path.data() : "";
#endif
}

void PathTable::attach(trace::SectionHeader& section) {
    section_ = &section;
    section.paths.count.store(1, std::memory_order_release);  // 0: unknown
}

PathTable::Lookup PathTable::find(base::StackWalk& walk, std::uint64_t& seen, const void* return_address,
                                  const void* frame) {
    if (const std::uint64_t now = unloads.load(std::memory_order_acquire); now != seen) [[unlikely]] {
        seen = now;
        walk.forget();
    }
    const auto returns_to = reinterpret_cast<std::uintptr_t>(return_address);
    const auto at = reinterpret_cast<std::uintptr_t>(frame);
    base::StackWalk::End end = walk.follow(returns_to, at, deepest);
    std::uint32_t kept = end.node ? base::StackWalk::word(end.node) : 0;  // the number + 1
    if (kept == 0) [[unlikely]] {
        const std::uint64_t begin = now();
        end = walk.walk(returns_to, at, deepest);
        std::array<std::uintptr_t, deepest> addresses{};
        const std::size_t count = base::StackWalk::addresses(end.node, addresses);
        kept = number_of(addresses.data(), count) + 1;
        base::StackWalk::word(end.node) = kept;
        section_->unwound_calls.fetch_add(1, std::memory_order_relaxed);
        section_->unwinding_ticks.fetch_add(now() - begin, std::memory_order_relaxed);
    }
    if (kept == 1) section_->unpathed_calls.fetch_add(1, std::memory_order_relaxed);
    return {kept - 1, end.sp};
}

std::uint32_t PathTable::number_of(const std::uintptr_t* addresses, std::size_t count) {
    const std::lock_guard lock(mutex_);
    learn_modules();
    std::array<trace::Frame, deepest> found{};
    for (std::size_t i = 0; i < count; ++i) {
        found[i].module = module_of(addresses[i], found[i].offset);
        // Behind main comes the simulator.
        if (simulated && found[i].module == 0) count = i;
    }
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, {reinterpret_cast<const char*>(found.data()), count * sizeof found[0]});
    if (const auto known = numbers_.find(hash); known != numbers_.end()) return known->second;
    return add_path(hash, found.data(), count);
}

std::uint32_t PathTable::add_path(std::uint64_t hash, const trace::Frame* frames, std::size_t count) {
    const std::uint32_t number = section_->paths.count.load(std::memory_order_relaxed);
    const std::uint32_t first = section_->frames.count.load(std::memory_order_relaxed);
    if (number >= section_->paths.capacity || first + count > section_->frames.capacity) return 0;
    std::copy_n(frames, count, trace::entries<trace::Frame>(*section_, section_->frames) + first);
    trace::entries<trace::PathEntry>(*section_, section_->paths)[number] = {first, static_cast<std::uint32_t>(count)};
    section_->frames.count.store(first + static_cast<std::uint32_t>(count), std::memory_order_release);
    section_->paths.count.store(number + 1, std::memory_order_release);
    numbers_.emplace(hash, number);
    return number;
}

std::uint32_t PathTable::number_of_frames(const SampledFrame* frames, std::size_t count) {
    // Other frames than those of addresses, but maybe as many bytes alike.
    std::uint64_t hash = base::fnv1a_start ^ 1U;
    for (std::size_t i = 0; i < count; ++i) {
        // Hashed by words: by bytes it takes as long as all the rest of such a path.
        hash = (hash ^ (std::uint64_t{frames[i].module} << 8U | static_cast<std::uint64_t>(frames[i].kind))) *
               0x9E3779B97F4A7C15ULL;
        hash = ((hash ^ hash >> 32U) ^ frames[i].offset) * 0xBF58476D1CE4E5B9ULL;
        hash ^= hash >> 29U;
    }
    const std::lock_guard lock(mutex_);
    if (const auto known = numbers_.find(hash); known != numbers_.end()) return known->second;
    std::array<trace::Frame, deepest> found{};
    const auto* const modules = trace::entries<trace::ModuleEntry>(*section_, section_->sampling.modules);
    for (std::size_t i = 0; i < count; ++i) {
        const SampledFrame& frame = frames[i];
        const bool is_python = frame.kind == trace::ContextKind::python;
        if (is_python)
            found[i].module = number_of_module(python_module(frame));
        else if (frame.module != 0)
            found[i].module = number_of_module(modules[frame.module]);
        found[i].offset = is_python ? frame.offset & 0xFFFFFFFFU : frame.offset;
    }
    return add_path(hash, found.data(), count);
}

std::uint32_t PathTable::find_in_region(std::uint32_t path, std::uint32_t region, std::uint64_t key) {
    const Regions* const all = regions.load(std::memory_order_acquire);
    if (!all) return path;
    constexpr std::size_t most_regions = 32;
    std::array<trace::Frame, deepest + most_regions> found{};
    const std::lock_guard lock(mutex_);
    const trace::PathEntry from = trace::entries<trace::PathEntry>(*section_, section_->paths)[path];
    std::size_t count = std::min<std::size_t>(from.frame_count, deepest);
    if (path != 0)
        std::copy_n(trace::entries<trace::Frame>(*section_, section_->frames) + from.first_frame, count, found.data());
    else
        count = 0;
    all->names(region, [&](std::uint64_t text) {
        if (count == found.size()) return;
        trace::ModuleEntry entry{};
        put_text(entry.path, std::string(trace::region_prefix) + all->text(text));
        if (const std::uint32_t module = number_of_module(entry)) found[count++].module = module;
    });
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, {reinterpret_cast<const char*>(found.data()), count * sizeof found[0]});
    const auto known = numbers_.find(hash);
    std::uint32_t number = known != numbers_.end() ? known->second : add_path(hash, found.data(), count);
    // Where the call came from is worth more than in which region.
    if (number == 0) number = path;
    in_regions_[slot_of(key)].store(key << 16U | number, std::memory_order_relaxed);
    return number;
}

/// A function of Python's stands among modules, and its frames' offsets are lines.
trace::ModuleEntry PathTable::python_module(const SampledFrame& frame) const {
    const char* const texts = trace::entries<char>(*section_, section_->sampling.texts);
    trace::ModuleEntry out{};
    put_text(out.path,
             std::string(trace::python_prefix) + (texts + (frame.offset >> 32U)) + ":" + (texts + frame.module));
    return out;
}

std::uint32_t PathTable::module_of(std::uintptr_t address, std::uint64_t& offset) {
    for (Module& module : modules_) {
        if (address < module.begin || address >= module.end) continue;
        if (module.number == 0) module.number = number_of_module(module.entry);
        if (module.number == 0) break;
        offset = address - module.base;
        return module.number;
    }
    offset = simulated ? 0 : address;
    return 0;
}

std::uint32_t PathTable::number_of_module(const trace::ModuleEntry& entry) {
    std::string key(reinterpret_cast<const char*>(entry.build_id.data()), entry.build_id_bytes);
    key += '\0';
    key += entry.path.data();
    if (const auto known = module_numbers_.find(key); known != module_numbers_.end()) return known->second;
    trace::Table& modules = section_->modules;
    const std::uint32_t number = std::max(1U, modules.count.load(std::memory_order_relaxed));
    if (number >= modules.capacity) return 0;
    trace::entries<trace::ModuleEntry>(*section_, modules)[number] = entry;
    modules.count.store(number + 1, std::memory_order_release);
    module_numbers_.emplace(std::move(key), number);
    return number;
}

void PathTable::learn_modules() {
    struct LoaderCounts {
        std::uint64_t loads = 0, unloads = 0;
    } loaded;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* argument) {
            *static_cast<LoaderCounts*>(argument) = {info->dlpi_adds, info->dlpi_subs};
            return 1;
        },
        &loaded);
    if (loaded.loads == loads_ && loaded.unloads == unloads_) return;
    loads_ = loaded.loads;
    unloads_ = loaded.unloads;
    modules_.clear();
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* argument) {
            auto& self = *static_cast<PathTable*>(argument);
            Module module;
            module.base = info->dlpi_addr;
            module.begin = ~std::uintptr_t{0};
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const ElfW(Phdr) & header = info->dlpi_phdr[i];
                const std::uintptr_t at = info->dlpi_addr + header.p_vaddr;
                if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
                    module.begin = std::min(module.begin, at);
                    module.end = std::max(module.end, at + header.p_memsz);
                }
            }
#if defined(PALMETTE_ABI_SMPI)
            // One copy of the program is loaded for each rank. Of what lies outside of its own, addresses differ from
            // run to run.
            const auto here = reinterpret_cast<std::uintptr_t>(&own_path);
            if (here < module.begin || here >= module.end) return 0;
#endif
            if (module.end == 0) return 0;
            take_build_id(*info, module.entry);
            std::string path = info->dlpi_name ? info->dlpi_name : "";
            if (path.empty() || simulated) path = own_path();
            put_text(module.entry.path, path);
            self.modules_.push_back(module);
            return 0;
        },
        this);
}

}  // namespace palmette::record

#if !defined(PALMETTE_ABI_SMPI)
/// Code that is unloaded leaves its addresses to other code: no call may be credited to it any more.
extern "C" __attribute__((visibility("default"))) int entry_dlclose(void* handle) __asm__("dlclose");
int entry_dlclose(void* handle) {
    static const auto next = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_NEXT, "dlclose"));
    if (!next) return -1;
    // Before it: another thread may open something as soon as the addresses are free. After it: the module's own end
    // may call MPI.
    palmette::record::unloads.fetch_add(1, std::memory_order_acq_rel);
    const std::uint64_t before = palmette::base::unloaded_modules();
    palmette::record::before_unload();
    const int code = next(handle);
    if (palmette::base::unloaded_modules() != before) palmette::record::unloads.fetch_add(1, std::memory_order_acq_rel);
    palmette::record::after_unload();
    return code;
}
#endif
