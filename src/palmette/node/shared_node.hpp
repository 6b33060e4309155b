// Shared-memory protocol of the ranks of one communicator on one node: lock-free exposures, read by peers.
//
// All members take part in the same operations in the same order, one at a time, so that a sequence number identifies
// an operation. In operation n a member publishes entries in its window n mod 16 with the stamp n + 1; peers wait for
// that stamp. A window, and the ring space of its operation, are reused once every member has finished the operation
// that had them. One operation is thus
//
//     while (!node.begin(ring_bytes)) spin_wait.pause();
//     node.expose_...(tag, ...);  while (!(e = node.find_exposure(peer, tag))) spin_wait.pause();  node.read(peer, *e,
//     ...); node.end();
//
// A member's windows and ring are written by that member alone (readers only increment `releases`), so publishing and
// reading need neither a lock nor a read-modify-write; a small message costs the transfer of one cache line.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "palmette/node/shared_attach_cache.hpp"
#include "palmette/node/shared_layout.hpp"
#include "palmette/node/shared_segment.hpp"

namespace palmette::node {

/// One member's view of the segment. Not for several threads at once. All calls are local and nonblocking.
class SharedNode {
  public:
    /// Creates the segment; the creator is its member `me`. Broadcast `name` to the others (at most
    /// SharedSegment::name_capacity characters). Null with the reason in `why` on failure.
    static std::unique_ptr<SharedNode> create(int members, int me, const SharedShape& shape,
                                              SharedSegment::Backing backing, std::string& name, std::string& why);
    /// Joins what `create` made. Null with the reason in `why`. When any member fails with Backing::memfd, all agree on
    /// that and start again with Backing::named; when that fails too, there is no shared memory.
    static std::unique_ptr<SharedNode> attach(const std::string& name, int members, int me, std::string& why);
    /// Takes the place of member `me` in a segment that is mapped already. Null with the reason in `why` when it is
    /// taken or there is no such place.
    static std::unique_ptr<SharedNode> join(std::shared_ptr<SharedSegment> segment, int me, std::string& why);

    ~SharedNode();
    SharedNode(const SharedNode&) = delete;
    SharedNode& operator=(const SharedNode&) = delete;

    /// To be called by each member once all have agreed that all have joined, before the first operation. From here on
    /// the segment has no name in the file system. Probes whether the others' memory can be read.
    void all_joined();

    /// Whether every member can read every other one's memory, so that exposures by address can be used; the same
    /// answer for all. Nothing as long as somebody hasn't called `all_joined`.
    [[nodiscard]] std::optional<bool> single_copy() const;
    /// The processors that any member may run on. Known after `all_joined`.
    [[nodiscard]] int cores() const { return cores_; }
    [[nodiscard]] int me() const { return me_; }
    [[nodiscard]] int members() const { return members_; }
    /// Capacity of a member's ring: the most that one operation of one member can have in it.
    [[nodiscard]] std::int64_t ring_bytes() const { return ring_; }
    /// Ring space that an exposure of `bytes` takes.
    static constexpr std::int64_t slot_bytes(std::int64_t bytes) { return round_up(bytes, cache_line); }

    /// Starts the next operation, with `ring_bytes` (a sum of `slot_bytes`) of ring for its exposures. False while a
    /// member is so far behind that window or ring are still in use: retry. Throws base::Error for more than
    /// `ring_bytes()`.
    bool begin(std::int64_t ring_bytes) {
        std::int64_t start = 0;
        if (!fits(ring_bytes, start) && !fits_after_refresh(ring_bytes, start)) return false;
        assert(!within_ && "the operation before hasn't ended");
        within_ = true;
        if (start - lap_ >= ring_) next_lap(ring_bytes);
        slots_ = start;
        head_ = start + slot_bytes(ring_bytes);
        if (ring_bytes <= small_ && head_ - lap_ > small_lap_ && head_ - lap_ <= longest_small_lap_)
            small_lap_ = head_ - lap_;
        starts_[static_cast<std::size_t>(now_ % shared_windows)] = start;
        window_ = shared_page + now_ % shared_windows * (shared_tags * static_cast<std::int64_t>(sizeof(Exposure)));
        return true;
    }

    /// Space in the ring for one exposure of this operation, at a multiple of 64. Null when `begin` hasn't asked for
    /// that much.
    char* ring_slot(std::int64_t bytes) {
        if (head_ - slots_ < bytes) return nullptr;
        char* at = my_ring() + (slots_ - lap_);
        slots_ += slot_bytes(bytes);
        return at;
    }

    /// Publishes data that was written to a slot.
    void expose_slot(unsigned tag, const char* slot, std::int64_t bytes) {
        Exposure& entry = mine(tag);
        entry.offset = slot - my_ring();
        publish(entry, ExposureKind::in_ring, bytes);
    }
    /// Publishes at most Exposure::inline_bytes, which are copied.
    void expose_inline(unsigned tag, const void* data, std::int64_t bytes) {
        assert(bytes <= Exposure::inline_bytes);
        Exposure& entry = mine(tag);
        if (bytes > 0) std::memcpy(entry.data, data, static_cast<std::size_t>(bytes));
        publish(entry, ExposureKind::in_entry, bytes);
    }
    /// Publishes data where it is. It must stay there unchanged until `read_by` says that its readers are done. What
    /// fits into the entry is copied inline.
    void expose_address(unsigned tag, const void* data, std::int64_t bytes) {
        if (bytes <= Exposure::inline_bytes) return expose_inline(tag, data, bytes);
        Exposure& entry = mine(tag);
        entry.address = reinterpret_cast<std::uint64_t>(data);
        entry.releases.store(0, std::memory_order_relaxed);
        publish(entry, ExposureKind::at_address, bytes);
    }
    /// Exposes device memory, which the host can't read. `descriptor`: a slot of the ring that tells how others
    /// open it; null: they ask for copies.
    void expose_device(unsigned tag, const void* data, std::int64_t bytes, const char* descriptor) {
        Exposure& entry = mine(tag);
        entry.device.address = reinterpret_cast<std::uint64_t>(data);
        entry.device.descriptor = descriptor ? descriptor - my_ring() : -1;
        entry.releases.store(0, std::memory_order_relaxed);
        publish(entry, ExposureKind::on_device, bytes);
    }
    /// Whether `readers` members have released this member's exposure; true at once for one that isn't read in place.
    /// Serves pending requests for copies of it.
    [[nodiscard]] bool read_by(unsigned tag, unsigned readers) {
        const Exposure& entry = at(me_, tag);
        if (!entry.in_place()) return true;
        const std::uint32_t releases = entry.releases.load(std::memory_order_acquire);
        if (releases >= Exposure::refusal) [[unlikely]]
            answer_requests();
        return releases % Exposure::refusal >= readers;
    }
    /// Whether a reader has asked for copies of this member's exposure.
    [[nodiscard]] bool was_refused(unsigned tag) const {
        const Exposure& entry = at(me_, tag);
        return entry.in_place() && entry.releases.load(std::memory_order_relaxed) >= Exposure::refusal;
    }

    /// A member's exposure in this operation; null: not there yet. Valid until `end`.
    [[nodiscard]] const Exposure* find_exposure(int member, unsigned tag) const {
        const Exposure& entry = at(member, tag);
        return entry.stamp.load(std::memory_order_acquire) == now_ + 1 ? &entry : nullptr;
    }
    /// Where an exposure's data can be read in place until `end` (by address: until `release`); null where only `read`
    /// reaches it.
    const char* direct(int member, const Exposure& exposure) {
        if (exposure.kind == ExposureKind::in_entry) return exposure.data;
        if (exposure.kind == ExposureKind::in_ring) return ring_of(member) + exposure.offset;
        if (exposure.kind == ExposureKind::on_device) return nullptr;
        return mapped(member, exposure);
    }
    /// How an exposure in device memory is opened; null: by nobody but its owner.
    const char* descriptor(int member, const Exposure& exposure) const {
        return exposure.device.descriptor < 0 ? nullptr : ring_of(member) + exposure.device.descriptor;
    }
    /// Copies a part of an exposure. Returns 0, or the errno of a read that failed; EINVAL for a part outside of it.
    int read(int member, const Exposure& exposure, std::int64_t offset, void* to, std::int64_t bytes) {
        if (offset < 0 || bytes < 0 || offset > exposure.bytes - bytes) return EINVAL;
        if (bytes == 0) return 0;
        if (exposure.kind == ExposureKind::on_device) return EFAULT;
        const char* from = direct(member, exposure);
        if (!from) return read_remote(member, exposure, offset, to, bytes);
        std::memcpy(to, from + offset, static_cast<std::size_t>(bytes));
        return 0;
    }
    /// Releases an exposure that is read in place, whose owner waits for its readers. No-op for other kinds.
    void release(int member, unsigned tag) const {
        const Exposure& entry = at(member, tag);
        if (entry.in_place()) entry.releases.fetch_add(1, std::memory_order_release);
    }

    // Fallback where `read` fails: the owner copies. It can't have left the operation as long as its exposure isn't
    // released.
    //
    //     node.refuse(owner, tag);  for each part:  node.ask(owner, tag, offset, bytes);
    //     while (!(data = node.answer())) { node.answer_requests(); spin_wait.pause(); }

    /// Makes the owner of an exposure by address poll for requests, until `release`.
    void refuse(int owner, unsigned tag) const {
        at(owner, tag).releases.fetch_add(Exposure::refusal, std::memory_order_release);
    }
    [[nodiscard]] std::int64_t most_asked() const { return SharedShape::relay_bytes(ring_); }
    /// Requests at most `most_asked` bytes of it. At most one outstanding request.
    void ask(int owner, unsigned tag, std::int64_t offset, std::int64_t bytes);
    /// The requested bytes, valid until the next request; null: not there yet.
    [[nodiscard]] const char* answer() const {
        const SharedRequest& mine = member(me_).request;
        return mine.answered.load(std::memory_order_acquire) == mine.asked.load(std::memory_order_relaxed)
                   ? relay_of(me_)
                   : nullptr;
    }
    /// Serves the peers' outstanding requests for this operation's exposures. To be called while waiting for an answer,
    /// too: peers may be waiting for this member's, which would deadlock.
    void answer_requests();
    /// Reads this member's exposures in device memory for that; null: there are none.
    class Reader {
      public:
        virtual ~Reader() = default;
        virtual void read(void* to, const char* from, std::int64_t bytes) = 0;
    };
    void read_device_with(Reader* reader) { reader_ = reader; }
    /// Tells all members that exposures of this one may be read in place, from the next operation on.
    void note_in_place() const {
        if (!any_in_place()) segment_->header().in_place.store(1, std::memory_order_relaxed);
    }
    [[nodiscard]] bool any_in_place() const { return segment_->header().in_place.load(std::memory_order_relaxed) != 0; }
    /// The owner of an exposure has ended the operation, after an error: it won't answer any more.
    [[nodiscard]] bool has_left(int owner) const {
        return member(owner).completed.load(std::memory_order_acquire) > now_;
    }

    /// Ends the operation: this member has exposed and read all of it.
    void end() {
        assert(within_);
        within_ = false;
        member(me_).completed.store(++now_, std::memory_order_release);
        if (cache_) cache_->settle();
    }

    /// Maps others' memory with `attacher`, so that `direct` reaches exposures by address. For tests;
    /// `all_joined` does it where XPMEM is there.
    void map_with(std::unique_ptr<SharedAttacher> attacher, AttachCache::Bounds bounds = {});
    /// Counts of the attach cache; zeros where nothing is mapped.
    [[nodiscard]] AttachCache::Counts attach_counts() const {
        return cache_ ? cache_->counts() : AttachCache::Counts{};
    }

  private:
    SharedNode(std::shared_ptr<SharedSegment> segment, int me);
    void publish_self();

    [[nodiscard]] char* part(int member) const { return parts_ + member * stride_; }
    [[nodiscard]] SharedMember& member(int member) const { return *reinterpret_cast<SharedMember*>(part(member)); }
    [[nodiscard]] char* relay_of(int member) const { return part(member) + SharedShape::before_ring + ring_; }
    [[nodiscard]] char* ring_of(int member) const { return part(member) + SharedShape::before_ring; }
    [[nodiscard]] char* my_ring() const { return ring_of(me_); }
    [[nodiscard]] Exposure& at(int member, unsigned tag) const {
        assert(within_ && tag < shared_tags && member >= 0 && member < members_);
        return reinterpret_cast<Exposure*>(part(member) + window_)[tag];
    }
    [[nodiscard]] Exposure& mine(unsigned tag) const { return at(me_, tag); }

    void publish(Exposure& entry, ExposureKind kind, std::int64_t bytes) const {
        entry.bytes = bytes;
        entry.kind = kind;
        entry.stamp.store(now_ + 1, std::memory_order_release);
    }

    /// Whether the next operation has a window and `bytes` of ring, by the others' progress as last seen; `start` is
    /// the ring position.
    ///
    /// Positions in the ring grow monotonically; an operation's space never wraps around the ring's end. Small
    /// operations stay in its beginning where they can, which is soon paged in and cached. Large ones use more and more
    /// of it, in the end all: lines that a peer's cache still holds take longer to write again than lines that it has
    /// evicted (studies/shared_copy.cpp: 256 KiB took 30 us through 256 KiB, 14 us through 1 MiB and 9 us through 4
    /// MiB). But first touch of memory costs ten times as much, so a lap gets longer only after eight of them.
    bool fits(std::int64_t bytes, std::int64_t& start) const {
        if (now_ - finished_by_all_ >= shared_windows) return false;
        start = head_;
        if (bytes <= 0) return true;
        const std::int64_t whole = slot_bytes(bytes);
        if (start - lap_ + whole > (whole <= small_ ? small_lap_ : std::max(large_lap_, std::min(ring_, 2 * whole))))
            start = lap_ + ring_;
        return is_free(start, whole);
    }
    void next_lap(std::int64_t bytes) {
        lap_ += ring_;
        if (bytes <= small_ || ++large_laps_ < 8) return;
        large_laps_ = 0;
        large_lap_ = std::min(ring_, 2 * large_lap_);
    }
    [[nodiscard]] bool is_free(std::int64_t start, std::int64_t bytes) const {
        const bool all_free = finished_by_all_ >= now_;
        const std::int64_t oldest =
            all_free ? start : starts_[static_cast<std::size_t>(finished_by_all_ % shared_windows)];
        return start + bytes - oldest <= ring_;
    }
    bool fits_after_refresh(std::int64_t bytes, std::int64_t& start);
    const char* mapped(int member, const Exposure& exposure);
    int read_remote(int member, const Exposure& exposure, std::int64_t offset, void* to, std::int64_t bytes) const;

    static constexpr std::int64_t small_ = 8 << 10;
    static constexpr std::int64_t first_small_lap_ = 32 << 10;
    static constexpr std::int64_t first_large_lap_ = 256 << 10;
    static constexpr std::int64_t longest_small_lap_ = shared_windows * small_;

    char* parts_;
    std::int64_t stride_;
    std::int64_t ring_;
    std::int64_t small_lap_;  ///< the part of the ring for small operations, longer where members lag behind
    std::int64_t large_lap_;  ///< and for large ones
    int large_laps_ = 0;      ///< of this length
    int me_;
    int members_;

    bool within_ = false;
    std::int64_t now_ = 0;                               ///< number of this operation, or of the next
    std::int64_t window_ = 0;                            ///< offset of its window in a member's part
    std::int64_t finished_by_all_ = 0;                   ///< operations that all members have finished, as last seen
    int slowest_ = 0;                                    ///< the member that had finished no more than that
    std::int64_t head_ = 0;                              ///< end of the allocated ring space
    std::int64_t lap_ = 0;                               ///< position of the ring's first byte
    std::int64_t slots_ = 0;                             ///< next free position of this operation
    std::array<std::int64_t, shared_windows> starts_{};  ///< where each window's operation begins in the ring

    int cores_ = 1;
    Reader* reader_ = nullptr;
    std::uint64_t probe_;  ///< a random word that the others try to read here
    mutable std::optional<bool> single_copy_;
    std::unique_ptr<SharedAttacher> attacher_;
    std::unique_ptr<AttachCache> cache_;
    std::shared_ptr<SharedSegment> segment_;
};

}  // namespace palmette::node
