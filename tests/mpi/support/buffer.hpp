// Memory for items of a layout, filled with noise, with noise around it: any byte that a collective must not touch shows.
#pragma once

#include <cstring>
#include <vector>

#include "layouts.hpp"

namespace test {

class Buffer {
  public:
    /// Room for the items `first` to `last` (exclusive), counted as displacements from `address`.
    Buffer(Rng& rng, const Layout& layout, MPI_Aint first, MPI_Aint last) {
        MPI_Aint begin = 0;
        MPI_Aint end = 0;
        if (last > first) {
            begin = std::min<MPI_Aint>(0, layout.begin(first));
            end = std::max<MPI_Aint>(0, layout.end(last - 1));
        }
        bytes_.resize(static_cast<std::size_t>(end - begin + 2 * guard));
        for (char& byte : bytes_) byte = static_cast<char>(rng.next());
        offset_ = guard - begin;
    }

    void* address() { return bytes_.data() + offset_; }
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

}  // namespace test
