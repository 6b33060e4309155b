#include "palmette/runtime/executor.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "palmette/runtime/shared_single_copy.hpp"
#include "palmette/runtime/under_way.hpp"

namespace palmette::runtime {

using plan::StepKind;

namespace {

/// A refusal that isn't about this piece of memory: the next read of the same process would come to the same.
bool is_for_good(int error) { return error == EPERM || error == ESRCH || error == ENOSYS; }

bool holds(const std::vector<bool>& set, std::int32_t number) {
    return static_cast<std::size_t>(number) < set.size() && set[static_cast<std::size_t>(number)];
}
void insert(std::vector<bool>& set, std::int32_t number) {
    if (set.size() <= static_cast<std::size_t>(number)) set.resize(static_cast<std::size_t>(number) + 1);
    set[static_cast<std::size_t>(number)] = true;
}

}  // namespace

void Executor::prepare(const BoundProgram& program) {
    const auto grow = [](auto& vector, std::size_t size) {
        if (vector.size() < size) vector.resize(size);
    };
    scratch_.grow(static_cast<std::size_t>(program.scratch_bytes));
    staging_.grow(static_cast<std::size_t>(program.staging_bytes));
    grow(waits_, program.steps.size());
    grow(left_, program.steps.size());
    grow(ready_, program.steps.size());
    grow(pending_, program.steps.size());
    grow(requests_, static_cast<std::size_t>(program.most_requests));
    grow(step_of_request_, static_cast<std::size_t>(program.most_requests));
    grow(finished_, static_cast<std::size_t>(program.most_requests));
    if (program.single_copies) grow(offers_, program.steps.size());
}

char* Executor::address(const Piece& piece) {
    if (piece.buffer == plan::Buffer::send) return environment_.bases.send + piece.offset;
    if (piece.buffer == plan::Buffer::recv) return environment_.bases.recv + piece.offset;
    if (!plan::is_scratch(piece.buffer))
        return environment_.bases.named[plan::caller_index(piece.buffer) - 2] + piece.offset;
    return scratch_.data() + piece.offset;
}

void Executor::collect(const BoundStep& step, bool into_staging) {
    char* staged = staging_.data() + step.staging;
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
        const Piece& piece = program_->pieces[step.first_piece + i];
        char* data = address(piece);
        const auto bytes = static_cast<std::size_t>(piece.bytes);
        if (into_staging)
            std::memcpy(staged, data, bytes);
        else
            std::memcpy(data, staged, bytes);
        staged += bytes;
    }
}

void Executor::copy(const BoundStep& step, const char* exposed) {
    Operand from{piece(step.first_piece), 0, exposed};
    Operand to{piece(step.first_target), 0, nullptr};
    for (std::int64_t left = step.bytes; left > 0;) {
        const std::int64_t bytes = std::min(from.piece->bytes - from.used, to.piece->bytes - to.used);
        const char* read = read_from(from);
        char* write = address(*to.piece) + to.used;
        // With MPI_IN_PLACE both are the same memory.
        if (read != write) std::memmove(write, read, static_cast<std::size_t>(bytes));
        left -= bytes;
        advance(from, bytes);
        advance(to, bytes);
    }
}

int Executor::reduce(const BoundStep& step, const char* exposed) {
    const Operation& operation = environment_.operation[step.operation];
    const std::int64_t extent = operation.layout().extent;
    // Plans see elements from their first byte on.
    const std::int64_t lower = operation.layout().true_lower;
    Operand left{piece(step.first_piece), 0, exposed};
    Operand right{piece(step.first_right), 0, exposed};
    Operand target{piece(step.first_target), 0, nullptr};
    for (std::int64_t rest = step.bytes; rest > 0;) {
        const std::int64_t bytes = std::min(
            {left.piece->bytes - left.used, right.piece->bytes - right.used, target.piece->bytes - target.used});
        const int error = operation.apply(read_from(left) - lower, read_from(right) - lower,
                                          address(*target.piece) + target.used - lower, bytes / extent);
        if (error != MPI_SUCCESS) return error;
        rest -= bytes;
        advance(left, bytes);
        advance(right, bytes);
        advance(target, bytes);
    }
    return MPI_SUCCESS;
}

int Executor::start_message(const BoundStep& step, std::uint32_t index, char* data) {
    left_[index] = 0;
    return start_pieces(step, index, data, environment_.first_tag + step.tag);
}

int Executor::start_pieces(const BoundStep& step, std::uint32_t index, char* data, int tag) {
    std::int64_t left = step.bytes;
    do {
        const int count = static_cast<int>(std::min(left, most_message_bytes));
        MPI_Request& request = requests_[static_cast<std::size_t>(active_)];
        const int error = step.kind == StepKind::send
                              ? PMPI_Isend(data, count, MPI_BYTE, step.peer, tag, environment_.comm, &request)
                              : PMPI_Irecv(data, count, MPI_BYTE, step.peer, tag, environment_.comm, &request);
        if (error != MPI_SUCCESS) return error;
        step_of_request_[static_cast<std::size_t>(active_++)] = index;
        ++left_[index];
        data += count;
        left -= count;
    } while (left > 0);
    return MPI_SUCCESS;
}

/// Rendezvous by short messages: the sender offers its data and waits for an answer; the receiver reads, and answers.
/// Whoever waits for one of them waits as for any other message. Where the system refuses the read, the answer says
/// why, and the data follows in messages.
int Executor::start_single_copy(const BoundStep& step, std::uint32_t index, char* data) {
    const int tag = environment_.first_tag + step.tag;
    Offer& offer = offers_[index];
    const auto request = [&]() -> MPI_Request* {
        step_of_request_[static_cast<std::size_t>(active_)] = index;
        ++left_[index];
        requests_[static_cast<std::size_t>(active_)] = MPI_REQUEST_NULL;
        return &requests_[static_cast<std::size_t>(active_++)];
    };
    left_[index] = 0;
    offer = {static_cast<std::int64_t>(getpid()), reinterpret_cast<std::uint64_t>(data), 0, false, false};
    if (step.kind == StepKind::recv)
        return PMPI_Irecv(&offer, offer_bytes, MPI_BYTE, step.peer, tag, environment_.comm, request());
    if (holds(refused_by_, step.peer)) {
        offer.process = 0;
        offer.in_messages = true;
        const int error = PMPI_Isend(&offer, offer_bytes, MPI_BYTE, step.peer, tag, environment_.comm, request());
        return error ? error : start_pieces(step, index, data, tag + 2 * environment_.answer_tags);
    }
    const int error = PMPI_Irecv(&offer.answer, 1, MPI_INT32_T, step.peer, tag + environment_.answer_tags,
                                 environment_.comm, request());
    if (error != MPI_SUCCESS) return error;
    return PMPI_Isend(&offer, offer_bytes, MPI_BYTE, step.peer, tag, environment_.comm, request());
}

int Executor::answer(std::uint32_t index) {
    const BoundStep& step = program_->steps[index];
    const int tag = environment_.first_tag + step.tag;
    Offer& offer = offers_[index];
    char* data = message_data(step);
    int error = MPI_SUCCESS;
    offer.answered = true;
    if (offer.process != 0) {
        offer.answer = is_pretended_refusal()
                           ? EPERM
                           : read_process(static_cast<pid_t>(offer.process), offer.address, data, step.bytes);
        step_of_request_[static_cast<std::size_t>(active_)] = index;
        ++left_[index];
        requests_[static_cast<std::size_t>(active_)] = MPI_REQUEST_NULL;
        error = PMPI_Isend(&offer.answer, 1, MPI_INT32_T, step.peer, tag + environment_.answer_tags, environment_.comm,
                           &requests_[static_cast<std::size_t>(active_++)]);
        if (offer.answer == 0) return error;
    }
    ++refused_reads_;
    offer.in_messages = true;
    return error ? error : start_pieces(step, index, data, tag + 2 * environment_.answer_tags);
}

/// All requests of a single copy are through: is it? Otherwise starts what comes next.
int Executor::go_on_with_single_copy(std::uint32_t index, bool& completed) {
    const BoundStep& step = program_->steps[index];
    Offer& offer = offers_[index];
    const bool sends = step.kind == StepKind::send;
    completed = offer.in_messages || (sends ? offer.answer == 0 : offer.answered);
    if (completed) return MPI_SUCCESS;
    if (!sends) return answer(index);
    if (is_for_good(offer.answer)) insert(refused_by_, step.peer);
    offer.in_messages = true;
    return start_pieces(step, index, message_data(step),
                        environment_.first_tag + step.tag + 2 * environment_.answer_tags);
}

char* Executor::message_data(const BoundStep& step) {
    if (step.staging >= 0) return staging_.data() + step.staging;
    return step.piece_count == 1 ? address(program_->pieces[step.first_piece]) : nullptr;
}

int Executor::run_last(const BoundStep& step, char* data) {
    const int tag = environment_.first_tag + step.tag;
    const int count = static_cast<int>(step.bytes);
    if (step.kind == StepKind::send) return PMPI_Send(data, count, MPI_BYTE, step.peer, tag, environment_.comm);
    return PMPI_Recv(data, count, MPI_BYTE, step.peer, tag, environment_.comm, MPI_STATUS_IGNORE);
}

int Executor::start(std::uint32_t index) {
    const BoundStep& step = program_->steps[index];
    int error = MPI_SUCCESS;
    switch (step.kind) {
        case StepKind::copy:
            copy(step, nullptr);
            complete(index);
            return MPI_SUCCESS;
        case StepKind::reduce:
            error = reduce(step, nullptr);
            complete(index);
            return error;
        case StepKind::expose:
            expose(step);
            if (environment_.shared->read_by(static_cast<unsigned>(step.tag), step.readers))
                complete(index);
            else
                pending_[pending_count_++] = index;
            return MPI_SUCCESS;
        case StepKind::pull:
        case StepKind::pull_reduce:
            if (pull(step, error))
                complete(index);
            else
                pending_[pending_count_++] = index;
            return error;
        case StepKind::send:
        case StepKind::recv:
            break;
    }
    char* data = message_data(step);
    if (step.kind == StepKind::send && step.staging >= 0) collect(step, true);
    if (step.single_copy) return start_single_copy(step, index, data);
    if (step.kind == StepKind::send && environment_.outbox && step.bytes > 0 && step.bytes <= Outbox::longest &&
        environment_.outbox->send(data, static_cast<int>(step.bytes), step.peer, environment_.first_tag + step.tag,
                                  environment_.comm, error)) {
        if (error == MPI_SUCCESS) complete(index);
        return error;
    }
    // The one message that is left needs no request.
    if (may_block_ && active_ == 0 && done_ + 1 == program_->steps.size() && step.bytes <= most_message_bytes) {
        error = run_last(step, data);
        if (error == MPI_SUCCESS) complete(index);
        return error;
    }
    return start_message(step, index, data);
}

void Executor::complete(std::uint32_t index) {
    const BoundStep& step = program_->steps[index];
    if (step.kind == StepKind::recv && step.staging >= 0) collect(step, false);
    ++done_;
    for (std::uint32_t i = 0; i < step.waiter_count; ++i) {
        const std::uint32_t waiter = program_->waiters[step.first_waiter + i];
        if (--waits_[waiter] == 0) ready_[next_ready_++] = waiter;
    }
}

int Executor::begin(const BoundProgram& program, const Environment& environment) {
    program_ = &program;
    environment_ = environment;
    may_block_ = false;
    for (std::size_t s = 0; s < program.steps.size(); ++s) waits_[s] = program.steps[s].waits;
    std::copy(program.first_ready.begin(), program.first_ready.end(), ready_.begin());
    next_ready_ = program.first_ready.size();
    started_ = 0;
    active_ = 0;
    pending_count_ = 0;
    done_ = 0;
    const int error = start_ready();
    if (error != MPI_SUCCESS) abandon();
    return error;
}

int Executor::start_ready() {
    while (started_ < next_ready_)
        if (const int error = start(ready_[started_++]); error != MPI_SUCCESS) return error;
    return MPI_SUCCESS;
}

int Executor::take_finished(int count) {
    int error = MPI_SUCCESS;
    for (int i = 0; i < count; ++i) {
        const std::uint32_t step = step_of_request_[static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)])];
        if (--left_[step] > 0) continue;
        bool completed = true;
        if (program_->steps[step].single_copy) [[unlikely]]
            if (const int failed = go_on_with_single_copy(step, completed); failed != MPI_SUCCESS) error = failed;
        if (completed) complete(step);
    }
    // Keep the open requests together, in order.
    int kept = 0;
    for (int i = 0; i < active_; ++i) {
        if (requests_[static_cast<std::size_t>(i)] == MPI_REQUEST_NULL) continue;
        requests_[static_cast<std::size_t>(kept)] = requests_[static_cast<std::size_t>(i)];
        step_of_request_[static_cast<std::size_t>(kept++)] = step_of_request_[static_cast<std::size_t>(i)];
    }
    active_ = kept;
    return error == MPI_SUCCESS ? start_ready() : error;
}

int Executor::poll_messages(bool& any) {
    if (active_ == 0) return MPI_SUCCESS;
    int count = 0;
    const int error = waiting_.test(active_, requests_.data(), &count, finished_.data());
    if (error != MPI_SUCCESS || count <= 0) return error;
    any = true;
    return take_finished(count);
}

int Executor::progress(bool& done) {
    bool any = false;
    int error = poll_messages(any);
    if (error == MPI_SUCCESS && pending_count_ > 0) error = poll_exposures(any);
    done = error != MPI_SUCCESS || done_ == program_->steps.size();
    if (error != MPI_SUCCESS) abandon();
    return error;
}

int Executor::wait_once() {
    if (pending_count_ == 0) {
        int count = 0;
        if (const int error = waiting_.some(active_, requests_.data(), &count, finished_.data()); error != MPI_SUCCESS)
            return error;
        return take_finished(count);
    }
    bool any = false;
    if (const int error = poll_exposures(any); error != MPI_SUCCESS || any) return error;
    if (const int error = poll_messages(any); error != MPI_SUCCESS || any) return error;
    return let_mpi_progress();
}

int Executor::finish() {
    int error = MPI_SUCCESS;
    while (error == MPI_SUCCESS && done_ < program_->steps.size()) error = wait_once();
    if (error != MPI_SUCCESS) abandon();
    return error;
}

/// Nothing may arrive any more in memory that the program takes for its own again.
void Executor::abandon() {
    for (int i = 0; i < active_; ++i) {
        MPI_Request& request = requests_[static_cast<std::size_t>(i)];
        if (request == MPI_REQUEST_NULL) continue;
        if (program_->steps[step_of_request_[static_cast<std::size_t>(i)]].kind == StepKind::recv)
            PMPI_Cancel(&request);
        PMPI_Request_free(&request);
    }
    active_ = 0;
}

int Executor::run(const BoundProgram& program, const Environment& environment) {
    program_ = &program;
    environment_ = environment;
    if (environment_.shared)
        if (const int error = begin_sharing(); error != MPI_SUCCESS) return error;
    int error = MPI_SUCCESS;
    if (!program.messages && environment.single_copy_from == INT64_MAX) {
        error = run_in_order();
    } else {
        error = begin(program, environment);
        may_block_ = !any_under_way();
        if (error == MPI_SUCCESS) error = finish();
    }
    // Also after an error: the others of the node must not wait for this operation.
    if (environment_.shared) environment_.shared->end();
    return error;
}

}  // namespace palmette::runtime
