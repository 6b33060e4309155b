// Algorithms forced while the program runs, so that several can be compared in one job.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "palmette/runtime/settings/settings.hpp"

namespace palmette::runtime {

/// What `text` forces: an algorithm's specification, or `mpi`. `source`: the provenance, such as the setting's name.
/// Throws base::Error for a specification that is wrong in itself.
Settings::ForcedChoice forced_by(select::Function function, std::string_view text, std::string source);

/// Continues an FNV-1a hash with a field: its bytes and an end mark, so that "a", "bc" differs from "ab", "c".
void hash_field(std::uint64_t& hash, std::string_view text);

/// Settings that differ from the process's in what is forced. A communicator keeps those that it was made under. Safe
/// to use from several threads.
class Control {
  public:
    static constexpr const char* source = "palmette_force";

    /// For communicators whose state is made from now on: an algorithm, `mpi`, or empty for what `usual` says. Throws
    /// base::Error, and changes nothing then.
    void force(const Settings& usual, select::Function function, std::string_view text);

    /// Null where nothing is forced: the process's own settings count.
    std::shared_ptr<const Settings> settings() const;

  private:
    mutable std::mutex mutex_;
    std::array<std::string, select::all_function_count> texts_;
    std::shared_ptr<const Settings> settings_;
};

}  // namespace palmette::runtime
