#include "palmette/aggregate/client/client.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "palmette/aggregate/crc32c.hpp"
#include "palmette/aggregate/support.hpp"

namespace palmette::aggregate {

Client::Client(Membership membership, Timeouts timeouts) : link_(std::move(membership), timeouts, *this) {
    ends_.grow(link_.membership().shape.chunk_bytes);
}

void Client::wait(int most_ms) noexcept {
    const int due = link_.due_ms();
    const int wait_ms = due < 0 || (most_ms >= 0 && most_ms < due) ? most_ms : due;
    pollfd waiting{link_.fd(), link_.events(), 0};
    if (link_.fd() >= 0) poll(&waiting, 1, wait_ms);
    link_.progress();
}

Reason Client::supports(const Operation& operation) const noexcept {
    const std::size_t extent = kernels::bytes_of(operation.element).extent;
    const std::uint64_t most = UINT64_MAX / extent;
    if (extent > link_.membership().shape.chunk_bytes || operation.count > most || operation.first > operation.count ||
        operation.wanted > operation.count - operation.first)
        return Reason::unsupported;
    if (combines(operation.collective) && operation.count > 0 && operation.input == nullptr) return Reason::unsupported;
    return supported(operation.collective, operation.op, operation.element, link_.hello().sharp_types != 0);
}

Reason Client::post(const Operation& operation, std::uint32_t& number) noexcept {
    if (link_.state() == Link::State::failed) return link_.reason();
    if (link_.state() == Link::State::left) return Reason::left;
    if (posted_ - finished_ == most_outstanding) return Reason::no_resource;
    const Reason reason = supports(operation);
    if (reason != Reason::none) return reason;
    number = posted_;
    operations_[posted_ % most_outstanding] = operation;
    ++posted_;
    link_.progress();
    return Reason::none;
}

std::uint64_t Client::elements_of_chunk(const Cursor& cursor) const {
    const Operation& operation = at(cursor.operation);
    const std::uint64_t whole = link_.membership().shape.chunk_bytes / kernels::bytes_of(operation.element).extent;
    return std::min(whole, operation.count - cursor.offset);
}

Header Client::header_of(const Cursor& cursor) const {
    const Operation& operation = at(cursor.operation);
    Header header;
    header.collective = operation.collective;
    header.op = operation.op;
    header.element = operation.element;
    header.root = operation.root;
    header.sequence = cursor.operation;
    header.offset = cursor.offset;
    header.count = operation.count;
    const std::uint64_t end = cursor.offset + elements_of_chunk(cursor);
    if (cursor.offset < operation.first + operation.wanted && end > operation.first) header.flags |= wants;
    return header;
}

void Client::step(Cursor& cursor) const {
    cursor.offset += elements_of_chunk(cursor);
    if (cursor.offset < at(cursor.operation).count) return;
    ++cursor.operation;
    cursor.offset = 0;
}

bool Client::next(Header& header, const char*& payload) noexcept {
    if (sending_.operation == posted_) return false;
    const Operation& operation = at(sending_.operation);
    const Header chunk = header_of(sending_);
    header.collective = chunk.collective;
    header.op = chunk.op;
    header.element = chunk.element;
    header.root = chunk.root;
    header.sequence = chunk.sequence;
    header.offset = chunk.offset;
    header.count = chunk.count;
    header.flags = chunk.flags;
    if (operation.input != nullptr) {
        const std::size_t extent = kernels::bytes_of(operation.element).extent;
        header.flags |= gives;
        header.bytes = static_cast<std::uint32_t>(elements_of_chunk(sending_) * extent);
        payload = static_cast<const char*>(operation.input) + sending_.offset * extent;
        header.payload_crc = crc32c(payload, header.bytes);
    }
    step(sending_);
    return true;
}

bool Client::place(const Header& header, char*& payload) noexcept {
    Header expected = header_of(receiving_);
    expected.chunk = header.chunk;
    const bool wanted = (expected.flags & wants) != 0;
    const Operation& operation = at(receiving_.operation);
    const std::size_t extent = kernels::bytes_of(operation.element).extent;
    const std::uint64_t elements = elements_of_chunk(receiving_);
    if (!same_chunk(expected, header) || header.bytes != (wanted ? elements * extent : 0)) return false;
    payload = ends_.data();
    if (wanted && header.offset >= operation.first && header.offset + elements <= operation.first + operation.wanted)
        payload = static_cast<char*>(operation.output) + (header.offset - operation.first) * extent;
    return true;
}

void Client::arrived(const Header& header) noexcept {
    const Operation& operation = at(receiving_.operation);
    const std::uint64_t begin = std::max(header.offset, operation.first);
    const std::uint64_t end =
        std::min(header.offset + elements_of_chunk(receiving_), operation.first + operation.wanted);
    const bool whole = header.offset >= operation.first && end == header.offset + elements_of_chunk(receiving_);
    if (header.bytes > 0 && !whole && begin < end) {
        const std::size_t extent = kernels::bytes_of(operation.element).extent;
        std::memcpy(static_cast<char*>(operation.output) + (begin - operation.first) * extent,
                    ends_.data() + (begin - header.offset) * extent, (end - begin) * extent);
    }
    step(receiving_);
    finished_ = receiving_.operation;
}

}  // namespace palmette::aggregate
