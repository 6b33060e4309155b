// What comparisons have found on communicators of the same ranks, so that the next one needn't find it again.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "palmette/select/table.hpp"

namespace palmette::runtime {

/// Calls that are compared together: whatever the root.
struct CallKind {
    select::Function function = select::Function::gather;
    int size_class = 0;
    bool ordered = false;  ///< the operation isn't commutative
    bool exact = true;     ///< results are bitwise the same whoever performs the call
    friend bool operator==(const CallKind&, const CallKind&) = default;
};

/// Algorithms, as specifications in text, that have lost to the MPI's own or won against it.
class Verdicts {
  public:
    Verdicts() = default;
    Verdicts(const Verdicts& other);
    Verdicts& operator=(const Verdicts&) = delete;

    void add(const CallKind& kind, const std::string& algorithm, bool won);
    /// In the order in which they lost.
    std::vector<std::string> lost(const CallKind& kind) const;
    bool has_won(const CallKind& kind, const std::string& algorithm) const;
    void clear();
    /// Hash of all verdicts in their order; 0 without any.
    std::uint64_t digest() const;

  private:
    struct Entry {
        CallKind kind;
        std::string algorithm;
        bool won;
    };
    mutable std::mutex mutex_;
    std::vector<Entry> entries_;
};

}  // namespace palmette::runtime
