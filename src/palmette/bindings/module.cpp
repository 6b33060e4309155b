// The extension palmette._core: one register_<topic>.cpp per topic, called from here.
#include <nanobind/nanobind.h>

#include "palmette/base/version.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of palmette: topologies, plans, algorithms. No MPI.";
    m.def("version", [] { return palmette::version_text; }, "Version of the compiled core.");
}
