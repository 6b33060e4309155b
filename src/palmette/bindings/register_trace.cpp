// What the processes of a job have recorded.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "palmette/bindings/register.hpp"
#include "palmette/trace/recording.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;

void register_trace(nb::module_& m) {
    using trace::AggregateInfo;
    using trace::CommunicatorInfo;
    using trace::FrameInfo;
    using trace::OpenCallInfo;
    using trace::ProcessInfo;
    using trace::Recording;

    nb::enum_<trace::State>(m, "RecordState", "Where a recorded process stands.")
        .value("begun", trace::State::begun, "Before MPI_Init, or in it.")
        .value("running", trace::State::running)
        .value("finalizing", trace::State::finalizing)
        .value("finalized", trace::State::finalized)
        .value("aborted", trace::State::aborted, "It called MPI_Abort.");

    nb::class_<CommunicatorInfo>(m, "RecordedCommunicator", "A communicator; the same on all ranks where ids are.")
        .def_ro("id", &CommunicatorInfo::id)
        .def_ro("rank", &CommunicatorInfo::rank, "Of this process.")
        .def_ro("size", &CommunicatorInfo::size)
        .def_ro("collectives", &CommunicatorInfo::collectives, "Begun on it by this process.");

    nb::class_<FrameInfo>(m, "RecordedFrame", "A return address.")
        .def_ro("module", &FrameInfo::module, "Path of the executable or library; empty: unknown.")
        .def_ro("build_id", &FrameInfo::build_id, "In hexadecimal; empty: it has none.")
        .def_ro("offset", &FrameInfo::offset, "As the module's program headers number it.");

    nb::class_<AggregateInfo>(m, "RecordedSum", "All calls of one function, call path, communicator and size class.")
        .def_ro("function", &AggregateInfo::function)
        .def_ro("path", &AggregateInfo::path, "Index into paths; 0: unknown.")
        .def_ro("communicator", &AggregateInfo::communicator, "Index into communicators; 0: none.")
        .def_ro("calls", &AggregateInfo::calls)
        .def_ro("bytes", &AggregateInfo::bytes)
        .def_ro("seconds", &AggregateInfo::seconds)
        .def_ro("longest_s", &AggregateInfo::longest_s)
        .def_ro("histogram", &AggregateInfo::histogram,
                "Calls by time: bin i from 2^(i+4) ticks on, twice as long each.");

    nb::class_<OpenCallInfo>(m, "OpenCall", "A call that has begun and not ended.")
        .def_ro("thread_id", &OpenCallInfo::thread_id)
        .def_ro("function", &OpenCallInfo::function)
        .def_ro("path", &OpenCallInfo::path)
        .def_ro("communicator", &OpenCallInfo::communicator)
        .def_ro("begin_real_ns", &OpenCallInfo::begin_real_ns, "CLOCK_REALTIME.")
        .def_ro("bytes", &OpenCallInfo::bytes)
        .def_ro("peer", &OpenCallInfo::peer, "Rank in the communicator; -1: none, -2: any.")
        .def_ro("tag", &OpenCallInfo::tag)
        .def_ro("instance", &OpenCallInfo::instance, "Of a collective, counted from 1 on its communicator; else 0.");

    nb::class_<ProcessInfo>(m, "RecordedProcess", "One process of a job.")
        .def_ro("pid", &ProcessInfo::pid)
        .def_ro("rank", &ProcessInfo::rank, "In MPI_COMM_WORLD; -1: not known yet.")
        .def_ro("size", &ProcessInfo::size)
        .def_ro("state", &ProcessInfo::state)
        .def_ro("executable", &ProcessInfo::executable)
        .def_ro("records_calls", &ProcessInfo::records_calls, "--trace: calls one by one, too.")
        .def_ro("tick_s", &ProcessInfo::tick_s)
        .def_ro("begin_real_ns", &ProcessInfo::begin_real_ns)
        .def_ro("last_real_ns", &ProcessInfo::last_real_ns)
        .def_ro("calls", &ProcessInfo::calls, "That have ended.")
        .def_ro("dropped", &ProcessInfo::dropped, "Of them, those of which only sums remain.")
        .def_ro("unaggregated", &ProcessInfo::unaggregated)
        .def_ro("unpathed", &ProcessInfo::unpathed)
        .def_ro("threadless", &ProcessInfo::threadless, "Recorded nowhere: more threads at a time than entries.")
        .def_ro("unwound", &ProcessInfo::unwound, "Calls whose path had to be unwound.")
        .def_ro("unwinding_s", &ProcessInfo::unwinding_s, "Time for that, which is in no call's time.")
        .def_ro("communicators", &ProcessInfo::communicators)
        .def_ro("aggregates", &ProcessInfo::aggregates)
        .def_ro("paths", &ProcessInfo::paths, "Frames, innermost first.")
        .def_ro("open", &ProcessInfo::open);

    nb::class_<Recording>(m, "Recording", "What the processes of one node have recorded.")
        .def_static("read", &Recording::read, "path"_a, "with_tables"_a = true,
                    "Reads a file, whatever state its processes are in. Raises Error.")
        .def_ro("host", &Recording::host)
        .def_ro("boot_id", &Recording::boot_id)
        .def_ro("processes", &Recording::processes);
}

}  // namespace palmette::bindings
