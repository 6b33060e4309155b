// Buffers of operations, registered with the adapter once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "palmette/aggregate/registration_cache.hpp"

namespace palmette::aggregate::sharp {

/// `count` slots with a buffer for what is sent and one for the result, in one registered piece.
class Pool {
  public:
    Pool(Registrar& registrar, std::size_t count, std::size_t slot_bytes);
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() { release(); }

    /// Whether there is memory, and it is registered.
    explicit operator bool() const { return handle_ != 0; }
    std::size_t slot_bytes() const { return slot_bytes_; }
    char* input(std::size_t slot) const { return data_.get() + 2 * slot * slot_bytes_; }
    char* output(std::size_t slot) const { return input(slot) + slot_bytes_; }
    /// Registration handle that covers the whole pool.
    std::uintptr_t handle() const { return handle_; }
    /// Ends the registration, before the registrar goes; the buffers stay.
    void release() noexcept;

  private:
    struct Free {
        void operator()(char* data) const { std::free(data); }
    };
    Registrar& registrar_;
    std::size_t slot_bytes_;
    std::unique_ptr<char, Free> data_;
    std::uintptr_t handle_ = 0;
};

}  // namespace palmette::aggregate::sharp
