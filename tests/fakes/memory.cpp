#include "memory.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace fake {
namespace {

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t size) { return (size + page - 1) / page * page; }

}  // namespace

std::uintptr_t AddressSpace::take(std::size_t size) {
    const auto found = [&] {
        return std::find_if(free_.begin(), free_.end(), [&](const auto& range) { return range.second >= size; });
    };
    auto fits = found();
    if (fits == free_.end()) {
        const std::size_t bytes = (size + chunk - 1) / chunk * chunk;
        void* const range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) return 0;
        chunks_[reinterpret_cast<std::uintptr_t>(range)] = bytes;
        fits = free_.emplace(reinterpret_cast<std::uintptr_t>(range), bytes).first;
    }
    const auto [address, length] = *fits;
    free_.erase(fits);
    if (length > size) free_[address + size] = length - size;
    return address;
}

void AddressSpace::give_back(std::uintptr_t address, std::size_t size) {
    mmap(reinterpret_cast<void*>(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    const auto whole = std::prev(chunks_.upper_bound(address));
    auto at = free_.emplace(address, size).first;
    // Not with what lies in the next chunk.
    if (const auto after = std::next(at);
        after != free_.end() && at->first + at->second == after->first && after->first < whole->first + whole->second) {
        at->second += after->second;
        free_.erase(after);
    }
    if (at != free_.begin() && at->first != whole->first)
        if (const auto before = std::prev(at); before->first + before->second == at->first) {
            before->second += at->second;
            free_.erase(at);
            at = before;
        }
    if (*at != *whole) return;
    munmap(reinterpret_cast<void*>(whole->first), whole->second);
    free_.erase(at);
    chunks_.erase(whole);
}

AddressSpace& address_space() {
    static AddressSpace all;
    return all;
}

const char* name_of(Kind kind) {
    constexpr const char* names[] = {"device", "managed", "host", "registered", "pool", "mapped", "opened"};
    return names[static_cast<int>(kind)];
}

Pages::Pages(std::size_t bytes) : file(memfd_create("fake device", MFD_CLOEXEC)), size(whole_pages(bytes)) {
    struct stat status{};
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0 || fstat(file, &status) != 0) size = 0;
    inode = status.st_ino;
}

Pages::~Pages() {
    if (file >= 0) close(file);
}

Allocation::~Allocation() {
    if (kind == Kind::registered || address == 0) return;
    if (block) {
        const std::size_t first = offset / SmallBlock::part;
        for (std::size_t i = 0; i < (size + SmallBlock::part - 1) / SmallBlock::part; ++i)
            block->taken &= ~(1U << (first + i));
        return;
    }
    if (offset != 0) {
        address -= offset;
        size += offset;
        if (alias != nullptr) alias -= offset;
    }
    const std::size_t length = whole_pages(size);
    if (alias != nullptr && reinterpret_cast<std::uintptr_t>(alias) != address) munmap(alias, length);
    if (reserved != 0) {
        // The range stays reserved.
        mmap(reinterpret_cast<void*>(address), length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        return;
    }
    address_space().give_back(address, length);
}

AllocationPointer Memory::allocate(Kind kind, std::size_t size, int device) {
    auto pages = std::make_shared<Pages>(size);
    if (pages->size == 0) return nullptr;
    const bool readable = kind == Kind::managed || kind == Kind::host || device < 0;
    AllocationPointer made = map(kind, std::move(pages), 0, size, readable, 0);
    if (made) made->device = device;
    return made;
}

AllocationPointer Memory::allocate_small(Kind kind, std::size_t size, int device) {
    const std::size_t parts = (size + SmallBlock::part - 1) / SmallBlock::part;
    const auto mask = static_cast<std::uint32_t>((1U << parts) - 1);
    std::erase_if(blocks_, [](const auto& block) { return block.expired(); });
    std::shared_ptr<SmallBlock> block;
    std::size_t first = SmallBlock::parts;
    const auto look = [&] {
        for (first = 0; first + parts <= SmallBlock::parts; ++first)
            if ((block->taken & mask << first) == 0) return true;
        return false;
    };
    for (const auto& each : blocks_) {
        block = each.lock();
        if (block->device == device && look()) break;
        block = nullptr;
    }
    if (!block) {
        block = std::make_shared<SmallBlock>();
        block->page = allocate(kind, page, device);
        if (!block->page) return nullptr;
        block->device = device;
        blocks_.push_back(block);
        first = 0;
    }
    block->taken |= mask << first;
    auto made = std::make_shared<Allocation>();
    made->kind = kind;
    made->offset = first * SmallBlock::part;
    made->address = block->page->address + made->offset;
    made->size = size;
    made->alias = block->page->alias + made->offset;
    made->pages = block->page->pages;
    made->device = device;
    made->block = std::move(block);
    made->id = next_id();
    return made;
}

AllocationPointer Memory::map(Kind kind, std::shared_ptr<Pages> pages, std::size_t offset, std::size_t size,
                              bool readable, std::uintptr_t where) {
    const std::size_t length = whole_pages(size);
    const auto at = static_cast<off_t>(offset);
    const int access = PROT_READ | PROT_WRITE;
    if (where == 0) where = address_space().take(length);
    if (where == 0) return nullptr;
    void* const address = mmap(reinterpret_cast<void*>(where), length, readable ? access : PROT_NONE,
                               MAP_SHARED | MAP_FIXED, pages->file, at);
    if (address == MAP_FAILED) return nullptr;
    auto made = std::make_shared<Allocation>();
    made->kind = kind;
    made->address = reinterpret_cast<std::uintptr_t>(address);
    made->size = size;
    made->alias = static_cast<char*>(address);
    if (!readable) {
        void* const alias = mmap(nullptr, length, access, MAP_SHARED, pages->file, at);
        made->alias = alias == MAP_FAILED ? nullptr : static_cast<char*>(alias);
        if (alias == MAP_FAILED) return nullptr;
    }
    made->pages = std::move(pages);
    made->id = next_id();
    return made;
}

AllocationPointer Memory::find(std::uintptr_t address) const {
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) return nullptr;
    const AllocationPointer& before = std::prev(next)->second;
    return address < before->end() ? before : nullptr;
}

bool Memory::overlaps(std::uintptr_t address, std::size_t size) const {
    const auto next = allocations_.lower_bound(address);
    return find(address) != nullptr || (next != allocations_.end() && next->first < address + size);
}

std::vector<Piece> Memory::pieces(std::uintptr_t address, std::size_t size) const {
    std::vector<Piece> found;
    bool pageable = false, strict = false, mapped = false;  // of the piece before
    while (size > 0) {
        const AllocationPointer holder = find(address);
        const bool device = holder && holder->kind != Kind::registered;
        if ((!holder && strict) || (device && pageable)) return {};
        if (device && strict && !(mapped && holder->kind == Kind::mapped)) return {};
        std::uintptr_t end = address + size;
        if (holder) {
            end = std::min(end, holder->end());
        } else if (const auto next = allocations_.lower_bound(address); next != allocations_.end()) {
            end = std::min(end, next->first);
        }
        char* const at = holder ? holder->alias + (address - holder->address) : reinterpret_cast<char*>(address);
        found.push_back({at, end - address, holder});
        size -= end - address;
        address = end;
        strict = device;
        mapped = device && holder->kind == Kind::mapped;
        pageable = !device;
    }
    return found;
}

void copy(const std::vector<Piece>& target, const std::vector<Piece>& source) {
    std::size_t from = 0, to = 0, from_at = 0, to_at = 0;
    while (from < source.size() && to < target.size()) {
        const std::size_t part = std::min(source[from].size - from_at, target[to].size - to_at);
        std::memmove(target[to].at + to_at, source[from].at + from_at, part);
        from_at += part;
        to_at += part;
        if (from_at == source[from].size) ++from, from_at = 0;
        if (to_at == target[to].size) ++to, to_at = 0;
    }
}

}  // namespace fake
