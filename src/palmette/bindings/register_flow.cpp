// The flow-level simulation with max-min fair sharing of links.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "palmette/base/error.hpp"
#include "palmette/bindings/planned.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/model/flow/flow.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;
using model::FlowLink;
using model::FlowResult;
using model::FlowTraffic;
using BlockLengths = std::variant<std::int64_t, std::vector<std::int64_t>>;
using Progress = std::function<void(std::int64_t, std::int64_t)>;

void register_flow(nb::module_& m) {
    nb::class_<FlowLink>(m, "FlowLink", "One direction of the edge of one group, after a simulation.")
        .def_ro("level", &FlowLink::level, "Index into Job.levels; one more: the link of an aggregator.")
        .def_ro("group", &FlowLink::group, "Or index into Job.aggregators.")
        .def_ro("outwards", &FlowLink::outwards)
        .def_ro("capacity_bytes_per_s", &FlowLink::capacity_bytes_per_s)
        .def_ro("bytes", &FlowLink::bytes, "Bytes that the plan sends over it.")
        .def_ro("carried_bytes", &FlowLink::carried_bytes,
                "Bytes of the plan and of background traffic until the plan completed.")
        .def_ro("utilisation", &FlowLink::utilisation, "Carried bytes over capacity times that time.");
    nb::class_<FlowTraffic>(m, "FlowTraffic", "Background traffic: an all-to-all among some processes of every group.")
        .def_ro("share", &FlowTraffic::share, "Share of the processes of every group of the outermost level; 0: none.")
        .def_ro("bytes", &FlowTraffic::bytes, "Size of a message.")
        .def_ro("bytes_per_s", &FlowTraffic::bytes_per_s, "Rate limit of each process; 0: limited by links only.");
    nb::class_<FlowResult>(m, "FlowResult", "Result of the flow-level simulation of a plan.")
        .def_ro("seconds", &FlowResult::seconds)
        .def_ro("messages", &FlowResult::messages)
        .def_ro("bytes", &FlowResult::bytes, "Bytes of all messages.")
        .def_ro("background_messages", &FlowResult::background_messages)
        .def_ro("busiest_rank", &FlowResult::busiest_rank)
        .def_ro("busiest_rank_s", &FlowResult::busiest_rank_s,
                "Longest CPU time of a rank: overheads, copies and reductions.")
        .def_ro("links", &FlowResult::links, "Links with a known capacity, by level, group, out and in.")
        .def_ro("tolerance", &FlowResult::tolerance, "Relative tolerance of max-min fairness; 0: exact.")
        .def_ro("bin_s", &FlowResult::bin_s, "Length of an interval of `carried`.")
        .def_ro("bins", &FlowResult::bins)
        .def_ro("settled", &FlowResult::settled, "Number of times rates were recomputed.")
        .def_ro("work", &FlowResult::work, "Bundles of flows that were assigned a new rate in these, summed up.")
        .def(
            "carried",
            [](const FlowResult& self, std::size_t link) {
                if (link >= self.links.size()) base::fail("link ", link, " is outside of 0 to ", self.links.size() - 1);
                const auto first = self.carried.begin() + static_cast<std::ptrdiff_t>(link * self.bins);
                return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(self.bins));
            },
            "link"_a, "Bytes that a link carried in each interval of time. Raises Error.");

    m.def("parse_traffic", &model::parse_traffic, "text"_a,
          "'alltoall:half:64K', 'alltoall:0.25:1M@1GB/s' or 'none'. Raises Error.");
    m.def(
        "flow",
        [](const PlanWithJob& planned, const std::optional<BlockLengths>& block_bytes, std::string_view traffic,
           std::uint64_t seed, std::size_t most_bins, double tolerance, const std::optional<Progress>& progress) {
            if (!block_bytes && planned.plan.request.block_bytes < 0)
                base::fail("the plan was made without block_bytes: say flow(plan, block_bytes=...)");
            const std::vector<std::int64_t> lengths =
                block_bytes ? lengths_of(*block_bytes) : std::vector{planned.plan.request.block_bytes};
            model::FlowOptions options;
            options.traffic = model::parse_traffic(traffic);
            options.traffic.seed = seed;
            options.most_bins = most_bins;
            options.tolerance = tolerance;
            if (progress) options.progress = *progress;
            return model::flow(planned.plan, planned.job, lengths, options);
        },
        "plan"_a, "block_bytes"_a = nb::none(), nb::kw_only(), "traffic"_a = "", "seed"_a = 1, "most_bins"_a = 256,
        "tolerance"_a = -1.0, "progress"_a = nb::none(),
        "Simulates a plan on the links of its job: messages share links max-min fairly, ranks execute one step at a "
        "time. `traffic` as for parse_traffic; tolerance: relative tolerance of max-min fairness, below 0: 0.01 to "
        "0.08 for more than 200,000 messages, else exact; `progress` is called with the number of completed messages "
        "and the total. Raises Error.");
}

}  // namespace palmette::bindings
