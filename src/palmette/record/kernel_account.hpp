// What the kernel has accounted a thread for: how long it ran, how long it waited for a processor, and what it was
// blocked for. Read where a reading costs little of what it tells about: behind a long stretch outside of MPI, and now
// and then behind calls (palmette run --trace --sample).
#pragma once

#include <cstdint>
#include <optional>

namespace palmette::record {

/// Sums since the thread began.
struct AccountReading {
    std::uint64_t ran_ns = 0;
    std::uint64_t waited_ns = 0;  ///< for a processor, though it could have run
    std::uint64_t io = 0;         ///< page faults that needed I/O, and blocks that it has read and written
};

/// The kernel's account of the thread that opens it, and of no other.
class KernelAccount {
  public:
    KernelAccount() = default;
    KernelAccount(const KernelAccount&) = delete;
    KernelAccount& operator=(const KernelAccount&) = delete;
    ~KernelAccount() { close(); }

    /// False where the kernel keeps none (CONFIG_SCHED_INFO), or no /proc is there.
    bool open();
    void close();
    /// Some 1.5 us. Nothing where the program has closed the file, as those do that close all.
    std::optional<AccountReading> read() const;

    std::uint64_t ticks = 0;  ///< time of the last reading; 0: never
    AccountReading last;      ///< values at `ticks`

  private:
    bool is_own() const;

    int file_ = -1;
    std::uint64_t device_ = 0, inode_ = 0;  ///< identity of the file: the program may give its number to another one
};

}  // namespace palmette::record
