#include "palmette/base/loaded_module.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstring>

#include "palmette/base/readable.hpp"

namespace palmette::base {
namespace {

/// What glibc's <dlfcn.h> calls dl_find_object since 2.35: taken by its name at run time, so that older ones do.
struct FoundObject {
    unsigned long long flags = 0;
    void* map_start = nullptr;
    void* map_end = nullptr;
    link_map* map = nullptr;
    void* eh_frame = nullptr;
    unsigned long long reserved[7] = {};
};
using FindObject = int (*)(void*, FoundObject*);

constinit FindObject find_object = nullptr;
/// The program headers of the executable (AT_PHDR). Where its segments lie apart the loader's search returns that of
/// the address alone, and the ELF header is in another one.
constinit std::uintptr_t program_headers = 0;
constinit std::size_t program_header_count = 0;

bool is_program(const link_map& map) { return map.l_name == nullptr || *map.l_name == 0; }

}  // namespace

bool know_how_modules_are_found() {
    if (!find_object) find_object = reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    program_headers = getauxval(AT_PHDR);
    program_header_count = getauxval(AT_PHNUM);
    return find_object != nullptr;
}

bool loaded_module_at(std::uintptr_t address, dl_phdr_info& out, ReadablePages& known) {
    FoundObject found;
    if (!find_object || find_object(reinterpret_cast<void*>(address), &found) != 0 || !found.map) return false;
    out = {};
    out.dlpi_addr = found.map->l_addr;
    out.dlpi_name = found.map->l_name;
    if (is_program(*found.map) && program_headers != 0) {
        out.dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(program_headers);
        out.dlpi_phnum = static_cast<ElfW(Half)>(program_header_count);
        return known.has(program_headers, program_header_count * sizeof(ElfW(Phdr)));
    }
    // The file's head lies in its first segment, as all linkers lay it out.
    const auto begin = reinterpret_cast<std::uintptr_t>(found.map_start);
    ElfW(Ehdr) head{};
    if (!known.has(begin, sizeof head)) return false;
    std::memcpy(&head, found.map_start, sizeof head);
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr))) return false;
    const std::uintptr_t headers = begin + head.e_phoff;
    if (!known.has(headers, std::size_t{head.e_phnum} * sizeof(ElfW(Phdr)))) return false;
    out.dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(headers);
    out.dlpi_phnum = head.e_phnum;
    return true;
}

}  // namespace palmette::base
