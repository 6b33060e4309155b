// The shared-memory segment of one node: created by one rank, mapped by the others, freed with the last mapping.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "palmette/node/shared_layout.hpp"

namespace palmette::node {

/// A mapped segment. It never outlives the job, however the job ends: a memfd has no name in any file system, and the
/// fallback's name is unlinked as soon as every member has opened it.
class SharedSegment {
  public:
    /// `memfd`: others open the creator's descriptor through /proc, which needs the same user and process namespace.
    /// `named`: POSIX shared memory under a random name with mode 0600, for where that isn't permitted.
    enum class Backing { memfd, named };

    /// Longest name that `create` gives, its closing zero included: fits a buffer for MPI_Bcast.
    static constexpr int name_capacity = 96;

    /// Creates the segment for `members` members, all zero but for the header. `name` is what `open` needs to find it.
    /// Null with the reason in `why` when memory is short or the system refuses.
    static std::unique_ptr<SharedSegment> create(int members, const SharedShape& shape, Backing backing,
                                                 std::string& name, std::string& why);

    /// Opens what `create` made in another process of this node. Null with the reason in `why` when it can't be opened
    /// or isn't that segment.
    static std::unique_ptr<SharedSegment> open(const std::string& name, int members, std::string& why);

    ~SharedSegment();
    SharedSegment(const SharedSegment&) = delete;
    SharedSegment& operator=(const SharedSegment&) = delete;

    /// To be called once all have opened it: unlinks the name and closes the descriptor. The mapping stays.
    void forget_name();

    [[nodiscard]] SharedHeader& header() const { return *reinterpret_cast<SharedHeader*>(base_); }
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
    std::string unlink_;  ///< the name to unlink; empty except in the creator
};

/// 64 random bits from the system.
std::uint64_t random_word();

}  // namespace palmette::node
