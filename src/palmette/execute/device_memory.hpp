// Memory of one operation that partly lies on devices, of this process or of others that have exposed it: copies by the
// driver, reductions where the operands are.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "palmette/device/ipc.hpp"
#include "palmette/device/resources.hpp"
#include "palmette/execute/memory.hpp"
#include "palmette/node/shared_node.hpp"

namespace palmette::execute {

/// Addresses in a region that was added are a device's, all others the host's. A copy from or to a device only begins.
/// A reduction runs on the device where all of its operands are on one that has a kernel, else on the host, with
/// what is on devices in bounce buffers.
///
/// A command that fails doesn't stop the operation, which other ranks depend on: `take_failure` tells of the first one.
class DeviceMemory final : public Memory, public node::SharedNode::Reader {
  public:
    DeviceMemory() { device_ = this; }
    ~DeviceMemory() override { close(); }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    /// `host` combines on the host, and must live as long as this is used. What is exposed or sent within a node in at
    /// least `by_handle_from` bytes is opened by those who get it.
    void use(Memory& host, std::int64_t by_handle_from) {
        host_ = &host;
        by_handle_from_ = by_handle_from;
    }
    /// `bytes` from `begin` on lie at `place`. Nothing may be outstanding. Returns the driver's error where it gives no
    /// queue for them; then they are still the host's. Throws std::bad_alloc.
    device::Status add(const void* begin, std::int64_t bytes, const device::Place& place);
    /// The plan's own blocks, where the first region lies; null: there is no memory to give, and they are the host's.
    char* scratch(std::int64_t bytes);
    /// Takes the bounce buffers, for operations with elements of up to so many bytes. Throws std::bad_alloc.
    void prepare_reductions(std::int64_t element_bytes);
    /// Waits for what is outstanding, and gives all back. The driver's first error; null: none.
    device::Status close();

    /// Whether any region was added.
    bool any() const { return !regions_.empty(); }
    /// Whether the host must not touch it.
    bool holds(const void* address) const { return find(address) != nullptr; }
    /// Device of the region that holds an address.
    const device::Place& place_of(const void* address) const { return find(address)->place; }
    /// Device of the first region added.
    const device::Place& place() const { return regions_.front().place; }
    /// Whether there is a kernel for an operation on the first region's device.
    bool has_kernel(std::uint8_t operation) const { return kernel_for(operation, *place().driver).has_value(); }

    void copy(char* to, const char* from, std::int64_t bytes) override;
    int combine(std::uint8_t index, const char* left, const char* right, char* target, std::int64_t bytes) override;
    std::int64_t element_bytes(std::uint8_t index) const override { return host_->element_bytes(index); }
    std::optional<KnownOperation> known(std::uint8_t index) const override { return host_->known(index); }
    std::uint64_t mark() override;
    void look() override;
    bool is_done(std::uint64_t mark) override { return mark == 0 || ways_[mark % most_ways].done >= mark / most_ways; }
    void await(std::uint64_t mark) override;
    void read(void* to, const char* from, std::int64_t bytes) override {
        copy(static_cast<char*>(to), from, bytes);
        await_begun();
    }

    /// Bytes from which on exposures and messages go by handle; see SharedNode::expose_device.
    std::int64_t by_handle_from() const { return by_handle_from_; }
    /// How others open `bytes` from an address on that a region holds; false: they can't.
    bool find_export(const char* address, std::int64_t bytes, device::Exported& out) const {
        return device::Exports::instance().find(place_of(address), address, out) &&
               out.offset + bytes <= out.allocation;
    }
    /// Where `bytes` that a peer has exported are reached by commands at `place`, until `let_go`; null: they can't be.
    const char* reach(const device::Exported& exported, std::int64_t bytes, const device::Place& place);
    /// Releases the mappings of peers' memory, once no copy from there is outstanding.
    void let_go();

    device::Status take_failure() { return std::exchange(failure_, nullptr); }

    /// Bytes copied and reductions begun since the last `take_counts`.
    struct Counts {
        std::int64_t bytes_read = 0, bytes_written = 0;
        std::int64_t combined_on_device = 0;  ///< reductions on a device
    };
    Counts take_counts() { return std::exchange(counts_, {}); }

  private:
    /// A queue for one direction, so that copies from and to a device overlap.
    struct Way {
        device::Lane lane;
        bool reads = false;          ///< from the device
        bool begun = false;          ///< since the last mark
        std::uint64_t recorded = 0;  ///< marks; the n-th one's event is number n % most_marks
        std::uint64_t done = 0;      ///< the first so many
    };
    struct Region {
        const char* begin;
        const char* end;
        std::size_t read, write;  ///< ways
        device::Place place;      ///< of its own allocation, unlike those of the ways
    };
    struct Reached {
        device::Exported exported;
        device::Place place;
        device::Imports::Mapping mapping;
    };
    static constexpr std::uint64_t most_ways = 256, most_marks = 64;
    /// Long enough for a link's bandwidth, short enough that the next one's copy and this one's reduction overlap.
    static constexpr std::int64_t part_bytes = 256 << 10;

    const Region* find(const void* address) const {
        const char* at = static_cast<const char*>(address);
        for (const Region& region : regions_)
            if (at >= region.begin && at < region.end) return &region;
        return nullptr;
    }
    device::Status way_for(const device::Place& place, bool reads, std::size_t& index);
    device::Driver& driver_of(const Way& way) const { return *way.lane.place.driver; }
    std::optional<KnownOperation> kernel_for(std::uint8_t operation, device::Driver& driver) const;
    void begin(std::size_t way, void* to, const void* from, std::int64_t bytes);
    void copy_by_host(char* to, const Region& target, const char* from, const Region& source, std::int64_t bytes);
    void synchronize(Way& way);
    void add_reached(const char* begin, std::int64_t bytes, const device::Place& place);
    bool combine_on_device(std::uint8_t index, const char* left, const char* right, char* target, std::int64_t bytes);
    int combine_on_host(std::uint8_t index, const char* left, const char* right, char* target, std::int64_t bytes);
    void note(device::Status status) {
        if (status && !failure_) failure_ = status;
    }

    Memory* host_ = nullptr;
    std::int64_t by_handle_from_ = INT64_MAX;
    std::vector<Region> regions_;  ///< those that were reached come last
    std::vector<Way> ways_;
    std::vector<Reached> reached_;
    std::size_t reached_regions_ = 0;
    device::HostBlock bounce_;
    std::int64_t part_ = 0;  ///< bytes of each of its parts
    device::DeviceBlock scratch_;
    bool no_kernels_ = false;  ///< the driver has refused one
    device::Status failure_ = nullptr;
    Counts counts_;
};

}  // namespace palmette::execute
