#include "palmette/record/build_ids.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "palmette/base/readable.hpp"
#include "palmette/base/unwind_tables.hpp"

namespace palmette::record {
namespace {

/// From one of its notes; a segment of notes may lie in none that is loaded.
void take_from(const dl_phdr_info& module, const ElfW(Phdr) & header, trace::ModuleEntry& entry) {
    const std::uintptr_t begin = module.dlpi_addr + header.p_vaddr;
    constexpr std::size_t most_bytes = std::size_t{1} << 16U;
    const std::size_t bytes = std::min<std::size_t>(header.p_memsz, most_bytes);
    if (!base::is_loaded(module, begin, bytes) || !base::is_readable(begin, bytes)) return;
    const std::size_t alignment = header.p_align == 8 ? 8 : 4;
    const auto aligned = [&](std::size_t size) { return (size + alignment - 1) / alignment * alignment; };
    ElfW(Nhdr) head{};
    for (std::size_t at = 0; at <= bytes && bytes - at >= sizeof head;) {
        std::memcpy(&head, reinterpret_cast<const void*>(begin + at), sizeof head);
        const std::size_t name = at + sizeof head;
        const std::size_t body = name + aligned(head.n_namesz);
        const std::size_t end = body + aligned(head.n_descsz);
        if (end > bytes) return;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
            std::memcmp(reinterpret_cast<const void*>(begin + name), "GNU", 4) == 0) {
            entry.build_id_bytes = std::min(head.n_descsz, static_cast<std::uint32_t>(entry.build_id.size()));
            std::memcpy(entry.build_id.data(), reinterpret_cast<const void*>(begin + body), entry.build_id_bytes);
        }
        at = end;
    }
}

}  // namespace

void take_build_id(const dl_phdr_info& module, trace::ModuleEntry& entry) {
    for (int i = 0; i < module.dlpi_phnum; ++i)
        if (module.dlpi_phdr[i].p_type == PT_NOTE) take_from(module, module.dlpi_phdr[i], entry);
}

}  // namespace palmette::record
