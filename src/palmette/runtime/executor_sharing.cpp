// The executor's part inside of a node.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "palmette/runtime/executor.hpp"
#include "palmette/runtime/shared_single_copy.hpp"
#include "palmette/runtime/under_way.hpp"

namespace palmette::runtime {

using plan::StepKind;

namespace {
/// What is reduced from memory that can't be read in place goes through so much of our own at a time: each call of the kernel's
/// has a price (1 MiB took 170 us in parts of 32 KiB, 115 in parts of 128 KiB, 99 at once), and what was read should stay in a core's cache.
constexpr std::int64_t bounce_bytes = 128 * 1024;
}  // namespace

int Executor::let_mpi_progress() {
    if (!patience_.pause()) return MPI_SUCCESS;
    if (any_under_way()) progress_background();
    // Another rank may be waiting for a message of the program's that only the MPI's progress can send.
    int found = 0;
    return PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, environment_.comm, &found, MPI_STATUS_IGNORE);
}

int Executor::begin_sharing() {
    patience_.fresh();
    while (!environment_.shared->begin(program_->exposed_bytes))
        if (const int error = let_mpi_progress(); error != MPI_SUCCESS) return error;
    return MPI_SUCCESS;
}

void Executor::expose(const BoundStep& step) {
    SharedNode& shared = *environment_.shared;
    const auto tag = static_cast<unsigned>(step.tag);
    if (!step.copied && step.piece_count == 1 && step.bytes >= environment_.single_copy_from) {
        shared.expose_address(tag, address(*piece(step.first_piece)), step.bytes);
        return;
    }
    if (step.piece_count <= 1 && step.bytes <= Exposure::inline_bytes) {
        shared.expose_inline(tag, step.piece_count == 1 ? address(*piece(step.first_piece)) : nullptr, step.bytes);
        return;
    }
    char* room = shared.room(step.bytes);
    char* at = room;
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
        const Piece& from = program_->pieces[step.first_piece + i];
        std::memcpy(at, address(from), static_cast<std::size_t>(from.bytes));
        at += from.bytes;
    }
    shared.expose_room(tag, room, step.bytes);
}

bool Executor::pull(const BoundStep& step, int& error) {
    SharedNode& shared = *environment_.shared;
    const Exposure* exposure = shared.look(step.peer, static_cast<unsigned>(step.tag));
    if (!exposure) return false;
    if (step.bytes > 0) {
        const char* data = shared.direct(step.peer, *exposure);
        if (!data)
            error = pull_by_copy(step, *exposure);
        else if (step.kind == StepKind::pull)
            copy(step, data);
        else
            error = reduce(step, data);
    }
    shared.release(step.peer, static_cast<unsigned>(step.tag));
    return true;
}

/// A part of an exposure by address, read where it is; where the system refuses that, its owner copies it. `refused`:
/// the owner knows for this exposure.
int Executor::fetch(const BoundStep& step, const Exposure& exposure, std::int64_t offset, char* to, std::int64_t bytes,
                    bool& refused) {
    SharedNode& shared = *environment_.shared;
    const auto member = static_cast<std::size_t>(step.peer);
    const auto tag = static_cast<unsigned>(step.tag);
    const bool known = member < unreadable_.size() && unreadable_[member];
    if (!known && !refused) {
        const int failed = is_pretended_refusal() ? EPERM : shared.read(step.peer, exposure, offset, to, bytes);
        if (failed == 0) return MPI_SUCCESS;
        if (failed == EINVAL) return MPI_ERR_INTERN;
        // Otherwise it may have been this piece of memory alone.
        if (failed == EPERM || failed == ESRCH || failed == ENOSYS) {
            if (unreadable_.size() <= member) unreadable_.resize(member + 1);
            unreadable_[member] = true;
        }
    }
    if (!refused) {
        shared.refuse(step.peer, tag);
        ++refused_reads_;
        refused = true;
    }
    while (bytes > 0) {
        const std::int64_t part = std::min(bytes, shared.most_asked());
        shared.ask(step.peer, tag, offset, part);
        patience_.fresh();
        const char* data = nullptr;
        while (!(data = shared.answer())) {
            if (shared.has_left(step.peer)) return MPI_ERR_OTHER;
            // It may be waiting for an answer of ours.
            shared.answer_requests();
            if (const int error = let_mpi_progress(); error != MPI_SUCCESS) return error;
        }
        std::memcpy(to, data, static_cast<std::size_t>(part));
        to += part;
        offset += part;
        bytes -= part;
    }
    return MPI_SUCCESS;
}

int Executor::pull_by_copy(const BoundStep& step, const Exposure& exposure) {
    bool refused = false;
    if (step.kind == StepKind::pull) {
        Operand from{piece(step.first_piece), 0, nullptr};
        Operand to{piece(step.first_target), 0, nullptr};
        for (std::int64_t left = step.bytes; left > 0;) {
            const std::int64_t bytes = std::min(from.piece->bytes - from.used, to.piece->bytes - to.used);
            if (const int error =
                    fetch(step, exposure, from.piece->offset + from.used, address(*to.piece) + to.used, bytes, refused))
                return error;
            left -= bytes;
            advance(from, bytes);
            advance(to, bytes);
        }
        return MPI_SUCCESS;
    }
    const Operation& operation = *environment_.operation;
    const std::int64_t element = operation.layout().extent;
    const std::int64_t lower = operation.layout().true_lower;
    bounce_.grow(static_cast<std::size_t>(std::max(bounce_bytes, element)));
    const std::int64_t most = std::max(std::int64_t{1}, bounce_bytes / element) * element;
    Operand left{piece(step.first_piece), 0, nullptr};
    Operand right{piece(step.first_right), 0, nullptr};
    Operand target{piece(step.first_target), 0, nullptr};
    const bool left_exposed = left.piece->buffer == exposed_buffer;
    Operand& remote = left_exposed ? left : right;
    Operand& own = left_exposed ? right : left;
    for (std::int64_t rest = step.bytes; rest > 0;) {
        const std::int64_t bytes = std::min(
            {most, left.piece->bytes - left.used, right.piece->bytes - right.used, target.piece->bytes - target.used});
        if (const int error = fetch(step, exposure, remote.piece->offset + remote.used, bounce_.data(), bytes, refused))
            return error;
        const char* mine = read_from(own) - lower;
        const char* theirs = bounce_.data() - lower;
        const int error = operation.apply(left_exposed ? theirs : mine, left_exposed ? mine : theirs,
                                          address(*target.piece) + target.used - lower, bytes / element);
        if (error != MPI_SUCCESS) return error;
        rest -= bytes;
        advance(left, bytes);
        advance(right, bytes);
        advance(target, bytes);
    }
    return MPI_SUCCESS;
}

int Executor::poll_exposures(bool& any) {
    int error = MPI_SUCCESS;
    std::size_t kept = 0;
    const std::size_t count = pending_count_;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t index = pending_[i];
        const BoundStep& step = program_->steps[index];
        const bool through =
            error == MPI_SUCCESS &&
            (step.kind == StepKind::expose ? environment_.shared->read_by(static_cast<unsigned>(step.tag), step.readers)
                                           : pull(step, error));
        if (through) {
            complete(index);
            any = true;
        } else {
            pending_[kept++] = index;
        }
    }
    pending_count_ = kept;
    return error == MPI_SUCCESS && any ? start_ready() : error;
}

int Executor::run_in_order() {
    // The verifier has shown that plans without messages get through like this (plan/verify.hpp).
    int error = MPI_SUCCESS;
    for (const BoundStep& step : program_->steps) {
        switch (step.kind) {
            case StepKind::copy:
                copy(step, nullptr);
                break;
            case StepKind::reduce:
                error = reduce(step, nullptr);
                break;
            case StepKind::expose:
                expose(step);
                break;
            case StepKind::pull:
            case StepKind::pull_reduce:
                patience_.fresh();
                while (!pull(step, error))
                    if (const int failed = let_mpi_progress(); failed != MPI_SUCCESS) return failed;

                break;
            case StepKind::send:
            case StepKind::recv:
                return MPI_ERR_INTERN;
        }
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

}  // namespace palmette::runtime
