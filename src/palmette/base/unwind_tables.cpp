#include "palmette/base/unwind_tables.hpp"

#include <elf.h>
#include <link.h>

#include <array>

#include "palmette/base/readable.hpp"

namespace palmette::base {

bool segment_of(const dl_phdr_info& module, std::uintptr_t address, std::uintptr_t& begin, std::uintptr_t& end) {
    for (int i = 0; i < module.dlpi_phnum; ++i) {
        const ElfW(Phdr) & header = module.dlpi_phdr[i];
        begin = module.dlpi_addr + header.p_vaddr;
        end = begin + header.p_memsz;
        if (header.p_type == PT_LOAD && address >= begin && address < end) return true;
    }
    return false;
}

bool is_loaded(const dl_phdr_info& module, std::uintptr_t address, std::size_t bytes) {
    for (int i = 0; i < module.dlpi_phnum; ++i) {
        const ElfW(Phdr) & header = module.dlpi_phdr[i];
        if (header.p_type != PT_LOAD || (header.p_flags & PF_R) == 0) continue;
        const std::uintptr_t begin = module.dlpi_addr + header.p_vaddr;
        if (address >= begin && address - begin <= header.p_memsz && bytes <= header.p_memsz - (address - begin))
            return true;
    }
    return false;
}

namespace {

/// The loaded module with an address, and its table's head (PT_GNU_EH_FRAME).
struct Tables {
    std::uintptr_t address = 0;
    std::uintptr_t head = 0, head_end = 0;
    std::uintptr_t segment_end = 0;  ///< end of the segment that holds the table
    ReadablePages* known = nullptr;  ///< null: each page is asked for anew

    bool can_read(std::uintptr_t at, std::size_t bytes) const {
        return known ? known->has(at, bytes) : is_readable(at, bytes);
    }
};

/// Whether the module holds the address.
bool look_for_tables(const dl_phdr_info& module, Tables& out) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (!segment_of(module, out.address, begin, end)) return false;
    for (int i = 0; i < module.dlpi_phnum; ++i) {
        const ElfW(Phdr) & header = module.dlpi_phdr[i];
        if (header.p_type != PT_GNU_EH_FRAME) continue;
        const std::uintptr_t at = module.dlpi_addr + header.p_vaddr;
        if (!is_loaded(module, at, header.p_memsz) || !segment_of(module, at, begin, end)) continue;
        out.head = at;
        out.head_end = at + header.p_memsz;
        out.segment_end = end;
    }
    return true;
}

/// Where the description of the function that may hold the address lies; 0: nowhere.
std::uintptr_t description_of(const Tables& tables) {
    constexpr std::size_t before_rows = 12;
    if (tables.head_end - tables.head < before_rows || !tables.can_read(tables.head, before_rows)) return 0;
    Cursor head(tables.head, tables.head_end);
    const auto version = head.take<std::uint8_t>();
    const auto pointer_encoding = head.take<std::uint8_t>();
    const auto count_encoding = head.take<std::uint8_t>();
    const auto table_encoding = head.take<std::uint8_t>();
    constexpr std::uint8_t sorted_table = 0x3B;  // data-relative, 32 bits: the only form that linkers write
    if (head.failed() || version != 1 || table_encoding != sorted_table) return 0;
    head.encoded(pointer_encoding, tables.head);
    const std::uintptr_t count = head.encoded(count_encoding, tables.head);
    struct Row {
        std::int32_t begin, description;
    };
    if (head.failed() || count == 0 || count > (head.end() - head.at()) / sizeof(Row)) return 0;
    bool good = true;
    const auto row = [&](std::uintptr_t i) {
        Row out{};
        const std::uintptr_t at = head.at() + i * sizeof out;
        good = good && tables.can_read(at, sizeof out);
        if (good) std::memcpy(&out, reinterpret_cast<const void*>(at), sizeof out);
        return out;
    };
    const auto begin_of = [&](std::uintptr_t i) { return tables.head + static_cast<std::uintptr_t>(row(i).begin); };
    if (tables.address < begin_of(0) || !good) return 0;
    std::uintptr_t low = 0;
    std::uintptr_t high = count;  // begin_of(low) <= address < begin_of(high)
    while (high - low > 1) {
        const std::uintptr_t middle = low + (high - low) / 2;
        (begin_of(middle) <= tables.address ? low : high) = middle;
    }
    const std::uintptr_t found = tables.head + static_cast<std::uintptr_t>(row(low).description);
    return good ? found : 0;
}

/// One entry of .eh_frame from behind its length on; its id is taken. Nothing: it can't be read.
std::optional<Cursor> entry_at(const Tables& tables, std::uintptr_t at, std::uintptr_t& id_at, std::uint32_t& id) {
    const std::uintptr_t limit = tables.segment_end;
    if (at >= limit || limit - at < 8 || !tables.can_read(at, 8)) return std::nullopt;
    Cursor lengths(at, limit);
    const auto length = lengths.take<std::uint32_t>();
    if (length < 4 || length == 0xFFFFFFFFU || length > limit - lengths.at()) return std::nullopt;
    if (!tables.can_read(lengths.at(), length)) return std::nullopt;
    Cursor entry(lengths.at(), lengths.at() + length);
    id_at = entry.at();
    id = entry.take<std::uint32_t>();
    return entry;
}

std::optional<CommonEntry> read_common(const Tables& tables, std::uintptr_t at) {
    std::uintptr_t id_at = 0;
    std::uint32_t id = 0;
    auto entry = entry_at(tables, at, id_at, id);
    if (!entry || id != 0) return std::nullopt;
    CommonEntry out;
    const auto version = entry->take<std::uint8_t>();
    std::array<char, 8> augmentation{};
    for (std::size_t i = 0;; ++i) {
        if (i == augmentation.size()) return std::nullopt;
        augmentation[i] = entry->take<char>();
        if (entry->failed()) return std::nullopt;
        if (augmentation[i] == 0) break;
    }
    out.code_factor = entry->uleb();
    out.data_factor = entry->sleb();
    out.return_register = version == 1 ? entry->take<std::uint8_t>() : entry->uleb();
    const char* letter = augmentation.data();
    if (*letter == 'z') {
        out.has_augmentation = true;
        const std::uint64_t bytes = entry->uleb();
        const std::uintptr_t begin = entry->at();
        for (++letter; *letter != 0 && !entry->failed(); ++letter) {
            if (*letter == 'R') out.pointers = entry->take<std::uint8_t>();
            if (*letter == 'L') entry->take<std::uint8_t>();
            if (*letter == 'S') out.is_signal = true;
            if (*letter == 'P') {
                const auto encoding = entry->take<std::uint8_t>();
                if ((encoding & 0x70U) == 0x50U) return std::nullopt;  // aligned
                entry->encoded(encoding & 0x0FU, 0);
            }
        }
        if (entry->failed() || bytes > entry->end() - begin) return std::nullopt;
        *entry = Cursor(begin + bytes, entry->end());
    } else if (*letter != 0) {
        return std::nullopt;
    }
    if (entry->failed()) return std::nullopt;
    out.begin = entry->at();
    out.end = entry->end();
    return out;
}

}  // namespace

namespace {

std::optional<FunctionEntry> entry_of(const Tables& tables) {
    const std::uintptr_t address = tables.address;
    if (tables.head == 0) return std::nullopt;
    const std::uintptr_t description = description_of(tables);
    std::uintptr_t id_at = 0;
    std::uint32_t id = 0;
    auto entry = description == 0 ? std::nullopt : entry_at(tables, description, id_at, id);
    if (!entry || id == 0) return std::nullopt;
    const auto common = read_common(tables, id_at - id);
    if (!common) return std::nullopt;
    const std::uintptr_t begin = entry->encoded(common->pointers, tables.head);
    const std::uintptr_t bytes = entry->encoded(common->pointers & 0x0FU, 0);
    if (common->has_augmentation) entry->skip(entry->uleb());
    if (entry->failed() || address < begin || address - begin >= bytes) return std::nullopt;
    return FunctionEntry{*common, begin, *entry};
}

}  // namespace

std::optional<FunctionEntry> function_entry_at(std::uintptr_t address) {
    Tables tables;
    tables.address = address;
    dl_iterate_phdr([](dl_phdr_info* module, std::size_t,
                       void* out) { return look_for_tables(*module, *static_cast<Tables*>(out)) ? 1 : 0; },
                    &tables);
    return entry_of(tables);
}

std::optional<FunctionEntry> function_entry_in(const dl_phdr_info& module, std::uintptr_t address,
                                               ReadablePages& known) {
    Tables tables;
    tables.address = address;
    tables.known = &known;
    look_for_tables(module, tables);
    return entry_of(tables);
}

}  // namespace palmette::base
