// The memory that the ranks of one node share: made by one of them, opened by the others, gone with the last of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "palmette/node/shared_layout.hpp"

namespace palmette::runtime {

/// A mapped segment. Nothing is left of it after the job, however the job ends: a memfd has no name in any folder, and
/// the fallback's name is taken away as soon as everybody has opened it.
class SharedSegment {
  public:
    /// `memfd`: others open the creator's descriptor through /proc, which needs the same user and process namespace.
    /// `named`: POSIX shared memory under a random name with mode 0600, for where that isn't permitted.
    enum class Backing { memfd, named };

    /// Longest name that `create` gives, its closing zero included: fits a buffer for MPI_Bcast.
    static constexpr int name_capacity = 96;

    /// Makes the memory for `members` members, all zero but for the header. `name` tells `open` where it is. Null with
    /// the reason in `why` when there is no room or the system refuses.
    static std::unique_ptr<SharedSegment> create(int members, const SharedShape& shape, Backing backing,
                                                 std::string& name, std::string& why);

    /// Opens what `create` made in another process of this node. Null with the reason in `why` when it can't be opened
    /// or isn't that segment.
    static std::unique_ptr<SharedSegment> open(const std::string& name, int members, std::string& why);

    ~SharedSegment();
    SharedSegment(const SharedSegment&) = delete;
    SharedSegment& operator=(const SharedSegment&) = delete;

    /// Everybody has opened it: takes the name away and closes the descriptor. The mapping stays.
    void forget_name();

    [[nodiscard]] const SharedHeader& header() const { return *reinterpret_cast<const SharedHeader*>(base_); }
    [[nodiscard]] int members() const { return static_cast<int>(header().members); }
    [[nodiscard]] std::int64_t ring_bytes() const { return header().ring_bytes; }
    /// The part of one member: its control page, its windows, its ring.
    [[nodiscard]] char* part(int member) const {
        return base_ + shared_page + member * SharedShape::member_bytes(ring_bytes());
    }

  private:
    SharedSegment() = default;
    bool map(std::int64_t bytes, std::string& why);

    char* base_ = nullptr;
    std::int64_t bytes_ = 0;
    int descriptor_ = -1;
    std::string unlink_;  ///< the name to take away; empty for others than the creator
};

/// 64 random bits from the system.
std::uint64_t random_word();

}  // namespace palmette::runtime
