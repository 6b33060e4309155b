// A copy of device memory in the host's, piece by piece in both directions.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/device/resources.hpp"

namespace palmette::device {

/// Bytes of a buffer that are data: rows of equal length at equal distances, from `begin` on.
struct RunGroup {
    std::int64_t begin = 0;
    Rows rows;
    std::int64_t end() const { return begin + (rows.count - 1) * rows.stride + rows.width; }
};
/// Sorted and disjoint runs as groups: neighbours of one length and distance make one.
void add_run(std::vector<RunGroup>& groups, std::int64_t begin, std::int64_t bytes);

/// One buffer of one call. Data goes from the device in pieces that are awaited where they are needed, and back in
/// pieces as they become final. Bytes that aren't data are neither read nor written on the device.
///
/// A copy that fails doesn't stop the call, which other ranks depend on: `failure` tells of the first one.
class StagedBuffer {
  public:
    StagedBuffer() = default;
    StagedBuffer(const StagedBuffer&) = delete;
    StagedBuffer& operator=(const StagedBuffer&) = delete;
    ~StagedBuffer() { close(); }

    /// `address` .. + `bytes` at `place`, of which `data` (sorted by begin; empty: all of it) is the caller's.
    /// `sparse`: most of it isn't. Throws std::bad_alloc.
    void open(const Place& place, void* address, std::int64_t bytes, std::vector<RunGroup> data, bool sparse);
    /// For the next call with the same buffer; nothing may be outstanding.
    void restart();
    /// Waits for what is outstanding, and gives all back.
    void close();

    bool is_open() const { return block_.data != nullptr; }
    const Place& place() const { return place_; }
    char* host() const { return block_.data + shift_; }
    char* device() const { return device_; }
    std::int64_t bytes() const { return bytes_; }
    bool holds(const char* host_address) const {
        return is_open() && host_address >= host() && host_address < host() + bytes_;
    }

    /// All of it is data.
    bool is_whole() const { return data_.empty(); }

    /// Begins to copy a part of the data to the host, for `await_done`.
    void read(std::int64_t offset, std::int64_t bytes);
    /// Starts reading all of the buffer from the device in pieces, for `await`.
    void start_reading();
    /// Waits until a part has come.
    void await(std::int64_t offset, std::int64_t bytes);
    void await_all() { await(0, bytes_); }

    /// Begins to copy a part of the data back.
    void start_writing(std::int64_t offset, std::int64_t bytes);
    void start_writing_all();
    /// Whether all that was begun is done; doesn't wait.
    bool is_done();
    void await_done();

    Status failure() const { return failure_; }
    std::int64_t bytes_read() const { return read_; }
    std::int64_t bytes_written() const { return written_; }

    /// Long enough for a link's full bandwidth, short enough to overlap with what follows: 512 KiB take a PCIe link of
    /// generation 4 about 20 us.
    static constexpr std::int64_t piece_bytes = 512 << 10;

  private:
    struct Piece {
        std::int64_t end;  ///< offset
        Event event;       ///< null: has come
    };
    bool has_queue();
    void copy(bool to_host, std::int64_t offset, std::int64_t bytes);
    void copy_group(bool to_host, const RunGroup& group);
    void note(Status status);
    Event marked();

    Place place_;
    char* device_ = nullptr;
    std::int64_t bytes_ = 0;
    std::int64_t shift_ = 0;  ///< of the data in its block
    std::vector<RunGroup> data_;
    HostBlock block_;
    Lane lane_;
    std::size_t events_used_ = 0;
    std::vector<Piece> reading_;
    std::size_t come_ = 0;  ///< pieces
    Event last_ = nullptr;  ///< after the last write
    bool outstanding_ = false;
    Status failure_ = nullptr;
    std::int64_t read_ = 0, written_ = 0;
};

}  // namespace palmette::device
