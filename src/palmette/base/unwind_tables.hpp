// The unwind tables of a module (.eh_frame and its sorted index), read without trusting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

struct dl_phdr_info;

namespace palmette::base {

class ReadablePages;

/// Reads a module's tables and fails beyond an end, or where nothing can be read.
class Cursor {
  public:
    Cursor(std::uintptr_t at, std::uintptr_t end) : at_(at), end_(end) {}
    std::uintptr_t at() const { return at_; }
    std::uintptr_t end() const { return end_; }
    bool failed() const { return failed_; }
    bool done() const { return failed_ || at_ >= end_; }
    void skip(std::uint64_t bytes) {
        if (bytes > end_ - at_)
            failed_ = true;
        else
            at_ += bytes;
    }
    template <class Value>
    Value take() {
        Value value{};
        if (failed_ || sizeof value > end_ - at_) {
            failed_ = true;
            return value;
        }
        std::memcpy(&value, reinterpret_cast<const void*>(at_), sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::uint64_t uleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = take<std::uint8_t>();
            value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if (failed_ || (byte & 0x80U) == 0) return value;
        }
        failed_ = true;
        return 0;
    }
    std::int64_t sleb() {
        std::int64_t value = 0;
        for (unsigned shift = 0; shift < 64;) {
            const auto byte = take<std::uint8_t>();
            value |= static_cast<std::int64_t>(static_cast<std::uint64_t>(byte & 0x7FU) << shift);
            shift += 7;
            if (failed_) return 0;
            if ((byte & 0x80U) != 0) continue;
            if (shift < 64 && (byte & 0x40U) != 0) value |= -static_cast<std::int64_t>(std::uint64_t{1} << shift);
            return value;
        }
        failed_ = true;
        return 0;
    }
    /// A pointer in one of the tables' encodings. `data`: what data-relative ones are relative to.
    std::uintptr_t encoded(std::uint8_t encoding, std::uintptr_t data) {
        const std::uintptr_t here = at_;
        std::uint64_t value = 0;
        switch (encoding & 0x0FU) {
            case 0x00:
            case 0x04:
            case 0x0C:
                value = take<std::uint64_t>();
                break;
            case 0x02:
                value = take<std::uint16_t>();
                break;
            case 0x03:
                value = take<std::uint32_t>();
                break;
            case 0x0A:
                value = static_cast<std::uint64_t>(take<std::int16_t>());
                break;
            case 0x0B:
                value = static_cast<std::uint64_t>(take<std::int32_t>());
                break;
            default:
                failed_ = true;
        }
        switch (encoding & 0x70U) {
            case 0x00:
                return value;
            case 0x10:
                return here + value;
            case 0x30:
                return data + value;
            default:
                failed_ = true;
                return 0;
        }
    }

  private:
    std::uintptr_t at_, end_;
    bool failed_ = false;
};

/// What all functions of a compilation unit have in common (a CIE).
struct CommonEntry {
    std::uint64_t code_factor = 1;
    std::int64_t data_factor = 1;
    std::uint64_t return_register = 0;
    std::uint8_t pointers = 0;  ///< encoding of addresses
    bool has_augmentation = false, is_signal = false;
    std::uintptr_t begin = 0, end = 0;  ///< instructions
};

/// One function's entry (an FDE) and its instructions.
struct FunctionEntry {
    CommonEntry common;
    std::uintptr_t begin = 0;  ///< the function's first address
    Cursor instructions;
};

/// The entry of the function with the address; nothing where no table of a loaded module has one that can be read.
std::optional<FunctionEntry> function_entry_at(std::uintptr_t address);
/// As function_entry_at, for a module that is known to hold the address and pages that `known` has found readable.
/// Async-signal-safe.
std::optional<FunctionEntry> function_entry_in(const dl_phdr_info& module, std::uintptr_t address,
                                               ReadablePages& known);

/// Finds the loaded segment of a module that holds an address.
bool segment_of(const dl_phdr_info& module, std::uintptr_t address, std::uintptr_t& begin, std::uintptr_t& end);

/// Whether `bytes` from `address` on belong to a segment of the module that is loaded for reading. The program may have
/// made it unreadable since, or have cut the file below it: is_readable tells.
bool is_loaded(const dl_phdr_info& module, std::uintptr_t address, std::size_t bytes);

}  // namespace palmette::base
