// Memory for bytes that are written before they are read.
#pragma once

#include <cstddef>
#include <memory>

namespace palmette::base {

/// A vector of bytes sets them all when it grows, which costs as much as a copy of them and takes their memory at once;
/// this one leaves them as they come.
class ByteBuffer {
  public:
    char* data() { return bytes_.get(); }
    const char* data() const { return bytes_.get(); }
    std::size_t size() const { return size_; }
    /// At least `size` bytes from now on. Where it has to grow, what was in it is lost.
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
