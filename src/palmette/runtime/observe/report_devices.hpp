// Report of calls on device memory: how many, and what their copies have moved.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "palmette/base/json.hpp"

namespace palmette::runtime {

/// Counts of the ranks' calls, copied from `device_counts` and the device layer.
class DeviceReport {
  public:
    /// The process's only one, like the counts: they are read when it is first asked for, to be merged or written.
    static DeviceReport& at_end();

    base::Json pack() const;
    /// What another rank's `pack` gave.
    void absorb(const base::Json& other);

    /// Null where no rank has found a driver.
    base::Json to_json() const;
    /// Lines of at most 80 columns; empty when there was no call on device memory.
    std::string page() const;

  private:
    DeviceReport();

    struct Row {
        std::int64_t calls = 0, bytes_read = 0, bytes_written = 0, in_place = 0, left = 0, failures = 0;
    };
    std::map<std::uint8_t, Row> rows_;   ///< by function; one of all compositions
    std::int64_t drivers_ = 0;           ///< ranks that have found one
    std::int64_t by_lock_ = 0;           ///< of these, ranks that take the loader's lock in each check
    std::int64_t not_pinned_ = 0;        ///< blocks
    std::array<std::int64_t, 5> ipc_{};  ///< of handles, in the order of `ipc_names`
};

}  // namespace palmette::runtime
