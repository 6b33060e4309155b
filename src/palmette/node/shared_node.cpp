#include "palmette/node/shared_node.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/node/shared_single_copy.hpp"
#include "palmette/node/shared_xpmem.hpp"

namespace palmette::node {

std::unique_ptr<SharedNode> SharedNode::create(int members, int me, const SharedShape& shape,
                                               SharedSegment::Backing backing, std::string& name, std::string& why) {
    auto segment = SharedSegment::create(members, shape, backing, name, why);
    return segment ? join(std::move(segment), me, why) : nullptr;
}

std::unique_ptr<SharedNode> SharedNode::attach(const std::string& name, int members, int me, std::string& why) {
    auto segment = SharedSegment::open(name, members, why);
    return segment ? join(std::move(segment), me, why) : nullptr;
}

std::unique_ptr<SharedNode> SharedNode::join(std::shared_ptr<SharedSegment> segment, int me, std::string& why) {
    if (segment->members() >= 1 << SharedRequest::owner_bits) {
        why = base::cat("shared memory for ", segment->members(), " ranks of one node");
        return nullptr;
    }
    if (me < 0 || me >= segment->members()) {
        why = base::cat("member ", me, " of shared memory for ", segment->members(), " ranks");
        return nullptr;
    }
    std::unique_ptr<SharedNode> out(new SharedNode(std::move(segment), me));
    std::int32_t absent = SharedMember::absent;
    if (!out->member(me).state.compare_exchange_strong(absent, SharedMember::joining)) {
        why =
            base::cat("member ", me, " of this shared memory has already joined, as process ", out->member(me).process);
        return nullptr;
    }
    out->publish_self();
    return out;
}

SharedNode::SharedNode(std::shared_ptr<SharedSegment> segment, int me)
    : parts_(segment->part(0)),
      stride_(SharedShape::member_bytes(segment->ring_bytes())),
      ring_(segment->ring_bytes()),
      small_lap_(std::min(ring_, first_small_lap_)),
      large_lap_(std::min(ring_, first_large_lap_)),
      me_(me),
      members_(segment->members()),
      probe_(random_word()),
      segment_(std::move(segment)) {}

SharedNode::~SharedNode() = default;

void SharedNode::publish_self() {
    SharedMember& self = member(me_);
    self.process = getpid();
    self.probe_address = reinterpret_cast<std::uint64_t>(&probe_);
    self.probe = probe_;
    self.xpmem_segment = xpmem_segment();
    // The kernel writes a mask as long as its number of processors and leaves the rest, which is zero.
    sched_getaffinity(0, sizeof self.may_run_on, reinterpret_cast<cpu_set_t*>(self.may_run_on));
    [[maybe_unused]] static const bool once = permit_siblings_to_read();
    self.state.store(SharedMember::here, std::memory_order_release);
}

void SharedNode::all_joined() {
    segment_->forget_name();
    bool reads_all = true;
    std::vector<std::uint64_t> processors(SharedMember::most_processors / 64, 0);
    std::vector<std::int64_t> xpmem_segments;
    for (int peer = 0; peer < members_; ++peer) {
        const SharedMember& other = member(peer);
        if (other.state.load(std::memory_order_acquire) < SharedMember::here)
            base::fail("member ", peer,
                       " of the shared memory of this node hasn't joined, although all were reported to have joined");
        reads_all = reads_all && (peer == me_ || can_read_process(other.process, other.probe_address, other.probe));
        xpmem_segments.push_back(other.xpmem_segment);
        for (std::size_t word = 0; word < processors.size(); ++word) processors[word] |= other.may_run_on[word];
    }
    int cores = 0;
    for (const std::uint64_t word : processors) cores += std::popcount(word);
    cores_ = std::max(1, cores);
    if (auto attacher = xpmem_attacher(xpmem_segments)) map_with(std::move(attacher));
    member(me_).state.store(reads_all ? SharedMember::reads_all : SharedMember::reads_some, std::memory_order_release);
}

std::optional<bool> SharedNode::single_copy() const {
    if (single_copy_) return single_copy_;
    bool all = true;
    for (int peer = 0; peer < members_; ++peer) {
        const std::int32_t state = member(peer).state.load(std::memory_order_acquire);
        if (state < SharedMember::reads_some) return std::nullopt;
        all = all && state == SharedMember::reads_all;
    }
    single_copy_ = all;
    return all;
}

bool SharedNode::fits_after_refresh(std::int64_t bytes, std::int64_t& start) {
    if (slot_bytes(bytes) > ring_)
        base::fail("an operation asks for ", bytes, " bytes of a shared ring of ", ring_,
                   ": send larger data in parts");
    // Only the slowest member's counter can unblock us, so a poll loads one cache line instead of one per member.
    if (member(slowest_).completed.load(std::memory_order_relaxed) != finished_by_all_) {
        finished_by_all_ = now_;
        slowest_ = me_;
        for (int peer = 0; peer < members_; ++peer) {
            const std::int64_t done = member(peer).completed.load(std::memory_order_acquire);
            if (done >= finished_by_all_) continue;
            finished_by_all_ = done;
            slowest_ = peer;
        }
        if (fits(bytes, start)) return true;
    }
    if (now_ - finished_by_all_ >= shared_windows) return false;
    // The ring's beginning is in use: there may still be free space behind it.
    start = head_;
    const std::int64_t whole = slot_bytes(bytes);
    return start - lap_ + whole <= ring_ && is_free(start, whole);
}

void SharedNode::map_with(std::unique_ptr<SharedAttacher> attacher, AttachCache::Bounds bounds) {
    cache_.reset();
    attacher_ = std::move(attacher);
    cache_ = std::make_unique<AttachCache>(*attacher_, bounds);
}

const char* SharedNode::mapped(int member, const Exposure& exposure) {
    if (member == me_) return reinterpret_cast<const char*>(exposure.address);
    return cache_ ? cache_->find(member, exposure.address, exposure.bytes) : nullptr;
}

void SharedNode::ask(int owner, unsigned tag, std::int64_t offset, std::int64_t bytes) {
    assert(within_ && bytes <= most_asked());
    SharedRequest& mine = member(me_).request;
    mine.operation = now_;
    mine.tag = tag;
    mine.offset = offset;
    mine.bytes = bytes;
    const std::uint64_t number = (mine.asked.load(std::memory_order_relaxed) >> SharedRequest::owner_bits) + 1;
    mine.asked.store(number << SharedRequest::owner_bits | static_cast<std::uint64_t>(owner),
                     std::memory_order_release);
}

void SharedNode::answer_requests() {
    constexpr std::uint64_t owner_mask = (std::uint64_t{1} << SharedRequest::owner_bits) - 1;
    for (int peer = 0; peer < members_; ++peer) {
        SharedRequest& request = member(peer).request;
        // In this order: once it has been answered here, the peer may ask somebody else and get that answer.
        const std::uint64_t answered = request.answered.load(std::memory_order_acquire);
        const std::uint64_t asked = request.asked.load(std::memory_order_acquire);
        if (peer == me_ || (asked & owner_mask) != static_cast<std::uint64_t>(me_) || answered == asked ||
            request.operation != now_)
            continue;
        // The reader has checked the request against the exposure's bounds.
        const Exposure& exposure = mine(request.tag);
        const bool device = exposure.kind == ExposureKind::on_device;
        const auto* data =
            reinterpret_cast<const char*>(device ? exposure.device.address : exposure.address) + request.offset;
        if (!device)
            std::memcpy(relay_of(peer), data, static_cast<std::size_t>(request.bytes));
        else if (reader_)
            reader_->read(relay_of(peer), data, request.bytes);
        request.answered.store(asked, std::memory_order_release);
    }
}

int SharedNode::read_remote(int from, const Exposure& exposure, std::int64_t offset, void* to,
                            std::int64_t bytes) const {
    return read_process(member(from).process, exposure.address + static_cast<std::uint64_t>(offset), to, bytes);
}

}  // namespace palmette::node
