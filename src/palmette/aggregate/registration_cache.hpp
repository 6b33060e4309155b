// Memory registered with a device or library (pinned, and known to it by a handle), kept for the next operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "palmette/base/range_cache.hpp"

namespace palmette::aggregate {

/// What registers memory: libsharp's reg_mr, io_uring's table of buffers.
class Registrar {
  public:
    virtual ~Registrar() = default;
    /// 0: refused.
    virtual std::uintptr_t register_memory(void* memory, std::size_t bytes) = 0;
    /// Whether the last one was refused for lack of something that unregistering gives back.
    virtual bool exhausted() const { return false; }
    virtual void unregister_memory(std::uintptr_t handle) noexcept = 0;
};

/// A registration keeps physical pages. When its memory is unmapped and the addresses are used again, a device goes on
/// reading the old pages: wrong data, without an error. So by default memory is registered only if whoever owns it
/// says when it goes: palmette's pool, which is never unmapped, and that of MPI_Alloc_mem, withdrawn by MPI_Free_mem.
/// Other memory is refused, and has to be copied through the pool.
///
/// No cheap way is known to see unmapping by others: allocators are hooked at the expense of the program, and
/// userfaultfd makes each munmap of watched memory wait for a thread that reads the event (a test shows it).
///
/// Several threads may use it: memory is freed by one while another one is in a collective.
class RegistrationCache final : private base::RangeHolder {
  public:
    using Bounds = base::RangeCache::Bounds;
    using Registration = base::RangeCache::Range;  ///< a range whose `handle` is the registrar's
    struct Counts : base::RangeCache::Counts {
        std::int64_t foreign = 0;  ///< refused without asking the registrar: memory that nobody has allowed
    };
    enum class Others : std::uint8_t {
        refused,
        trusted,  ///< the caller withdraws all memory before it is unmapped
    };

    /// `registrar` must outlive the cache.
    RegistrationCache(Registrar& registrar, Bounds bounds, Others others = Others::refused)
        : registrar_(registrar),
          bounds_(bounds),
          others_(others),
          ranges_(*this, bounds, base::RangeCache::Merge::overlapping) {}

    /// The owner of [memory, memory + bytes) will withdraw it before it is unmapped.
    void allow(const void* memory, std::size_t bytes);
    /// This memory is going to be unmapped: no registration of it is found any more; those in use end when released.
    void withdraw(const void* memory, std::size_t bytes) noexcept;

    /// What a new registration contains: the memory asked for, or all around it that was allowed, as far as the bound
    /// in bytes has it. Those who send long memory in pieces register it once by the latter.
    enum class Extent : std::uint8_t { asked, allowed };
    /// A registration that contains the memory, until it is released. Null: refused; copy through registered memory.
    Registration* take(const void* memory, std::size_t bytes, Extent extent = Extent::asked);
    void release(Registration* registration) noexcept;

    [[nodiscard]] Counts counts() const;
    [[nodiscard]] std::int64_t entries() const;
    /// Registered, those included that wait for their last release.
    [[nodiscard]] std::int64_t bytes() const;

  private:
    std::uintptr_t hold(int space, std::uint64_t begin, std::int64_t bytes) override;
    void drop(std::uintptr_t handle, std::int64_t bytes) noexcept override;
    bool exhausted() const override { return registrar_.exhausted(); }
    /// The range of allowed_ around it, or the end.
    std::map<std::uint64_t, std::uint64_t>::const_iterator allowed(std::uint64_t begin, std::uint64_t end) const;

    Registrar& registrar_;
    Bounds bounds_;
    Others others_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> allowed_;  ///< begin and end, disjoint, not touching
    std::int64_t foreign_ = 0;
    base::RangeCache ranges_;
};

}  // namespace palmette::aggregate
