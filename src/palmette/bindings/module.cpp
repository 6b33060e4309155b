// The extension palmette._core: one register_<topic>.cpp per topic, called from here.
#include "palmette/base/version.hpp"
#include "palmette/bindings/register.hpp"

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of palmette: topologies, plans, algorithms. No MPI.";
    m.def("version", [] { return palmette::version_text; }, "Version of the compiled core.");
    palmette::bindings::register_base(m);
    palmette::bindings::register_topology(m);
    palmette::bindings::register_plan(m);
    palmette::bindings::register_compose(m);
    palmette::bindings::register_collectives(m);
    palmette::bindings::register_model(m);
    palmette::bindings::register_predict(m);
    palmette::bindings::register_flow(m);
    palmette::bindings::register_select(m);
    palmette::bindings::register_map(m);
    palmette::bindings::register_trace(m);
    palmette::bindings::register_contexts(m);
    palmette::bindings::register_waits(m);
    palmette::bindings::register_what_if(m);
    palmette::bindings::register_causes(m);
}
