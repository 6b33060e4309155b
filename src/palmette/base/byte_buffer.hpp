// Uninitialised byte buffer: for bytes that are written before they are read.
#pragma once

#include <cstddef>
#include <memory>

namespace palmette::base {

/// std::vector zero-initialises bytes when it grows, which costs as much as a copy of them and touches all pages at
/// once; this one leaves them uninitialised.
class ByteBuffer {
  public:
    char* data() { return bytes_.get(); }
    const char* data() const { return bytes_.get(); }
    std::size_t size() const { return size_; }
    /// Makes room for at least `size` bytes. Growing discards the contents.
    void grow(std::size_t size) {
        if (size <= size_) return;
        size_ = 0;
        bytes_.reset();
        bytes_ = std::make_unique_for_overwrite<char[]>(size);
        size_ = size;
    }

  private:
    std::unique_ptr<char[]> bytes_;
    std::size_t size_ = 0;
};

}  // namespace palmette::base
