// A small hash table from MPI's handles to what palmette knows of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace palmette::runtime {

/// Filled once and then only read, by any number of threads. At most 2^bits - 1 handles; open addressing.
template <class Handle, class Value, unsigned bits>
class HandleTable {
  public:
    /// The first value is kept where an MPI has two names for one handle.
    void add(Handle handle, const Value& value) {
        const std::uint64_t key = key_of(handle);
        if (key == free) return;
        std::size_t at = slot_of(key);
        while (slots_[at].key != free && slots_[at].key != key) at = (at + 1) % slots_.size();
        if (slots_[at].key == free) slots_[at] = {key, value};
    }

    /// Null when the handle isn't in the table.
    const Value* find(Handle handle) const {
        const std::uint64_t key = key_of(handle);
        std::size_t at = slot_of(key);
        while (slots_[at].key != free) {
            if (slots_[at].key == key) return &slots_[at].value;
            at = (at + 1) % slots_.size();
        }
        return nullptr;
    }

  private:
    static constexpr std::uint64_t free = 0;  // no MPI's handle: a weak symbol that the library lacks is null
    struct Slot {
        std::uint64_t key = free;
        Value value{};
    };

    static std::uint64_t key_of(Handle handle) {
        // MPICH's handles are int, the others' are pointers.
        if constexpr (std::is_pointer_v<Handle>) {
            return reinterpret_cast<std::uintptr_t>(handle);
        } else {
            return static_cast<std::uint32_t>(handle);
        }
    }
    // The upper bits of a product with 2^64 divided by the golden ratio.
    static std::size_t slot_of(std::uint64_t key) { return key * 0x9e3779b97f4a7c15U >> (64 - bits); }

    std::array<Slot, std::size_t{1} << bits> slots_{};
};

}  // namespace palmette::runtime
