#include "palmette/record/snapshots.hpp"

#include <algorithm>
#include <map>

#include "palmette/record/node_file.hpp"

namespace palmette::record {

void Snapshots::size(trace::SnapshotsHeader& header) {
    // Address space alone: what isn't written to takes no memory.
    header.moments.capacity = simulated ? 0 : 1024;
    header.parts.capacity = simulated ? 0 : 1U << 16U;
}

void Snapshots::attach(trace::SectionHeader& section) {
    section_ = &section;
    if (section.snapshots.moments.capacity == 0) return;
    constexpr std::uint64_t interval_ns = 1'000'000'000;
    moments_ = trace::entries<trace::Snapshot>(section, section.snapshots.moments);
    parts_ = trace::entries<trace::SnapshotPart>(section, section.snapshots.parts);
    section.snapshots.interval_ns.store(interval_ns);
    aggregates_.resize(section.aggregates.capacity);
    regions_.resize(most_regions);
    last_ns_ = monotonic_now_ns();
}

void Snapshots::forget() {
    if (!moments_) return;
    section_->snapshots.moments.count.store(0);
    section_->snapshots.parts.count.store(0);
    std::fill(aggregates_.begin(), aggregates_.end(), Sum{});
    std::fill(regions_.begin(), regions_.end(), Sum{});
}

bool Snapshots::add(std::uint32_t sum, const Sum& now, Sum& before, std::uint32_t& count) {
    // Another thread may be about to add to it: what it adds later is the next one's.
    if (now.calls == before.calls && now.ticks == before.ticks && now.bytes == before.bytes) return true;
    if (count == section_->snapshots.parts.capacity) return false;
    const auto grown = [](std::uint64_t is, std::uint64_t was) { return is > was ? is - was : 0; };
    const std::uint64_t calls = grown(now.calls, before.calls);
    parts_[count++] = {sum, static_cast<std::uint32_t>(std::min<std::uint64_t>(calls, UINT32_MAX)),
                       grown(now.ticks, before.ticks), grown(now.bytes, before.bytes)};
    return true;
}

/// Writes what has grown behind the first parts; returns where it ends, 0 where it found no place.
std::uint32_t Snapshots::fill(std::uint32_t first) {
    std::uint32_t count = first;
    const auto read = [](const trace::Shared<std::uint64_t>& counter) {
        return counter.load(std::memory_order_relaxed);
    };
    const auto* const sums = trace::entries<trace::Aggregate>(*section_, section_->aggregates);
    const std::uint32_t aggregates = section_->aggregates.count.load(std::memory_order_acquire);
    const auto* const nodes = trace::entries<trace::RegionNode>(*section_, section_->regions.nodes);
    const std::uint32_t node_count =
        std::min(section_->regions.nodes.count.load(std::memory_order_acquire), most_regions);
    std::vector<Sum> now_aggregates(aggregates), now_regions(node_count);
    for (std::uint32_t i = 0; i < aggregates; ++i) {
        now_aggregates[i] = {read(sums[i].calls), read(sums[i].ticks), read(sums[i].bytes)};
        if (!add(i, now_aggregates[i], aggregates_[i], count)) return 0;
    }
    for (std::uint32_t i = 1; i < node_count; ++i) {
        now_regions[i] = {read(nodes[i].calls), read(nodes[i].ticks), 0};
        if (!add(i | trace::part_of_region, now_regions[i], regions_[i], count)) return 0;
    }
    std::copy(now_aggregates.begin(), now_aggregates.end(), aggregates_.begin());
    std::copy(now_regions.begin(), now_regions.end(), regions_.begin());
    return count;
}

/// Puts each two moments together.
void Snapshots::halve() {
    trace::SnapshotsHeader& header = section_->snapshots;
    const std::uint32_t moments = header.moments.count.load();
    header.interval_ns.store(2 * header.interval_ns.load());
    std::vector<trace::Snapshot> kept;
    std::vector<trace::SnapshotPart> parts;
    for (std::uint32_t i = 0; i < moments; i += 2) {
        const std::uint32_t last = std::min(i + 1, moments - 1);
        std::map<std::uint32_t, trace::SnapshotPart> both;
        for (std::uint32_t one = i; one <= last; ++one)
            for (std::uint32_t p = 0; p < moments_[one].part_count; ++p) {
                const trace::SnapshotPart& from = parts_[moments_[one].first_part + p];
                trace::SnapshotPart& to =
                    both.try_emplace(from.sum, trace::SnapshotPart{from.sum, 0, 0, 0}).first->second;
                to.calls = to.calls > UINT32_MAX - from.calls ? UINT32_MAX : to.calls + from.calls;
                to.ticks += from.ticks;
                to.bytes += from.bytes;
            }
        const std::uint32_t is_border = moments_[i].is_border | moments_[last].is_border;
        kept.push_back({moments_[last].ticks, static_cast<std::uint32_t>(parts.size()),
                        static_cast<std::uint32_t>(both.size()), is_border, 0});
        for (const auto& [sum, part] : both) parts.push_back(part);
    }
    // Who reads meanwhile sees none.
    header.moments.count.store(0, std::memory_order_release);
    std::copy(parts.begin(), parts.end(), parts_);
    std::copy(kept.begin(), kept.end(), moments_);
    header.parts.count.store(static_cast<std::uint32_t>(parts.size()), std::memory_order_release);
    header.moments.count.store(static_cast<std::uint32_t>(kept.size()), std::memory_order_release);
}

void Snapshots::take(const BothClocks& at, Moment moment) {
    if (!moments_) return;
    trace::SnapshotsHeader& header = section_->snapshots;
    if (moment == Moment::any && at.monotonic_ns - last_ns_ < static_cast<std::int64_t>(header.interval_ns.load()))
        return;
    last_ns_ = at.monotonic_ns;
    if (header.moments.count.load() == header.moments.capacity) halve();
    std::uint32_t first = header.parts.count.load();
    std::uint32_t end = fill(first);
    if (end == 0 && header.moments.count.load() > 1) {
        halve();
        first = header.parts.count.load();
        end = fill(first);
    }
    if (end == 0) return;  // more sums than there is place for: the next one has what was added
    header.parts.count.store(end, std::memory_order_release);
    const std::uint32_t count = header.moments.count.load();
    moments_[count] = {at.ticks, first, end - first, moment == Moment::border ? 1U : 0U, 0};
    header.moments.count.store(count + 1, std::memory_order_release);
}

}  // namespace palmette::record
