// Lower bounds on the time of collectives.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <tuple>

#include "palmette/base/error.hpp"
#include "palmette/bindings/planned.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/model/bound/bound.hpp"
#include "palmette/model/bound/delivery.hpp"

namespace palmette::bindings {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using model::Bound;
using model::BoundTerms;
using model::EdgeTerm;
using model::LevelTerms;
using model::MemoryTerm;
using model::OnePortTerm;
using model::RoundsTerm;
using Lengths = std::variant<std::int64_t, std::vector<std::int64_t>>;
using Ports = std::map<std::string, std::int32_t>;
using Ends = std::tuple<double, double, double, double>;

/// A request and its block lengths.
struct ModelArguments {
    plan::Request request;
    std::vector<std::int64_t> lengths;
};

ModelArguments asked(const topology::Job& job, std::string_view collective, const Lengths& block_bytes,
                     std::int32_t root) {
    std::vector<std::int64_t> lengths = lengths_of(block_bytes);
    const std::int64_t uniform = lengths.size() == 1 ? lengths.front() : -1;
    return {make_request(job, collective, root, uniform), std::move(lengths)};
}

void register_bound_classes(nb::module_& m) {
    nb::class_<Bound>(m, "Bound", "Lower bound on the time of a collective, and the term that sets it.")
        .def_ro("seconds", &Bound::seconds, "0 where nothing is known.")
        .def_ro(
            "kind", &Bound::kind,
            "'link' (one group's edge), 'links' (all edges of a level), 'aggregators' (these and aggregators' links), "
            "'latency', 'rounds' (critical path of dependent messages), 'copy' or 'reduce' (memory bandwidth of a "
            "rank), or 'none': nothing is known.")
        .def_ro("level", &Bound::level)
        .def_ro("group", &Bound::group, "For a link: index of the group, else -1.")
        .def_ro("group_name", &Bound::group_name, "For a link: name of the group, where names are known.")
        .def_ro("outwards", &Bound::outwards, "For a link: True for bytes that leave the group, else they enter it.")
        .def_ro("bytes", &Bound::bytes, "Bytes that must cross, be copied or be reduced.")
        .def_ro("capacity_bytes_per_s", &Bound::capacity_bytes_per_s);
    nb::class_<EdgeTerm>(m, "EdgeTerm", "The edge of one group, and the bytes that must cross it.")
        .def_ro("group", &EdgeTerm::group, "-1: no edge.")
        .def_ro("name", &EdgeTerm::name, "Name of the group, where names are known.")
        .def_prop_ro("bytes_out", [](const EdgeTerm& self) { return self.traffic.out; })
        .def_prop_ro("bytes_in", [](const EdgeTerm& self) { return self.traffic.in; })
        .def_ro("capacity_bytes_per_s", &EdgeTerm::capacity_bytes_per_s, "0: unknown.")
        .def_ro("seconds", &EdgeTerm::seconds, "Time of the slower direction.")
        .def_ro("outwards", &EdgeTerm::outwards, "Whether that is out of the group.");
    nb::class_<LevelTerms>(m, "LevelTerms", "What bounds a collective at one level.")
        .def_ro("level", &LevelTerms::level)
        .def_ro("groups", &LevelTerms::groups)
        .def_ro("unknown", &LevelTerms::unknown, "Edges without a capacity.")
        .def_ro("worst", &LevelTerms::worst, "The slowest edge; group -1 where no capacity is known.")
        .def_ro("together_bytes", &LevelTerms::together_bytes,
                "Bytes that leave groups, without in-network reduction or multicast.")
        .def_ro("together_bytes_per_s", &LevelTerms::together_bytes_per_s,
                "Aggregate capacity of all edges; 0: not all are known.")
        .def_ro("together_s", &LevelTerms::together_s)
        .def_ro("with_aggregators_bytes", &LevelTerms::with_aggregators_bytes,
                "Bytes of an allreduce in which the job's aggregators take part.")
        .def_ro("with_aggregators_bytes_per_s", &LevelTerms::with_aggregators_bytes_per_s)
        .def_ro("with_aggregators_s", &LevelTerms::with_aggregators_s, "0: no bound.")
        .def_ro("latency_s", &LevelTerms::latency_s, "0: unknown.")
        .def_ro("crossed", &LevelTerms::crossed, "Some message must cross this level.");
    nb::class_<OnePortTerm>(m, "OnePortTerm",
                            "The least time of schedules in which a member sends and receives one message at a time.")
        .def_ro("members", &OnePortTerm::members, "Nodes, or ranks with messages_only.")
        .def_ro("blocks", &OnePortTerm::blocks, "Equal blocks of the vector in the fewest rounds; 0: any lengths.")
        .def_ro("rounds", &OnePortTerm::rounds)
        .def_ro("latency_s", &OnePortTerm::latency_s, "The smallest between members.")
        .def_ro("bytes", &OnePortTerm::bytes, "Size of the vector, or of the smallest member's block.")
        .def_ro("bytes_per_s", &OnePortTerm::bytes_per_s, "Bandwidth of the fastest member's edge; 0: unknown.")
        .def_ro("seconds", &OnePortTerm::seconds, "0: no latency is known.");
    nb::class_<RoundsTerm>(m, "RoundsTerm", "Critical path of dependent messages until all members are informed.")
        .def_ro("members", &RoundsTerm::members, "Nodes, or ranks with messages_only.")
        .def_ro("at_once", &RoundsTerm::at_once, "Messages in flight per member; 0: unlimited.")
        .def_ro("rounds", &RoundsTerm::rounds)
        .def_ro("latency_s", &RoundsTerm::latency_s, "The smallest between members.")
        .def_ro("spread_s", &RoundsTerm::spread_s,
                "Broadcast latency bound of the postal model, with messages_only; 0: no bound.")
        .def_ro("seconds", &RoundsTerm::seconds);
    nb::class_<MemoryTerm>(m, "MemoryTerm", "Lower bound on the copies or reductions of the busiest rank.")
        .def_ro("bytes", &MemoryTerm::bytes)
        .def_ro("bytes_per_s", &MemoryTerm::bytes_per_s, "0: unknown.")
        .def_ro("seconds", &MemoryTerm::seconds);
    nb::class_<BoundTerms>(m, "BoundTerms", "All terms that bound a collective, and the resulting limits.")
        .def_ro("levels", &BoundTerms::levels, "Outermost first.")
        .def_ro("rounds", &BoundTerms::rounds)
        .def_ro("one_port", &BoundTerms::one_port)
        .def_ro("copy", &BoundTerms::copy)
        .def_ro("reduce", &BoundTerms::reduce)
        .def_ro("limit", &BoundTerms::limit, "Switches only forward.")
        .def_ro("limit_in_network", &BoundTerms::limit_in_network,
                "The job's aggregators also reduce; every switch does, and multicasts, if it has none.");
}

}  // namespace

void register_model(nb::module_& m) {
    register_bound_classes(m);
    m.def(
        "bound",
        [](const topology::Job& job, std::string_view collective, const Lengths& block_bytes, std::int32_t root,
           bool in_network) {
            const ModelArguments what = asked(job, collective, block_bytes, root);
            if (in_network) return model::bound_terms(job, what.request, what.lengths).limit_in_network;
            return model::bound(job, what.request, what.lengths);
        },
        "job"_a, "collective"_a, "block_bytes"_a, "root"_a = 0, nb::kw_only(), "in_network"_a = false,
        "Lower bound on the time of a collective on the job's tree; block_bytes is one number, or one for each rank "
        "(gather, scatter, allgather, reduce_scatter) or pair, sender * p + receiver (alltoall). Raises Error.");
    m.def(
        "bound_terms",
        [](const topology::Job& job, std::string_view collective, const Lengths& block_bytes, std::int32_t root,
           const Ports& ports, std::int32_t at_once, bool messages_only, const std::optional<Ends>& ends) {
            const ModelArguments what = asked(job, collective, block_bytes, root);
            model::BoundOptions options{{ports.begin(), ports.end()}, at_once, messages_only, {}};
            if (ends) {
                const auto& [send_inside, receive_inside, send_between, receive_between] = *ends;
                options.ends = {{send_inside, send_between}, {receive_inside, receive_between}};
            }
            return model::bound_terms(job, what.request, what.lengths, options);
        },
        "job"_a, "collective"_a, "block_bytes"_a, "root"_a = 0, nb::kw_only(), "ports"_a = Ports{}, "at_once"_a = 0,
        "messages_only"_a = false, "ends"_a = nb::none(),
        "All terms that bound a collective. ports: by level, the ports that ranks of a group are bound to; at_once: "
        "messages in flight per rank, 0: derived from overheads; messages_only: ranks of a node share no memory; ends: "
        "with it, the gaps (busy seconds per message) of sender and receiver of an intra-node message, then of an "
        "inter-node one. Raises Error.");
    m.def(
        "bound_edges",
        [](const topology::Job& job, std::string_view collective, const Lengths& block_bytes, std::size_t level,
           std::int32_t root, const Ports& ports) {
            const ModelArguments what = asked(job, collective, block_bytes, root);
            return model::bound_edges(job, what.request, what.lengths, level,
                                      {{ports.begin(), ports.end()}, 0, false, {}});
        },
        "job"_a, "collective"_a, "block_bytes"_a, "level"_a, "root"_a = 0, nb::kw_only(), "ports"_a = Ports{},
        "All edges of one level, by group; `level` is an index into Job.levels. Raises Error.");
    m.def(
        "delivery_bound",
        [](const topology::Job& job, std::int32_t root, const std::pair<double, double>& gaps, double inside_latency_s,
           double bytes) {
            if (root < 0 || root >= job.size())
                base::fail("root ", root, " is outside of a job of ", job.size(), " ranks");
            const nb::gil_scoped_release release;
            return model::delivery_s(job, job.position_of({root}), {gaps.first, gaps.second}, inside_latency_s, bytes);
        },
        "job"_a, "root"_a, "gaps_s"_a, "inside_latency_s"_a, "bytes"_a,
        "Lower bound in seconds until a vector of the root is everywhere by messages that share the hosts' links, or "
        "reversed, until a reduction is at the root; 0: none follows. gaps_s: busy time of one end of an intra-node "
        "message, and of an inter-node one; inside_latency_s: the least within a host. Raises Error.");
}

}  // namespace palmette::bindings
