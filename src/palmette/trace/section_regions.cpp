#include "palmette/trace/section_regions.hpp"

#include <map>

namespace palmette::trace {

void read_regions(const SectionReader& section, ProcessInfo& out) {
    const RegionsHeader& from = section.header().regions;
    out.missed_regions = from.missed.load(std::memory_order_relaxed);
    out.regions.emplace_back().kind = RegionKind::thread;
    if (from.nodes.capacity == 0) return;
    out.region_cost_s = from.cost_milliticks.load(std::memory_order_relaxed) * 1e-3 * out.tick_s;
    const auto* const nodes = section.entries<RegionNode>(from.nodes);
    const auto* const modules = section.entries<ModuleEntry>(from.modules);
    const std::uint32_t module_count = SectionReader::used(from.modules);
    const std::uint64_t last = section.header().last.ticks.load(std::memory_order_acquire);
    // What a node is, by that of its parent.
    using Key = std::tuple<std::uint32_t, RegionKind, std::uint32_t, std::uint64_t>;
    std::map<Key, std::uint32_t> numbers;
    std::vector<std::uint32_t>& number_of = out.region_of_node;
    number_of.assign(SectionReader::used(from.nodes), 0);
    for (std::uint32_t i = 1; i < number_of.size(); ++i) {
        const RegionNode& one = nodes[i];
        if (one.parent >= i || one.kind > RegionKind::unbegun)
            fail(section.where(), ": a region that can't be; the file is damaged");
        if (one.kind == RegionKind::thread) {
            out.regions[0].inner += one.inner.load(std::memory_order_relaxed);
            continue;
        }
        const std::uint64_t calls = one.calls.load(std::memory_order_relaxed);
        if (calls == 0) continue;
        const std::uint32_t parent = number_of[one.parent];
        const auto [found, is_new] = numbers.try_emplace({parent, one.kind, one.module, one.offset},
                                                         static_cast<std::uint32_t>(out.regions.size()));
        number_of[i] = found->second;
        if (is_new) {
            RegionInfo& made = out.regions.emplace_back();
            made.parent = parent;
            made.kind = one.kind;
            if (one.kind != RegionKind::function) {
                made.name = text_at(section, from.texts, one.offset);
            } else {
                made.offset = one.offset;
                if (one.module != 0 && one.module < module_count) {
                    made.module = text_of(modules[one.module].path);
                    made.build_id = SectionReader::build_id_of(modules[one.module]);
                }
            }
        }
        RegionInfo& to = out.regions[found->second];
        to.calls += calls;
        to.inner += one.inner.load(std::memory_order_relaxed);
        to.unclosed += one.unclosed.load(std::memory_order_relaxed);
        const std::uint64_t since = one.open_since.load(std::memory_order_relaxed);
        std::uint64_t ticks = one.ticks.load(std::memory_order_relaxed);
        if (since != 0) ++to.open;
        if (since != 0 && last > since) ticks += last - since;
        to.seconds += static_cast<double>(ticks) * out.tick_s;
        to.longest_s =
            std::max(to.longest_s, static_cast<double>(one.longest_ticks.load(std::memory_order_relaxed)) * out.tick_s);
    }
}

}  // namespace palmette::trace
