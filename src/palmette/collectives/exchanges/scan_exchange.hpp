// Prefix (scan and exscan) patterns among n abstract participants in their order.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "palmette/collectives/exchanges/reduce_exchange.hpp"

namespace palmette::collectives {

/// linear: a chain, critical path of p-1 messages. recursive_doubling: from 1, 2, 4, ... before, critical path of lg p
/// messages. Hillis, Steele, CACM 29(12), 1986. all: from all before, critical path of one message.
///
///     recursive_doubling, p = 8:   0→1→2→3→4→5→6→7    then 0→2 1→3 2→4 ...    then 0→4 1→5 2→6 3→7
struct ScanPattern {
    enum class Kind { linear, recursive_doubling, all };
    Kind kind = Kind::recursive_doubling;

    /// Throws base::Error.
    static ScanPattern parse(std::string_view text);
    /// Tags are 0 to tags - 1.
    static constexpr std::int32_t tags = 32;
    /// Layers of scratch that a pattern uses.
    static constexpr std::int32_t most_layers = 17;

    /// The exclusive prefix, in scratch.
    struct Before {
        std::optional<HeldBlocks> prefix;   ///< nothing for the first participant
        std::vector<plan::StepId> readers;  ///< steps that read `input`
    };
    /// Computes the exclusive prefix and sends what others need. The last participant's `input` isn't read.
    Before exclusive(const ReduceContext& context) const;
    /// Computes the inclusive prefix into `result`, which may alias `input`.
    HeldBlocks inclusive(const ReduceContext& context) const;
};

/// The level that key level=LEVEL names: nodes without it, and where the job has no such level.
std::size_t level_of_groups(const Job& job, const Spec& spec);

/// The end of a scan or exscan: writes the exclusive prefix `before`, for scan combined with the own contribution, to
/// Buffer::recv. `readers`: steps that read the own contribution.
void finish_prefix(plan::ProgramBuilder& builder, Collective collective, const std::optional<HeldBlocks>& before,
                   const std::vector<plan::StepId>& readers, plan::Slice slice);

}  // namespace palmette::collectives
