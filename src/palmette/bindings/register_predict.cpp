// Predicted times of plans and algorithms.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "palmette/bindings/planned.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/model/estimate/estimate.hpp"
#include "palmette/model/play/predict.hpp"
#include "palmette/select/by_model.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;
using collectives::Spec;
using model::LevelPart;
using model::Prediction;
using topology::CostAssumption;
using topology::Costs;
using topology::Job;

void register_predict(nb::module_& m) {
    nb::class_<CostAssumption>(m, "CostAssumption", "One input of a prediction, with its provenance.")
        .def_ro("what", &CostAssumption::what, "The assumed cost, such as 'latency of leaf'.")
        .def_ro("value", &CostAssumption::value)
        .def_ro("unit", &CostAssumption::unit, "'s' or 'bytes/s'.")
        .def_prop_ro(
            "provenance", [](const CostAssumption& self) { return topology::name_of(self.provenance); },
            "'calibrated', 'given' or 'assumed'.");

    nb::class_<LevelPart>(m, "LevelPart", "Contribution of the messages of one level to the critical path.")
        .def_ro("level", &LevelPart::level, "Name of the level, or 'ranks side by side'.")
        .def_ro("latency_s", &LevelPart::latency_s)
        .def_ro("transfer_s", &LevelPart::transfer_s)
        .def_ro("overhead_s", &LevelPart::overhead_s)
        .def_ro("contention", &LevelPart::contention, "Transfer times over uncontended times.")
        .def_ro("messages", &LevelPart::messages)
        .def_ro("bytes", &LevelPart::bytes)
        .def_prop_ro("seconds", &LevelPart::seconds);

    nb::class_<Prediction>(m, "Prediction",
                           "The predicted time of a plan and its breakdown along the critical path; the parts add up.")
        .def_ro("seconds", &Prediction::seconds, "Until the last rank is done.")
        .def_ro("levels", &Prediction::levels, "As in the job, then ranks that no level tells apart.")
        .def_ro("copy_s", &Prediction::copy_s)
        .def_ro("reduce_s", &Prediction::reduce_s)
        .def_ro("stages", &Prediction::stages, "(name, seconds) of each stage.");

    nb::class_<Costs>(m, "Costs", "The costs that a prediction assumes.")
        .def_static("of", &Costs::of, "job"_a, "The known costs of a job, and default values where none are known.")
        .def_rw("eager_bytes", &Costs::eager_bytes, "Rendezvous threshold: longer messages wait for their receiver.")
        .def(
            "assumptions", [](const Costs& self, const Job& job) { return topology::assumptions(job, self); }, "job"_a);

    m.def(
        "predict",
        [](const PlanWithJob& planned, const std::variant<std::int64_t, std::vector<std::int64_t>>& block_bytes,
           const Costs& costs) {
            const std::vector<std::int64_t> lengths = lengths_of(block_bytes);
            const nb::gil_scoped_release release;
            return model::predict(planned.plan, planned.job, lengths, costs);
        },
        "plan"_a, "block_bytes"_a, "costs"_a, "The time of a plan; block_bytes as for Plan.count. Raises Error.");
    m.def(
        "predict_algorithm",
        [](const Job& job, std::string_view collective, std::string_view algorithm, const Costs& costs,
           std::int32_t root, std::int64_t block_bytes, bool ordered, bool shared_memory, std::int64_t element_bytes) {
            const plan::Request request =
                make_request(job, collective, root, block_bytes, {ordered, shared_memory, element_bytes});
            const Spec spec = Spec::parse(algorithm);
            const nb::gil_scoped_release release;
            return model::predict(job, request, spec, costs);
        },
        "job"_a, "collective"_a, "algorithm"_a, "costs"_a, "root"_a = 0, "block_bytes"_a = 0, nb::kw_only(),
        "ordered"_a = false, "shared_memory"_a = false, "element_bytes"_a = 1,
        "The time of an algorithm on a job, without holding its plan. Raises Error.");
    m.def(
        "estimate",
        [](const Job& job, std::string_view collective, std::string_view algorithm, const Costs& costs,
           std::int32_t root, std::int64_t block_bytes, bool ordered, bool shared_memory, std::int64_t element_bytes) {
            const plan::Request request =
                make_request(job, collective, root, block_bytes, {ordered, shared_memory, element_bytes});
            return model::Estimator(job, costs)(request, Spec::parse(algorithm));
        },
        "job"_a, "collective"_a, "algorithm"_a, "costs"_a, "root"_a = 0, "block_bytes"_a = 0, nb::kw_only(),
        "ordered"_a = false, "shared_memory"_a = false, "element_bytes"_a = 1,
        "The time from a closed-form estimate, as used at run time; None for an algorithm without one. Raises Error.");
    m.def(
        "candidates",
        [](std::string_view collective) {
            std::vector<std::string> out;
            for (const Spec& spec : select::candidates(plan::collective_named(collective))) out.push_back(spec.text());
            return out;
        },
        "collective"_a, "The candidates that the model ranks. Raises Error.");
    m.def(
        "rank_by_model",
        [](const Job& job, std::string_view collective, std::int32_t root, std::int64_t block_bytes, bool ordered,
           bool shared_memory, std::int64_t element_bytes) {
            const plan::Request request =
                make_request(job, collective, root, block_bytes, {ordered, shared_memory, element_bytes});
            std::vector<std::pair<std::string, double>> out;
            for (const select::Estimate& one :
                 select::rank_by_model(job, request, select::candidates(request.collective)))
                out.emplace_back(one.spec.text(), one.seconds);
            return out;
        },
        "job"_a, "collective"_a, "root"_a = 0, "block_bytes"_a = 0, nb::kw_only(), "ordered"_a = false,
        "shared_memory"_a = false, "element_bytes"_a = 1,
        "(algorithm, seconds) of the candidates that serve the job, in order of estimated time. Raises Error.");
}

}  // namespace palmette::bindings
