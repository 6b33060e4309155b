// Pinned staging memory, queues and events, kept between calls: pinning takes the driver a millisecond.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "palmette/device/driver.hpp"

namespace palmette::device {

/// Host memory for staging.
struct HostBlock {
    char* data = nullptr;
    std::int64_t bytes = 0;
    bool pinned = false;
    Place pinned_at;
    bool may_pin = false;  ///< not tried yet
    bool reusable = false;
};

/// Memory of a device, for what plans keep between steps.
struct DeviceBlock {
    char* data = nullptr;
    std::int64_t bytes = 0;
    Place place;  ///< its own
};

/// A queue and the events of its commands, used by one call at a time.
struct Lane {
    Place place;
    Queue queue = nullptr;
    std::vector<Event> events;
};

/// What the process keeps for its calls; thread-safe.
class Resources {
  public:
    static Resources& instance();

    /// At least `bytes`. `sparse`: most of it won't be touched, so that it isn't pinned. Throws std::bad_alloc.
    HostBlock take(const Place& place, std::int64_t bytes, bool sparse = false);
    /// Pins it where the driver can; before its first copy, as a call may turn out to need none.
    void pin(HostBlock& block);
    /// No command may be outstanding on it.
    void give_back(const HostBlock& block);

    /// At least `bytes`, or none.
    DeviceBlock take_device(const Place& place, std::int64_t bytes);
    void give_back(const DeviceBlock& block);

    /// Status of the driver; then the lane has no queue.
    Status take(const Place& place, Lane& lane);
    /// Null where the driver has none to give.
    static Event event(Lane& lane, std::size_t index);
    /// `broken`: a command on it has failed; it isn't used again.
    void give_back(Lane&& lane, bool broken);

    /// Gives all back to the driver. Nothing may be in use. Called when the MPI ends.
    void release();

    struct Counts {
        std::atomic<std::int64_t> pinned{0};      ///< bytes, now
        std::atomic<std::int64_t> not_pinned{0};  ///< blocks that the driver refused to pin
    };
    const Counts& counts() const { return counts_; }

    /// Free blocks beyond so many bytes are unpinned and unmapped at once.
    static constexpr std::int64_t most_kept_bytes = std::int64_t{256} << 20;
    /// Bytes of idle blocks kept on a device, whose memory the program may need.
    static constexpr std::int64_t most_kept_on_device = std::int64_t{64} << 20;

  private:
    void unmap(const HostBlock& block);
    bool unmap_free();
    static void close(const Lane& lane);

    std::mutex mutex_;
    std::vector<HostBlock> free_;
    std::int64_t free_bytes_ = 0;
    std::vector<Lane> lanes_;
    std::vector<DeviceBlock> free_on_device_;
    std::int64_t free_on_device_bytes_ = 0;
    Counts counts_;
};

}  // namespace palmette::device
