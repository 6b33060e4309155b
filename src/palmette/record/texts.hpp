// Names in the section, each once: added in signal handlers, without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "palmette/trace/format.hpp"

namespace palmette::record {

class Texts {
  public:
    void attach(trace::SectionHeader& section);
    /// Where the text is in the section; 0: there is no place for it. Async-signal-safe.
    std::uint32_t number_of(std::string_view text);
    /// Whether that is the text there.
    bool is(std::uint32_t number, std::string_view text) const;

  private:
    static constexpr std::size_t slots = std::size_t{1} << 14U, most_tries = 64;
    trace::Table* table_ = nullptr;
    char* texts_ = nullptr;
    std::atomic<std::uint32_t>* index_ = nullptr;  ///< open addressing; 0: free
};

}  // namespace palmette::record
