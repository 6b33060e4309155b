// The registry of algorithms.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "palmette/base/text.hpp"
#include "palmette/bindings/planned.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;
using collectives::Algorithm;
using collectives::Spec;
using topology::Job;
using topology::Rank;

void register_collectives(nb::module_& m) {
    nb::class_<Algorithm>(m, "Algorithm", "A row of the registry.")
        .def_prop_ro("collective", [](const Algorithm& self) { return plan::name_of(self.collective); })
        .def_ro("name", &Algorithm::name)
        .def_ro("sentence", &Algorithm::sentence)
        .def_ro("source", &Algorithm::source, "Where the method was published.")
        .def_ro("keys", &Algorithm::keys, "The keys that its specification accepts.")
        .def_ro("preconditions", &Algorithm::preconditions)
        .def_ro("relays", &Algorithm::relays, "True when ranks forward blocks of others (store and forward).")
        .def_prop_ro(
            "candidates", [](const Algorithm& self) { return base::split(self.candidates, ' '); },
            "Specifications that the model tries where no row of a table speaks.")
        .def_prop_ro(
            "samples", [](const Algorithm& self) { return base::split(self.samples, ' '); },
            "Specifications that tests go through, for blocks of some bytes.")
        .def_prop_ro(
            "kin", [](const Algorithm& self) { return self.kin.empty() ? self.name : self.kin; },
            "The nearest algorithm that other MPIs have, by palmette's name.")
        .def_ro("in_network", &Algorithm::in_network, "True when aggregators take part.");

    m.def(
        "collectives",
        [] {
            std::vector<std::string> out;
            for (std::size_t c = 0; c < plan::collective_count; ++c)
                out.emplace_back(plan::name_of(static_cast<plan::Collective>(c)));
            return out;
        },
        "The collectives that plans are made for; v and w forms share their plans.");
    m.def(
        "is_rooted", [](std::string_view name) { return plan::is_rooted(plan::collective_named(name)); },
        "collective"_a, "True where the root matters. Raises Error.");
    m.def(
        "is_reduction", [](std::string_view name) { return plan::is_reduction(plan::collective_named(name)); },
        "collective"_a, "True where contributions are combined. Raises Error.");
    m.def(
        "algorithms", [] { return collectives::algorithms(); },
        "All algorithms, in the order of `palmette plan --list`.");
    m.def(
        "refusal",
        [](const Job& job, std::string_view collective, std::string_view algorithm, std::int32_t root,
           std::int64_t block_bytes, bool ordered, bool shared_memory, std::int64_t element_bytes) {
            const plan::Request request =
                make_request(job, collective, root, block_bytes, {ordered, shared_memory, element_bytes});
            const Spec spec = Spec::parse(algorithm);
            return collectives::algorithm_named(request.collective, spec.name).refuse(job, request, spec);
        },
        "job"_a, "collective"_a, "algorithm"_a, "root"_a = 0, "block_bytes"_a = -1, nb::kw_only(), "ordered"_a = false,
        "shared_memory"_a = false, "element_bytes"_a = 1,
        "Why the algorithm can't serve that job, or None. Raises Error on an unknown name, key or value.");
    m.def(
        "make_program",
        [](const Job& job, std::int32_t rank, std::string_view collective, std::string_view algorithm,
           std::int32_t root, std::int64_t block_bytes, bool ordered, bool shared_memory, std::int64_t element_bytes) {
            const plan::Request request =
                make_request(job, collective, root, block_bytes, {ordered, shared_memory, element_bytes});
            return collectives::make_program(job, Rank{rank}, request, Spec::parse(algorithm));
        },
        "job"_a, "rank"_a, "collective"_a, "algorithm"_a, "root"_a = 0, "block_bytes"_a = -1, nb::kw_only(),
        "ordered"_a = false, "shared_memory"_a = false, "element_bytes"_a = 1,
        "One rank's or service position's program, made without the others'. Raises Error.");
}

}  // namespace palmette::bindings
