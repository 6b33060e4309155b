// Errors and units.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/bindings/register.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;

void register_base(nb::module_& m) {
    nb::exception<base::Error>(m, "Error", PyExc_ValueError).attr("__doc__") =
        "Invalid input: the message names the location (file, line, rank, argument) and the remedy.";

    m.def("parse_size", &base::parse_size, "text"_a,
          "Bytes of a size such as 64, 16K or 1M (powers of 1024). Raises Error.");
    m.def("parse_rate", &base::parse_rate, "text"_a,
          "Bytes per second of a rate such as 100Mbit/s or 12.5GB/s (powers of 1000). Raises Error.");
    m.def("parse_duration", &base::parse_duration, "text"_a, "Seconds of a duration such as 5ms or 2us. Raises Error.");
    m.def("format_size", &base::format_size, "size_bytes"_a, "65536 -> '64K'.");
    m.def("format_rate", &base::format_rate, "bytes_per_s"_a, "12500000.0 -> '100 Mbit/s'.");
    m.def("format_duration", &base::format_duration, "seconds"_a, "0.0132 -> '13.2 ms'.");
}

}  // namespace palmette::bindings
