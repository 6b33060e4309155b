#include "palmette/trace/section_adapters.hpp"

namespace palmette::trace {

void read_adapters(const SectionReader& section, ProcessInfo& out) {
    const AdaptersHeader& from = section.header().adapters;
    if (from.adapters.capacity == 0) return;  // of simulated ranks
    const auto* const adapters = section.entries<AdapterEntry>(from.adapters);
    const auto* const readings = section.entries<AdapterReading>(from.readings);
    const std::uint32_t count = SectionReader::used(from.adapters);
    for (std::uint32_t i = 0; i < count; ++i) {
        AdapterInfo& to = out.adapters.emplace_back();
        to.name = text_of(adapters[i].name);
        to.is_infiniband = adapters[i].is_infiniband != 0;
        for (std::uint32_t at = i; at < SectionReader::used(from.readings); at += count) {
            const AdapterReading& one = readings[at];
            // The moments may be thinned out meanwhile.
            const std::int64_t real_ns = section.real_ns(out, one.ticks.load(std::memory_order_acquire));
            if (!to.real_ns.empty() && real_ns <= to.real_ns.back()) continue;
            to.real_ns.push_back(real_ns);
            to.received_bytes.push_back(one.received_bytes.load(std::memory_order_relaxed));
            to.sent_bytes.push_back(one.sent_bytes.load(std::memory_order_relaxed));
            to.received_packets.push_back(one.received_packets.load(std::memory_order_relaxed));
            to.sent_packets.push_back(one.sent_packets.load(std::memory_order_relaxed));
            to.waited.push_back(one.waited.load(std::memory_order_relaxed));
        }
    }
}

}  // namespace palmette::trace
