// The decision table.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "palmette/base/error.hpp"
#include "palmette/bindings/json_object.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/select/route.hpp"
#include "palmette/select/row_match.hpp"
#include "palmette/select/table.hpp"
#include "palmette/select/verdict.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;
using select::Choice;
using select::Row;
using select::Table;
using topology::Job;

namespace {

std::optional<std::string> text_of(const std::optional<collectives::Spec>& spec) {
    return spec ? std::optional(spec->text()) : std::nullopt;
}

/// A table query, from Python's arguments.
struct SelectArguments {
    select::Function function;
    plan::Request request;
    select::Surroundings surroundings;
};

SelectArguments asked(const Job& job, std::string_view function, std::int32_t root, std::int64_t block_bytes,
                      std::string mpi, bool oversubscribed, bool blocking, bool ordered, bool shared_memory,
                      bool compared) {
    if (root < 0 || root >= job.size()) base::fail("root ", root, " is outside of a job of ", job.size(), " ranks");
    const select::Function found = select::function_named(function);
    SelectArguments out{found,
                        {select::collective_of(found), plan::Rank{root}, block_bytes},
                        {std::move(mpi), oversubscribed, blocking, blocking && compared}};
    out.request.ordered = ordered;
    out.request.shared_memory = blocking && shared_memory;
    // As at run time, in the communicator of all ranks.
    static const select::Plays plays = select::play_in_turn;
    if (blocking && !oversubscribed) out.surroundings.plays = &plays;
    return out;
}

/// The route of a call, as a run chooses it where ranks of a node read each other's memory.
select::Route route_of(const Table& table, std::string_view function, const Job& job, std::int32_t root,
                       std::int64_t block_bytes, std::string mpi, bool oversubscribed, bool blocking, bool ordered,
                       bool shared_memory, bool compared, const std::optional<std::string>& forced, bool reproducible,
                       bool aggregators) {
    const SelectArguments a = asked(job, function, root, block_bytes, std::move(mpi), oversubscribed, blocking, ordered,
                                    shared_memory, compared);
    std::optional<select::ForcedChoice> demand;
    if (forced)
        demand = {*forced == "mpi" ? std::nullopt : std::optional(collectives::Spec::parse(*forced)), "PALMETTE_FORCE"};
    const Job in_rank_order = job.in_rank_order();
    const topology::Partition& nodes = job.nodes().groups;
    select::PlanKey key{
        .function = a.function, .blocking = blocking, .ordered = ordered, .root = root, .block_bytes = block_bytes};
    key.known = aggregators;
    return select::choose_route(key, {.table = table,
                                      .job = job,
                                      .in_rank_order = in_rank_order,
                                      .scattered = select::is_scattered(job),
                                      .forced = demand ? &*demand : nullptr,
                                      .reproducible = reproducible,
                                      .most_tags = INT64_MAX,
                                      .node_memory = {.usable = shared_memory && nodes.count() < nodes.size(),
                                                      .is_set_up = true,
                                                      .single_copy = true,
                                                      .pays_from = INT64_MAX,
                                                      .ring_bytes = INT64_MAX},
                                      .around = a.surroundings});
}

}  // namespace

void register_select(nb::module_& m) {
    nb::class_<select::Route>(m, "Route", "Who carries a call out, by which algorithm and why.")
        .def_prop_ro(
            "algorithm",
            [](const select::Route& self) {
                const bool left = self.left != select::Route::LeaveReason::no;
                return left ? std::nullopt : std::optional(self.algorithm);
            },
            "None: the MPI's own; 'none': nothing has to move.")
        .def_ro("reason", &select::Route::reason)
        .def_prop_ro(
            "refused",
            [](const select::Route& self) {
                return self.left == select::Route::LeaveReason::precondition ? std::optional(self.candidate)
                                                                             : std::nullopt;
            },
            "The algorithm that was chosen and can't serve the call; None: it can.")
        .def_prop_ro(
            "on_trial", [](const select::Route& self) { return select::is_on_trial(self.basis); },
            "The model's: blocking calls are the MPI's until comparing them shows that it is faster.")
        .def_ro("aggregates", &select::Route::aggregates, "Aggregators combine.");

    nb::class_<Choice>(m, "Choice", "The choice of a table, with its reason.")
        .def_prop_ro(
            "algorithm", [](const Choice& self) { return text_of(self.algorithm); }, "None: the MPI's own.")
        .def_ro("reason", &Choice::reason)
        .def_prop_ro(
            "on_trial", [](const Choice& self) { return select::is_on_trial(self.basis); },
            "The model's: blocking calls are the MPI's until comparing them shows that it is faster.");

    nb::class_<Row>(m, "TableRow", "One row of a table; it matches when all its limits hold.")
        .def_prop_ro(
            "function", [](const Row& self) { return select::name_of(self.function); }, "gather, gatherv, ...")
        .def_ro("mpi", &Row::mpi, "mpich, openmpi or impi; empty: any.")
        .def_ro("min_bytes", &Row::min_bytes, "Least size of one rank's block.")
        .def_ro("max_bytes", &Row::max_bytes)
        .def_ro("min_ranks", &Row::min_ranks)
        .def_ro("max_ranks", &Row::max_ranks)
        .def_ro("min_nodes", &Row::min_nodes)
        .def_ro("max_nodes", &Row::max_nodes)
        .def_ro("min_ranks_per_node", &Row::min_ranks_per_node, "Least number of ranks on the fullest node.")
        .def_ro("max_ranks_per_node", &Row::max_ranks_per_node)
        .def_ro("min_rate", &Row::min_rate,
                "Above 0: lower limit on the rate of the slowest link of a node, in bytes per second.")
        .def_ro("max_rate", &Row::max_rate, "Upper limit on the same; infinite: any, even unknown.")
        .def_ro("min_switches", &Row::min_switches, "Groups of the level `leaf`; 1 where there are none.")
        .def_ro("max_switches", &Row::max_switches)
        .def_ro("even_switches", &Row::even_switches, "None: any.")
        .def_ro("min_latency_s", &Row::min_latency_s,
                "Above 0: lower limit on the latency of the slowest level, where known.")
        .def_ro("max_latency_s", &Row::max_latency_s, "Upper limit on the same; infinite: any, even unknown.")
        .def_ro("min_load", &Row::min_load, "Above 0: lower limit on the load of the most loaded link.")
        .def_ro("scattered", &Row::scattered, "Set: rank order and topology order must differ (True) or agree (False).")
        .def_ro("oversubscribed", &Row::oversubscribed,
                "Set: ranks must outnumber cores on some node (True) or on none (False).")
        .def_ro("blocking", &Row::blocking, "Set: for blocking calls only (True), or for all others (False).")
        .def_prop_ro(
            "algorithm",
            [](const Row& self) {
                return self.by_model ? std::optional<std::string>("model") : text_of(self.algorithm);
            },
            "None: leave the call to the MPI; 'model': the candidate with the shortest estimated time.")
        .def_ro(
            "mpi_ratio", &Row::mpi_ratio,
            "For a call left to the MPI: the largest measured ratio of palmette's time to the MPI's; 0: not measured.")
        .def_ro("why", &Row::why)
        .def_ro("source", &Row::source, "A key of the table's sources: the provenance of the row.");

    nb::class_<Table>(m, "Table", "Which algorithm serves which call.")
        .def_static(
            "built_in", [] { return Table::built_in(); }, "The built-in table.")
        .def_prop_ro(
            "sources", [](const Table& self) { return self.sources(); },
            "(name, text): provenance, the machine and the run that rows of that source were measured on.")
        .def_static(
            "from_json", [](nb::object document) { return Table::from_json(from_python(std::move(document))); },
            "document"_a, nb::sig("def from_json(document: str | dict[str, typing.Any]) -> Table"),
            "Format palmette-table, version 1. Raises Error naming the row.")
        .def_static(
            "from_file", [](nb::object path) { return Table::from_file(path_text(path)); }, "path"_a,
            nb::sig("def from_file(path: str | os.PathLike[str]) -> Table"), "Raises Error naming file and row.")
        .def(
            "to_json", [](const Table& self) { return to_dict(self.to_json()); },
            nb::sig("def to_json(self) -> dict[str, typing.Any]"))
        .def_prop_ro("rows", &Table::rows)
        .def(
            "choose",
            [](const Table& self, std::string_view function, const Job& job, std::int32_t root,
               std::int64_t block_bytes, std::string mpi, bool oversubscribed, bool blocking, bool ordered,
               bool shared_memory, bool compared) {
                const SelectArguments a = asked(job, function, root, block_bytes, std::move(mpi), oversubscribed,
                                                blocking, ordered, shared_memory, compared);
                return self.choose(a.function, job, a.request, a.surroundings);
            },
            "function"_a, "job"_a, "root"_a = 0, "block_bytes"_a = -1, "mpi"_a = "", "oversubscribed"_a = false,
            "blocking"_a = true, "ordered"_a = false, "shared_memory"_a = true, "compared"_a = false,
            "The first row that matches and whose algorithm serves the job; block_bytes -1: unknown; mpi: mpich, "
            "openmpi or impi; ordered: the operation isn't commutative; shared_memory: ranks of a node "
            "may share memory, in blocking calls; compared: these are compared with the MPI's own, so that the model "
            "may "
            "choose from assumed costs. Raises Error.")
        .def("route", &route_of, "function"_a, "job"_a, "root"_a = 0, "block_bytes"_a = -1, "mpi"_a = "",
             "oversubscribed"_a = false, "blocking"_a = true, "ordered"_a = false, "shared_memory"_a = true,
             "compared"_a = false, "forced"_a = nb::none(), "reproducible"_a = false, "aggregators"_a = false,
             "Who carries a call out in a run, with the arguments of `choose`; forced: an algorithm, or mpi; "
             "reproducible: as PALMETTE_REPRODUCIBLE; aggregators: those of the job are in service, and the operation "
             "is predefined. Raises Error.")
        .def(
            "match_rows",
            [](const Table& self, std::string_view function, const Job& job, std::int32_t root,
               std::int64_t block_bytes, std::string mpi, bool oversubscribed, bool blocking, bool ordered,
               bool shared_memory, bool compared) {
                const SelectArguments a = asked(job, function, root, block_bytes, std::move(mpi), oversubscribed,
                                                blocking, ordered, shared_memory, compared);
                std::vector<std::tuple<std::size_t, std::string, bool>> out;
                for (select::RowMatch& match : select::match_rows(self, a.function, job, a.request, a.surroundings))
                    out.emplace_back(match.row, std::move(match.mismatch), match.measurable);
                return out;
            },
            "function"_a, "job"_a, "root"_a = 0, "block_bytes"_a = -1, "mpi"_a = "", "oversubscribed"_a = false,
            "blocking"_a = true, "ordered"_a = false, "shared_memory"_a = true, "compared"_a = false,
            "(row, why it doesn't match, whether that depends on link latency or load, which a measurement may change) "
            "for the function's rows in order, up to the one that decides, whose text is empty. Raises Error.");

    m.def(
        "collective_of",
        [](std::string_view function) {
            return plan::name_of(select::collective_of(select::function_named(function)));
        },
        "function"_a, "The collective that a function is one form of: alltoallw is an alltoall. Raises Error.");
    m.def("sign_test", &select::sign_test, "wins"_a, "pairs"_a,
          "The probability that a fair coin gives at least so many heads: the one-sided sign test.");
    m.attr("SIGNIFICANT") = select::significant;
    m.attr("FEWEST_PAIRS") = select::fewest_pairs;
    m.def("switch_count", &select::switch_count, "job"_a,
          "Groups of the level `leaf` that have ranks; 1 where there are none.");
    m.def("is_scattered", &select::is_scattered, "job"_a, "True when ranks are not in topology order.");
}

}  // namespace palmette::bindings
