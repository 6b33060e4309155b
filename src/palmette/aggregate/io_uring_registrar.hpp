// Memory pinned by the kernel: registered buffers of io_uring, and sends from them. The only registration that a
// machine without an RDMA adapter has; what it costs, and what goes wrong without invalidation, is real.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palmette/aggregate/registration_cache.hpp"

namespace palmette::aggregate {

/// A ring with a table of buffers. Pages count against RLIMIT_MEMLOCK, but with CAP_IPC_LOCK.
class IoUringRegistrar final : public Registrar {
  public:
    /// Null, and the reason in `why`: the kernel or a container's policy forbids io_uring, or is too old.
    static std::unique_ptr<IoUringRegistrar> open(unsigned buffers, std::string& why);
    ~IoUringRegistrar() override;
    IoUringRegistrar(const IoUringRegistrar&) = delete;
    IoUringRegistrar& operator=(const IoUringRegistrar&) = delete;

    std::uintptr_t register_memory(void* memory, std::size_t bytes) override;
    bool exhausted() const override;
    void unregister_memory(std::uintptr_t handle) noexcept override;

    struct SendResult {
        int error = 0;  ///< an errno
        /// The kernel copied instead of sending from the pages, as it does to sockets of this host. Told since
        /// Linux 6.2.
        std::optional<bool> copied;
    };
    /// Sends all of it over a TCP socket from the registered pages, and waits until they are no longer needed.
    SendResult send(int socket, std::uintptr_t handle, const void* memory, std::size_t bytes);

    /// Why the last registration was refused: an errno.
    [[nodiscard]] int refused_by() const { return refused_by_; }

  private:
    struct Ring;
    explicit IoUringRegistrar(std::unique_ptr<Ring> ring, unsigned buffers);

    std::unique_ptr<Ring> ring_;
    std::vector<std::uint32_t> free_;
    int refused_by_ = 0;
    bool reports_copies_ = true;
};

}  // namespace palmette::aggregate
