// Calling contexts of samples, and what late ranks did by them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "palmette/bindings/register.hpp"
#include "palmette/bindings/sampled.hpp"
#include "palmette/trace/late.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;

void register_contexts(nb::module_& m) {
    using trace::ContextSum;
    using trace::ContextTime;
    using trace::GapTime;
    using trace::JobContext;
    using trace::JobContexts;
    using trace::LateWork;
    using trace::ReadContexts;
    using trace::SampledFrame;

    nb::class_<SampledFrame>(m, "SampledFrame", "A frame that samples have met, whoever called it.")
        .def_ro("kind", &SampledFrame::kind)
        .def_ro("module", &SampledFrame::module, "Path of the executable or library; of Python the file.")
        .def_ro("build_id", &SampledFrame::build_id, "In hexadecimal; empty: it has none.")
        .def_ro("offset", &SampledFrame::offset, "Native: the address, as the module's program headers number it.")
        .def_ro("is_innermost", &SampledFrame::is_innermost,
                "The address is the interrupted one; else it is returned to, behind the call.")
        .def_ro("function", &SampledFrame::function, "Of Python: its qualified name.")
        .def_ro("line", &SampledFrame::line, "Of Python; 0: unknown.");

    nb::class_<JobContexts>(m, "JobContexts", "Calling contexts of all processes: those with the same frames are one.")
        .def_ro("frames", &JobContexts::frames, "Each once.")
        .def_prop_ro(
            "parent",
            [](const JobContexts& self) {
                return column_of<std::uint32_t>(self.nodes, [](const JobContext& one) { return one.parent; });
            },
            "By context its caller's, less than its own; context 0 is outside of all frames.")
        .def_prop_ro(
            "frame",
            [](const JobContexts& self) {
                return column_of<std::uint32_t>(self.nodes, [](const JobContext& one) { return one.frame; });
            },
            "By context, index into frames; of context 0 it means nothing.")
        .def_prop_ro(
            "sums",
            [](const JobContexts& self) {
                const auto context = [](const ContextSum& one) { return one.context; };
                const auto process = [](const ContextSum& one) { return one.process; };
                const auto samples = [](const ContextSum& one) { return one.samples; };
                const auto cpu_s = [](const ContextSum& one) { return one.cpu_s; };
                return std::make_tuple(
                    column_of<std::uint32_t>(self.sums, context), column_of<std::int32_t>(self.sums, process),
                    column_of<std::uint64_t>(self.sums, samples), column_of<double>(self.sums, cpu_s));
            },
            "Four columns: context, process (index into ranks), samples whose innermost frame it is, and their "
            "processor time in seconds.");

    nb::class_<ReadContexts>(m, "ReadContexts", "The contexts of a job, and the ranks of its processes.")
        .def_ro("contexts", &ReadContexts::contexts, nb::rv_policy::reference_internal)
        .def_ro("ranks", &ReadContexts::ranks);
    m.def(
        "read_contexts", &trace::read_contexts, "files"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Calling contexts that samples of a job's processes have met, of those that know their rank. Cost: O(contexts "
        "of all processes). Raises Error.");

    nb::class_<GapTime>(m, "GapTime", "Time outside of MPI between calls of two places, of a late rank and of others.")
        .def_ro("before_function", &GapTime::before_function, "Index into functions: of the call that it is behind.")
        .def_ro("before_path", &GapTime::before_path)
        .def_ro("after_function", &GapTime::after_function, "Of the call that it is in front of.")
        .def_ro("after_path", &GapTime::after_path)
        .def_ro("late_s", &GapTime::late_s)
        .def_ro("late_cpu_s", &GapTime::late_cpu_s, "Of it, on a processor.")
        .def_ro("other_s", &GapTime::other_s, "Mean of those that waited, by how long they did.")
        .def_ro("other_cpu_s", &GapTime::other_cpu_s);

    nb::class_<trace::ProcessorTime>(m, "ProcessorTime", "Seconds that a process was on processors, by samples.")
        .def_ro("computing_s", &trace::ProcessorTime::computing_s, "Outside of MPI, threads that make calls.")
        .def_ro("in_calls_s", &trace::ProcessorTime::in_calls_s, "Of these threads, in calls.")
        .def_ro("beside_s", &trace::ProcessorTime::beside_s, "Of other threads.");

    const auto columns = [](const std::vector<ContextTime>& rows) {
        return std::make_tuple(column_of<std::uint32_t>(rows, [](const ContextTime& one) { return one.context; }),
                               column_of<double>(rows, [](const ContextTime& one) { return one.late_s; }),
                               column_of<double>(rows, [](const ContextTime& one) { return one.other_s; }));
    };
    nb::class_<LateWork>(m, "LateWork", "What a late rank did since it last met those that waited for it.")
        .def_ro("function", &LateWork::function, "Index into functions: of the calls that waited for it.")
        .def_ro("path", &LateWork::path)
        .def_ro("process", &LateWork::process, "Index into ranks.")
        .def_ro("instances", &LateWork::instances, "How often it came late.")
        .def_ro("waiters", &LateWork::waiters, "Processes that waited for it.")
        .def_ro("gaps", &LateWork::gaps)
        .def_prop_ro(
            "contexts", [columns](const LateWork& self) { return columns(self.contexts); },
            "Three columns: context, its seconds on a processor outside of MPI, and those of who waited.")
        .def_prop_ro(
            "beside", [columns](const LateWork& self) { return columns(self.beside); },
            "The same of threads that make no calls, meanwhile.");
}

}  // namespace palmette::bindings
