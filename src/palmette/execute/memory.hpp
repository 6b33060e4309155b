// Interface for copying and combining bytes: the seam for memory that the CPU can't access directly.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "palmette/kernels/kernels.hpp"

namespace palmette::execute {

class DeviceMemory;

/// A reduction that the kernels know, on elements without holes.
struct KnownOperation {
    kernels::Operator op;
    kernels::Element element;
};

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
    /// What an operation is, where the kernels know it.
    virtual std::optional<KnownOperation> known(std::uint8_t /*operation*/) const { return std::nullopt; }

    /// Set where some of it lies on devices.
    DeviceMemory* device() const { return device_; }

    // Where a device does the work, copy and combine may only begin it. Nothing that it reads or writes may be touched
    // until it is done, other work of the device's in the same memory included.

    /// Whether something was begun since the last `mark`.
    bool has_begun() const { return has_begun_; }
    /// A number for what was begun since the last one.
    virtual std::uint64_t mark() { return 0; }
    /// Finds out what is done by now.
    virtual void look() {}
    /// Whether all of a mark was done at the last look. Called until it is, and not afterwards.
    virtual bool is_done(std::uint64_t /*mark*/) { return true; }
    /// Waits for it, in place of that.
    virtual void await(std::uint64_t /*mark*/) {}
    /// Waits for all that was begun since the last mark.
    void await_begun() {
        if (has_begun_) await(mark());
    }

  protected:
    DeviceMemory* device_ = nullptr;
    bool has_begun_ = false;
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

}  // namespace palmette::execute
