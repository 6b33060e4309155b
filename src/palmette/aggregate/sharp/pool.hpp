// Buffers of operations, registered with the adapter once.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace palmette::aggregate::sharp {

/// What registers memory for an adapter's access: a cache of registrations may stand in front of it.
class Registrar {
  public:
    Registrar() = default;
    Registrar(const Registrar&) = delete;
    Registrar& operator=(const Registrar&) = delete;
    virtual ~Registrar() = default;
    /// 0 with a handle, or a negative Error.
    virtual int add(void* data, std::size_t bytes, void*& handle) noexcept = 0;
    virtual void remove(void* handle) noexcept = 0;
};

/// `count` slots with a buffer for what is sent and one for the result, in one registered piece.
class Pool {
  public:
    Pool(Registrar& registrar, std::size_t count, std::size_t slot_bytes);
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() { release(); }

    /// 0, or why the memory can't be registered.
    int error() const { return error_; }
    std::size_t slot_bytes() const { return slot_bytes_; }
    char* input(std::size_t slot) const { return data_.get() + 2 * slot * slot_bytes_; }
    char* output(std::size_t slot) const { return input(slot) + slot_bytes_; }
    /// Of all slots.
    void* handle() const { return handle_; }
    /// Before the registrar goes; the buffers stay.
    void release() noexcept;

  private:
    struct Free {
        void operator()(char* data) const { std::free(data); }
    };
    Registrar& registrar_;
    std::size_t slot_bytes_;
    std::unique_ptr<char, Free> data_;
    void* handle_ = nullptr;
    int error_ = 0;
};

}  // namespace palmette::aggregate::sharp
