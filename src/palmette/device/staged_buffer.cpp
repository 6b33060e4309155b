#include "palmette/device/staged_buffer.hpp"

#include <algorithm>
#include <utility>

#include "palmette/device/place.hpp"

namespace palmette::device {

void add_run(std::vector<RunGroup>& groups, std::int64_t begin, std::int64_t bytes) {
    if (!groups.empty()) {
        RunGroup& last = groups.back();
        if (last.rows.count == 1 && last.end() == begin) {
            last.rows.width += bytes;
            return;
        }
        const std::int64_t distance = begin - (last.begin + (last.rows.count - 1) * last.rows.stride);
        if (last.rows.width == bytes && (last.rows.count == 1 || last.rows.stride == distance)) {
            last.rows.stride = distance;
            ++last.rows.count;
            return;
        }
    }
    groups.push_back({begin, {bytes, 1, bytes}});
}

void StagedBuffer::open(const Place& place, void* address, std::int64_t bytes, std::vector<RunGroup> data,
                        bool sparse) {
    place_ = place;
    device_ = static_cast<char*>(address);
    bytes_ = bytes;
    data_ = std::move(data);
    // At the same place of a cache line, for the alignment of elements.
    shift_ = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) % 64);
    block_ = Resources::instance().take(place, bytes + shift_, sparse);
    restart();
}

void StagedBuffer::restart() {
    if (failure_) {
        Resources::instance().give_back(std::move(lane_), true);
        lane_ = Lane();
    }
    failure_ = nullptr;
    reading_.clear();
    come_ = events_used_ = 0;
    last_ = nullptr;
    outstanding_ = false;
    read_ = written_ = 0;
}

void StagedBuffer::close() {
    if (!is_open()) return;
    await_done();
    Resources::instance().give_back(std::move(lane_), failure_ != nullptr);
    lane_ = Lane();
    Resources::instance().give_back(block_);
    block_ = HostBlock();
}

bool StagedBuffer::has_queue() {
    if (!lane_.queue && !failure_) {
        Resources::instance().pin(block_);
        note(Resources::instance().take(place_, lane_));
    }
    return lane_.queue != nullptr;
}

void StagedBuffer::note(Status status) {
    if (status && !failure_) failure_ = status;
}

Event StagedBuffer::marked() {
    Event event = Resources::event(lane_, events_used_++);
    if (!event)
        note("no event");
    else
        note(place_.driver->record(place_, event, lane_.queue));
    return event;
}

void StagedBuffer::copy(bool to_host, std::int64_t offset, std::int64_t bytes) {
    if (bytes <= 0 || !has_queue()) return;
    char* const host = this->host() + offset;
    char* const device = device_ + offset;
    outstanding_ = true;
    note(to_host ? place_.driver->copy(place_, lane_.queue, host, device, bytes)
                 : place_.driver->copy(place_, lane_.queue, device, host, bytes));
    (to_host ? read_ : written_) += bytes;
}

void StagedBuffer::copy_group(bool to_host, const RunGroup& group) {
    if (group.rows.count == 1) return copy(to_host, group.begin, group.rows.width);
    // Drivers take strides that aren't smaller than the rows, which these are, and only up to a limit (2 GiB).
    constexpr std::int64_t most_stride = std::int64_t{1} << 31;
    if (group.rows.stride >= most_stride) {
        for (std::int64_t i = 0; i < group.rows.count; ++i)
            copy(to_host, group.begin + i * group.rows.stride, group.rows.width);
        return;
    }
    if (!has_queue()) return;
    char* const host = this->host() + group.begin;
    char* const device = device_ + group.begin;
    outstanding_ = true;
    note(to_host ? place_.driver->copy_rows(place_, lane_.queue, host, device, group.rows, true)
                 : place_.driver->copy_rows(place_, lane_.queue, device, host, group.rows, false));
    (to_host ? read_ : written_) += group.rows.width * group.rows.count;
}

void StagedBuffer::read(std::int64_t offset, std::int64_t bytes) {
    if (is_whole())
        copy(true, offset, bytes);
    else
        for (const RunGroup& group : data_)
            if (group.begin < offset + bytes && offset < group.end()) copy_group(true, group);
}

void StagedBuffer::start_reading() {
    if (!reading_.empty() || bytes_ == 0) return;
    if (!is_whole()) {
        for (const RunGroup& group : data_) copy_group(true, group);
        reading_.push_back({bytes_, lane_.queue ? marked() : nullptr});
        return;
    }
    for (std::int64_t at = 0; at < bytes_; at += piece_bytes) {
        const std::int64_t end = std::min(bytes_, at + piece_bytes);
        copy(true, at, end - at);
        reading_.push_back({end, lane_.queue ? marked() : nullptr});
    }
}

void StagedBuffer::await(std::int64_t offset, std::int64_t bytes) {
    // Pieces come in order.
    while (come_ < reading_.size() && (come_ == 0 ? 0 : reading_[come_ - 1].end) < offset + bytes) {
        if (reading_[come_].event) note(place_.driver->wait(place_, reading_[come_].event));
        ++come_;
    }
}

void StagedBuffer::start_writing(std::int64_t offset, std::int64_t bytes) {
    if (is_whole()) return copy(false, offset, bytes);
    for (const RunGroup& group : data_)
        if (group.begin < offset + bytes && offset < group.end()) copy_group(false, group);
}

void StagedBuffer::start_writing_all() {
    if (is_whole())
        copy(false, 0, bytes_);
    else
        for (const RunGroup& group : data_) copy_group(false, group);
}

bool StagedBuffer::is_done() {
    if (!outstanding_ || !lane_.queue) return true;
    if (!last_) last_ = marked();
    if (!last_) {
        await_done();
        return true;
    }
    bool done = false;
    note(place_.driver->query(place_, last_, done));
    if (done) outstanding_ = false, last_ = nullptr;
    return done;
}

void StagedBuffer::await_done() {
    if (outstanding_ && lane_.queue) note(place_.driver->synchronize(place_, lane_.queue));
    outstanding_ = false;
    last_ = nullptr;
    come_ = reading_.size();
}

}  // namespace palmette::device
