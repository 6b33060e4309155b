// Calling contexts of samples, and what late ranks did by them.
#include <nanobind/stl/string.h>
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
        .def_ro("build_id", &SampledFrame::build_id, "Build id in hexadecimal; empty: none.")
        .def_ro("offset", &SampledFrame::offset, "Native: the address, as the module's program headers number it.")
        .def_ro("is_innermost", &SampledFrame::is_innermost,
                "The address is the interrupted one; else it is returned to, behind the call.")
        .def_ro("function", &SampledFrame::function, "Qualified name of a Python function.")
        .def_ro("line", &SampledFrame::line, "Line of Python code; 0: unknown.");

    nb::class_<JobContexts>(m, "JobContexts", "Calling contexts of all processes: those with the same frames are one.")
        .def_ro("frames", &JobContexts::frames, "Each once.")
        .def_prop_ro(
            "parent",
            [](const JobContexts& self) {
                return column_of<std::uint32_t>(self.nodes, [](const JobContext& one) { return one.parent; });
            },
            nb::rv_policy::move,
            "Caller's context of each context, less than its own index; context 0 is outside of all frames.")
        .def_prop_ro(
            "frame",
            [](const JobContexts& self) {
                return column_of<std::uint32_t>(self.nodes, [](const JobContext& one) { return one.frame; });
            },
            nb::rv_policy::move, "Index into frames of each context; meaningless for context 0.")
        .def_prop_ro(
            "sum_context",
            [](const JobContexts& self) {
                return column_of<std::uint32_t>(self.sums, [](const ContextSum& one) { return one.context; });
            },
            nb::rv_policy::move, "Innermost context of each sum of a process's samples.")
        .def_prop_ro(
            "sum_process",
            [](const JobContexts& self) {
                return column_of<std::int32_t>(self.sums, [](const ContextSum& one) { return one.process; });
            },
            nb::rv_policy::move, "Index into ranks.")
        .def_prop_ro(
            "sum_samples",
            [](const JobContexts& self) {
                return column_of<std::uint64_t>(self.sums, [](const ContextSum& one) { return one.samples; });
            },
            nb::rv_policy::move)
        .def_prop_ro(
            "sum_cpu_s",
            [](const JobContexts& self) {
                return column_of<double>(self.sums,
                                         [](const ContextSum& one) { return static_cast<double>(one.cpu_ns) * 1e-9; });
            },
            nb::rv_policy::move, "Processor time.");

    nb::class_<ReadContexts>(m, "ReadContexts", "The contexts of a job, and the ranks of its processes.")
        .def_ro("contexts", &ReadContexts::contexts, nb::rv_policy::reference_internal)
        .def_ro("ranks", &ReadContexts::ranks)
        .def(
            "packed",
            [](const ReadContexts& self) {
                const std::string bytes = self.packed();
                return nb::bytes(bytes.data(), bytes.size());
            },
            "As bytes, for another process on a machine of this type.")
        .def(
            "append", [](ReadContexts& self, const nb::bytes& packed) { self.append({packed.c_str(), packed.size()}); },
            "packed"_a,
            "Adds what the reader of the next share has found: afterwards it is as if one had read both. Cost: O(its "
            "contexts). Raises Error where that isn't what `packed` gives.");
    m.def(
        "read_contexts",
        [](const std::vector<std::string>& files, unsigned threads, std::uint32_t share, std::uint32_t shares) {
            return trace::read_contexts(files, threads, {share, shares});
        },
        "files"_a, "threads"_a = 0, "share"_a = 0, "shares"_a = 1, nb::call_guard<nb::gil_scoped_release>(),
        "Calling contexts that samples of a job's processes have met, of those that know their rank, or of one of "
        "`shares` parts of them: the same for any number of threads, 0: one for each processor. Cost: O(contexts of "
        "these processes). Raises Error.");

    nb::class_<trace::OffProcessor>(m, "OffProcessor",
                                    "Seconds off the processor in long stretches between two calls, by state.")
        .def_ro("put_aside_s", &trace::OffProcessor::put_aside_s, "Runnable, but waiting for a processor.")
        .def_ro("io_s", &trace::OffProcessor::io_s, "Blocked, in I/O or page faults.")
        .def_ro("asleep_s", &trace::OffProcessor::asleep_s, "Blocked otherwise.");

    nb::class_<GapTime>(m, "GapTime", "Time outside of MPI between calls of two places, of a late rank and of others.")
        .def_ro("before_function", &GapTime::before_function, "Index into functions: of the call that it is behind.")
        .def_ro("before_path", &GapTime::before_path)
        .def_ro("after_function", &GapTime::after_function, "Function of the call that follows.")
        .def_ro("after_path", &GapTime::after_path)
        .def_ro("late_s", &GapTime::late_s)
        .def_ro("late_cpu_s", &GapTime::late_cpu_s, "Share of late_s on a processor, by samples.")
        .def_ro("other_s", &GapTime::other_s, "Mean of those that waited, by how long they did.")
        .def_ro("other_cpu_s", &GapTime::other_cpu_s)
        .def_ro("late_off", &GapTime::late_off, "Share of late_s off the processor, by the kernel's account.")
        .def_ro("other_off", &GapTime::other_off);

    nb::class_<trace::ProcessorTime>(m, "ProcessorTime", "Seconds that a process was on processors, by samples.")
        .def_ro("computing_s", &trace::ProcessorTime::computing_s, "Outside of MPI, threads that make calls.")
        .def_ro("in_calls_s", &trace::ProcessorTime::in_calls_s, "Threads that make calls, inside MPI.")
        .def_ro("beside_s", &trace::ProcessorTime::beside_s, "Threads that make no calls.")
        .def_ro("off", &trace::ProcessorTime::off, "Outside of MPI, threads that make calls.");

    nb::class_<LateWork>(m, "LateWork", "What a late rank did since it last met those that waited for it.")
        .def_ro("function", &LateWork::function, "Index into functions: of the calls that waited for it.")
        .def_ro("path", &LateWork::path)
        .def_ro("process", &LateWork::process, "Index into ranks.")
        .def_ro("instances", &LateWork::instances, "How often it came late.")
        .def_ro("waiters", &LateWork::waiters, "Processes that waited for it.")
        .def_ro("gaps", &LateWork::gaps)
        .def_prop_ro(
            "context",
            [](const LateWork& self) {
                return column_of<std::uint32_t>(self.contexts, [](const ContextTime& one) { return one.context; });
            },
            nb::rv_policy::move, "Contexts that samples of these intervals, outside of MPI, are in.")
        .def_prop_ro(
            "context_late_s",
            [](const LateWork& self) {
                return column_of<double>(self.contexts, [](const ContextTime& one) { return one.late_s; });
            },
            nb::rv_policy::move, "Seconds of the late rank on a processor there.")
        .def_prop_ro(
            "context_other_s",
            [](const LateWork& self) {
                return column_of<double>(self.contexts, [](const ContextTime& one) { return one.other_s; });
            },
            nb::rv_policy::move, "Seconds of the ranks that waited, on a processor there.")
        .def_prop_ro(
            "beside",
            [](const LateWork& self) {
                return column_of<std::uint32_t>(self.beside, [](const ContextTime& one) { return one.context; });
            },
            nb::rv_policy::move, "Contexts of threads that make no calls, meanwhile.")
        .def_prop_ro(
            "beside_late_s",
            [](const LateWork& self) {
                return column_of<double>(self.beside, [](const ContextTime& one) { return one.late_s; });
            },
            nb::rv_policy::move)
        .def_prop_ro(
            "beside_other_s",
            [](const LateWork& self) {
                return column_of<double>(self.beside, [](const ContextTime& one) { return one.other_s; });
            },
            nb::rv_policy::move);
}

}  // namespace palmette::bindings
