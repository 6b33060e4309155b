// The loaded objects of this process, read as they lie in memory: no lock of the loader but that of dl_iterate_phdr, no
// memory, no relocation of anybody else's, so that the loader itself may be calling.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <string_view>

#include "palmette/mpi/library.hpp"

namespace palmette::mpi {

/// What a library is by the name that it gives itself. Cray and others name MPICH's library after the compiler that
/// made it, Debian after MPICH (as palmette.mpi.abi has it).
enum class Kind : std::uint8_t { none, mpich, ompi, standard, unknown };
Kind kind_of(std::string_view name);

#if defined(PALMETTE_ABI_OMPI)
inline constexpr Kind our_kind = Kind::ompi;
#elif defined(PALMETTE_ABI_STANDARD)
inline constexpr Kind our_kind = Kind::standard;
#else
inline constexpr Kind our_kind = Kind::mpich;
#endif

/// The symbols of one object.
class Symbols {
  public:
    /// `base`: what its addresses are relative to; `dynamic`: its dynamic section.
    Symbols(std::uintptr_t base, const ElfW(Dyn) * dynamic);
    /// Symbols of an object that dl_iterate_phdr lists.
    explicit Symbols(const dl_phdr_info& info);

    /// The name that a library gives itself, for the file's may be any link to it; empty: none.
    std::string_view own_name() const { return name_; }
    /// The definition of `name`; null: it has none.
    const ElfW(Sym) * find(const char* name) const;
    /// Where a definition lies. One that is chosen when it is looked up (IFUNC) is chosen now.
    void* address(const ElfW(Sym) & symbol) const;
    std::uintptr_t base() const { return base_; }

  private:
    const ElfW(Sym) * at(std::uint32_t index, const char* name) const;
    const ElfW(Sym) * find_by_gnu_hash(const char* name) const;
    const ElfW(Sym) * find_by_hash(const char* name) const;

    std::uintptr_t base_;
    const ElfW(Sym) * symbols_ = nullptr;
    const char* strings_ = nullptr;
    const std::uint32_t* gnu_hash_ = nullptr;
    const std::uint32_t* hash_ = nullptr;
    std::string_view name_;
};

}  // namespace palmette::mpi
