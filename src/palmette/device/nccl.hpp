// NCCL, NVIDIA's library of collectives among devices, as it lies in the process or where the loader finds it.
//
// No function here waits for other processes: what takes them is begun and then polled, within a time limit.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "palmette/device/resources.hpp"

namespace palmette::device {

struct NcclApi;

/// How far a communicator, or an operation, has come.
enum class Progress : std::uint8_t { under_way, done, failed };

/// What all ranks of a communicator need to find each other.
using NcclId = std::array<char, 128>;

/// As NCCL counts them in an int: 2.27.3 is 22703.
inline constexpr int nccl_shares_devices_from = 23000, nccl_nonblocking_from = 21400;

/// Whether the library is there: already mapped, or at `path`, or where the loader finds it where `path` is empty.
/// Looks once a CUDA driver has been found; never unloaded.
bool find_nccl(const std::string& path);
/// 0 where it isn't there.
int nccl_version();
/// Null where it worked.
Status make_nccl_id(NcclId& id);

enum class NcclOperator : std::uint8_t { sum, prod, max, min };  // numbered as in nccl.h
/// What NCCL has for them; nothing: it can't reduce so.
std::optional<NcclOperator> nccl_operator(kernels::Operator op);
std::optional<int> nccl_type(kernels::Element element);
inline constexpr int nccl_bytes = 0;  ///< ncclInt8

/// Never two operations of NCCL's at once in a process: on one device they could wait for each other.
class NcclTurn {
  public:
    bool try_take() { return held_ || (held_ = !taken_.exchange(true, std::memory_order_acquire)); }
    void give_back() {
        if (std::exchange(held_, false)) taken_.store(false, std::memory_order_release);
    }
    NcclTurn() = default;
    NcclTurn(const NcclTurn&) = delete;
    NcclTurn& operator=(const NcclTurn&) = delete;
    ~NcclTurn() { give_back(); }

  private:
    static inline constinit std::atomic<bool> taken_{false};
    bool held_ = false;
};

/// One rank of a communicator of NCCL's, with a queue of its own, for one operation at a time.
class Nccl {
  public:
    /// Whether NCCL's commands and the program's on the default stream wait for each other, or, `apart`, not for each
    /// other: the program may issue some while an operation waits for other ranks, which may need this one's progress.
    enum class Order : std::uint8_t { with_program, apart };

    /// Begins to make it for the device of `place`; `join` tells how far it has come. All ranks must come.
    Nccl(const Place& place, int ranks, int rank, const NcclId& id, std::chrono::seconds limit,
         Order order = Order::with_program);
    Nccl(const Nccl&) = delete;
    Nccl& operator=(const Nccl&) = delete;
    ~Nccl();

    const Place& place() const { return place_; }
    Progress join();

    /// What comes next waits for what the program has issued on the default stream so far.
    Status follow_program();

    // Between `begin` and `commit`, any number of parts of one operation; they are a group of NCCL's. Counts are in
    // elements of `type`.
    void begin();
    void all_reduce(const void* from, void* to, std::int64_t count, int type, NcclOperator op);
    void reduce(const void* from, void* to, std::int64_t count, int type, NcclOperator op, int root);
    void reduce_scatter(const void* from, void* to, std::int64_t count, int type, NcclOperator op);
    void broadcast(const void* from, void* to, std::int64_t bytes, int root);
    void all_gather(const void* from, void* to, std::int64_t bytes);
    void send(const void* from, std::int64_t bytes, int peer);
    void receive(void* to, std::int64_t bytes, int peer);
    /// The operation is given up when this rank has polled `limit` longer than bytes at 50 MB/s need.
    void commit(std::int64_t bytes, std::chrono::seconds limit);
    /// What has passed so far doesn't count: other ranks may not have begun.
    void count_from_now();
    /// Polls the committed operation; `pending` until NCCL's stream has finished.
    Progress poll();

    /// Memory of the device for results that must not overwrite their input; null where there is none to have. It is
    /// kept until the MPI ends: giving memory back waits for all that the device does, the program's kernels included.
    void* scratch(std::int64_t bytes);
    /// Begins a copy that the next operation comes after, whichever side is on the device.
    Status enqueue_copy(void* to, const void* from, std::int64_t bytes);
    /// Begins a copy of what has come, and waits for all of these, whatever operation is under way.
    Status begin_delivery(void* to, const void* from, std::int64_t bytes);
    Status finish_deliveries();
    /// Copies a finished result from there; waits.
    Status copy(void* to, const void* from, std::int64_t bytes);

    /// Ends all that is under way, on this rank alone. It can't be used any more.
    void abort();
    /// After that: its queue may still be busy, and what its commands touch must stay.
    bool left_busy() const { return left_busy_; }
    /// Why something failed: "ncclAllReduce: unhandled system error".
    const std::string& why() const { return why_; }
    void fail(const std::string& why);

    /// Aborts all communicators that are still open, before the MPI ends.
    static void abort_all();

    static constexpr std::int64_t most_scratch = std::int64_t{1} << 30;

  private:
    struct Making;

    Queue queue() const { return apart_ ? apart_ : lane_.queue; }
    bool is_ready();
    void give_back_scratch();
    bool note(const char* function, int result);
    template <class Call>
    void add(const char* function, Call call);

    Place place_;
    std::shared_ptr<Making> making_;  ///< by a thread, where the version has nothing better
    void* handle_ = nullptr;
    Lane lane_;
    Queue apart_ = nullptr;
    Lane deliveries_;  ///< its queue is opened when it is needed
    std::chrono::steady_clock::time_point end_, last_poll_;
    std::chrono::microseconds allowed_{};  ///< for the operation
    bool committed_ = false, recorded_ = false, failed_ = false, closed_ = false, left_busy_ = false;
    void* scratch_ = nullptr;
    std::int64_t scratch_bytes_ = 0;
    std::string why_;
};

}  // namespace palmette::device
