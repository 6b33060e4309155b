#include "palmette/trace/recording.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "palmette/trace/section_reader.hpp"

namespace palmette::trace {

bool is_collective(const std::string& function) {
    // In lower case, since that of nonblocking ones begins after the I.
    static const std::array<std::string_view, 12> names{
        "barrier", "bcast",     "gather", "scatter", "allgather",      "alltoall",
        "reduce",  "allreduce", "scan",   "exscan",  "reduce_scatter", "reduce_scatter_block"};
    std::string_view name = function;
    const auto ends = [&](std::string_view end) {
        if (name.ends_with(end)) name.remove_suffix(end.size());
    };
    if (!name.starts_with("MPI_")) return false;
    name.remove_prefix(4);
    ends("_c");
    ends("_init");
    if (name.starts_with("Neighbor_")) return true;
    if (name.starts_with("Ineighbor_")) return true;
    std::string lower(name);
    for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    name = lower;
    const auto known = [&](std::string_view one) { return std::find(names.begin(), names.end(), one) != names.end(); };
    const auto with_variants = [&](std::string_view one) {
        return known(one) || ((one.ends_with('v') || one.ends_with('w')) && known(one.substr(0, one.size() - 1)));
    };
    return with_variants(name) || (name.starts_with('i') && with_variants(name.substr(1)));
}

Recording Recording::read(const std::string& path, bool with_tables) {
    const Mapping file(path);
    Recording out;
    const auto& header = *reinterpret_cast<const FileHeader*>(file.at(0));
    for_each_section(file, path, [&](SectionReader section) { out.processes.push_back(section.read(with_tables)); });
    out.host = text_of(header.host);
    out.boot_id = text_of(header.boot_id);
    return out;
}

std::vector<CallInfo> Recording::calls_of(const std::string& path, std::size_t section) {
    const Mapping file(path);
    std::vector<CallInfo> out;
    std::size_t number = 0;
    for_each_section(file, path, [&](const SectionReader& one) {
        if (number++ == section) out = one.calls();
    });
    return out;
}

}  // namespace palmette::trace
