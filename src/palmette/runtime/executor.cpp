#include "palmette/runtime/executor.hpp"

#include <algorithm>
#include <cstring>

namespace palmette::runtime {

using plan::StepKind;

void Executor::prepare(const BoundProgram& program) {
    const auto grow = [](auto& vector, std::size_t size) {
        if (vector.size() < size) vector.resize(size);
    };
    grow(scratch_, static_cast<std::size_t>(program.scratch_bytes));
    grow(staging_, static_cast<std::size_t>(program.staging_bytes));
    grow(waits_, program.steps.size());
    grow(left_, program.steps.size());
    grow(ready_, program.steps.size());
    grow(requests_, static_cast<std::size_t>(program.most_requests));
    grow(step_of_request_, static_cast<std::size_t>(program.most_requests));
    grow(finished_, static_cast<std::size_t>(program.most_requests));
}

char* Executor::address(const Piece& piece, const Bases& bases) {
    switch (piece.buffer) {
        case plan::Buffer::send:
            return bases.send + piece.offset;
        case plan::Buffer::recv:
            return bases.recv + piece.offset;
        case plan::Buffer::scratch:
            return scratch_.data() + piece.offset;
    }
    return nullptr;
}

void Executor::collect(const BoundProgram& program, const BoundStep& step, const Bases& bases, bool into_staging) {
    char* staged = staging_.data() + step.staging;
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
        const Piece& piece = program.pieces[step.first_piece + i];
        char* data = address(piece, bases);
        const auto bytes = static_cast<std::size_t>(piece.bytes);
        if (into_staging)
            std::memcpy(staged, data, bytes);
        else
            std::memcpy(data, staged, bytes);
        staged += bytes;
    }
}

void Executor::copy(const BoundProgram& program, const BoundStep& step, const Bases& bases) {
    std::uint32_t source = step.first_piece;
    std::uint32_t target = step.first_piece + step.source_count;
    std::int64_t source_used = 0;
    std::int64_t target_used = 0;
    for (std::int64_t left = step.bytes; left > 0;) {
        const Piece& from = program.pieces[source];
        const Piece& to = program.pieces[target];
        const std::int64_t bytes = std::min(from.bytes - source_used, to.bytes - target_used);
        const char* read = address(from, bases) + source_used;
        char* write = address(to, bases) + target_used;
        // With MPI_IN_PLACE both are the same memory.
        if (read != write) std::memmove(write, read, static_cast<std::size_t>(bytes));
        left -= bytes;
        source_used += bytes;
        target_used += bytes;
        if (source_used == from.bytes) ++source, source_used = 0;
        if (target_used == to.bytes) ++target, target_used = 0;
    }
}

int Executor::start_message(const BoundStep& step, std::uint32_t index, char* data, MPI_Comm comm) {
    std::int64_t left = step.bytes;
    left_[index] = 0;
    do {
        const int count = static_cast<int>(std::min(left, most_message_bytes));
        MPI_Request& request = requests_[static_cast<std::size_t>(active_)];
        const int error = step.kind == StepKind::send
                              ? PMPI_Isend(data, count, MPI_BYTE, step.peer, step.tag, comm, &request)
                              : PMPI_Irecv(data, count, MPI_BYTE, step.peer, step.tag, comm, &request);
        if (error != MPI_SUCCESS) return error;
        step_of_request_[static_cast<std::size_t>(active_++)] = index;
        ++left_[index];
        data += count;
        left -= count;
    } while (left > 0);
    return MPI_SUCCESS;
}

int Executor::run_last(const BoundStep& step, char* data, MPI_Comm comm) {
    if (step.kind == StepKind::send)
        return PMPI_Send(data, static_cast<int>(step.bytes), MPI_BYTE, step.peer, step.tag, comm);
    return PMPI_Recv(data, static_cast<int>(step.bytes), MPI_BYTE, step.peer, step.tag, comm, MPI_STATUS_IGNORE);
}

int Executor::start(const BoundProgram& program, std::uint32_t index, const Bases& bases, MPI_Comm comm) {
    const BoundStep& step = program.steps[index];
    if (step.kind == StepKind::copy) {
        copy(program, step, bases);
        complete(program, index, bases);
        return MPI_SUCCESS;
    }
    char* data = step.staging >= 0       ? staging_.data() + step.staging
                 : step.piece_count == 1 ? address(program.pieces[step.first_piece], bases)
                                         : nullptr;
    if (step.kind == StepKind::send && step.staging >= 0) collect(program, step, bases, true);
    // The one message that is left needs no request.
    if (active_ == 0 && done_ + 1 == program.steps.size() && step.bytes <= most_message_bytes) {
        const int error = run_last(step, data, comm);
        if (error == MPI_SUCCESS) complete(program, index, bases);
        return error;
    }
    return start_message(step, index, data, comm);
}

void Executor::complete(const BoundProgram& program, std::uint32_t index, const Bases& bases) {
    const BoundStep& step = program.steps[index];
    if (step.kind == StepKind::recv && step.staging >= 0) collect(program, step, bases, false);
    ++done_;
    for (std::uint32_t i = 0; i < step.waiter_count; ++i) {
        const std::uint32_t waiter = program.waiters[step.first_waiter + i];
        if (--waits_[waiter] == 0) ready_[next_ready_++] = waiter;
    }
}

int Executor::run(const BoundProgram& program, Bases bases, MPI_Comm comm) {
    for (std::size_t s = 0; s < program.steps.size(); ++s) waits_[s] = program.steps[s].waits;
    std::copy(program.first_ready.begin(), program.first_ready.end(), ready_.begin());
    next_ready_ = program.first_ready.size();
    active_ = 0;
    done_ = 0;
    std::size_t started = 0;
    while (done_ < program.steps.size()) {
        while (started < next_ready_)
            if (const int error = start(program, ready_[started++], bases, comm); error != MPI_SUCCESS) return error;
        if (done_ == program.steps.size()) break;
        int count = 0;
        if (const int error = waiting_.some(active_, requests_.data(), &count, finished_.data()); error != MPI_SUCCESS)
            return error;
        for (int i = 0; i < count; ++i) {
            const std::uint32_t step =
                step_of_request_[static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)])];
            if (--left_[step] == 0) complete(program, step, bases);
        }
        // Keep the open requests together, in order.
        int kept = 0;
        for (int i = 0; i < active_; ++i) {
            if (requests_[static_cast<std::size_t>(i)] == MPI_REQUEST_NULL) continue;
            requests_[static_cast<std::size_t>(kept)] = requests_[static_cast<std::size_t>(i)];
            step_of_request_[static_cast<std::size_t>(kept++)] = step_of_request_[static_cast<std::size_t>(i)];
        }
        active_ = kept;
    }
    return MPI_SUCCESS;
}

}  // namespace palmette::runtime
