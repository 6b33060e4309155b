// The tree that a composition is factored over, and the method of each of its levels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::compose {

using topology::Job;
using topology::Partition;

/// How data is communicated from one group of a level to the others of the same parent.
///   direct   from the group that has it straight to each that wants it
///   tree     a k-nomial tree of the groups, with `radix` k
///   ring     from each group to the next: a chain for each primitive, a ring for all of them together
struct Method {
    enum class Shape : std::uint8_t { direct, tree, ring };
    /// Transport of a level's messages: the MPI; between ranks of one host, single copy; between buffers on devices of
    /// one host, copies by handle (IPC); or NCCL between such. All fall back to messages where they aren't possible, or
    /// not worth it.
    enum class Transport : std::uint8_t { messages, single_copy, ipc, nccl };
    Shape shape = Shape::direct;
    std::int32_t radix = 2;
    /// Ranks of a group that communicate with other groups of this level; 0: all, each for itself.
    std::int32_t lanes = 0;
    Transport transport = Transport::messages;

    /// direct, tree, tree.K or ring, followed by /LANES where not all ranks communicate between groups, and by @copy,
    /// @ipc or @nccl for another transport: "ring/4", "tree.3/1@copy". Throws base::Error.
    static Method parse(std::string_view text);
    std::string text() const;
    friend bool operator==(const Method&, const Method&) = default;
};

/// Nested partitions of the positions, outermost first; those of the last are single ranks.
struct Tree {
    struct Level {
        std::string name;  ///< name of the groups
        Partition groups;
    };
    std::vector<Level> levels;

    /// The levels of a job that separate ranks.
    static Tree of(const Job& job);
    std::size_t depth() const { return levels.size(); }
};

/// A synthetic job from the numbers of groups at each level, outermost first: "3:8" has 3 groups of 8 ranks, "2:4+3" a
/// group of 4 and one of 3. The last but one level is called `node`; ranks are numbered consecutively. Throws
/// base::Error that says what fits where the list doesn't make `ranks` ranks.
Job job_of_hierarchy(std::string_view hierarchy, std::int32_t ranks);

}  // namespace palmette::compose
