#include "palmette/execute/executor.hpp"

namespace palmette::execute {

using plan::StepKind;

int Transport::wait(Executor& executor) {
    bool any = false;
    const int error = progress(executor, any);
    return error != 0 || any ? error : executor.pause();
}

int Transport::posted_complete(Executor& executor, std::uint32_t step) {
    executor.complete(step);
    return 0;
}

void Executor::prepare(const BoundProgram& program, const Workspace& lent) {
    const auto grow = [](auto& vector, std::size_t size) {
        if (vector.size() < size) vector.resize(size);
    };
    if (!lent.scratch) scratch_.grow(static_cast<std::size_t>(program.scratch_bytes));
    if (!lent.staging) staging_.grow(static_cast<std::size_t>(program.staging_bytes));
    at_ = {lent.scratch ? lent.scratch : scratch_.data(), lent.staging ? lent.staging : staging_.data()};
    grow(waits_, program.steps.size());
    grow(ready_, program.steps.size());
    grow(polled_, program.steps.size());
    grow(late_, program.steps.size());
    for (const auto& transport : transports_) transport->prepare(program);
    if (lent.scratch || lent.staging) {
        prepared_ = {};
        return;
    }
    prepared_.steps = std::max(prepared_.steps, program.steps.size());
    prepared_.requests = std::max(prepared_.requests, program.most_requests);
    prepared_.scratch = std::max(prepared_.scratch, program.scratch_bytes);
    prepared_.staging = std::max(prepared_.staging, program.staging_bytes);
}

char* Executor::address(const Piece& piece) {
    if (piece.buffer == plan::Buffer::send) return environment_.bases.send + piece.offset;
    if (piece.buffer == plan::Buffer::recv) return environment_.bases.recv + piece.offset;
    if (!plan::is_scratch(piece.buffer))
        return environment_.bases.named[plan::caller_index(piece.buffer) - 2] + piece.offset;
    return (environment_.scratch ? environment_.scratch : at_.scratch) + piece.offset;
}

char* Executor::message_data(const BoundStep& step) {
    if (step.staging >= 0) return at_.staging + step.staging;
    return step.piece_count == 1 ? address(program_->pieces[step.first_piece]) : nullptr;
}

void Executor::collect(const BoundStep& step, bool into_staging) {
    char* staged = at_.staging + step.staging;
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
        const Piece& piece = program_->pieces[step.first_piece + i];
        char* data = address(piece);
        if (into_staging)
            memory().copy(staged, data, piece.bytes);
        else
            memory().copy(data, staged, piece.bytes);
        staged += piece.bytes;
    }
}

void Executor::copy(const BoundStep& step, const char* exposed) {
    PieceCursor from = pieces(step.first_piece), to = pieces(step.first_target);
    for (std::int64_t left = step.bytes; left > 0;) {
        const std::int64_t bytes = std::min(from.left(), to.left());
        memory().copy(at(to), read_from(from, exposed), bytes);
        left -= bytes;
        from.advance(bytes);
        to.advance(bytes);
    }
}

int Executor::reduce(const BoundStep& step, const char* exposed) {
    PieceCursor left = pieces(step.first_piece), right = pieces(step.first_right), target = pieces(step.first_target);
    for (std::int64_t rest = step.bytes; rest > 0;) {
        const std::int64_t bytes = std::min({left.left(), right.left(), target.left()});
        const int error =
            memory().combine(step.operation, read_from(left, exposed), read_from(right, exposed), at(target), bytes);
        if (error != 0) return error;
        rest -= bytes;
        left.advance(bytes);
        right.advance(bytes);
        target.advance(bytes);
    }
    return 0;
}

int Executor::ready_data(const BoundStep& step) {
    if (step.kind == StepKind::recv) return 0;
    const auto of = [&](std::uint32_t first, std::uint32_t count) {
        int error = 0;
        for (std::uint32_t i = first; i < first + count && error == 0; ++i)
            if (const Piece& piece = program_->pieces[i]; piece.buffer == plan::Buffer::send)
                error = environment_.data->about_to_read(piece.offset, piece.bytes);
        return error;
    };
    const int error = of(step.first_piece, step.piece_count);
    return error == 0 ? of(step.first_right, step.right_count) : error;
}

void Executor::written_data(const BoundStep& step) {
    const bool message = step.kind == StepKind::recv;
    const std::uint32_t first = message ? step.first_piece : step.first_target;
    const std::uint32_t count = message ? step.piece_count : step.target_count;
    for (std::uint32_t i = first; i < first + count; ++i)
        if (const Piece& piece = program_->pieces[i]; piece.buffer == plan::Buffer::recv)
            environment_.data->wrote(piece.offset, piece.bytes);
}

int Executor::do_locally(const BoundStep& step) {
    if (step.kind == StepKind::reduce) return reduce(step, nullptr);
    copy(step, nullptr);
    return 0;
}

int Executor::start(std::uint32_t index) {
    const BoundStep& step = program_->steps[index];
    if (environment_.observer) [[unlikely]]
        environment_.observer->step_started(*program_, index);
    if (environment_.data) [[unlikely]]
        if (const int error = ready_data(step)) return error;
    if (!plan::is_remote(step.kind)) {
        const int error = do_locally(step);
        if (!is_late(index, true)) release_waiters(index);
        return error;
    }
    if (step.kind == StepKind::send && step.staging >= 0 && !step.stages_itself) {
        collect(step, true);
        if (is_late(index, false)) return 0;
    }
    return start_remote(index);
}

int Executor::start_remote(std::uint32_t index) {
    const BoundStep& step = program_->steps[index];
    Started started = Started::pending;
    Transport& transport = carrier(step);
    const bool last = may_block_ && polled_count_ == 0 && late_count_ == 0 && done_ + 1 == program_->steps.size();
    const int error = transport.start(*this, index, last, started);
    if (error != 0) return error;
    if (started == Started::done)
        complete(index);
    else if (started == Started::polled)
        polled_[polled_count_++] = index;
    return 0;
}

void Executor::complete(std::uint32_t index) {
    const BoundStep& step = program_->steps[index];
    if (step.kind == StepKind::recv && step.staging >= 0 && !step.stages_itself) {
        collect(step, false);
        if (is_late(index, true)) return;
    }
    release_waiters(index);
}

bool Executor::is_late(std::uint32_t step, bool completes) {
    if (!memory().has_begun()) [[likely]]
        return false;
    late_[late_count_++] = {step, completes, memory().mark()};
    return true;
}

/// Goes on with the steps whose copies are done.
int Executor::poll_late(bool& any) {
    memory().look();
    int error = 0;
    std::size_t kept = 0;
    const std::size_t count = late_count_;
    for (std::size_t i = 0; i < count; ++i) {
        const Late late = late_[i];
        if (error != 0 || !memory().is_done(late.mark)) {
            late_[kept++] = late;
            continue;
        }
        any = true;
        if (late.completes)
            release_waiters(late.step);
        else
            error = start_remote(late.step);
    }
    // Those that have come meanwhile follow.
    for (std::size_t i = count; i < late_count_; ++i) late_[kept++] = late_[i];
    late_count_ = kept;
    return error == 0 && any ? start_ready() : error;
}

void Executor::release_waiters(std::uint32_t index) {
    const BoundStep& step = program_->steps[index];
    if (environment_.data) [[unlikely]]
        written_data(step);
    if (environment_.observer) [[unlikely]]
        environment_.observer->step_completed(*program_, index);
    ++done_;
    for (std::uint32_t i = 0; i < step.waiter_count; ++i) {
        const std::uint32_t waiter = program_->waiters[step.first_waiter + i];
        if (--waits_[waiter] == 0) ready_[next_ready_++] = waiter;
    }
}

int Executor::start_ready() {
    while (started_ < next_ready_)
        if (const int error = start(ready_[started_++]); error != 0) return error;
    return 0;
}

void Executor::set(const BoundProgram& program, const Environment& environment) {
    program_ = &program;
    environment_ = environment;
    begun_ = 0;
    polled_count_ = 0;
    late_count_ = 0;
    done_ = 0;
}

int Executor::begin_transports(bool& begun) {
    int error = 0;
    for (; begun_ < transports_.size(); ++begun_) {
        if ((program_->taking_part >> begun_ & 1) == 0) continue;
        if (!transports_[begun_]->begin(*this, error)) break;
        if (error != 0) return error;
    }
    begun = begun_ == transports_.size();
    return error;
}

/// Resets the dependency counts, to run from the first step on.
void Executor::start_over() {
    for (std::size_t s = 0; s < program_->steps.size(); ++s) waits_[s] = program_->steps[s].waits;
    std::copy(program_->first_ready.begin(), program_->first_ready.end(), ready_.begin());
    next_ready_ = program_->first_ready.size();
    started_ = 0;
}

int Executor::begin(const BoundProgram& program, const Environment& environment) {
    set(program, environment);
    may_block_ = false;
    start_over();
    bool begun = false;
    int error = begin_transports(begun);
    if (error == 0 && begun) error = start_ready();
    return error == 0 ? 0 : ended(error);
}

int Executor::poll_steps(bool& any) {
    int error = 0;
    std::size_t kept = 0;
    const std::size_t count = polled_count_;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t index = polled_[i];
        bool through = false;
        if (error == 0) error = carrier(program_->steps[index]).poll(*this, index, through);
        if (through) {
            complete(index);
            any = true;
        } else {
            polled_[kept++] = index;
        }
    }
    polled_count_ = kept;
    return error == 0 && any ? start_ready() : error;
}

int Executor::progress_transports(bool& any) {
    for (const auto& transport : transports_) {
        if (transport->pending() == 0) continue;
        if (const int error = transport->progress(*this, any); error != 0) return error;
    }
    return any ? start_ready() : 0;
}

int Executor::progress(bool& done) {
    bool any = false, begun = true;
    int error = 0;
    if (begun_ < transports_.size()) [[unlikely]] {
        error = begin_transports(begun);
        if (error == 0 && begun) error = start_ready();
    }
    if (error == 0 && begun) error = progress_transports(any);
    if (error == 0 && polled_count_ > 0) error = poll_steps(any);
    if (error == 0 && late_count_ > 0) [[unlikely]]
        error = poll_late(any);
    done = error != 0 || (begun && done_ == program_->steps.size());
    return done ? ended(error) : 0;
}

int Executor::pause() { return spin_wait_.pause() ? idle() : 0; }

int Executor::idle() {
    for (const auto& transport : transports_)
        if (const int error = transport->idle(); error != 0) return error;
    return 0;
}

int Executor::wait_once() {
    if (late_count_ > 0) [[unlikely]] {
        bool any = false;
        if (const int error = poll_late(any); error != 0 || any) return error;
    } else if (polled_count_ == 0) {
        Transport* only = nullptr;
        bool several = false;
        for (const auto& transport : transports_) {
            if (transport->pending() == 0) continue;
            several = only != nullptr;
            only = transport.get();
        }
        if (only && !several) {
            const int error = only->wait(*this);
            return error == 0 ? start_ready() : error;
        }
    }
    bool any = false;
    if (const int error = poll_steps(any); error != 0 || any) return error;
    if (const int error = progress_transports(any); error != 0 || any) return error;
    return pause();
}

int Executor::finish() {
    int error = 0;
    for (bool begun = begun_ == transports_.size(); error == 0 && !begun;) {
        error = begin_transports(begun);
        if (error == 0) error = begun ? start_ready() : pause();
    }
    while (error == 0 && done_ < program_->steps.size()) error = wait_once();
    return ended(error);
}

/// Ends the operation on all transports, after an error too: the other ranks must not wait for it.
int Executor::ended(int error) {
    for (std::size_t t = 0; t < begun_; ++t)
        if ((program_->taking_part >> t & 1) != 0) transports_[t]->end(*this, error != 0);
    begun_ = 0;
    for (; late_count_ > 0; --late_count_) memory().await(late_[late_count_ - 1].mark);
    return error;
}

bool Executor::keeps_order() const {
    for (std::size_t t = 0; t < transports_.size(); ++t)
        if ((program_->transports >> t & 1) != 0 && !transports_[t]->keeps_order(*this)) return false;
    return true;
}

int Executor::run_in_order() {
    for (std::uint32_t index = 0; index < program_->steps.size(); ++index) {
        const BoundStep& step = program_->steps[index];
        if (environment_.observer) [[unlikely]]
            environment_.observer->step_started(*program_, index);
        int error = environment_.data ? ready_data(step) : 0;
        if (error != 0) return error;
        if (!plan::is_remote(step.kind)) {
            error = do_locally(step);
            memory().await_begun();
        } else {
            Transport& transport = carrier(step);
            Started started = Started::pending;
            error = transport.start(*this, index, false, started);
            bool done = started == Started::done;
            if (!done) spin_wait_.reset();
            while (error == 0 && !done) {
                error = transport.poll(*this, index, done);
                if (error != 0 || done || !spin_wait_.pause()) continue;
                if (transport.may_wait_for_later_steps(*this)) [[unlikely]]
                    return go_on_by_dependencies(index);
                error = idle();
            }
        }
        if (error != 0) return error;
        if (environment_.data) [[unlikely]]
            written_data(step);
        if (environment_.observer) [[unlikely]]
            environment_.observer->step_completed(*program_, index);
    }
    return 0;
}

int Executor::go_on_by_dependencies(std::uint32_t index) {
    const auto count = static_cast<std::uint32_t>(program_->steps.size());
    for (std::uint32_t s = 0; s < count; ++s) waits_[s] = program_->steps[s].waits;
    for (std::uint32_t s = 0; s < index; ++s) {
        const BoundStep& step = program_->steps[s];
        for (std::uint32_t i = 0; i < step.waiter_count; ++i) --waits_[program_->waiters[step.first_waiter + i]];
    }
    next_ready_ = started_ = 0;
    for (std::uint32_t s = index + 1; s < count; ++s)
        if (waits_[s] == 0) ready_[next_ready_++] = s;
    done_ = index;
    polled_[0] = index;
    polled_count_ = 1;
    may_block_ = false;
    const int error = start_ready();
    may_block_ = true;
    return error == 0 ? finish() : error;
}

int Executor::run(const BoundProgram& program, const Environment& environment) {
    set(program, environment);
    spin_wait_.reset();
    bool begun = false;
    int error = begin_transports(begun);
    while (error == 0 && !begun) {
        error = pause();
        if (error == 0) error = begin_transports(begun);
    }
    if (error != 0) return ended(error);
    if (keeps_order()) return ended(run_in_order());
    start_over();
    may_block_ = false;
    error = start_ready();
    may_block_ = true;
    return error == 0 ? finish() : ended(error);
}

}  // namespace palmette::execute
