#include "palmette/trace/section_snapshots.hpp"

namespace palmette::trace {

void read_snapshots(const SectionReader& section, ProcessInfo& out) {
    const SnapshotsHeader& from = section.header().snapshots;
    if (from.moments.capacity == 0) return;  // of simulated ranks
    const auto* const moments = section.entries<Snapshot>(from.moments);
    const auto* const parts = section.entries<SnapshotPart>(from.parts);
    const auto* const aggregates = section.entries<Aggregate>(section.header().aggregates);
    const std::uint32_t aggregate_count = SectionReader::used(section.header().aggregates);
    const std::uint32_t part_count = SectionReader::used(from.parts);
    for (std::uint32_t i = 0; i < SectionReader::used(from.moments); ++i) {
        const Snapshot& one = moments[i];
        if (one.first_part > part_count || one.part_count > part_count - one.first_part)
            fail(section.where(), ": a snapshot that can't be; the file is damaged");
        SnapshotInfo& to = out.snapshots.emplace_back();
        to.real_ns = section.real_ns(out, one.ticks);
        to.is_border = one.is_border != 0;
        for (std::uint32_t p = 0; p < one.part_count; ++p) {
            const SnapshotPart& part = parts[one.first_part + p];
            SnapshotPartInfo& added = to.parts.emplace_back();
            added.calls = part.calls;
            added.bytes = part.bytes;
            added.seconds = static_cast<double>(part.ticks) * out.tick_s;
            const std::uint32_t sum = part.sum & ~part_of_region;
            if ((part.sum & part_of_region) != 0) {
                added.region = sum < out.region_of_node.size() ? out.region_of_node[sum] : 0;
            } else if (sum > 0 && sum < aggregate_count) {
                const std::uint64_t key = aggregates[sum].key.load(std::memory_order_relaxed) - 1;
                // Requests overlap with everything.
                if ((key >> key_request & 1U) != 0)
                    to.parts.pop_back();
                else
                    added.function = section.function_name(static_cast<std::uint32_t>(key & function_mask));
            } else {
                added.function = "others";
            }
        }
    }
}

}  // namespace palmette::trace
