// Interface for copying and combining bytes: the seam for memory that the CPU can't access directly.
#pragma once

#include <cstdint>
#include <cstring>

namespace palmette::runtime {

/// Error code of a broken invariant; distinct from the MPI's codes, which aren't negative.
inline constexpr int internal_error = -1;

/// The memory that the buffers of one operation lie in, scratch and staging among them. Codes are 0 or an error's.
class Memory {
  public:
    virtual ~Memory() = default;

    /// The two may overlap, or be the same (MPI_IN_PLACE).
    virtual void copy(char* to, const char* from, std::int64_t bytes) = 0;
    /// target = left op right over `bytes` of whole elements, each counted from its first byte on. `target` may be an
    /// operand.
    virtual int combine(std::uint8_t operation, const char* left, const char* right, char* target,
                        std::int64_t bytes) = 0;
    /// Element extent of an operation; parts that are combined are cut at element boundaries.
    virtual std::int64_t element_bytes(std::uint8_t operation) const = 0;
};

/// Host memory, for plans without reductions.
class HostMemory : public Memory {
  public:
    void copy(char* to, const char* from, std::int64_t bytes) override {
        if (to != from) std::memmove(to, from, static_cast<std::size_t>(bytes));
    }
    int combine(std::uint8_t, const char*, const char*, char*, std::int64_t) override { return internal_error; }
    std::int64_t element_bytes(std::uint8_t) const override { return 1; }
};

}  // namespace palmette::runtime
