// Compositions, their factoring and MPI's collectives as compositions.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "palmette/base/error.hpp"
#include "palmette/bindings/planned.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/compose/crossing.hpp"
#include "palmette/compose/factor.hpp"
#include "palmette/compose/formulas.hpp"
#include "palmette/compose/named.hpp"
#include "palmette/compose/promise.hpp"

namespace palmette::bindings {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using compose::Buffer;
using compose::Composition;
using compose::Factory;
using compose::Lengths;
using compose::Primitive;
using compose::RankSet;
using compose::Tree;
using topology::Job;
using topology::Rank;

/// None: all ranks.
RankSet ranks_of(const Composition& self, const std::optional<std::vector<std::int32_t>>& ranks) {
    return ranks ? RankSet::of(*ranks) : RankSet::all(self.ranks());
}

Buffer existing_buffer(const Composition& self, std::string_view name) {
    const auto at = std::find(self.buffers().begin(), self.buffers().end(), name);
    if (at == self.buffers().end()) {
        std::string known;
        for (const std::string& other : self.buffers()) known += (known.empty() ? "" : ", ") + other;
        base::fail(
            "buffer '", name, "' is unknown; ",
            known.empty() ? "make it with buffer()" : base::cat("there are ", known, "; make others with buffer()"));
    }
    return plan::caller_buffer(static_cast<std::size_t>(at - self.buffers().begin()));
}

Lengths lengths_from(const std::variant<std::int64_t, std::vector<std::int64_t>>& given,
                     const std::optional<std::int64_t>& blocks, bool vector, std::int64_t element_bytes) {
    const std::vector<std::int64_t> list = lengths_of(given);
    if (given.index() == 1) {
        if (blocks && *blocks != static_cast<std::int64_t>(list.size()))
            base::fail("blocks=", *blocks, " and ", list.size(), " lengths; leave blocks out");
        for (const std::int64_t bytes : list)
            if (bytes % element_bytes != 0)
                base::fail("a block of ", bytes, " bytes is no whole number of elements of ", element_bytes, " bytes");
        return Lengths::list(list);
    }
    if (list.front() % element_bytes != 0)
        base::fail(list.front(), " bytes are no whole number of elements of ", element_bytes, " bytes");
    return vector ? Lengths::cut(blocks.value_or(1), list.front(), element_bytes)
                  : Lengths::uniform(blocks.value_or(1), list.front());
}

/// The job and the factoring of a composition.
struct ComposeArguments {
    const Job& job;
    Tree tree;
    compose::Factoring factoring;

    ComposeArguments(const Job& on, const std::optional<std::string>& hierarchy,
                     const std::vector<std::string>& methods, std::int32_t stripes, std::int32_t pipeline,
                     std::int32_t landings)
        : job(on), tree(Tree::of(hierarchy ? compose::job_of_hierarchy(*hierarchy, on.size()) : on)) {
        factoring.methods.clear();
        for (const std::string& method : methods) factoring.methods.push_back(compose::Method::parse(method));
        factoring.stripes = stripes, factoring.pipeline = pipeline, factoring.landings = landings;
    }
};

using Described = std::tuple<std::int32_t, std::string, std::int32_t, std::vector<std::int32_t>, std::string,
                             std::pair<std::int64_t, std::int64_t>, std::string, std::string>;

std::vector<Described> primitives(const Composition& self) {
    std::vector<Described> out;
    self.visit([&](std::int32_t phase, const Primitive& primitive) {
        std::vector<std::int32_t> others;
        for (std::size_t i = 0; i < primitive.others.runs(); ++i)
            for (std::int64_t r = primitive.others.run(i).first; r < primitive.others.run(i).end(); ++r)
                others.push_back(static_cast<std::int32_t>(r));
        out.emplace_back(phase, primitive.reduces ? "reduce" : "multicast", primitive.root.value, std::move(others),
                         self.buffers()[plan::caller_index(primitive.source)],
                         std::pair(primitive.blocks.first, primitive.blocks.count),
                         self.buffers()[plan::caller_index(primitive.target)],
                         primitive.reduces ? self.operations()[primitive.operation].name : std::string());
    });
    return out;
}

std::vector<std::pair<std::int64_t, std::int64_t>> held(const Composition& self, std::int32_t rank,
                                                        std::string_view name) {
    if (rank < 0 || rank >= self.ranks()) base::fail("rank ", rank, " is outside of ", self.ranks(), " ranks");
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    const compose::Holdings holdings(self, rank);
    for (const plan::Interval& i : holdings.of(Rank{rank}, existing_buffer(self, name)).intervals())
        out.emplace_back(i.first, i.count);
    return out;
}

void register_composition(nb::module_& m) {
    nb::class_<Composition>(m, "Composition", "Multicasts, reductions and fences over some ranks.")
        .def(
            "__init__",
            [](Composition* self, std::int32_t ranks,
               const std::variant<std::int64_t, std::vector<std::int64_t>>& bytes,
               const std::optional<std::int64_t>& blocks, bool vector, std::int64_t element_bytes) {
                if (element_bytes < 1) base::fail("an element can't have ", element_bytes, " bytes");
                if (blocks && *blocks < 1) base::fail("blocks=", *blocks, ": expected 1 or more");
                new (self) Composition(ranks, lengths_from(bytes, blocks, vector, element_bytes), element_bytes);
            },
            "ranks"_a, "bytes"_a, "blocks"_a = nb::none(), "vector"_a = false, "element_bytes"_a = 1,
            "`bytes`: of every block, or of each; with `vector` of all together, which are cut in `blocks` even "
            "blocks. Raises Error.")
        .def(
            "buffer", [](Composition& self, std::string_view name) { return plan::caller_index(self.buffer(name)); },
            "name"_a, "Makes a buffer, or finds the one of that name; returns its number. Raises Error.")
        .def(
            "operation",
            [](Composition& self, std::string name, bool commutative) {
                return self.operation({std::move(name), commutative});
            },
            "name"_a, "commutative"_a = true, "Adds an operation and returns its number. Raises Error.")
        .def(
            "multicast",
            [](Composition& self, std::int32_t root, const std::optional<std::vector<std::int32_t>>& to,
               std::string_view source, std::int64_t first, std::int64_t count, std::string_view target) {
                self.multicast(Rank{root}, ranks_of(self, to), existing_buffer(self, source), {first, count},
                               existing_buffer(self, target));
            },
            "root"_a, "to"_a.none(), "source"_a, "first"_a, "count"_a, "target"_a, "Raises Error.")
        .def(
            "reduce",
            [](Composition& self, const std::optional<std::vector<std::int32_t>>& sources, std::int32_t root,
               std::string_view source, std::int64_t first, std::int64_t count, std::string_view target,
               std::uint8_t operation) {
                self.reduce(ranks_of(self, sources), Rank{root}, existing_buffer(self, source), {first, count},
                            existing_buffer(self, target), operation);
            },
            "sources"_a.none(), "root"_a, "source"_a, "first"_a, "count"_a, "target"_a, "operation"_a, "Raises Error.")
        .def("fence", &Composition::fence)
        .def(
            "hold",
            [](Composition& self, std::int32_t rank, std::string_view buffer, std::int64_t first, std::int64_t count) {
                self.hold(Rank{rank}, existing_buffer(self, buffer), {first, count});
            },
            "rank"_a, "buffer"_a, "first"_a, "count"_a,
            "Allocates these blocks in the rank's buffer even where no primitive touches them. Raises Error.")
        .def_prop_ro("ranks", &Composition::ranks)
        .def_prop_ro("blocks", &Composition::blocks)
        .def_prop_ro("element_bytes", &Composition::element_bytes)
        .def_prop_ro("phases", &Composition::phases, "Number of phases: fences + 1.")
        .def_prop_ro("buffers", &Composition::buffers, "Names.")
        .def_prop_ro(
            "operations",
            [](const Composition& self) {
                std::vector<std::pair<std::string, bool>> out;
                for (const auto& [name, commutative] : self.operations()) out.emplace_back(name, commutative);
                return out;
            },
            "Names, and whether they are commutative.")
        .def(
            "bytes_of",
            [](const Composition& self, std::int64_t block) {
                if (block < 0 || block >= self.blocks())
                    base::fail("block ", block, " is outside of 0 to ", self.blocks() - 1);
                return self.lengths()[block];
            },
            "block"_a, "Raises Error.")
        .def_prop_ro(
            "holds",
            [](const Composition& self) {
                std::vector<std::tuple<std::int32_t, std::string, std::int64_t, std::int64_t>> out;
                for (const Composition::Holding& one : self.held())
                    out.emplace_back(one.rank.value, self.buffers()[plan::caller_index(one.buffer)], one.blocks.first,
                                     one.blocks.count);
                return out;
            },
            "(rank, buffer, first, count) of each call of `hold`.")
        .def("held", &held, "rank"_a, "buffer"_a,
             "(first, count) of the blocks that lie in a rank's buffer, one after the other. Raises Error.")
        .def("primitives", &primitives,
             "(phase, 'multicast' or 'reduce', root, others, source, (first, count), target, operation) of each.")
        .def(
            "factor",
            [](const Composition& self, const Job& job, const std::optional<std::string>& hierarchy,
               const std::vector<std::string>& methods, std::int32_t stripes, std::int32_t pipeline,
               std::int32_t landings) {
                const ComposeArguments asked(job, hierarchy, methods, stripes, pipeline, landings);
                return PlanWithJob{job, Factory(self, job, asked.tree, asked.factoring).plan()};
            },
            "job"_a, "hierarchy"_a = nb::none(), "methods"_a = std::vector<std::string>{"direct"}, "stripes"_a = 1,
            "pipeline"_a = 1, "landings"_a = 4,
            "The plan of all ranks. `hierarchy`, such as '3:8' or '2:4+3', groups the job's positions in place of its "
            "own levels; one method for all levels or one for each. Raises Error.")
        .def(
            "program",
            [](const Composition& self, const Job& job, std::int32_t rank, const std::optional<std::string>& hierarchy,
               const std::vector<std::string>& methods, std::int32_t stripes, std::int32_t pipeline,
               std::int32_t landings) {
                const ComposeArguments asked(job, hierarchy, methods, stripes, pipeline, landings);
                return Factory(self, job, asked.tree, asked.factoring).program(Rank{rank});
            },
            "job"_a, "rank"_a, "hierarchy"_a = nb::none(), "methods"_a = std::vector<std::string>{"direct"},
            "stripes"_a = 1, "pipeline"_a = 1, "landings"_a = 4, "One rank's program. Raises Error.")
        .def(
            "crossing",
            [](const Composition& self, const Job& job) {
                std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> out;
                for (const auto& level : compose::crossing(self, job)) {
                    auto& groups = out.emplace_back();
                    for (const auto& group : level) groups.emplace_back(group.out, group.in);
                }
                return out;
            },
            "job"_a,
            "By level and group of the job: bytes that must leave and enter the group, whatever the plan. Raises "
            "Error.");
}

}  // namespace

void register_compose(nb::module_& m) {
    register_composition(m);
    m.def(
        "compositions",
        [] {
            std::vector<std::tuple<std::string, std::string, bool, bool>> out;
            for (const compose::NamedCollective& row : compose::named())
                out.emplace_back(row.name, row.sentence, row.rooted, row.reduces);
            return out;
        },
        "MPI's collectives as compositions: name, sentence, whether there is a root, whether there is an operation.");
    m.def(
        "named_composition",
        [](std::string_view name, std::int32_t ranks,
           const std::variant<std::int64_t, std::vector<std::int64_t>>& bytes, std::int32_t root,
           std::int64_t element_bytes, std::string operation, bool commutative) {
            return compose::compose(
                name, {ranks, Rank{root}, lengths_of(bytes), element_bytes, {std::move(operation), commutative}});
        },
        "name"_a, "ranks"_a, "bytes"_a, "root"_a = 0, "element_bytes"_a = 1, "operation"_a = "sum",
        "commutative"_a = true,
        "A composition of `compositions`. `bytes`: one number, one for each rank or, of alltoall, for each pair; of a "
        "vector the whole. Raises Error.");
    m.def(
        "hierarchy_levels",
        [](const Job& job) {
            std::vector<std::string> out;
            for (const Tree::Level& level : Tree::of(job).levels) out.push_back(level.name);
            return out;
        },
        "job"_a, "Names of the levels that a composition is factored over, outermost first: a method for each.");
    m.def(
        "best_depth",
        [](std::int32_t participants, double bytes, double latency_s, double bytes_per_s) {
            if (bytes_per_s <= 0) base::fail("best_depth: ", bytes_per_s, " bytes/s is no rate");
            return compose::best_depth(participants, bytes, {latency_s, bytes_per_s});
        },
        "participants"_a, "bytes"_a, "latency_s"_a, "bytes_per_s"_a,
        "Optimal pipeline depth of a ring: the integer next to sqrt(d (n - 2) / (f a)). Raises Error.");
    m.def(
        "multicast_s",
        [](std::string_view shape, std::int32_t participants, double bytes, double latency_s, double bytes_per_s,
           std::int32_t detail) {
            if (bytes_per_s <= 0) base::fail("multicast_s: ", bytes_per_s, " bytes/s is no rate");
            const compose::LinkCost link{latency_s, bytes_per_s};
            if (shape == "direct") return compose::direct_s(participants, bytes, link);
            if (shape == "scatter_allgather") return compose::scatter_allgather_s(participants, bytes, link);
            if (shape == "tree" && detail >= 2) return compose::tree_s(participants, bytes, detail, link);
            if (shape == "ring" && detail >= 1) return compose::ring_s(participants, bytes, detail, link);
            base::fail("multicast_s: '", shape, "' with ", detail,
                       ": expected direct, scatter_allgather, tree with its radix, or ring with its depth");
        },
        "shape"_a, "participants"_a, "bytes"_a, "latency_s"_a, "bytes_per_s"_a, "detail"_a = 0,
        "Seconds of a multicast among equal links in closed form; `detail`: a tree's radix, a ring's depth. Raises "
        "Error.");
    m.def("hierarchy_job", &compose::job_of_hierarchy, "hierarchy"_a, "ranks"_a,
          "A job of groups such as '3:8' or '2:4+3', outermost first. Raises Error that says what fits.");
}

}  // namespace palmette::bindings
