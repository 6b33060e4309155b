// The physical bound.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "palmette/base/error.hpp"
#include "palmette/bindings/planned.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/model/bound.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;
using model::Bound;

void register_model(nb::module_& m) {
    nb::class_<Bound>(m, "Bound", "The physical limit of a collective, and what sets it.")
        .def_ro("seconds", &Bound::seconds, "0 where no capacity and no latency is known.")
        .def_ro("kind", &Bound::kind,
                "'link' (one group's edge), 'links' (all edges of a level), 'latency', or 'none': nothing is known.")
        .def_ro("level", &Bound::level)
        .def_ro("group", &Bound::group, "For a link: index of the group, else -1.")
        .def_ro("group_name", &Bound::group_name, "For a link: name of the group, where names are known.")
        .def_ro("outwards", &Bound::outwards, "For a link: True for bytes that leave the group, else they enter it.")
        .def_ro("bytes", &Bound::bytes, "Bytes that have to cross.")
        .def_ro("capacity_bytes_per_s", &Bound::capacity_bytes_per_s);

    m.def(
        "bound",
        [](const topology::Job& job, std::string_view collective,
           const std::variant<std::int64_t, std::vector<std::int64_t>>& block_bytes, std::int32_t root) {
            const std::vector<std::int64_t> lengths = lengths_of(block_bytes);
            const std::int64_t uniform = lengths.size() == 1 ? lengths.front() : -1;
            return model::bound(job, make_request(job, collective, root, uniform), lengths);
        },
        "job"_a, "collective"_a, "block_bytes"_a, "root"_a = 0,
        "Lower bound on the time of a collective on the job's tree; block_bytes is one number, or one for each rank "
        "(gather, scatter, allgather, reduce_scatter) or pair, sender * p + receiver (alltoall). Raises Error.");
}

}  // namespace palmette::bindings
