// The runtime's settings. The interpose layer reads them from the environment; they must be the same on all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palmette/runtime/transport/waiting.hpp"
#include "palmette/select/route.hpp"
#include "palmette/select/table.hpp"
#include "palmette/topology/mapping/boxes.hpp"

namespace palmette::runtime {

struct Settings {
    bool enable = true;
    std::string mpi;               ///< which MPI this is: mpich, openmpi, impi, smpi or empty; filled in at the start
    bool oversubscribed = false;   ///< the ranks of some node outnumber its cores; agreed at the start
    bool copies_sends = false;     ///< short messages are sent from copies (BufferedSends); filled in at the start
    std::string topology;          ///< path of a topology.json, read by rank 0 only
    std::string aggregator_token;  ///< path of a token for the topology's aggregators, read by rank 0 only; empty: none
    std::string sharp = "auto";    ///< libsharp_coll: auto, off, or its path
    select::Table table = select::Table::built_in();
    using ForcedChoice = select::ForcedChoice;
    std::array<std::optional<ForcedChoice>, select::all_function_count> forced;
    const ForcedChoice* forced_for(select::Function function) const {
        const auto& found = forced[static_cast<std::size_t>(function)];
        return found ? &*found : nullptr;
    }
    std::string report;  ///< empty: none; "1": a page on standard error; otherwise a path for JSON
    std::string joblog;  ///< empty: none; syslog, syslog:/SOCKET, a file or a folder for one line of JSON at the end
    int verbose = 0;
    bool shared = true;         ///< ranks of a node may share memory
    bool reproducible = false;  ///< reductions give the same bits for any placement
    double compare = 0.01;      ///< share of a kind of calls' time for comparing with the MPI's own; 0: never
    bool reorder = true;        ///< communicators with a topology may be reordered where the program allows it
    topology::GridPurpose grids = topology::GridPurpose::halo;  ///< what they are reordered for
    bool check = false;              ///< all ranks compare what they pass before a collective
    std::optional<bool> device_mpi;  ///< whether the MPI takes device memory itself; nothing: it is asked
    bool device_check = true;        ///< data may lie in device memory where a GPU's driver library is loaded
    enum class DevicePath : std::uint8_t { automatic, staging, ipc, nccl };
    DevicePath device_path = DevicePath::automatic;  ///< how blocks in device memory travel
    std::string nccl;                                ///< path of a libnccl.so.2; empty: where the loader finds it
    std::int64_t nccl_timeout_s = 30;  ///< for one operation of NCCL's; making a communicator takes twice that
    /// Collectives on a communicator other than MPI_COMM_WORLD that go to the MPI before it gets its state.
    std::int64_t serve_after = 0;
    Waiting::Policy waiting = Waiting::Policy::automatic;
    double pretended_delay_s = 0;  ///< for tests: delay added to palmette's own calls when they are compared
    std::string pretended_hosts;  ///< for tests: comma-separated host of each rank, so that one machine looks like many
    /// Larger grids are mapped by each rank for its own cell, and larger distributed graphs not gathered at rank 0; for
    /// tests.
    std::int64_t reorder_whole_up_to = 1024;
    long long reorder_gathered_up_to = INT64_MAX;
    std::string warnings;    ///< settings that could not be used; reported once by rank 0
    std::uint64_t hash = 0;  ///< of all that influences choices; must agree between ranks
    /// Each variable with a hash of its value, the undeclared ones together: to name those that differ between ranks.
    std::vector<std::pair<std::string, std::uint64_t>> values;
    std::uint64_t values_hash = 0;  ///< of all of them
};

}  // namespace palmette::runtime
