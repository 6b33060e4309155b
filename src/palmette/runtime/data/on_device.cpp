#include "palmette/runtime/data/on_device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "palmette/runtime/data/mpi_devices.hpp"
#include "palmette/runtime/data/runs.hpp"

namespace palmette::runtime {

constinit std::array<DeviceCounts, select::all_function_count> device_counts{};
constinit DeviceCounts composed_device_counts{};
constinit thread_local OnDevice* OnDevice::current_ = nullptr;

namespace {

using select::Function;

/// What of a call is significant at this rank.
struct Significant {
    bool reads_send = false, writes_recv = false, reads_recv = false;
    int send_blocks = 1, recv_blocks = 1;
    std::int64_t total = -1;  ///< reduce_scatter: elements of the input
};

bool neighbours_of(MPI_Comm comm, Significant& out) {
    int kind = MPI_UNDEFINED;
    if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) return false;
    if (kind == MPI_CART) {
        int dimensions = 0;
        if (PMPI_Cartdim_get(comm, &dimensions) != MPI_SUCCESS) return false;
        out.send_blocks = out.recv_blocks = 2 * dimensions;
    } else if (kind == MPI_GRAPH) {
        int rank = 0;
        if (PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS ||
            PMPI_Graph_neighbors_count(comm, rank, &out.send_blocks) != MPI_SUCCESS)
            return false;
        out.recv_blocks = out.send_blocks;
    } else if (kind == MPI_DIST_GRAPH) {
        int weighted = 0;
        if (PMPI_Dist_graph_neighbors_count(comm, &out.recv_blocks, &out.send_blocks, &weighted) != MPI_SUCCESS)
            return false;
    } else {
        return false;
    }
    return true;
}

/// Nothing: MPI must check the arguments.
std::optional<Significant> significant(const CallArguments& call) {
    if (call.comm == MPI_COMM_NULL) return std::nullopt;
    int rank = 0, size = 0, inter = 0;
    if (PMPI_Comm_rank(call.comm, &rank) != MPI_SUCCESS || PMPI_Comm_test_inter(call.comm, &inter) != MPI_SUCCESS ||
        PMPI_Comm_size(call.comm, &size) != MPI_SUCCESS)
        return std::nullopt;
    int others = size;
    if (inter && PMPI_Comm_remote_size(call.comm, &others) != MPI_SUCCESS) return std::nullopt;
    const bool at_root = inter ? call.root == MPI_ROOT : call.root == rank;
    const bool takes_part = !inter || call.root != MPI_PROC_NULL;
    const bool send_in_place = call.send.in_place();
    Significant out;
    switch (call.function) {
        case Function::barrier:
            return std::nullopt;
        case Function::bcast:
            out.reads_send = at_root;
            out.writes_recv = !at_root && takes_part;
            return out;
        case Function::gather:
        case Function::gatherv:
            out.reads_send = !send_in_place && takes_part && (!inter || !at_root);
            out.writes_recv = at_root;
            out.reads_recv = at_root && send_in_place;
            out.recv_blocks = others;
            return out;
        case Function::scatter:
        case Function::scatterv:
            out.reads_send = at_root;
            out.send_blocks = others;
            out.writes_recv = !call.recv.in_place() && takes_part && (!inter || !at_root);
            return out;
        case Function::reduce:
            out.reads_send = !send_in_place && takes_part && (!inter || !at_root);
            out.writes_recv = at_root;
            out.reads_recv = at_root && send_in_place;
            return out;
        case Function::allreduce:
        case Function::scan:
            out.reads_send = !send_in_place;
            out.writes_recv = true;
            out.reads_recv = send_in_place;
            return out;
        case Function::exscan:
            // The first rank has no result: its buffer stays as it is.
            out.reads_send = !send_in_place;
            out.writes_recv = rank != 0;
            out.reads_recv = send_in_place;
            return out;
        case Function::reduce_scatter:
        case Function::reduce_scatter_block: {
            out.total = 0;
            const bool alike = call.recv.form == Side::Form::alike;
            if (!alike && !call.recv.counts) return std::nullopt;
            for (int r = 0; r < size; ++r) {
                const std::int64_t count = alike ? call.recv.count : call.recv.counts[r];
                if (count < 0) return std::nullopt;
                out.total += count;
            }
            out.reads_send = !send_in_place;
            out.writes_recv = true;
            out.reads_recv = send_in_place;
            // What it receives is a count of its own.
            out.recv_blocks = rank;
            return out;
        }
        case Function::allgather:
        case Function::allgatherv:
        case Function::alltoall:
        case Function::alltoallv:
        case Function::alltoallw:
            out.reads_send = !send_in_place;
            out.writes_recv = true;
            out.reads_recv = send_in_place;
            out.recv_blocks = others;
            out.send_blocks =
                call.function == Function::allgather || call.function == Function::allgatherv ? 1 : others;
            return out;
        case Function::neighbor_allgather:
        case Function::neighbor_allgatherv:
        case Function::neighbor_alltoall:
        case Function::neighbor_alltoallv:
        case Function::neighbor_alltoallw:
            if (inter || !neighbours_of(call.comm, out)) return std::nullopt;
            out.reads_send = out.writes_recv = true;
            // The blocks of neighbours that aren't there (MPI_PROC_NULL) stay as they are.
            out.reads_recv = true;
            if (call.function == Function::neighbor_allgather || call.function == Function::neighbor_allgatherv)
                out.send_blocks = 1;
            return out;
    }
    return std::nullopt;
}

bool runs_of_send(Runs& runs, const CallArguments& call, const Significant& what) {
    if (what.total >= 0) return add_elements(runs, 0, what.total, call.recv.type);
    return add_side(runs, call.send, what.send_blocks);
}

bool runs_of_recv(Runs& runs, const CallArguments& call, const Significant& what) {
    if (what.total < 0) return add_side(runs, call.recv, what.recv_blocks);
    const std::int64_t own = call.recv.form == Side::Form::alike ? call.recv.count : call.recv.counts[what.recv_blocks];
    return add_elements(runs, 0, what.reads_recv ? what.total : own, call.recv.type);
}

bool is_absent(const void* buffer) { return !buffer || buffer == MPI_BOTTOM || buffer == MPI_IN_PLACE; }

void open(device::StagedBuffer& staging, std::int64_t& base, const device::Place& place, const void* buffer,
          const Runs& runs) {
    std::vector<device::RunGroup> data;
    // One run is all of it.
    if (runs.all().size() > 1)
        for (const Run& run : runs.all()) device::add_run(data, run.begin - runs.begin(), run.end - run.begin);
    const std::int64_t span = runs.end() - runs.begin();
    const bool sparse = span > 4 * runs.bytes() + (1 << 20);
    base = -runs.begin();
    staging.open(place, static_cast<char*>(const_cast<void*>(buffer)) + runs.begin(), span, std::move(data), sparse);
}

}  // namespace

OnDevice::OnDevice(const CallArguments& arguments) : function_(arguments.function), comm_(arguments.comm) {
    const void* const from = arguments.send.buffer;
    void* const to = arguments.recv.writable();
    if (all_on_host(from, to)) return;
    const auto what = significant(arguments);
    if (!what) return;
    Runs sent, received;
    const bool sends = what->reads_send && !is_absent(from);
    const bool receives = (what->writes_recv || what->reads_recv) && !is_absent(to);
    if (sends && !runs_of_send(sent, arguments, *what)) return;
    if (receives && !runs_of_recv(received, arguments, *what)) return;
    sent.sort();
    received.sort();
    device::Place send_place, recv_place;
    if (!sent.empty()) send_place = device::place_of(static_cast<const char*>(from) + sent.begin());
    if (!received.empty()) recv_place = device::place_of(static_cast<const char*>(to) + received.begin());
    if (!send_place.on_device() && !recv_place.on_device()) return;
    reads_send_ = send_place.on_device();
    writes_recv_ = what->writes_recv && recv_place.on_device();
    reads_recv_ = what->reads_recv && recv_place.on_device();
    if (reads_send_ && recv_place.on_device()) {
        const std::int64_t distance = static_cast<const char*>(from) - static_cast<const char*>(to);
        if (sent.begin() + distance < received.end() && received.begin() < sent.end() + distance) {
            // Both in one copy, so that the MPI sees where its arguments overlap.
            received.add(sent, distance);
            received.sort();
            one_for_both_ = reads_recv_ = true;
            open(recv_, recv_base_, recv_place, to, received);
            send_base_ = recv_base_ + distance;
            return;
        }
    }
    if (send_place.on_device()) open(send_, send_base_, send_place, from, sent);
    if (!recv_place.on_device()) return;
    open(recv_, recv_base_, recv_place, to, received);
    // Of these only the rank's own block is input.
    const bool gathers = function_ == Function::gather || function_ == Function::allgather;
    if (gathers && reads_recv_ && recv_.is_whole()) {
        own_bytes_ = recv_.bytes() / what->recv_blocks;
        int rank = 0;
        PMPI_Comm_rank(comm_, &rank);
        own_begin_ = rank * own_bytes_;
    }
}

OnDevice::~OnDevice() {
    if (current_ == this) current_ = nullptr;
}

bool OnDevice::leave_to_mpi() {
    const auto takes = [](const device::StagedBuffer& one) { return !one.is_open() || mpi_takes(*one.place().driver); };
    if (!takes(send_) || !takes(recv_)) return false;
    left_ = in_place_ = true;
    return true;
}

void OnDevice::read_all() {
    if (in_place_) return;
    if (!has_read_) {
        has_read_ = true;
        if (reads_send_ && !one_for_both_) send_.read(0, send_.bytes());
        if (reads_recv_) recv_.read(own_begin_, own_bytes_ >= 0 ? own_bytes_ : recv_.bytes());
    }
    // Also where they were begun piece by piece.
    send_.await_done();
    recv_.await_done();
}

void OnDevice::start_writing_back(int code) {
    if (current_ == this) current_ = nullptr;
    if (in_place_ || code != MPI_SUCCESS || !writes_recv_) return;
    if (unwritten_.empty()) return recv_.start_writing_all();
    for (std::size_t i = 0; i < unwritten_.size(); ++i) {
        const std::int64_t begin = static_cast<std::int64_t>(i) * device::StagedBuffer::piece_bytes;
        if (unwritten_[i] >= 0)
            recv_.start_writing(begin, std::min(device::StagedBuffer::piece_bytes, recv_.bytes() - begin));
    }
}

int OnDevice::finish(int code, MPI_Comm comm) {
    send_.await_done();
    recv_.await_done();
    DeviceCounts& counts = device_counts[static_cast<std::size_t>(function_)];
    counts.calls.fetch_add(1, std::memory_order_relaxed);
    counts.bytes_read.fetch_add(send_.bytes_read() + recv_.bytes_read(), std::memory_order_relaxed);
    counts.bytes_written.fetch_add(recv_.bytes_written(), std::memory_order_relaxed);
    if (in_place_) (left_ ? counts.left : counts.in_place).fetch_add(1, std::memory_order_relaxed);
    const device::Status failure = failure_ ? failure_ : send_.failure() ? send_.failure() : recv_.failure();
    if (!failure) return code;
    counts.failures.fetch_add(1, std::memory_order_relaxed);
    static std::atomic<bool> told{false};
    if (!told.exchange(true))
        std::fprintf(stderr, "palmette: a command on a device failed (%s): the call returns MPI_ERR_OTHER\n", failure);
    if (code != MPI_SUCCESS) return code;
    if (comm != MPI_COMM_NULL) PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

bool OnDevice::errors_return() const {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    if (PMPI_Comm_get_errhandler(comm_, &handler) != MPI_SUCCESS) return false;
    const bool returned = handler == MPI_ERRORS_RETURN;
    PMPI_Errhandler_free(&handler);
    return returned;
}

void OnDevice::restart() {
    send_.restart();
    recv_.restart();
    has_read_ = false;
    failure_ = nullptr;
    unwritten_.clear();
}

char* OnDevice::on_device(char* base, bool of_send) const {
    // Not by the address: what lies outside of its own buffer may lie in the other one.
    if (!base) return base;
    const device::StagedBuffer& own = of_send && !one_for_both_ ? send_ : recv_;
    return own.is_open() ? own.device() + (base - own.host()) : base;
}

template <class Visit>
void OnDevice::each_piece(const execute::BoundProgram& program, Visit visit) {
    for (const execute::BoundStep& step : program.steps) {
        const bool message = step.kind == plan::StepKind::recv;
        const std::uint32_t first = message ? step.first_piece : step.first_target;
        const std::uint32_t count = message ? step.piece_count : step.target_count;
        for (std::uint32_t i = first; i < first + count; ++i)
            if (const execute::Piece& piece = program.pieces[i]; piece.buffer == plan::Buffer::recv)
                visit(piece.offset, piece.bytes);
    }
}

namespace {

/// Calls `visit(piece, bytes)` for the pieces of a staged buffer that a range of it lies in.
template <class Visit>
void split(std::int64_t begin, std::int64_t bytes, Visit visit) {
    constexpr std::int64_t piece = device::StagedBuffer::piece_bytes;
    for (const std::int64_t end = begin + bytes; begin < end;) {
        const std::int64_t index = begin / piece;
        const std::int64_t part = std::min(end, (index + 1) * piece) - begin;
        visit(static_cast<std::size_t>(index), part);
        begin += part;
    }
}

}  // namespace

void OnDevice::overlap(const execute::Bases& bases, const execute::BoundProgram& program) {
    bases_ = bases;
    // What comes from the device later must not overwrite what the plan has written.
    if (reads_recv_) read_all();
    if (reads_send_ && !has_read_) {
        has_read_ = true;
        send_.start_reading();
    }
    const auto pieces = static_cast<std::size_t>((recv_.bytes() + device::StagedBuffer::piece_bytes - 1) /
                                                 device::StagedBuffer::piece_bytes);
    if (!writes_recv_ || !recv_.is_whole() || pieces < 2) return;
    unwritten_.assign(pieces, 0);
    const std::int64_t base = bases.recv - recv_.host();
    each_piece(program, [&](std::int64_t offset, std::int64_t bytes) {
        split(base + offset, bytes, [&](std::size_t piece, std::int64_t part) { unwritten_[piece] += part; });
    });
}

int OnDevice::about_to_read(std::int64_t offset, std::int64_t bytes) {
    // Addresses of a plan's buffers may lie before their first byte of data.
    if (send_.is_open()) send_.await(bases_.send - send_.host() + offset, bytes);
    return MPI_SUCCESS;
}

void OnDevice::wrote(std::int64_t offset, std::int64_t bytes) {
    if (unwritten_.empty()) return;
    constexpr std::int64_t whole = device::StagedBuffer::piece_bytes;
    split(bases_.recv - recv_.host() + offset, bytes, [&](std::size_t piece, std::int64_t part) {
        std::int64_t& left = unwritten_[piece];
        left -= part;
        if (left != 0) return;
        left = -1;
        const std::int64_t begin = static_cast<std::int64_t>(piece) * whole;
        recv_.start_writing(begin, std::min(whole, recv_.bytes() - begin));
    });
}

}  // namespace palmette::runtime
