#include "palmette/runtime/start/discovery.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "palmette/aggregate/sharp/library.hpp"
#include "palmette/base/error.hpp"
#include "palmette/runtime/start/node_place.hpp"
#include "palmette/runtime/transport/simulated_services.hpp"

namespace palmette::runtime {
namespace {

using topology::Job;
using topology::Machine;

/// What a rank sends to rank 0.
struct RankLocation {
    std::array<char, 128> processor_name{};  ///< as the MPI gives it, cut
    std::array<char, 128> host_name{};       ///< as the kernel gives it, cut
    NodePlace place;
    std::int32_t node_colour = 0;  ///< equal on ranks that share memory
};

void store(std::array<char, 128>& target, std::string_view text) {
    const std::size_t length = std::min(text.size(), target.size() - 1);
    std::memcpy(target.data(), text.data(), length);
}

/// Ranks that share memory have the lowest of their numbers in common.
std::int32_t shared_memory_colour(MPI_Comm comm, int rank) {
    MPI_Comm node = MPI_COMM_NULL;
    if (PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node) != MPI_SUCCESS) return rank;
    int lowest = rank;
    PMPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, node);
    PMPI_Comm_free(&node);
    return lowest;
}

/// For tests: entry `rank` of a comma-separated list is the rank's host; hosts h0, h1, ... where an entry is a number.
void pretend(RankLocation& here, const std::string& hosts, int rank) {
    const auto names = base::split(hosts, ',');
    const std::string_view name = base::trim(names[static_cast<std::size_t>(rank) % names.size()]);
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
    const std::string host = number ? base::cat("h", name) : std::string(name);
    here.processor_name = {};
    store(here.processor_name, host);
    here.host_name = here.processor_name;
    here.node_colour = static_cast<std::int32_t>(std::hash<std::string>{}(host) & 0x7FFFFFFF);
}

RankLocation locate(MPI_Comm comm, int rank, const Settings& settings, bool one_node) {
    RankLocation here;
    std::array<char, MPI_MAX_PROCESSOR_NAME + 1> name{};
    int length = 0;
    PMPI_Get_processor_name(name.data(), &length);
    store(here.processor_name, {name.data(), static_cast<std::size_t>(length)});
    gethostname(here.host_name.data(), here.host_name.size() - 1);
    here.place = find_node_place();
    if (!settings.pretended_hosts.empty())
        pretend(here, settings.pretended_hosts, rank);
    else if (!one_node)
        here.node_colour = shared_memory_colour(comm, rank);
    return here;
}

/// A slot whose inner groups agree with what is known of the rank's place, not taken yet where possible; -1 when
/// nothing is known.
std::int32_t slot_for(const Machine& machine, std::int32_t host, const NodePlace& place, std::vector<bool>& taken) {
    const topology::Inside& inside = machine.insides()[static_cast<std::size_t>(machine.host(host).inside)];
    const auto number_of = [&](std::string_view level) {
        return level == "socket" || level == "package" ? place.socket
               : level == "numa"                       ? place.numa
               : level == "l3"                         ? place.l3
               : level == "core"                       ? place.core
                                                       : -1;
    };
    std::int32_t fallback = -1;
    bool anything = false;
    for (std::int32_t slot = 0; slot < inside.slots; ++slot) {
        bool fits = true;
        for (std::size_t l = 0; l < inside.group_of_slot.size(); ++l) {
            const std::int32_t number = inside.group_of_slot[l].empty() ? -1 : number_of(machine.levels()[l].name);
            if (number < 0) continue;
            anything = true;
            fits = fits && inside.group_of_slot[l][static_cast<std::size_t>(slot)] == number;
        }
        if (!fits) continue;
        if (fallback < 0) fallback = slot;
        if (!taken[static_cast<std::size_t>(slot)]) {
            taken[static_cast<std::size_t>(slot)] = true;
            return anything ? slot : -1;
        }
    }
    return anything ? fallback : -1;
}

/// The hosts of `ranks` that the file doesn't have, in few words; nothing where it has all.
std::string unknown_hosts(const Machine& machine, const std::vector<RankLocation>& ranks) {
    constexpr std::size_t most_names = 4;
    std::set<std::string> all;
    std::set<std::string> unknown;
    for (const RankLocation& rank : ranks) {
        all.insert(rank.processor_name.data());
        if (machine.find_host(rank.processor_name.data()) < 0 && machine.find_host(rank.host_name.data()) < 0)
            unknown.insert(rank.processor_name.data());
    }
    if (unknown.empty()) return {};
    std::string names;
    std::size_t count = 0;
    for (const std::string& name : unknown) {
        if (count++ == most_names) break;
        names += (names.empty() ? "" : ", ") + base::printable(name, 64);
    }
    if (unknown.size() > most_names) names += base::cat(" and ", unknown.size() - most_names, " more");
    if (all.size() == 1) return base::cat("this job's host is not in it: ", names);
    return base::cat(unknown.size(), " of this job's ", all.size(),
                     unknown.size() == 1 ? " hosts is not in it: " : " hosts are not in it: ", names);
}

/// Where there is a library for them. One that can't be used is told of when groups are made.
bool may_have_switches(const Settings& settings) {
    return settings.sharp != "off" &&
           aggregate::sharp::find_library(settings.sharp).reason != aggregate::Reason::no_library;
}

/// Gives the memory that a large cluster's file took back to the system, at the end of the scope.
struct Trimmed {
    bool large = false;
    Trimmed() = default;
    Trimmed(const Trimmed&) = delete;
    Trimmed& operator=(const Trimmed&) = delete;
    ~Trimmed() {
#if defined(__GLIBC__)
        if (large) malloc_trim(0);
#endif
    }
};

Job job_from_file(const Settings& settings, const std::vector<RankLocation>& ranks) {
    constexpr std::size_t many_hosts = 1000;
    const std::string& path = settings.topology;
    Trimmed trimmed;  // after the machine's end
    Machine machine = Machine::from_file(path);
    trimmed.large = machine.hosts().size() >= many_hosts;
    if (simulated_services == 0) machine.add_reducing_switches();
    if (const std::string unknown = unknown_hosts(machine, ranks); !unknown.empty()) base::fail(path, ": ", unknown);
    topology::Placement placement;
    std::map<std::int32_t, std::vector<bool>> taken;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        std::int32_t host = machine.find_host(ranks[r].processor_name.data());
        if (host < 0) host = machine.find_host(ranks[r].host_name.data());
        auto& slots = taken.try_emplace(host, static_cast<std::size_t>(machine.slots_of(host)), false).first->second;
        placement.push_back({host, slot_for(machine, host, ranks[r].place, slots)});
    }
    Job job(machine, placement);
    if (simulated_services > 0) return job;
    // None takes this job.
    if (settings.aggregator_token.empty()) job.drop_aggregators(topology::Aggregator::Kind::daemon);
    if (!job.aggregators().empty() && !may_have_switches(settings))
        job.drop_aggregators(topology::Aggregator::Kind::sharp);
    return job;
}

Job job_from_nodes(const std::vector<RankLocation>& ranks) {
    std::vector<PlacedRank> placed;
    for (const RankLocation& rank : ranks) placed.push_back({rank.node_colour, rank.place});
    const auto [names, keys] = levels_by_kernel(placed);
    return Job::from_groups(names, keys);
}

/// Links of hosts that are pretended: those of the emulated cluster on which the built-in table was measured.
constexpr double pretended_bytes_per_s = 12.5e6;

/// Rank 0's part: the job as JSON, with the note in front.
std::string job_text(const Settings& settings, const std::vector<RankLocation>& ranks) {
    base::Json out = base::Json::object();
    if (!settings.topology.empty()) {
        try {
            out.set("job", job_from_file(settings, ranks).to_json()).set("note", "");
            return out.dump();
        } catch (const base::Error& error) {
            out = base::Json::object();
            out.set("note", base::cat(error.what(), "; only nodes are distinguished. 'palmette discover --refresh ",
                                      settings.topology, "' reads its sources again."));
        }
    } else {
        out.set("note", "");
    }
    Job job = job_from_nodes(ranks);
    if (!settings.pretended_hosts.empty()) job.set_capacity(*job.find_level("node"), pretended_bytes_per_s);
    out.set("job", job.to_json());
    return out.dump();
}

}  // namespace

Discovered discover(MPI_Comm comm, const Settings& settings, bool one_node) {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const RankLocation here = locate(comm, rank, settings, one_node);
    std::vector<RankLocation> all(rank == 0 ? static_cast<std::size_t>(size) : 0);
    PMPI_Gather(&here, sizeof here, MPI_BYTE, all.data(), sizeof here, MPI_BYTE, 0, comm);
    std::string text;
    if (rank == 0) {
        all.resize(all.size() - simulated_services);
        try {
            text = job_text(settings, all);
        } catch (const std::exception& error) {
            base::Json failed = base::Json::object();
            failed.set("error", error.what());
            text = failed.dump();
        }
    }
    long long length = static_cast<long long>(text.size());
    PMPI_Bcast(&length, 1, MPI_LONG_LONG, 0, comm);
    text.resize(static_cast<std::size_t>(length));
    PMPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, comm);
    const base::Json json = base::Json::parse(text);
    if (const base::Json* error = json.find("error")) throw base::Error(error->string("error"));
    return {Job::from_json(*json.find("job")), json.find("note")->string("note")};
}

}  // namespace palmette::runtime
