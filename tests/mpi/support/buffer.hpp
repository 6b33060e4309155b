// Memory that a collective works on, filled with noise, with noise around it: any byte that must not be touched shows.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "device.hpp"
#include "layouts.hpp"

namespace test {

class Buffer {
  public:
    /// Room for the bytes `begin` to `end` (exclusive), counted from `address`, which lies in it or at its border.
    Buffer(Rng& rng, MPI_Aint begin, MPI_Aint end) {
        begin = std::min<MPI_Aint>(0, begin);
        end = std::max<MPI_Aint>(0, end);
        bytes_.resize(static_cast<std::size_t>(end - begin + 2 * guard));
        rng.fill(bytes_.data(), bytes_.size());
        offset_ = guard + (-begin + 15) / 16 * 16;  // as aligned as memory from the heap is
        bytes_.resize(bytes_.size() + 16);
    }
    /// Room for the items 0 to `items` (exclusive) of a layout.
    Buffer(Rng& rng, const Layout& layout, MPI_Aint items)
        : Buffer(rng, items > 0 ? std::min(layout.begin(0), layout.begin(items - 1)) : 0,
                 items > 0 ? std::max(layout.end(0), layout.end(items - 1)) : 0) {}

    char* address() { return bytes_.data() + offset_; }
    const char* address() const { return bytes_.data() + offset_; }
    char* begin() { return bytes_.data(); }
    std::size_t bytes() const { return bytes_.size(); }
    bool operator==(const Buffer& other) const { return bytes_ == other.bytes_; }

    /// The first byte that differs, counted from the address.
    long first_difference(const Buffer& other) const {
        for (std::size_t i = 0; i < bytes_.size(); ++i) {
            if (bytes_[i] != other.bytes_[i]) return static_cast<long>(i) - static_cast<long>(offset_);
        }
        return 0;
    }

  private:
    static constexpr MPI_Aint guard = 64;
    std::vector<char> bytes_;
    MPI_Aint offset_ = 0;
};

/// A buffer in memory of another kind, while a call has it.
class BufferElsewhere {
  public:
    BufferElsewhere(Rng& rng, Buffer& buffer)
        : address_(buffer.address()), elsewhere_(rng, buffer.begin(), buffer.bytes()) {}
    char* address() const { return elsewhere_.at(address_); }
    void take_back() { elsewhere_.download(); }

  private:
    char* address_;
    Elsewhere elsewhere_;
};

}  // namespace test
