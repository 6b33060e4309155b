#include "palmette/record/call_paths.hpp"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <unwind.h>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "palmette/base/hash.hpp"
#include "palmette/record/clock.hpp"
#include "palmette/record/node_file.hpp"

namespace palmette::record {
namespace {

#if defined(PALMETTE_ABI_SMPI)

/// Beyond all of a simulated rank's stack, whose frames are only looked at where they were when it was unwound.
std::uintptr_t end_of_stack() { return ~std::uintptr_t{0} - (std::uintptr_t{1} << 32U); }

#else

std::uintptr_t end_of_stack() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
    void* lowest = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    return reinterpret_cast<std::uintptr_t>(lowest) + bytes - sizeof(std::uintptr_t);
}

#endif

struct Unwound {
    std::uintptr_t begin = 0;         ///< frames further in than the program's call are skipped
    std::uintptr_t frame_record = 0;  ///< of the function that was looked at before, on arm64
    std::size_t count = 0;
    bool started = false;
    std::array<std::uintptr_t, 64> addresses{};
    std::array<std::uintptr_t, 64> slots{};
};

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* argument) {
    auto& out = *static_cast<Unwound*>(argument);
    const std::uintptr_t address = _Unwind_GetIP(context);
    if (address == 0 || out.count == out.addresses.size()) return _URC_END_OF_STACK;
#if defined(__aarch64__)
    // A frame record is two words: the caller's frame pointer (x29) and the return address.
    const std::uintptr_t slot = out.frame_record + sizeof(std::uintptr_t);
    out.frame_record = _Unwind_GetGR(context, 29);
#else
    // The stack pointer at the call: the return address lies right below it on x86-64.
    const std::uintptr_t slot = _Unwind_GetCFA(context) - sizeof(std::uintptr_t);
#endif
    if (!out.started && address != out.begin) return _URC_NO_REASON;
    out.started = true;
    out.addresses[out.count] = address;
    out.slots[out.count] = slot;
    ++out.count;
    return _URC_NO_REASON;
}

/// A return address as it stands in the stack, without the signature that a program for arm64 may give it.
std::uintptr_t without_signature(std::uintptr_t address) {
#if defined(__aarch64__)
    register std::uintptr_t x30 asm("x30") = address;
    asm("hint #7" : "+r"(x30));  // xpaclri, which older processors ignore
    return x30;
#else
    return address;
#endif
}

}  // namespace

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

std::uint32_t PathTable::number_of(const std::uintptr_t* addresses, std::size_t count) {
    std::uint64_t hash = base::fnv1a_start;
    base::hash_append(hash, {reinterpret_cast<const char*>(addresses), count * sizeof *addresses});
    const std::lock_guard lock(mutex_);
    if (const auto known = numbers_.find(hash); known != numbers_.end()) return known->second;
    const std::uint32_t number = section_->paths.count.load(std::memory_order_relaxed);
    const std::uint32_t first = section_->frames.count.load(std::memory_order_relaxed);
    if (number >= section_->paths.capacity || first + count > section_->frames.capacity) return 0;
    auto* const frames = trace::entries<trace::Frame>(*section_, section_->frames);
    for (std::size_t i = 0; i < count; ++i) {
        trace::Frame& frame = frames[first + i];
        frame.module = module_of(addresses[i], frame.offset);
        // Behind main comes the simulator.
        if (simulated && frame.module == 0) count = i;
    }
    trace::entries<trace::PathEntry>(*section_, section_->paths)[number] = {first, static_cast<std::uint32_t>(count)};
    section_->frames.count.store(first + static_cast<std::uint32_t>(count), std::memory_order_release);
    section_->paths.count.store(number + 1, std::memory_order_release);
    numbers_.emplace(hash, number);
    return number;
}

std::uint32_t PathTable::module_of(std::uintptr_t address, std::uint64_t& offset) {
    for (const bool again : {false, true}) {
        for (const Module& module : modules_) {
            if (address < module.begin || address >= module.end) continue;
            offset = address - module.base;
            return module.number;
        }
        if (!again) learn_modules();
    }
    offset = simulated ? 0 : address;
    return 0;
}

void PathTable::learn_modules() {
    section_->modules.count.store(std::max(1U, section_->modules.count.load()), std::memory_order_release);
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* argument) {
            auto& self = *static_cast<PathTable*>(argument);
            Module module;
            trace::ModuleEntry entry{};
            module.base = info->dlpi_addr;
            module.begin = ~std::uintptr_t{0};
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const ElfW(Phdr) & header = info->dlpi_phdr[i];
                const std::uintptr_t at = info->dlpi_addr + header.p_vaddr;
                if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
                    module.begin = std::min(module.begin, at);
                    module.end = std::max(module.end, at + header.p_memsz);
                }
                if (header.p_type != PT_NOTE) continue;
                for (std::uintptr_t note = at; note + sizeof(ElfW(Nhdr)) <= at + header.p_memsz;) {
                    const auto* const head = reinterpret_cast<const ElfW(Nhdr)*>(note);
                    const char* const name = reinterpret_cast<const char*>(head + 1);
                    const char* const body = name + (head->n_namesz + 3) / 4 * 4;
                    if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
                        entry.build_id_bytes = std::min<std::uint32_t>(head->n_descsz, entry.build_id.size());
                        std::memcpy(entry.build_id.data(), body, entry.build_id_bytes);
                    }
                    note = reinterpret_cast<std::uintptr_t>(body) + (head->n_descsz + 3) / 4 * 4;
                }
            }
#if defined(PALMETTE_ABI_SMPI)
            // One copy of the program is loaded for each rank. Of what lies outside of its own, addresses differ from
            // run to run.
            const auto here = reinterpret_cast<std::uintptr_t>(&own_path);
            if (here < module.begin || here >= module.end) return 0;
#endif
            const bool known = std::any_of(self.modules_.begin(), self.modules_.end(), [&](const Module& other) {
                return other.begin == module.begin && other.end == module.end;
            });
            trace::Table& modules = self.section_->modules;
            module.number = modules.count.load(std::memory_order_relaxed);
            if (known || module.end == 0 || module.number >= modules.capacity) return 0;
            std::string path = info->dlpi_name ? info->dlpi_name : "";
            if (path.empty() || simulated) path = own_path();
            std::memcpy(entry.path.data(), path.data(), std::min(path.size(), entry.path.size() - 1));
            trace::entries<trace::ModuleEntry>(*self.section_, modules)[module.number] = entry;
            modules.count.store(module.number + 1, std::memory_order_release);
            self.modules_.push_back(module);
            return 0;
        },
        this);
}

std::uint32_t CallPathCache::unwind(PathTable& table, std::size_t set, std::uintptr_t address, std::uintptr_t base) {
    const std::uint64_t begin = now();
    if (stack_end_ == 0) stack_end_ = end_of_stack();
    Unwound found;
    found.begin = address;
    _Unwind_Backtrace(&take_frame, &found);
    if (found.count == 0) found.addresses[found.count++] = address;
    const std::uint32_t number = table.number_of(found.addresses.data(), found.count);
    Known known;
    known.address = address;
    known.base = base;
    known.number = number;
    bool checkable = found.started && number != 0;
    for (std::size_t i = 0; i < found.count && checkable; ++i)
        checkable = found.slots[i] > base && found.slots[i] <= stack_end_ &&
                    without_signature(*reinterpret_cast<const std::uintptr_t*>(found.slots[i])) == found.addresses[i];
    trace::SectionHeader& section = *table.section();
    if (checkable) {
        known.count = static_cast<std::uint32_t>(found.count);
        known.slots = std::make_unique<Slot[]>(found.count);
        for (std::size_t i = 0; i < found.count; ++i)
            known.slots[i] = {found.slots[i] - base, *reinterpret_cast<const std::uintptr_t*>(found.slots[i])};
        known.reach = known.slots[found.count - 1].offset;
        known_[set][next_[set]] = std::move(known);
        next_[set] = static_cast<std::uint8_t>((next_[set] + 1U) % ways);
    }
    if (number == 0) section.unpathed_calls.fetch_add(1, std::memory_order_relaxed);
    section.unwound_calls.fetch_add(1, std::memory_order_relaxed);
    section.unwinding_ticks.fetch_add(now() - begin, std::memory_order_relaxed);
    return number;
}

}  // namespace palmette::record
