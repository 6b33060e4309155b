// One function per topic adds its names to the extension module.
#pragma once

#include <nanobind/nanobind.h>

namespace palmette::bindings {

void register_base(nanobind::module_& module);
void register_topology(nanobind::module_& module);
void register_compose(nanobind::module_& module);
void register_collectives(nanobind::module_& module);
void register_plan(nanobind::module_& module);
void register_model(nanobind::module_& module);
void register_predict(nanobind::module_& module);
void register_flow(nanobind::module_& module);
void register_select(nanobind::module_& module);
void register_map(nanobind::module_& module);
void register_trace(nanobind::module_& module);
void register_contexts(nanobind::module_& module);
void register_waits(nanobind::module_& module);
void register_what_if(nanobind::module_& module);
void register_causes(nanobind::module_& module);

}  // namespace palmette::bindings
