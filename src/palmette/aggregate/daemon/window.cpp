#include "palmette/aggregate/daemon/window.hpp"

#include <algorithm>
#include <cstring>

#include "palmette/aggregate/crc32c.hpp"
#include "palmette/aggregate/support.hpp"

namespace palmette::aggregate {
namespace {

/// Kernels leave padding alone, which would then hold whatever was there before.
bool has_padding(kernels::Element element) {
    const kernels::ElementBytes bytes = kernels::bytes_of(element);
    return bytes.size != bytes.extent || element == kernels::Element::long_double ||
           element == kernels::Element::complex_long_double;
}

void describe(Detail& why, const char* what, unsigned member, const Header& header, const Header& other) {
    const std::string_view element = kernels::name_of(header.element), its = kernels::name_of(other.element);
    const std::string_view op = kernels::name_of(header.op), its_op = kernels::name_of(other.op);
    why.set("%s: member %u calls %s %u of %llu %.*s (%.*s, root %u), another one %s %u of %llu %.*s (%.*s, root %u)",
            what, member, name_of(header.collective), header.sequence, static_cast<unsigned long long>(header.count),
            static_cast<int>(element.size()), element.data(), static_cast<int>(op.size()), op.data(), header.root,
            name_of(other.collective), other.sequence, static_cast<unsigned long long>(other.count),
            static_cast<int>(its.size()), its.data(), static_cast<int>(its_op.size()), its_op.data(), other.root);
}

}  // namespace

Window::Window(unsigned members, const Shape& shape, bool only_sharp, bool inner)
    : shape_(shape),
      only_sharp_(only_sharp),
      inner_(inner),
      members_(members),
      slots_(shape.slots),
      wants_(std::size_t{members} * shape.slots),
      // Zeroed: the pages are there from now on, and hold nothing of another group.
      memory_(std::make_unique<char[]>(std::size_t{members + 1} * shape.slots * shape.chunk_bytes)) {}

std::uint64_t Window::bytes_of(unsigned members, const Shape& shape) {
    // 17, 16 and at most 24 bits.
    return (std::uint64_t{members} + 1) * shape.slots * shape.chunk_bytes +
           std::uint64_t{shape.slots} * (sizeof(Slot) + members) + std::uint64_t{members} * sizeof(Member);
}

Reason Window::check(unsigned member, const Header& header, Detail& why) noexcept {
    const Member& sender = members_[member];
    if (header.chunk != sender.received || header.chunk >= sender.results_sent + shape_.slots) {
        why.set("member %u sent chunk %llu out of turn or beyond its window", member,
                static_cast<unsigned long long>(header.chunk));
        return Reason::protocol;
    }
    const bool given = (header.flags & gives) != 0;
    const bool all_give = combines(header.collective) && header.count > 0;
    if (header.bytes > shape_.chunk_bytes || !fits_operation(header) || (header.bytes > 0 && !given) ||
        (all_give && header.bytes == 0)) {
        why.set("member %u sent a chunk of %u bytes, which its operation can't have", member, header.bytes);
        return Reason::protocol;
    }
    const Reason reason = supported(header.collective, header.op, header.element, only_sharp_);
    if (reason != Reason::none) {
        const std::string_view op = kernels::name_of(header.op), element = kernels::name_of(header.element);
        why.set("%.*s of %.*s isn't in this daemon's profile", static_cast<int>(op.size()), op.data(),
                static_cast<int>(element.size()), element.data());
        return reason;
    }
    const Slot& slot = slot_of(header.chunk);
    if (slot.begun == 0) return Reason::none;
    const bool differs = all_give && header.bytes != slot.first.bytes;
    if (!differs && same_chunk(slot.first, header)) return Reason::none;
    describe(why, "operations differ", member, header, slot.first);
    return Reason::mismatch;
}

Reason Window::accept(unsigned member, const Header& header, char*& to, Detail& why) noexcept {
    const Reason reason = check(member, header, why);
    if (reason != Reason::none) return reason;
    Slot& slot = slot_of(header.chunk);
    if (slot.begun == 0) {
        slot.first = header;
        slot.givers = 0;
        slot.wanted = false;
    }
    ++slot.begun;
    if ((header.flags & gives) != 0) {
        ++slot.givers;
        slot.giver = member;
        if (!combines(header.collective)) slot.first.bytes = header.bytes;
    }
    const bool wanted = (header.flags & wants) != 0;
    wants_of(member, header.chunk) = wanted ? 1 : 0;
    slot.wanted |= wanted;
    to = place_of(member, header.chunk);
    return Reason::none;
}

bool Window::arrived(unsigned member, Detail& why) noexcept {
    ++members_[member].received;
    for (;;) {
        while (next_ < members_.size() && members_[next_].received > combined_) combine_one(next_++);
        if (next_ < members_.size()) return true;
        if (!finish(why)) return false;
        next_ = 0;
        ++combined_;
    }
}

void Window::combine_one(unsigned member) noexcept {
    const Header& chunk = slot_of(combined_).first;
    if (!combines(chunk.collective) || member == 0 || chunk.bytes == 0) return;
    const std::size_t elements = chunk.bytes / kernels::bytes_of(chunk.element).extent;
    const kernels::Kernel kernel = kernels::kernel_for(chunk.op, chunk.element);
    char* sum = place_of(0, combined_);
    // The last one goes to the result's place, which no member still has to be sent: all have sent this chunk.
    const bool last = member + 1 == members_.size();
    char* target = last ? result_of(combined_) : sum;
    if (last && has_padding(chunk.element)) std::memcpy(target, sum, chunk.bytes);
    kernel(sum, place_of(member, combined_), target, elements);
}

bool Window::finish(Detail& why) noexcept {
    Slot& slot = slot_of(combined_);
    const Header& chunk = slot.first;
    const bool moves = !combines(chunk.collective) && chunk.count > 0;
    // Below another daemon the giver may be elsewhere in the tree.
    if (moves && (slot.givers > 1 || (slot.givers == 0 && !inner_))) {
        why.set("%s %u: %u members say that they are its root", name_of(chunk.collective), chunk.sequence, slot.givers);
        return false;
    }
    if (chunk.bytes > 0 && (moves || members_.size() == 1))
        std::memcpy(result_of(combined_), place_of(moves ? slot.giver : 0, combined_), chunk.bytes);
    slot.result = chunk;
    slot.result.type = inner_ ? FrameType::data : FrameType::result;
    slot.result.flags = static_cast<std::uint8_t>((slot.givers > 0 ? gives : 0) | (slot.wanted ? wants : 0));
    if (moves && slot.givers == 0) slot.result.bytes = 0;
    slot.result.payload_crc = slot.result.bytes > 0 ? crc32c(result_of(combined_), slot.result.bytes) : 0;
    slot.begun = 0;
    return true;
}

bool Window::next_result(unsigned member, Header& header, const char*& payload) noexcept {
    Member& to = members_[member];
    if (to.results_sent == results()) return false;
    header = slot_of(to.results_sent).result;
    payload = result_of(to.results_sent);
    header.flags = wants_of(member, to.results_sent) != 0 ? wants : 0;
    if (header.flags == 0) header.bytes = header.payload_crc = 0;
    return true;
}

bool Window::drained() const {
    return std::all_of(members_.begin(), members_.end(), [this](const Member& member) {
        return member.received == combined_ && member.results_sent == combined_;
    });
}

unsigned Window::missing(unsigned& first) const {
    unsigned number = 0;
    for (unsigned member = static_cast<unsigned>(members_.size()); member-- > 0;) {
        if (members_[member].received > combined_) continue;
        ++number;
        first = member;
    }
    return number;
}

bool Window::next_above(std::uint64_t chunk, Header& header, const char*& payload) noexcept {
    if (chunk >= combined_) return false;
    const Slot& slot = slot_of(chunk);
    const Header own = header;
    header = slot.result;
    header.group = own.group;
    header.epoch = own.epoch;
    payload = result_of(chunk);
    return true;
}

bool Window::place_from_above(const Header& header, char*& to) noexcept {
    if (from_above_ >= combined_) return false;
    const Slot& slot = slot_of(from_above_);
    if (!same_chunk(slot.result, header) || header.bytes > shape_.chunk_bytes || !fits_operation(header)) return false;
    // A combined chunk keeps its length; one that is moved has it from the root.
    const bool fixed = combines(header.collective);
    const bool wanted = (slot.result.flags & wants) != 0;
    if (!wanted ? header.bytes != 0 : fixed && header.bytes != slot.result.bytes) return false;
    to = result_of(from_above_);
    return true;
}

void Window::arrived_from_above(const Header& header) noexcept {
    Slot& slot = slot_of(from_above_);
    slot.result.type = FrameType::result;
    slot.result.bytes = header.bytes;
    slot.result.payload_crc = header.payload_crc;
    ++from_above_;
}

}  // namespace palmette::aggregate
