#include "palmette/runtime/transport/mpi_transport.hpp"

#include <algorithm>

#include "palmette/runtime/transport/outstanding.hpp"
#include "palmette/runtime/transport/simulated_memory.hpp"

namespace palmette::runtime {

using plan::StepKind;

namespace {

int isend(const char* data, int count, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
#if defined(PALMETTE_ABI_SMPI)
    if (simulated_services > 0 && is_with_service(comm, peer))
        return PMPI_Issend(data, count, MPI_BYTE, peer, tag, comm, request);
#endif
    return PMPI_Isend(data, count, MPI_BYTE, peer, tag, comm, request);
}

}  // namespace

void MpiTransport::prepare(const execute::BoundProgram& program) {
    const auto grow = [](auto& vector, std::size_t size) {
        if (vector.size() < size) vector.resize(size);
    };
    // For a message that another transport carries: its control messages in both directions, and the payload where that
    // transport refuses.
    const auto most = static_cast<std::size_t>(program.most_requests + 2 * program.single_copies);
    grow(outstanding_of_step_, program.steps.size());
    grow(requests_, most);
    grow(step_of_request_, most);
    grow(finished_, most);
    grow(completed_steps_, most);
}

int MpiTransport::post(execute::Executor& /*executor*/, StepKind kind, char* data, std::int64_t bytes,
                       std::int32_t peer, std::int32_t tag, std::uint32_t step) {
    do {
        const int count = static_cast<int>(std::min(bytes, execute::most_message_bytes));
        MPI_Request& request = requests_[static_cast<std::size_t>(active_)];
        const int error = kind == StepKind::send ? isend(data, count, peer, tag, comm_, &request)
                                                 : PMPI_Irecv(data, count, MPI_BYTE, peer, tag, comm_, &request);
        if (error != MPI_SUCCESS) return error;
        step_of_request_[static_cast<std::size_t>(active_++)] = step;
        ++outstanding_of_step_[step];
        data += count;
        bytes -= count;
    } while (bytes > 0);
    return MPI_SUCCESS;
}

int MpiTransport::start(execute::Executor& executor, std::uint32_t index, bool last, execute::Started& started) {
    const execute::BoundStep& step = executor.step(index);
    const int tag = executor.environment().first_tag + step.tag;
    char* data = executor.message_data(step);
    const bool* changed = executor.environment().counts_changed;
    const std::int64_t bytes = step.kind == StepKind::send && changed && *changed ? 0 : step.bytes;
    started = execute::Started::done;
    if (buffered_sends_ && step.kind == StepKind::send && bytes > 0 && bytes <= BufferedSends::longest) {
        int error = MPI_SUCCESS;
        if (buffered_sends_->send(data, static_cast<int>(bytes), step.peer, tag, comm_, error)) return error;
    }
    // The last remaining message needs no request.
    if (last && active_ == 0 && bytes <= execute::most_message_bytes && !has_outstanding()) {
        const int count = static_cast<int>(bytes);
        if (step.kind == StepKind::send) return PMPI_Send(data, count, MPI_BYTE, step.peer, tag, comm_);
        MPI_Status status;
        const int error = PMPI_Recv(data, count, MPI_BYTE, step.peer, tag, comm_, &status);
        if (error == MPI_SUCCESS) note_length(executor, index, status);
        return error;
    }
    started = execute::Started::pending;
    return post(executor, step.kind, data, bytes, step.peer, tag, index);
}

void MpiTransport::note_length(const execute::Executor& executor, std::uint32_t index, const MPI_Status& status) {
    const execute::BoundStep& step = executor.step(index);
    bool* const changed = executor.environment().counts_changed;
    if (!changed || step.kind != StepKind::recv) return;
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes < step.bytes) *changed = true;
}

int MpiTransport::take_finished(execute::Executor& executor, int count) {
    // Compact the outstanding requests, in order, before completed steps may post others.
    std::uint32_t* completed = completed_steps_.data();
    std::size_t steps = 0;
    for (int i = 0; i < count; ++i) {
        const std::uint32_t step = step_of_request_[static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)])];
        if (--outstanding_of_step_[step] == 0) completed[steps++] = step;
        if (executor.environment().counts_changed) [[unlikely]]
            note_length(executor, step, waiting_.statuses()[static_cast<std::size_t>(i)]);
    }
    int kept = 0;
    for (int i = 0; i < active_; ++i) {
        if (requests_[static_cast<std::size_t>(i)] == MPI_REQUEST_NULL) continue;
        requests_[static_cast<std::size_t>(kept)] = requests_[static_cast<std::size_t>(i)];
        step_of_request_[static_cast<std::size_t>(kept++)] = step_of_request_[static_cast<std::size_t>(i)];
    }
    active_ = kept;
    for (std::size_t s = 0; s < steps; ++s) {
        execute::Transport& owner = executor.carrier(completed[s]);
        const int error = owner.posted_complete(executor, completed[s]);
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

int MpiTransport::progress(execute::Executor& executor, bool& any) {
    int count = 0;
    const int error = waiting_.test(active_, requests_.data(), &count, finished_.data());
    if (error != MPI_SUCCESS || count <= 0) return error;
    any = true;
    return take_finished(executor, count);
}

int MpiTransport::wait(execute::Executor& executor) {
    int count = 0;
    const int error = waiting_.some(active_, requests_.data(), &count, finished_.data());
    return error == MPI_SUCCESS ? take_finished(executor, count) : error;
}

int MpiTransport::idle() {
    if (has_outstanding()) progress_background();
    // Another rank may be waiting for a message of the program's that only the MPI's progress can send.
    int found = 0;
    return PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE);
}

void MpiTransport::end(execute::Executor& executor, bool failed) {
    if (!failed) return;
    // Nothing may arrive any more in buffers whose ownership returns to the program.
    for (int i = 0; i < active_; ++i) {
        MPI_Request& request = requests_[static_cast<std::size_t>(i)];
        const std::uint32_t step = step_of_request_[static_cast<std::size_t>(i)];
        outstanding_of_step_[step] = 0;
        if (request == MPI_REQUEST_NULL) continue;
        if (executor.step(step).kind == StepKind::recv) PMPI_Cancel(&request);
        PMPI_Request_free(&request);
    }
    active_ = 0;
}

namespace {

#if defined(PALMETTE_ABI_SMPI)
using MemoryOfNode = SimulatedMemory;
#else
using MemoryOfNode = execute::NodeTransport;
#endif

/// The MPI's after those that take some messages and leave the others.
execute::Transports made_for(Waiting waiting, bool for_compositions) {
    auto messages = std::make_unique<MpiTransport>(waiting);
    execute::Transports all;
    all.push_back(std::make_unique<MemoryOfNode>(*messages));
    if (for_compositions) {
        all.push_back(std::make_unique<execute::IpcTransport>(*messages));
        all.push_back(std::make_unique<execute::NcclTransport>(MpiExecutor::nccl_index));
    }
    auto aggregation = std::make_unique<execute::AggregationTransport>(*messages);
    all.push_back(std::move(messages));
    all.push_back(std::move(aggregation));
    return all;
}

}  // namespace

MpiExecutor::MpiExecutor(execute::Transports all, node::SpinWait spin_wait)
    : execute::Executor(std::move(all), spin_wait),
      node_(static_cast<execute::NodeTransport*>(transports().front().get())),
      messages_(static_cast<MpiTransport*>(transports()[transports().size() - 2].get())),
      aggregation_(static_cast<execute::AggregationTransport*>(transports().back().get())) {}

MpiExecutor::MpiExecutor(Waiting waiting) : MpiExecutor(made_for(waiting, false), node::SpinWait(1, 1)) {}

MpiExecutor::MpiExecutor(Waiting waiting, const node::SharedNode& node)
    : MpiExecutor(made_for(waiting, false), node::SpinWait(node.members(), node.cores())) {
#if defined(PALMETTE_ABI_SMPI)
    pause_by(static_cast<SimulatedMemory&>(*node_));
#endif
}

MpiExecutor::MpiExecutor(Waiting waiting, ForCompositions)
    : MpiExecutor(made_for(waiting, true), node::SpinWait(1, 1)) {
    ipc_ = static_cast<execute::IpcTransport*>(transports()[ipc_index].get());
    nccl_ = static_cast<execute::NcclTransport*>(transports()[nccl_index].get());
}

}  // namespace palmette::runtime
