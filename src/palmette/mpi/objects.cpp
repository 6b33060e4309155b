#include "palmette/mpi/objects.hpp"

#if !defined(PALMETTE_ABI_SMPI)

#include <cstring>

namespace palmette::mpi {

Kind kind_of(std::string_view name) {
    const auto ends = [&](std::string_view tail) { return name.ends_with(tail); };
    if (!name.starts_with("libmpi")) return Kind::none;
    const std::string_view rest = name.substr(6);
    if (rest.starts_with("_abi.so")) return Kind::standard;
    if (rest == ".so.40") return Kind::ompi;
    if (rest == ".so.12" || rest == "ch.so.12") return Kind::mpich;
    for (const std::string_view by : {"_cray", "_gnu", "_intel", "_nvidia", "_amd", "_aocc", "_pgi"})
        if (rest.starts_with(by) && ends(".so.12")) return Kind::mpich;
    if (rest.starts_with(".so") || rest.starts_with("ch.so")) return Kind::unknown;
    return Kind::none;
}

namespace {

const ElfW(Dyn) * dynamic_of(const dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i)
        if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
            return reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    return nullptr;
}

}  // namespace

Symbols::Symbols(const dl_phdr_info& info) : Symbols(info.dlpi_addr, dynamic_of(info)) {}

Symbols::Symbols(std::uintptr_t base, const ElfW(Dyn) * dynamic) : base_(base) {
    // The loader of glibc has made most addresses absolute, others leave them relative to where the object lies.
    const auto absolute = [&](const ElfW(Dyn)* entry) {
        const std::uintptr_t address = entry->d_un.d_ptr;
        return address < base ? address + base : address;
    };
    const ElfW(Dyn)* name = nullptr;
    for (const ElfW(Dyn)* entry = dynamic; entry && entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_SYMTAB) symbols_ = reinterpret_cast<const ElfW(Sym)*>(absolute(entry));
        if (entry->d_tag == DT_STRTAB) strings_ = reinterpret_cast<const char*>(absolute(entry));
        if (entry->d_tag == DT_GNU_HASH) gnu_hash_ = reinterpret_cast<const std::uint32_t*>(absolute(entry));
        if (entry->d_tag == DT_HASH) hash_ = reinterpret_cast<const std::uint32_t*>(absolute(entry));
        if (entry->d_tag == DT_SONAME) name = entry;
    }
    if (strings_ && name) name_ = strings_ + name->d_un.d_val;
}

/// Runs while the process is being relocated: sanitizers replace strcmp, and aren't ready then.
static bool equal(const char* a, const char* b) {
    for (; *a == *b; ++a, ++b)
        if (*a == '\0') return true;
    return false;
}

const ElfW(Sym) * Symbols::at(std::uint32_t index, const char* name) const {
    const ElfW(Sym) & symbol = symbols_[index];
    const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0;
    return defined && equal(strings_ + symbol.st_name, name) ? &symbol : nullptr;
}

const ElfW(Sym) * Symbols::find_by_gnu_hash(const char* name) const {
    std::uint32_t hash = 5381;
    for (const char* c = name; *c; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    const std::uint32_t buckets = gnu_hash_[0], first = gnu_hash_[1], words = gnu_hash_[2], shift = gnu_hash_[3];
    const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4);
    constexpr std::uint32_t bits = 8 * sizeof(ElfW(Addr));
    const ElfW(Addr) both = ElfW(Addr){1} << hash % bits | ElfW(Addr){1} << (hash >> shift) % bits;
    if ((bloom[hash / bits % words] & both) != both) return nullptr;
    const auto* bucket = reinterpret_cast<const std::uint32_t*>(bloom + words);
    const std::uint32_t* chain = bucket + buckets;
    std::uint32_t index = bucket[hash % buckets];
    if (index < first) return nullptr;
    do {
        if ((chain[index - first] | 1) != (hash | 1)) continue;
        if (const ElfW(Sym)* symbol = at(index, name)) return symbol;
    } while ((chain[index++ - first] & 1) == 0);
    return nullptr;
}

const ElfW(Sym) * Symbols::find_by_hash(const char* name) const {
    std::uint32_t hash = 0;
    for (const char* c = name; *c; ++c) {
        hash = (hash << 4) + static_cast<unsigned char>(*c);
        hash = (hash ^ (hash & 0xf0000000U) >> 24) & 0x0fffffffU;
    }
    const std::uint32_t buckets = hash_[0];
    const std::uint32_t* chain = hash_ + 2 + buckets;
    for (std::uint32_t index = hash_[2 + hash % buckets]; index != STN_UNDEF; index = chain[index])
        if (const ElfW(Sym)* symbol = at(index, name)) return symbol;
    return nullptr;
}

const ElfW(Sym) * Symbols::find(const char* name) const {
    if (!symbols_ || !strings_) return nullptr;
    if (gnu_hash_) return gnu_hash_[0] && gnu_hash_[2] ? find_by_gnu_hash(name) : nullptr;
    return hash_ && hash_[0] ? find_by_hash(name) : nullptr;
}

void* Symbols::address(const ElfW(Sym) & symbol) const {
    const auto place = reinterpret_cast<void*>(base_ + symbol.st_value);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC) return place;
    return reinterpret_cast<void* (*)()>(place)();
}

}  // namespace palmette::mpi

#endif
