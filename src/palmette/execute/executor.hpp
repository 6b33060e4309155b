// Executes a bound program as a dependency graph: starts each step once its predecessors are complete. Bytes are moved
// by transports and Memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/base/byte_buffer.hpp"
#include "palmette/execute/binding.hpp"
#include "palmette/execute/memory.hpp"
#include "palmette/execute/transport.hpp"
#include "palmette/node/shared_node.hpp"
#include "palmette/node/spin_wait.hpp"

namespace palmette::execute {

/// Where the buffers of one call begin. Send is read only, whatever its type says.
struct Bases {
    char* send = nullptr;
    char* recv = nullptr;
    char* const* named = nullptr;  ///< further buffers of a composition
};

/// Callbacks when steps start and complete.
class StepObserver {
  public:
    virtual ~StepObserver() = default;
    virtual void step_started(const BoundProgram& program, std::uint32_t step) = 0;
    virtual void step_completed(const BoundProgram& program, std::uint32_t step) = 0;
};

/// The caller's data, where it has to be prepared for each step.
class StepData {
  public:
    virtual ~StepData() = default;
    /// Before a step reads a part of the send buffer. 0 or an error.
    virtual int about_to_read(std::int64_t offset, std::int64_t bytes) = 0;
    /// A step has written a part of the receive buffer.
    virtual void wrote(std::int64_t offset, std::int64_t bytes) = 0;
};

/// What a program needs to run besides itself. What it points at must outlive the operation.
struct Environment {
    Bases bases;
    Memory* memory = nullptr;
    StepObserver* observer = nullptr;    ///< null: none
    StepData* data = nullptr;            ///< null: all of it is ready
    int first_tag = 0;                   ///< added to every message's tag
    int control_tags = 0;                ///< added as well to tags of FINs; twice: of payload that a peer couldn't read
    char* scratch = nullptr;             ///< where the plan's own blocks lie; null: in the executor's
    node::SharedNode* shared = nullptr;  ///< set for all members of a node or for none
    /// Set where lengths are remembered from another call: whether some rank's differ, as its messages, which are empty
    /// then, have told so far. From then on all that this rank sends is empty, too.
    bool* counts_changed = nullptr;
    std::int64_t single_copy_from = INT64_MAX;  ///< exposures of at least so many bytes are read by single copy
};

/// Scratch and staging of a program in memory of the caller's.
struct Workspace {
    char* scratch = nullptr;
    char* staging = nullptr;
};

/// A place in a list of pieces, such as the operands of a step.
struct PieceCursor {
    const Piece* piece = nullptr;
    std::int64_t used = 0;

    std::int64_t left() const { return piece->bytes - used; }
    void advance(std::int64_t bytes) {
        used += bytes;
        if (used == piece->bytes) ++piece, used = 0;
    }
};

/// State and buffers of one operation at a time. Kept between operations, so that a repeated call allocates nothing.
class Executor {
  public:
    /// `spin_wait`: for waits that poll.
    explicit Executor(Transports transports, node::SpinWait spin_wait = node::SpinWait(1, 1))
        : transports_(std::move(transports)), spin_wait_(spin_wait) {}

    /// Allocates the buffers for a program. Throws std::bad_alloc; call it before any rank has sent anything. `lent`:
    /// what is set of it serves in place of the executor's own.
    void prepare(const BoundProgram& program) {
        if (!is_prepared_for(program)) prepare(program, {});
    }
    void prepare(const BoundProgram& program, const Workspace& lent);

    /// Runs to completion. Where a single transport has anything outstanding it blocks in that transport's wait, so
    /// that the MPI's own wait policy (spin, yield, block) applies. Returns the first error, 0 otherwise.
    int run(const BoundProgram& program, const Environment& environment);

    /// `run` for nonblocking operations: begin, then progress until `done`. Neither blocks. `program` must live
    /// until then; `environment` is copied.
    int begin(const BoundProgram& program, const Environment& environment);
    int progress(bool& done);
    /// Completes what was begun, waiting as `run` does.
    int finish();

    /// Abandons the operation after an exception: no part of it may progress any further.
    void abandon() {
        if (begun_ > 0) ended(internal_error);
    }

    /// Returns and resets the count of steps that took a fallback because a system or a peer refused.
    std::int64_t take_refusals() { return std::exchange(refusals_, 0); }

    const Transports& transports() const { return transports_; }
    /// The plan's own blocks, layer by layer, in the order of Program::scratch; valid until the next run.
    const char* scratch() const { return at_.scratch; }

    // For transports, while an operation runs.

    const BoundProgram& program() const { return *program_; }
    const BoundStep& step(std::uint32_t index) const { return program_->steps[index]; }
    const Environment& environment() const { return environment_; }
    /// The transport that a remote step was bound to.
    Transport& carrier(std::uint32_t index) const { return carrier(step(index)); }
    Memory& memory() const { return *environment_.memory; }
    PieceCursor pieces(std::uint32_t first) const { return {program_->pieces.data() + first, 0}; }
    /// Address of a piece; not for pieces of `exposed_buffer`.
    char* address(const Piece& piece);
    char* at(const PieceCursor& cursor) { return address(*cursor.piece) + cursor.used; }
    /// A message's payload, contiguous (packed in staging where it has several pieces).
    char* message_data(const BoundStep& step);
    /// Executes a copy or pull, or begins it (Memory::has_begun); `exposed` points to what the peer exposes.
    void copy(const BoundStep& step, const char* exposed);
    /// Executes a reduce or pull_reduce, or begins it; `exposed` points to what the peer exposes.
    int reduce(const BoundStep& step, const char* exposed);
    /// A pending step is done: releases the steps that wait for it.
    void complete(std::uint32_t step);
    /// One backoff pause of a polling wait, in which transports may progress (`idle`).
    int pause();
    /// For a transport that has waited in its own way.
    int idle();
    void count_refusal() { ++refusals_; }

  protected:
    /// In place of those of its own.
    void pause_by(node::Pauses& pauses) { spin_wait_ = node::SpinWait(pauses); }

  private:
    const char* read_from(const PieceCursor& cursor, const char* exposed) {
        return cursor.piece->buffer == exposed_buffer ? exposed + cursor.piece->offset + cursor.used : at(cursor);
    }
    Transport& carrier(const BoundStep& step) const { return *transports_[step.transport]; }
    /// Whether all buffers are there for it. Not found out for programs for which transports have further ones.
    bool is_prepared_for(const BoundProgram& program) const {
        return program.steps.size() <= prepared_.steps && program.most_requests <= prepared_.requests &&
               program.scratch_bytes <= prepared_.scratch && program.staging_bytes <= prepared_.staging &&
               program.single_copies == 0 && program.channels == 0;
    }
    void set(const BoundProgram& program, const Environment& environment);
    int begin_transports(bool& begun);
    int start(std::uint32_t step);
    int start_remote(std::uint32_t step);
    void release_waiters(std::uint32_t step);
    bool is_late(std::uint32_t step, bool completes);
    int poll_late(bool& any);
    int start_ready();
    int do_locally(const BoundStep& step);
    void collect(const BoundStep& step, bool into_staging);
    /// For Environment::data: what a step reads of the send buffer, and what it has written of the receive buffer.
    int ready_data(const BoundStep& step);
    void written_data(const BoundStep& step);
    int poll_steps(bool& any);
    int progress_transports(bool& any);
    int wait_once();
    int run_in_order();
    /// From running in order, whose step `index` has begun.
    int go_on_by_dependencies(std::uint32_t index);
    bool keeps_order() const;
    void start_over();
    int ended(int error);

    Transports transports_;
    node::SpinWait spin_wait_;
    const BoundProgram* program_ = nullptr;
    Environment environment_;
    base::ByteBuffer scratch_, staging_;
    Workspace at_;
    /// The largest program that buffers of the executor's own were allocated for, in each respect.
    struct Prepared {
        std::size_t steps = 0;
        std::int64_t requests = -1, scratch = -1, staging = -1;
    } prepared_;
    std::int64_t refusals_ = 0;
    /// Steps whose copies a device has begun: then a message is sent, or the step completes.
    struct Late {
        std::uint32_t step;
        bool completes;
        std::uint64_t mark;  ///< of Memory
    };
    std::vector<Late> late_;
    std::size_t late_count_ = 0;
    std::vector<std::uint32_t> waits_, ready_, polled_;
    std::size_t next_ready_ = 0, started_ = 0, polled_count_ = 0, done_ = 0, begun_ = 0;
    bool may_block_ = false;
};

}  // namespace palmette::execute
