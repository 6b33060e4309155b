// What the processes of a job have recorded.
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "palmette/bindings/register.hpp"
#include "palmette/trace/functions.hpp"
#include "palmette/trace/recording.hpp"

namespace palmette::bindings {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// An array of numpy's that owns its values.
template <class Value>
nb::object column(std::vector<Value> values) {
    auto* const kept = new std::vector<Value>(std::move(values));
    const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<Value>*>(pointer); });
    return nb::cast(nb::ndarray<nb::numpy, Value, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

}  // namespace

void register_trace(nb::module_& m) {
    using trace::AggregateInfo;
    using trace::CallInfo;
    using trace::CommunicatorInfo;
    using trace::ContextInfo;
    using trace::FrameInfo;
    using trace::OpenCallInfo;
    using trace::PlanInfo;
    using trace::ProcessInfo;
    using trace::Recording;
    using trace::RegionInfo;
    using trace::RequestInfo;
    using trace::SampledThreadInfo;
    using trace::SamplingInfo;
    using trace::SendInfo;
    using trace::SyncInfo;

    nb::enum_<trace::State>(m, "RecordState", "State of a recorded process.")
        .value("begun", trace::State::begun, "Before MPI_Init, or in it.")
        .value("running", trace::State::running)
        .value("finalizing", trace::State::finalizing)
        .value("finalized", trace::State::finalized)
        .value("aborted", trace::State::aborted, "The process called MPI_Abort.");

    nb::class_<CommunicatorInfo>(m, "RecordedCommunicator", "A communicator; the same on all ranks where ids are.")
        .def_ro("id", &CommunicatorInfo::id)
        .def_ro("rank", &CommunicatorInfo::rank, "Rank of this process in the communicator.")
        .def_ro("size", &CommunicatorInfo::size)
        .def_ro("collectives", &CommunicatorInfo::collectives, "Collectives begun on it by this process.");

    nb::class_<FrameInfo>(m, "RecordedFrame", "A return address.")
        .def_ro("module", &FrameInfo::module, "Path of the executable or library; empty: unknown.")
        .def_ro("build_id", &FrameInfo::build_id, "Build id in hexadecimal; empty: none.")
        .def_ro("offset", &FrameInfo::offset, "As the module's program headers number it.");

    nb::class_<AggregateInfo>(m, "RecordedSum", "All calls of one function, call path, communicator and size class.")
        .def_ro("function", &AggregateInfo::function)
        .def_ro("is_request", &AggregateInfo::is_request,
                "Whether these are the requests that the calls made, from start to completion.")
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
        .def_ro("receives_from", &OpenCallInfo::receives_from,
                "MPI_Sendrecv's source, `peer` being its destination: rank in the communicator; -1: none, -2: any.")
        .def_ro("thread", &OpenCallInfo::thread, "Number of the thread in its process, from 1.")
        .def_ro("function", &OpenCallInfo::function)
        .def_ro("path", &OpenCallInfo::path)
        .def_ro("communicator", &OpenCallInfo::communicator)
        .def_ro("begin_real_ns", &OpenCallInfo::begin_real_ns,
                "Begin in node time: CLOCK_REALTIME, unless it was set during the run.")
        .def_ro("bytes", &OpenCallInfo::bytes)
        .def_ro("peer", &OpenCallInfo::peer, "Rank in the communicator; -1: none, -2: any.")
        .def_ro("tag", &OpenCallInfo::tag)
        .def_ro("instance", &OpenCallInfo::instance, "A collective's number on its communicator, from 1; else 0.");

    nb::class_<RequestInfo>(m, "OutstandingRequest", "A request that was started and isn't complete.")
        .def_ro("function", &RequestInfo::function, "MPI function that started it.")
        .def_ro("path", &RequestInfo::path)
        .def_ro("communicator", &RequestInfo::communicator)
        .def_ro("begin_real_ns", &RequestInfo::begin_real_ns,
                "Begin in node time: CLOCK_REALTIME, unless it was set during the run.")
        .def_ro("bytes", &RequestInfo::bytes)
        .def_ro("peer", &RequestInfo::peer, "Rank in the communicator; -1: none, -2: any.")
        .def_ro("tag", &RequestInfo::tag)
        .def_ro("instance", &RequestInfo::instance, "A collective's number on its communicator, from 1; else 0.")
        .def_ro("waited_by", &RequestInfo::waited_by, "OpenCall.thread of the call that waits for it; 0: none does.");

    nb::class_<SendInfo>(m, "PlannedSend", "What all calls by a plan have sent to one rank.")
        .def_ro("peer", &SendInfo::peer, "Rank in the communicator.")
        .def_ro("messages", &SendInfo::messages)
        .def_ro("bytes", &SendInfo::bytes);

    nb::class_<PlanInfo>(m, "RecordedPlan", "A plan by which calls of a process were served.")
        .def_ro("function", &PlanInfo::function)
        .def_ro("algorithm", &PlanInfo::algorithm)
        .def_ro("communicator", &PlanInfo::communicator)
        .def_ro("root", &PlanInfo::root, "Rank of the root in the communicator; -1: none.")
        .def_ro("block_bytes", &PlanInfo::block_bytes, "-1: sizes differ between calls.")
        .def_ro("bound_s", &PlanInfo::bound_s, "The physical limit of a call; -1: this rank doesn't know it.")
        .def_ro("calls", &PlanInfo::calls)
        .def_ro("seconds", &PlanInfo::seconds, "Seconds in calls by the plan.")
        .def_ro("sends", &PlanInfo::sends, "What this rank has sent in all calls that have ended.");

    nb::class_<trace::Function>(m, "MpiFunction",
                                "What an MPI function does, as far as ranks depend on each other by it.")
        .def_ro("name", &trace::Function::name)
        .def_ro("operation", &trace::Function::operation, "MPI_Iallgather_c's allgather; empty: not in the table.")
        .def_prop_ro(
            "kind", [](const trace::Function& self) { return trace::name_of(self.kind); },
            "other, init, barrier, all_to_all, one_to_all, all_to_one, scan, neighbours, send, receive, wait, test.")
        .def_ro("by_request", &trace::Function::by_request, "What it does is done by the request that it makes.")
        .def_ro("persistent", &trace::Function::persistent, "Whether the request is persistent: it is started later.");
    m.def(
        "mpi_functions",
        [] { return std::vector<trace::Function>(trace::functions().begin(), trace::functions().end()); },
        "The table of functions, all forms of each.");
    m.def(
        "mpi_function", [](std::string_view name) { return trace::function_of(name); }, "name"_a,
        "One function; one that isn't in the table does nothing of all this.");

    nb::class_<trace::PeerInfo>(m, "RecordedPeer",
                                "What a process itself has sent to one rank of MPI_COMM_WORLD, in the whole run.")
        .def_ro("rank", &trace::PeerInfo::rank,
                "-1: processes outside of MPI_COMM_WORLD; -2: others, for which there was no entry.")
        .def_ro("messages", &trace::PeerInfo::messages, "Point to point.")
        .def_ro("message_bytes", &trace::PeerInfo::message_bytes)
        .def_ro("neighbour_blocks", &trace::PeerInfo::neighbour_blocks, "Blocks sent by collectives over neighbours.")
        .def_ro("neighbour_bytes", &trace::PeerInfo::neighbour_bytes)
        .def_ro("exchange_blocks", &trace::PeerInfo::exchange_blocks,
                "Blocks sent by all-to-alls, those with bytes; of MPI_Alltoall on communicators of fewer ranks alone.")
        .def_ro("exchange_bytes", &trace::PeerInfo::exchange_bytes);

    nb::class_<CallInfo>(m, "RecordedCall", "One call that has ended, or one request from start to completion.")
        .def_ro("begin_real_ns", &CallInfo::begin_real_ns,
                "Begin in node time: CLOCK_REALTIME, unless it was set during the run.")
        .def_ro("seconds", &CallInfo::seconds)
        .def_ro("function", &CallInfo::function)
        .def_ro("is_request", &CallInfo::is_request)
        .def_ro("path", &CallInfo::path)
        .def_ro("plan", &CallInfo::plan, "Index into plans; 0: not served by palmette.")
        .def_ro("communicator", &CallInfo::communicator)
        .def_ro("bytes", &CallInfo::bytes)
        .def_ro("instance", &CallInfo::instance, "A collective's number on its communicator, from 1; else 0.")
        .def_ro("peer", &CallInfo::peer, "Rank in the communicator, or root of a collective; -1: none, -2: any.")
        .def_ro("tag", &CallInfo::tag)
        .def_ro("thread", &CallInfo::thread);

    nb::class_<trace::AdapterInfo>(
        m, "RecordedAdapter",
        "A network adapter of a node: its counters moment by moment, which count what others "
        "send, too.")
        .def_ro("name", &trace::AdapterInfo::name)
        .def_ro("is_infiniband", &trace::AdapterInfo::is_infiniband, "A port; else an interface of the network.")
        .def_ro("real_ns", &trace::AdapterInfo::real_ns, "Node time of each reading.")
        .def_ro("received_bytes", &trace::AdapterInfo::received_bytes)
        .def_ro("sent_bytes", &trace::AdapterInfo::sent_bytes)
        .def_ro("received_packets", &trace::AdapterInfo::received_packets)
        .def_ro("sent_packets", &trace::AdapterInfo::sent_packets)
        .def_ro("waited", &trace::AdapterInfo::waited, "Ticks in which a port had data to send but couldn't.");

    nb::class_<trace::SnapshotPartInfo>(m, "SnapshotPart", "What has been added to one sum between two moments.")
        .def_ro("function", &trace::SnapshotPartInfo::function, "MPI function; empty for a region.")
        .def_ro("region", &trace::SnapshotPartInfo::region, "Index into regions; 0: none.")
        .def_ro("calls", &trace::SnapshotPartInfo::calls)
        .def_ro("bytes", &trace::SnapshotPartInfo::bytes)
        .def_ro("seconds", &trace::SnapshotPartInfo::seconds, "Seconds; a region counts only calls that have ended.");

    nb::class_<trace::SnapshotInfo>(m, "Snapshot",
                                    "How a process's sums have grown since the snapshot before, or since the start.")
        .def_ro("real_ns", &trace::SnapshotInfo::real_ns, "Node time.")
        .def_ro("is_border", &trace::SnapshotInfo::is_border,
                "The program has said that something else begins here: MPI_Pcontrol(2).")
        .def_ro("parts", &trace::SnapshotInfo::parts);

    nb::class_<SyncInfo>(m, "ClockSync", "Where a node's clock stood against that of rank 0's node.")
        .def_ro("real_ns", &SyncInfo::real_ns, "Node time.")
        .def_ro("offset_ns", &SyncInfo::offset_ns, "To be added for that of rank 0's node.")
        .def_ro("error_ns", &SyncInfo::error_ns, "Up to which the offset may be wrong, in either direction.");

    nb::enum_<trace::LifeSign>(m, "LifeSign", "Whether a process that hasn't finalized is still there.")
        .value("unknown", trace::LifeSign::unknown)
        .value("lives", trace::LifeSign::lives)
        .value("ended", trace::LifeSign::ended);

    nb::enum_<trace::ContextKind>(m, "ContextKind", "What a node of the tree of sampled stacks is.")
        .value("native", trace::ContextKind::native)
        .value("python", trace::ContextKind::python)
        .value("cut", trace::ContextKind::cut, "Frames are left out here: the stack was too deep.")
        .value("lost", trace::ContextKind::lost, "Nobody knows who called the frames inside.")
        .value("region", trace::ContextKind::region, "No frame, but a region that the program was in.");

    nb::enum_<trace::RegionKind>(m, "RegionKind", "What a node of the tree of regions is.")
        .value("thread", trace::RegionKind::thread, "Outside of all.")
        .value("named", trace::RegionKind::named, "The program has begun it: palmette_region_begin.")
        .value("function", trace::RegionKind::function, "Compiled with -finstrument-functions.")
        .value("unbegun", trace::RegionKind::unbegun, "What was ended and hadn't begun.");

    nb::class_<RegionInfo>(m, "RecordedRegion", "A region within another one, over all threads of a process.")
        .def_ro("parent", &RegionInfo::parent, "Index, less than its own; 0: outside of all.")
        .def_ro("kind", &RegionInfo::kind)
        .def_ro("name", &RegionInfo::name, "Name of a named region; empty for a function.")
        .def_ro("module", &RegionInfo::module, "Path of a function's executable or library.")
        .def_ro("build_id", &RegionInfo::build_id, "Build id in hexadecimal; empty: none.")
        .def_ro("offset", &RegionInfo::offset, "A function's address, as the module's program headers number it.")
        .def_ro("calls", &RegionInfo::calls, "Calls begun.")
        .def_ro("inner", &RegionInfo::inner, "Calls begun in it, too deep or too many for a node of their own.")
        .def_ro("seconds", &RegionInfo::seconds,
                "Time in the region with all inside; of an open one as far as its process got.")
        .def_ro("longest_s", &RegionInfo::longest_s, "Longest call that has ended.")
        .def_ro("unclosed", &RegionInfo::unclosed, "Calls that ended with an outer region, or with their thread.")
        .def_ro("open", &RegionInfo::open, "Threads in which it hasn't ended.");

    nb::enum_<trace::SampledBy>(m, "SampledBy", "Mechanism that interrupts threads for samples.")
        .value("nothing", trace::SampledBy::nothing, "No samples are taken.")
        .value("thread_cpu_timer", trace::SampledBy::thread_cpu_timer,
               "POSIX timers on each thread's CPU clock, which tick only while it runs.")
        .value("thread_event", trace::SampledBy::thread_event,
               "perf_event_open's clock of each thread, at rates above the kernel's ticks.");

    nb::class_<ContextInfo>(m, "SampledContext", "A frame that samples have met, with those outside of it.")
        .def_ro("parent", &ContextInfo::parent, "The caller's index, less than its own; 0: a thread's start.")
        .def_ro("kind", &ContextInfo::kind)
        .def_ro("module", &ContextInfo::module, "Path of the executable or library; of Python the file.")
        .def_ro("build_id", &ContextInfo::build_id, "Build id in hexadecimal; empty: none.")
        .def_ro("offset", &ContextInfo::offset, "Native: the address, as the module's program headers number it.")
        .def_ro("is_innermost", &ContextInfo::is_innermost,
                "The address is the interrupted one; else it is returned to, behind the call.")
        .def_ro("function", &ContextInfo::function, "Qualified name of a Python function.")
        .def_ro("line", &ContextInfo::line, "Line of Python code; 0: unknown.")
        .def_ro("samples", &ContextInfo::samples, "Samples whose innermost frame this is.")
        .def_ro("cpu_s", &ContextInfo::cpu_s, "Processor time of the threads since their previous samples.");

    nb::class_<SampledThreadInfo>(m, "SampledThread", "A thread that samples are taken of.")
        .def_ro("thread_id", &SampledThreadInfo::thread_id)
        .def_ro("calls_as", &SampledThreadInfo::calls_as,
                "RecordedCall.thread of its calls; 0: it makes none, or has ended.")
        .def_ro("samples", &SampledThreadInfo::samples)
        .def_ro("cpu_s", &SampledThreadInfo::cpu_s)
        .def_ro("ended", &SampledThreadInfo::ended);

    nb::class_<SamplingInfo>(m, "Sampling", "What samples a process has taken.")
        .def_ro("by", &SamplingInfo::by)
        .def_ro("signal", &SamplingInfo::signal, "Number of the signal that interrupts threads.")
        .def_ro("period_s", &SamplingInfo::period_s, "CPU time between two samples of a thread, as requested last.")
        .def_ro("samples", &SamplingInfo::samples, "Samples taken.")
        .def_ro("dropped", &SamplingInfo::dropped,
                "Samples that samples_of hasn't any more; contexts still count them.")
        .def_ro("lost", &SamplingInfo::lost, "Samples that could not be taken.")
        .def_ro("incomplete", &SamplingInfo::incomplete, "Samples whose stack walk didn't reach the thread's start.")
        .def_ro("cut", &SamplingInfo::cut, "Samples of stacks deeper than what is kept.")
        .def_ro("shortened", &SamplingInfo::shortened, "Samples whose inner frames found no place.")
        .def_ro("unmerged", &SamplingInfo::unmerged,
                "Samples whose Python frames weren't certain, so that the interpreter's own remain.")
        .def_ro("seconds", &SamplingInfo::seconds, "Time for taking samples, without the signals' own.")
        .def_ro("signal_s", &SamplingInfo::signal_s, "Cost of a signal that does nothing, as measured at the start.")
        .def_ro("python", &SamplingInfo::python, "Version of the interpreter as sys.hexversion; 0: there was none.")
        .def_ro("python_is_refused", &SamplingInfo::python_is_refused, "The layout of its frames isn't known.")
        .def_ro("threads", &SamplingInfo::threads);

    nb::class_<ProcessInfo>(m, "RecordedProcess", "One process of a job.")
        .def_ro("pid", &ProcessInfo::pid)
        .def_ro("rank", &ProcessInfo::rank, "Rank in MPI_COMM_WORLD; -1: not known yet.")
        .def_ro("size", &ProcessInfo::size)
        .def_ro("state", &ProcessInfo::state)
        .def_ro("executable", &ProcessInfo::executable)
        .def_ro("records_calls", &ProcessInfo::records_calls, "--trace: calls one by one, too.")
        .def_ro("tick_s", &ProcessInfo::tick_s)
        .def_ro("begin_real_ns", &ProcessInfo::begin_real_ns, "Begin in node time.")
        .def_ro("node_offset_ns", &ProcessInfo::node_offset_ns, "The node's time less its CLOCK_MONOTONIC.")
        .def_ro("counter_distrusted", &ProcessInfo::counter_distrusted,
                "The kernel found during the run that the processor's time-stamp counter goes wrong.")
        .def_ro("life", &ProcessInfo::life)
        .def_ro("pid_namespace", &ProcessInfo::pid_namespace, "Inode of the PID namespace of `pid`; 0: not known.")
        .def_ro("nested", &ProcessInfo::nested, "Calls of the program's inside of others, which aren't recorded.")
        .def_ro("left", &ProcessInfo::left, "Calls that a jump left, recorded as if they had taken no time.")
        .def_ro("last_real_ns", &ProcessInfo::last_real_ns)
        .def_ro("calls", &ProcessInfo::calls, "Calls that have ended.")
        .def_ro("dropped", &ProcessInfo::dropped, "Calls of which only sums remain.")
        .def_ro("unaggregated", &ProcessInfo::unaggregated)
        .def_ro("merged", &ProcessInfo::merged, "Calls whose sum doesn't tell the communicator.")
        .def_ro("unnumbered", &ProcessInfo::unnumbered, "Communicators whose calls are of none.")
        .def_ro("reused", &ProcessInfo::reused, "Communicators in the place of freed ones.")
        .def_ro("unpathed", &ProcessInfo::unpathed)
        .def_ro("threadless", &ProcessInfo::threadless, "Recorded nowhere: more threads at a time than entries.")
        .def_ro("unwound", &ProcessInfo::unwound, "Calls whose path had to be unwound.")
        .def_ro("unwinding_s", &ProcessInfo::unwinding_s, "Time for that, which is in no call's time.")
        .def_ro("requests", &ProcessInfo::requests, "Completed requests.")
        .def_ro("unfollowed", &ProcessInfo::unfollowed, "Requests that aren't among them.")
        .def_ro("unplanned", &ProcessInfo::unplanned, "Served calls whose plan isn't known.")
        .def_ro("call_cost_s", &ProcessInfo::call_cost_s, "Cost of recording a call, as measured at the start.")
        .def_ro("clock_cost_s", &ProcessInfo::clock_cost_s, "Share of call_cost_s for reading the clock.")
        .def_ro("synced", &ProcessInfo::synced,
                "Clock comparisons in MPI_Init and MPI_Finalize, as far as that was possible.")
        .def_ro("outstanding", &ProcessInfo::outstanding)
        .def_ro("plans", &ProcessInfo::plans, "[0] is unused.")
        .def_ro("peers", &ProcessInfo::peers, "The peers that something was sent to.")
        .def_ro("one_sided", &ProcessInfo::one_sided, "Calls of MPI_Put and the like, whose bytes no peer has.")
        .def_ro("uncounted", &ProcessInfo::uncounted, "Persistent requests whose messages no peer has.")
        .def_ro("communicators", &ProcessInfo::communicators)
        .def_ro("aggregates", &ProcessInfo::aggregates)
        .def_ro("paths", &ProcessInfo::paths, "Frames, innermost first.")
        .def_ro("sampling", &ProcessInfo::sampling)
        .def_ro("snapshots", &ProcessInfo::snapshots, "Snapshots by time.")
        .def_ro("adapters", &ProcessInfo::adapters, "The node's adapters, if this process reads their counters.")
        .def_ro("regions", &ProcessInfo::regions, "[0] is outside of all.")
        .def_ro("missed_regions", &ProcessInfo::missed_regions,
                "Region begins that weren't recorded: in signal handlers, or in too many threads.")
        .def_ro("region_cost_s", &ProcessInfo::region_cost_s,
                "Cost of a region's begin and end, as measured at the start; 0: no regions.")
        .def_prop_ro("contexts", &ProcessInfo::contexts,
                     "Tree of sampled stacks; [0] is above all roots. Read from the file at the first access.")
        .def_ro("open", &ProcessInfo::open);

    nb::class_<Recording>(m, "Recording", "What the processes of one node have recorded.")
        .def_static("read", &Recording::read, "path"_a, "with_tables"_a = true,
                    "Reads a file, whatever state its processes are in. Raises Error.")
        .def_static("calls_of", &Recording::calls_of, "path"_a, "section"_a,
                    "Calls one by one of the section-th process of a file, by time, as far as its ring holds them.")
        .def_static(
            "samples_of",
            [](const std::string& path, std::size_t section) {
                trace::SampleColumns columns = Recording::samples_of(path, section);
                nb::typed<nb::dict, nb::str, nb::any> out;
                out["real_ns"] = column(std::move(columns.real_ns));
                out["context"] = column(std::move(columns.context));
                out["thread"] = column(std::move(columns.thread));
                out["cpu_s"] = column(std::move(columns.cpu_s));
                return out;
            },
            "path"_a, "section"_a,
            "Samples one by one of the section-th process of a file, by time, as far as its ring holds them: a dict of "
            "numpy arrays real_ns, context (index into contexts), thread (from 1, of sampling.threads) and cpu_s.")
        .def_ro("host", &Recording::host)
        .def_ro("boot_id", &Recording::boot_id)
        .def_ro("processes", &Recording::processes);
}

}  // namespace palmette::bindings
