#include "palmette/mpi/offers.hpp"

#if !defined(PALMETTE_ABI_SMPI)

#if defined(__SANITIZE_ADDRESS__)
#define PALMETTE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PALMETTE_SANITIZED 1
#endif
#endif

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "palmette/mpi/objects.hpp"

/// By this each of palmette's preload libraries knows the others.
extern "C" __attribute__((visibility("default"))) const char palmette_is_preload = 1;

// The linker's names for the begin and the end of a section. Weak: programs that are linked with this layer offer
// nothing.
extern "C" {
extern palmette::mpi::Offer begin_of_offers[] __asm__("__start_palmette_offers")
    __attribute__((weak, visibility("hidden")));
extern palmette::mpi::Offer end_of_offers[] __asm__("__stop_palmette_offers")
    __attribute__((weak, visibility("hidden")));
}

namespace palmette::mpi {
namespace {

std::span<Offer> offers() {
    Offer* const begin = begin_of_offers;
    return begin ? std::span<Offer>(begin, end_of_offers) : std::span<Offer>();
}

/// Fortran's layer is another library than the MPI's own, and may come at any time later.
bool is_fortran(const char* name) {
    if (name[0] == 'm') return true;
    for (const char* c = name + sizeof "MPI_" - 1; *c; ++c)
        if (*c >= 'a' && *c <= 'z') return false;
    return true;
}

bool is_this(const dl_phdr_info& info) {
    // Not by a name that other preloads have, too.
    const auto here = reinterpret_cast<std::uintptr_t>(&is_fortran);
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const auto& part = info.dlpi_phdr[i];
        const std::uintptr_t begin = info.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && begin <= here && here < begin + part.p_memsz) return true;
    }
    return false;
}

/// What the process's objects say about a name.
struct Scan {
    const char* name;
    bool has_mpi = false, has_ours = false;  ///< one, one of our ABI
    bool elsewhere = false;                  ///< an object that isn't palmette's defines the name
    bool is_behind = false;                  ///< this library has been passed
    void* next = nullptr;                    ///< the first definition behind it
};

int scan_object(dl_phdr_info* info, std::size_t, void* argument) {
    Scan& scan = *static_cast<Scan*>(argument);
    if (is_this(*info)) {
        scan.is_behind = true;
        return 0;
    }
    const Symbols symbols(*info);
    const Kind kind = kind_of(symbols.own_name());
    scan.has_mpi = scan.has_mpi || kind != Kind::none;
    scan.has_ours = scan.has_ours || kind == our_kind;
    if (!scan.name) return 0;
    const ElfW(Sym)* const found = symbols.find(scan.name);
    if (!found) return 0;
    scan.elsewhere = scan.elsewhere || !symbols.find("palmette_is_preload");
    if (scan.is_behind && !scan.next) scan.next = symbols.address(*found);
    return 0;
}

Scan scanned(const char* name) {
    Scan scan{name};
    dl_iterate_phdr(scan_object, &scan);
    return scan;
}

int with_this(dl_phdr_info* info, std::size_t, void* visit) {
    if (!is_this(*info)) return 0;
    (*static_cast<void (**)(const dl_phdr_info&)>(visit))(*info);
    return 1;
}

/// The table may be written to as long as this lives; false: it can't be.
class Writable {
  public:
    Writable(const dl_phdr_info& info, std::uintptr_t begin, std::uintptr_t end) {
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        begin_ = begin / page * page;
        bytes_ = end - begin_;
        for (int i = 0; i < info.dlpi_phnum; ++i) {
            const auto& part = info.dlpi_phdr[i];
            const std::uintptr_t from = info.dlpi_addr + part.p_vaddr;
            if (part.p_type != PT_LOAD || begin < from || begin >= from + part.p_memsz) continue;
            // Not where it lies among the code, as some linkers have it: systems may forbid to change that.
            if (part.p_flags & PF_X) return;
            protection_ = (part.p_flags & PF_W) ? PROT_READ | PROT_WRITE : PROT_READ;
            writable_ = mprotect(reinterpret_cast<void*>(begin_), bytes_, PROT_READ | PROT_WRITE) == 0;
        }
    }
    Writable(const Writable&) = delete;
    Writable& operator=(const Writable&) = delete;
    ~Writable() {
        if (writable_) mprotect(reinterpret_cast<void*>(begin_), bytes_, protection_);
    }
    explicit operator bool() const { return writable_; }

  private:
    std::uintptr_t begin_ = 0;
    std::size_t bytes_ = 0;
    int protection_ = PROT_READ;
    bool writable_ = false;
};

/// Changes this library's symbols by `change(offer, symbol, base)`.
template <class Change>
void change_symbols(const dl_phdr_info& info, Change change) {
    const Symbols own(info);
    std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
    for (Offer& offer : offers()) {
        const ElfW(Sym)* const symbol = own.find(offer.name);
        if (!symbol) continue;
        const auto place = reinterpret_cast<std::uintptr_t>(symbol);
        begin = begin < place ? begin : place;
        end = end > place + sizeof *symbol ? end : place + sizeof *symbol;
        if (!offer.entry) offer.entry = reinterpret_cast<void*>(own.base() + symbol->st_value);
    }
    if (begin >= end) return;
    if (const Writable writable(info, begin, end); writable)
        for (Offer& offer : offers())
            if (const ElfW(Sym)* const symbol = own.find(offer.name))
                change(offer, const_cast<ElfW(Sym) &>(*symbol), own.base());
}

void choose_later(Offer& offer, ElfW(Sym) & symbol, std::uintptr_t base) {
    if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC) return;
    symbol.st_value = reinterpret_cast<std::uintptr_t>(offer.resolver) - base;
    symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(ELF64_ST_BIND(symbol.st_info), STT_GNU_IFUNC));
}

/// One store, for other threads may be looking names up.
void take_out(ElfW(Sym) & symbol) { __atomic_store_n(&symbol.st_name, 0, __ATOMIC_RELAXED); }

void wait_for_mpi(const dl_phdr_info& info) { change_symbols(info, choose_later); }

void take_out_all(const dl_phdr_info& info) {
    change_symbols(info, [](Offer&, ElfW(Sym) & symbol, std::uintptr_t) { take_out(symbol); });
}

/// The process's MPIs: most names are found there, and not everywhere has to be looked.
struct Mpis {
    std::array<std::optional<Symbols>, 4> symbols;
    std::size_t count = 0;

    bool have(const char* name) const {
        for (std::size_t i = 0; i < count; ++i)
            if (symbols[i]->find(name)) return true;
        return false;
    }
};

int keep_mpi(dl_phdr_info* info, std::size_t, void* argument) {
    Mpis& mpis = *static_cast<Mpis*>(argument);
    const Symbols symbols(*info);
    if (kind_of(symbols.own_name()) == our_kind && mpis.count < mpis.symbols.size())
        mpis.symbols[mpis.count++].emplace(symbols);
    return 0;
}

void take_out_missing(const dl_phdr_info& info) {
    Mpis mpis;
    dl_iterate_phdr(keep_mpi, &mpis);
    change_symbols(info, [&](Offer& offer, ElfW(Sym) & symbol, std::uintptr_t) {
        if (!is_fortran(offer.name) && !mpis.have(offer.name) && !scanned(offer.name).elsewhere) take_out(symbol);
    });
}

void change(void (*visit)(const dl_phdr_info&)) { dl_iterate_phdr(with_this, &visit); }

void begin() {
    if (!offers().empty()) change(wait_for_mpi);
}

}  // namespace

void* resolved(const Offer& offer) {
    const Scan scan = scanned(offer.name);
    return !scan.has_mpi || (scan.has_ours && scan.elsewhere) ? offer.entry : scan.next;
}

void settle_offers(Found known) {
    if (offers().empty() || known == Found::not_yet) return;
    change(known == Found::ours ? take_out_missing : take_out_all);
}

#if !defined(__GLIBC__)
void begin_offers() {}
#elif defined(PALMETTE_SANITIZED)
void begin_offers() { begin(); }
#else

// The loader calls this while it relocates the library, before it relocates the program, whose weak references are
// bound then. Nothing may be called that needs to be initialised.
extern "C" __attribute__((used)) void (*choose_when_relocated())() {
    begin();
    return [] {};
}
extern "C" void chosen_when_relocated() __attribute__((ifunc("choose_when_relocated"), visibility("hidden")));

/// The reference makes the loader choose.
void begin_offers() { chosen_when_relocated(); }

#endif

}  // namespace palmette::mpi

#endif
