// Whether memory of this process can be read: asked of the kernel, for addresses that a program's tables or stacks
// give.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace palmette::base {

inline constexpr std::uintptr_t memory_page = 4096;

/// Whether the 8 bytes at `address` can be read now. One system call, 0.1 us; changes nothing, errno neither.
bool is_readable(std::uintptr_t address);

/// Whether all pages of the `bytes` bytes from `address` are readable; true for 0 bytes.
bool is_readable(std::uintptr_t address, std::size_t bytes);

/// Pages that were found to be readable, for who looks at the same ones again and again, and takes it that they stay
/// so.
class ReadablePages {
  public:
    /// Whether all pages of the `bytes` bytes from `address` are readable; asks once for each page.
    bool has(std::uintptr_t address, std::size_t bytes);
    void forget() { pages_ = {}; }

  private:
    static constexpr std::size_t slots = 1024;
    std::array<std::uintptr_t, slots> pages_{};
};

}  // namespace palmette::base
