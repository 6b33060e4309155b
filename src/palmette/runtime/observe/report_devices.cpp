#include "palmette/runtime/observe/report_devices.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "palmette/base/text.hpp"
#include "palmette/device/ipc.hpp"
#include "palmette/device/loaded.hpp"
#include "palmette/device/resources.hpp"
#include "palmette/runtime/data/on_device.hpp"

namespace palmette::runtime {
namespace {

using base::Json;

/// Key of the row of compositions, which are no function of MPI's.
constexpr std::uint8_t composition = 255;
static_assert(select::all_function_count < composition);

const char* name_of(std::uint8_t key) {
    return key == composition ? "composition" : select::name_of(static_cast<select::Function>(key));
}

/// What became of handles of device memory: allocations that were exported, or couldn't be; others' that were opened,
/// were open already, or couldn't be opened.
constexpr std::array<const char*, 5> ipc_names{"exported", "not_exported", "opened", "found_open", "not_opened"};

std::int64_t load(const std::atomic<std::int64_t>& count) { return count.load(std::memory_order_relaxed); }

/// Totals in three digits: "1.23 GB".
std::string bytes_text(std::int64_t bytes) {
    constexpr std::array<const char*, 5> units{"B", "KB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
    return base::cat(base::number_text(value, value >= 100 ? 4 : 3), " ", units[unit]);
}

}  // namespace

DeviceReport::DeviceReport() {
    if (!device::driver_watch.found.load(std::memory_order_relaxed)) return;
    drivers_ = 1;
    by_lock_ = device::learned_count() ? 0 : 1;
    not_pinned_ = load(device::Resources::instance().counts().not_pinned);
    const device::IpcCounts& ipc = device::ipc_counts;
    ipc_ = {load(ipc.exports), load(ipc.unexported), load(ipc.opens), load(ipc.hits), load(ipc.refusals)};
    const auto add = [&](std::uint8_t key, const DeviceCounts& counts) {
        if (load(counts.calls) == 0) return;
        rows_[key] = {load(counts.calls),    load(counts.bytes_read), load(counts.bytes_written),
                      load(counts.in_place), load(counts.left),       load(counts.failures)};
    };
    for (std::size_t f = 0; f < device_counts.size(); ++f) add(static_cast<std::uint8_t>(f), device_counts[f]);
    add(composition, composed_device_counts);
}

DeviceReport& DeviceReport::at_end() {
    // Never destroyed: reports may be written while the process ends.
    static auto* const report = new DeviceReport;
    return *report;
}

Json DeviceReport::pack() const {
    Json rows = Json::array();
    for (const auto& [function, row] : rows_) {
        Json item = Json::object();
        item.set("f", static_cast<int>(function)).set("n", row.calls).set("r", row.bytes_read);
        item.set("w", row.bytes_written).set("i", row.in_place).set("m", row.left).set("e", row.failures);
        rows.push(std::move(item));
    }
    Json ipc = Json::array();
    for (const std::int64_t count : ipc_) ipc.push(count);
    Json out = Json::object();
    out.set("rows", std::move(rows)).set("d", drivers_).set("l", by_lock_).set("p", not_pinned_);
    out.set("h", std::move(ipc));
    return out;
}

void DeviceReport::absorb(const Json& other) {
    for (const Json& item : other.find("rows")->items("rows")) {
        Row& row = rows_[static_cast<std::uint8_t>(item.find("f")->integer("f"))];
        row.calls += item.find("n")->integer("n");
        row.bytes_read += item.find("r")->integer("r");
        row.bytes_written += item.find("w")->integer("w");
        row.in_place += item.find("i")->integer("i");
        row.left += item.find("m")->integer("m");
        row.failures += item.find("e")->integer("e");
    }
    drivers_ += other.find("d")->integer("d");
    by_lock_ += other.find("l")->integer("l");
    not_pinned_ += other.find("p")->integer("p");
    const auto& ipc = other.find("h")->items("h");
    for (std::size_t i = 0; i < std::min(ipc.size(), ipc_.size()); ++i) ipc_[i] += ipc[i].integer("h");
}

Json DeviceReport::to_json() const {
    if (drivers_ == 0) return {};
    Json rows = Json::array();
    for (const auto& [function, row] : rows_) {
        Json item = Json::object();
        item.set("function", name_of(function))
            .set("calls", row.calls)
            .set("bytes_read", row.bytes_read)
            .set("bytes_written", row.bytes_written)
            .set("in_place", row.in_place)
            .set("by_the_mpi", row.left)
            .set("failures", row.failures);
        rows.push(std::move(item));
    }
    Json out = Json::object();
    out.set("ranks_with_driver", drivers_).set("detected_by_lock", by_lock_).set("blocks_not_pinned", not_pinned_);
    Json ipc = Json::object();
    for (std::size_t i = 0; i < ipc_.size(); ++i) ipc.set(ipc_names[i], ipc_[i]);
    out.set("ipc", std::move(ipc)).set("calls", std::move(rows));
    return out;
}

std::string DeviceReport::page() const {
    if (rows_.empty()) return {};
    std::string out;
    std::array<char, 256> line{};
    const auto print = [&](const char* format, auto... values) {
        std::snprintf(line.data(), line.size(), format, values...);
        out += line.data();
    };
    print("  %-20s %12s %9s %9s %8s %6s %6s\n", "on device memory", "ranks' calls", "read", "written", "in place",
          "by MPI", "failed");
    for (const auto& [function, row] : rows_)
        print("  %-20s %12lld %9s %9s %8lld %6lld %6lld\n", name_of(function), static_cast<long long>(row.calls),
              bytes_text(row.bytes_read).c_str(), bytes_text(row.bytes_written).c_str(),
              static_cast<long long>(row.in_place), static_cast<long long>(row.left),
              static_cast<long long>(row.failures));
    if (const auto [exported, not_exported, opened, found_open, not_opened] = ipc_; opened + not_opened > 0)
        out += "  note: " +
               base::wrapped(base::cat("allocations of peers opened by handle: ", opened, ", found open: ", found_open,
                                       " times, not to be opened: ", not_opened),
                             8);
    if (not_pinned_ > 0)
        out += "  note: " + base::wrapped(base::cat(not_pinned_, not_pinned_ == 1 ? " block" : " blocks",
                                                    " of staging memory could not be pinned: their copies are slower "
                                                    "(ulimit -l limits what may be)"),
                                          8);
    if (by_lock_ > 0)
        out += "  note: " + base::wrapped(base::cat("each check for a GPU's driver takes the loader's lock (40 ns) on ",
                                                    by_lock_, by_lock_ == 1 ? " rank" : " ranks",
                                                    ": the count of loaded libraries was not found in this libc"),
                                          8);
    return out;
}

}  // namespace palmette::runtime
