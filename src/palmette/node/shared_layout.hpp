// Layout of one node's shared-memory segment.
//
//   header | member 0: control page, windows, ring, relay | member 1: ... | ...
//
// Every member writes its own part first, so that first touch places its pages in the member's own NUMA domain.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace palmette::node {

constexpr std::int64_t cache_line = 64;
constexpr std::int64_t shared_page = 4096;

/// How many operations a member may be ahead of the slowest one.
constexpr std::int64_t shared_windows = 16;
/// Exposures of one member in one operation.
constexpr unsigned shared_tags = 64;

constexpr std::int64_t round_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// How an exposure's data can be reached.
enum class ExposureKind : std::uint32_t {
    in_entry,    ///< inline in the entry: one cache line carries flag and data
    in_ring,     ///< in the owner's ring
    at_address,  ///< in the owner's own memory
    on_device    ///< in device memory of the owner's
};

/// One exposure of one member. `stamp` is stored last, with release order: a member that loads operation + 1 from it
/// may read the rest.
struct alignas(cache_line) Exposure {
    static constexpr std::int64_t inline_bytes = 40;
    static constexpr std::uint32_t refusal = 1 << 16;

    std::atomic<std::int64_t> stamp;
    std::int64_t bytes;
    ExposureKind kind;
    /// Readers that are done, plus `refusal` for each reader that the system refused the read and that requests a copy;
    /// counted for at_address and on_device only.
    mutable std::atomic<std::uint32_t> releases;
    union {
        char data[inline_bytes];  ///< in_entry
        std::int64_t offset;      ///< in_ring: from the beginning of the owner's ring
        std::uint64_t address;    ///< at_address: in the owner's process
        struct {
            std::uint64_t address;    ///< likewise
            std::int64_t descriptor;  ///< where the owner's ring tells how to open it; -1: only the owner can read it
        } device;                     ///< on_device
    };

    /// Whether readers read the owner's memory itself, so that the owner waits for them.
    bool in_place() const { return kind == ExposureKind::at_address || kind == ExposureKind::on_device; }
};
static_assert(sizeof(Exposure) == cache_line);
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// Request for a part of another member's exposure by address that the system doesn't let this one read: the owner
/// copies it into this one's relay buffer.
struct SharedRequest {
    static constexpr int owner_bits = 16;

    /// A sequence number, and in the low `owner_bits` bits the owner. Written last; the rest stays unchanged until the
    /// owner answers.
    alignas(cache_line) std::atomic<std::uint64_t> asked;
    std::int64_t operation;
    std::int64_t offset;
    std::int64_t bytes;
    std::uint32_t tag;
    std::atomic<std::uint64_t> answered;  ///< the last value of `asked` that the owner has served
};
static_assert(sizeof(SharedRequest) == cache_line);

/// Control page of a member: what it publishes when it joins. All but `state` and `completed` is written before
/// `state`.
struct SharedMember {
    enum State : std::int32_t { absent = 0, joining, here, reads_some, reads_all };
    /// Linux knows no more processors than this.
    static constexpr int most_processors = 8192;

    /// The operations that this member has finished, its reads included.
    alignas(cache_line) std::atomic<std::int64_t> completed;

    alignas(cache_line) std::atomic<std::int32_t> state;
    std::int32_t process;
    std::uint64_t probe_address;  ///< of a copy of `probe` in the member's private memory, which peers try to read
    std::uint64_t probe;
    std::int64_t xpmem_segment;                      ///< -1: none
    std::uint64_t may_run_on[most_processors / 64];  ///< affinity mask

    SharedRequest request;
};
static_assert(sizeof(SharedMember) <= shared_page);

/// The first page.
struct SharedHeader {
    static constexpr std::uint64_t magic_word = 0x336574746d6c6170;  // "palmtte3", the layout's version last

    std::uint64_t magic;
    std::uint64_t token;  ///< random, also in the segment's name: identifies the segment
    std::int64_t members;
    std::int64_t ring_bytes;
    std::atomic<std::uint32_t> in_place{0};  ///< 1: a member has begun an operation with exposures in place
};

/// The size of the shared memory of one communicator on one node.
struct SharedShape {
    std::int64_t ring_bytes = 4 << 20;  ///< upper bound of each member's data ring, cut to whole pages
    std::int64_t all_rings_bytes =
        16 << 20;  ///< of all rings: they should fit the shared cache, so more members get smaller rings
    std::int64_t limit_bytes = std::int64_t{1} << 29;  ///< of the whole segment

    static constexpr std::int64_t least_bytes =
        1 << 20;  ///< of a ring for `all_rings_bytes`; smaller only to keep the limit
    static constexpr std::int64_t windows_bytes =
        shared_windows * shared_tags * static_cast<std::int64_t>(sizeof(Exposure));
    static constexpr std::int64_t before_ring = shared_page + windows_bytes;
    /// Size of the relay, for answers to a SharedRequest, behind a ring of `ring` bytes.
    static constexpr std::int64_t relay_bytes(std::int64_t ring) {
        return std::min<std::int64_t>(64 << 10, round_up(ring / 16, shared_page));
    }

    /// The ring that `members` members get within the limit; 0 where not even one page each is left.
    [[nodiscard]] constexpr std::int64_t ring_for(std::int64_t members) const {
        const std::int64_t share = std::max(least_bytes, all_rings_bytes / members);
        const std::int64_t most = (limit_bytes - shared_page) / members - before_ring;
        const std::int64_t beside_relay = (most - shared_page) / 17 * 16;
        const std::int64_t ring = std::min({ring_bytes, share, beside_relay}) / shared_page * shared_page;
        return ring > 0 ? ring : 0;
    }
    static constexpr std::int64_t member_bytes(std::int64_t ring) { return before_ring + ring + relay_bytes(ring); }
    static constexpr std::int64_t segment_bytes(std::int64_t members, std::int64_t ring) {
        return shared_page + members * member_bytes(ring);
    }
};

}  // namespace palmette::node
