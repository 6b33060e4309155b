// The rows of the files of scan and exscan.
#pragma once

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {

/// scan and exscan with the same method differ only in what they leave out.
struct ScanMethod {
    std::string_view name, sentence, source, keys, preconditions;
    std::optional<std::string> (*refuse)(const Job& job, const Request& request, const Spec& spec);
    Program (*make)(const Job& job, Rank rank, const Request& request, const Spec& spec);
    std::int64_t (*tags)(const Job& job, const Request& request, const Spec& spec);

    Algorithm row(Collective collective) const {
        return {collective, name, sentence, source, keys, preconditions, true, refuse, make, tags};
    }
};

extern const ScanMethod scan_linear, scan_recursive_doubling, scan_all, scan_leaders, scan_grouped;

}  // namespace palmette::collectives
