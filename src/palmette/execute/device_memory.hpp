// Memory of one operation that partly lies on a device: of this process, or of others that have exposed it.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/device/ipc.hpp"
#include "palmette/device/resources.hpp"
#include "palmette/execute/memory.hpp"
#include "palmette/node/shared_node.hpp"

namespace palmette::runtime {

/// Copies by a queue of the device, on which they are begun in order; reductions by kernels there, where all operands
/// lie on devices that it reaches and the kernels know the operation, otherwise on the host through pinned memory.
///
/// An error of the driver doesn't stop the operation, which other ranks depend on: `close` tells of the first one.
class DeviceMemory final : public Memory, public SharedNode::Reader {
  public:
    DeviceMemory() { device_ = this; }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;
    ~DeviceMemory() override { close(); }

    /// For one operation; `host` is what combines on the host. Exposures of at least `by_handle_from` bytes are opened
    /// by their readers. `combines`: the operation reduces. Status of the driver: then it isn't open. Throws
    /// std::bad_alloc.
    device::Status open(Memory& host, const device::Place& place, std::int64_t by_handle_from, bool combines);
    /// The plan's own blocks, on the device as well; null: it has no memory to give, and they are the host's.
    char* scratch(std::int64_t bytes);
    /// Memory of this process on that device, or one that `same_queue` finds equal.
    void add(const char* begin, std::int64_t bytes) { ranges_.push_back({begin, begin + bytes}); }
    /// Waits for what is outstanding, and gives all back. The driver's first error; null: none.
    device::Status close();
    bool is_open() const { return lane_.queue != nullptr; }

    void copy(char* to, const char* from, std::int64_t bytes) override;
    int combine(std::uint8_t operation, const char* left, const char* right, char* target, std::int64_t bytes) override;
    std::int64_t element_bytes(std::uint8_t operation) const override { return host_->element_bytes(operation); }
    std::optional<KnownOperation> known(std::uint8_t operation) const override { return host_->known(operation); }

    /// Whether the host must not touch it.
    bool holds(const char* address) const {
        for (const Range& range : ranges_)
            if (address >= range.begin && address < range.end) return true;
        return false;
    }
    /// Whether something is outstanding.
    bool is_busy() const { return busy_; }
    /// Waits for it.
    void settle();

    /// Of exposures; see SharedNode::expose_device.
    std::int64_t by_handle_from() const { return by_handle_from_; }
    bool find_export(const char* address, std::int64_t bytes, device::Exported& out) const;
    /// Where a peer's exposure is reached; null: it can't be from here. `address` is its owner's.
    const char* reach(const device::Exported& exported, std::uint64_t address, std::int64_t bytes);

    void read(void* to, const char* from, std::int64_t bytes) override {
        copy(static_cast<char*>(to), from, bytes);
        settle();
    }

    struct Counts {
        std::atomic<std::int64_t> on_device{0};  ///< reductions by kernels
        std::atomic<std::int64_t> on_host{0};    ///< those of device memory that the host did
    };
    static Counts counts;

  private:
    struct Range {
        const char* begin;
        const char* end;
    };
    struct Reached {
        device::Exported exported;
        device::Imports::Mapping mapping;
    };
    void note(device::Status status) {
        if (status && !failure_) failure_ = status;
    }
    void begin_copy(char* to, const char* from, std::int64_t bytes);
    void take_bounce(std::int64_t bytes);
    bool has_kernel(std::uint8_t operation, KnownOperation& found) const;
    bool combine_on_device(std::uint8_t operation, const char* left, const char* right, char* target,
                           std::int64_t bytes);
    int combine_on_host(std::uint8_t operation, const char* left, const char* right, char* target, std::int64_t bytes);

    /// As large as the host reduces at once: two sets of three such pieces.
    static constexpr std::int64_t piece_bytes = 256 << 10;

    Memory* host_ = nullptr;
    device::Place place_;
    device::Lane lane_;
    std::int64_t by_handle_from_ = 0;
    std::vector<Range> ranges_;
    std::vector<Reached> reached_;
    device::HostBlock bounce_;
    device::DeviceBlock scratch_;
    bool busy_ = false, no_kernels_ = false;
    device::Status failure_ = nullptr;
};

}  // namespace palmette::runtime
