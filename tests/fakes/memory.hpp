// Memory of the simulated devices: a memfd, mapped without any access at the address that programs get, where every
// touch by the host is a SIGSEGV, and once more at an address that the fake alone knows, the alias.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda_types.hpp"

namespace fake {

struct Context;
struct Allocation;

/// The addresses that memory of a driver's gets: what the kernel has free, in chunks of 2 MiB, where memory of the
/// program's may have been before; those of freed memory are used again at once, by memory of any kind, and a chunk
/// that holds nothing any more goes back, so that the program's may come to lie there.
class AddressSpace {
  public:
    /// 0: there is no room.
    std::uintptr_t take(std::size_t size);
    /// The range can't be touched any more.
    void give_back(std::uintptr_t address, std::size_t size);

  private:
    static constexpr std::size_t chunk = std::size_t{2} << 20;
    void join(std::uintptr_t begin, std::size_t size);

    std::map<std::uintptr_t, std::size_t> chunks_, free_;
};
AddressSpace& address_space();

/// A file without a name that holds memory; closed with its last user.
struct Pages {
    int file = -1;
    std::size_t size = 0;
    ino_t inode = 0;

    explicit Pages(std::size_t bytes);
    explicit Pages(int opened) : file(opened) {}
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages();
};

/// Physical memory of cuMemCreate, mapped by cuMemMap.
struct PhysicalMemory {
    std::shared_ptr<Pages> pages;
    AllocationProperties properties{};
    std::uint64_t id = 0;
    std::string library;
    /// References by cuMemCreate and cuMemRetainAllocationHandle; mappings count as well.
    int handles = 1;
};

struct Pool {
    PoolProperties properties{};
    bool standard = false;
    std::string library;
};

/// A page that small allocations share, as they do on a real device: its parts are of 256 bytes.
struct SmallBlock {
    static constexpr std::size_t part = 256, parts = 16, largest = 1024;

    std::shared_ptr<Allocation> page;
    int device = 0;
    std::uint32_t taken = 0;
};

enum class Kind { device, managed, host, registered, pool, mapped, opened };
const char* name_of(Kind kind);

struct Allocation {
    Kind kind = Kind::device;
    std::uintptr_t address = 0;
    std::size_t size = 0;
    char* alias = nullptr;
    std::shared_ptr<Pages> pages;
    /// Where it begins in them.
    std::size_t offset = 0;
    /// The page that it is a part of; nullptr: it has pages of its own.
    std::shared_ptr<SmallBlock> block;
    /// Device among those visible here; -1: the host.
    int device = 0;
    Context* context = nullptr;
    /// Never used again in this process.
    std::uint64_t id = 0;
    std::string library;
    bool says_host = false;
    bool sync_memops = false;
    Pool* pool = nullptr;
    std::shared_ptr<PhysicalMemory> physical;
    /// Devices that may use a mapping, and its reserved range.
    std::vector<bool> accessible;
    std::uintptr_t reserved = 0;
    std::size_t reserved_size = 0;
    /// Handle by which memory was opened, and how often it was opened.
    std::string handle;
    int opens = 0;

    Allocation() = default;
    Allocation(const Allocation&) = delete;
    Allocation& operator=(const Allocation&) = delete;
    ~Allocation();

    std::uintptr_t end() const { return address + size; }
    bool on_host() const { return kind == Kind::host || kind == Kind::registered || device < 0; }
};
using AllocationPointer = std::shared_ptr<Allocation>;

/// Host memory in which a part of a range lies, and what keeps it mapped.
struct Piece {
    char* at;
    std::size_t size;
    AllocationPointer keeps;
};

/// All allocations by address. Not locked: its user locks.
class Memory {
  public:
    /// Maps new memory, which isn't in the map yet; nullptr: there is none.
    AllocationPointer allocate(Kind kind, std::size_t size, int device);
    /// Allocates a part of a page that other small allocations share; nullptr: there is none.
    AllocationPointer allocate_small(Kind kind, std::size_t size, int device);
    /// Maps `size` bytes of `pages` from `offset` on, at `where` unless that is 0.
    AllocationPointer map(Kind kind, std::shared_ptr<Pages> pages, std::size_t offset, std::size_t size, bool readable,
                          std::uintptr_t where);
    void insert(const AllocationPointer& allocation) { allocations_[allocation->address] = allocation; }
    void remove(const Allocation& allocation) { allocations_.erase(allocation.address); }
    /// What has this byte; nullptr: memory of the host that the driver doesn't know.
    AllocationPointer find(std::uintptr_t address) const;
    /// Whether any byte of the range is of an allocation.
    bool overlaps(std::uintptr_t address, std::size_t size) const;
    /// Where [address, address + size) lies; empty when it ends behind an allocation. Mapped ranges may touch.
    std::vector<Piece> pieces(std::uintptr_t address, std::size_t size) const;
    const std::map<std::uintptr_t, AllocationPointer>& all() const { return allocations_; }
    void clear() { allocations_.clear(); }
    std::uint64_t next_id() { return ++ids_; }

  private:
    std::map<std::uintptr_t, AllocationPointer> allocations_;
    std::vector<std::weak_ptr<SmallBlock>> blocks_;
    std::uint64_t ids_ = 0x1000;
};

/// Copies from pieces to pieces of the same length; they may overlap.
void copy(const std::vector<Piece>& target, const std::vector<Piece>& source);

}  // namespace fake
