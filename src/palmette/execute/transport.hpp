// Transport interface: how a step's bytes get from one rank to another. One file for each implementation.
//
// The executor tracks dependencies between steps; a transport moves bytes. Which of the executor's transports a step
// uses is fixed when the program is bound (choose_transports), from what both ends know. docs/guide/add-a-transport.md
// shows how to write one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "palmette/execute/binding.hpp"

namespace palmette::execute {

class Executor;

/// State of a step after `Transport::start`.
enum class Started : std::uint8_t {
    done,    ///< the payload has arrived, or the send buffer may be reused
    polled,  ///< the executor calls `poll` until it is done
    pending  ///< `progress` or `wait` will call Executor::complete
};

/// One way of moving bytes, owned by one executor: it carries one operation at a time. Return codes are 0 or an
/// error's, which ends the operation. Only `wait`, and `start` with `last`, may block.
class Transport {
  public:
    virtual ~Transport() = default;

    virtual const char* name() const = 0;

    /// Whether it can carry a step. Called on both ends, which must get the same answer.
    virtual bool can(const StepOffer& step) const = 0;

    /// Allocates buffers for a program, before any rank has sent anything. Throws std::bad_alloc.
    virtual void prepare(const BoundProgram&) {}

    /// Whether operations of a program begin and end this transport; must be where it has, or may get, a message to
    /// carry. The default is always.
    virtual bool takes_part(const BoundProgram&) const { return true; }

    /// Begins an operation that it takes part in. False: not ready yet, retry.
    virtual bool begin(Executor&, int& error) {
        error = 0;
        return true;
    }

    /// Starts a step that was bound to this transport. `last`: nothing else is outstanding and nothing is left to
    /// start, so that it may block until the step is done.
    virtual int start(Executor& executor, std::uint32_t step, bool last, Started& started) = 0;

    /// Called repeatedly for steps that are `polled`, until `done`.
    virtual int poll(Executor&, std::uint32_t /*step*/, bool& done) {
        done = true;
        return 0;
    }

    /// Progresses pending steps and completes those that are done; `any` is set if there were any.
    virtual int progress(Executor&, bool& /*any*/) { return 0; }

    /// `progress` where nothing else is outstanding: may block until one step is done.
    virtual int wait(Executor& executor);

    /// Number of pending requests.
    virtual std::size_t pending() const { return 0; }

    /// Called when all messages that this transport posted for a step by Messages::post have completed.
    virtual int posted_complete(Executor& executor, std::uint32_t step);

    /// Called now and then while the executor polls.
    virtual int idle() { return 0; }

    /// Whether steps may run sequentially in the program's order, each after the one before is done, without deadlock
    /// (plan/verify.hpp shows it for plans without messages).
    virtual bool keeps_order(const Executor&) const { return false; }

    /// Asked in long waits of operations that do so: whether a peer may be waiting for a later step of this rank's
    /// after all. All steps that can start do so then.
    virtual bool may_wait_for_later_steps(const Executor&) const { return false; }

    /// Ends the operation on this rank. `failed`: nothing that is outstanding may arrive any more.
    virtual void end(Executor&, bool /*failed*/) {}
};

/// A message transport, by which other transports send their control messages (RTS, FIN) and fallback payload.
class Messages : public Transport {
  public:
    /// Starts a message from or to `data` for a step that another transport carries. Once all that were posted for the
    /// step have completed, its transport's `posted_complete` is called.
    virtual int post(Executor& executor, plan::StepKind kind, char* data, std::int64_t bytes, std::int32_t peer,
                     std::int32_t tag, std::uint32_t step) = 0;
};

/// In order of preference: a step is bound to the first that can carry it.
using Transports = std::vector<std::unique_ptr<Transport>>;

/// Sets each remote step's transport. `me` is a rank of `job`. Throws base::Error for a step that none can carry.
void choose_transports(BoundProgram& program, const Transports& transports, const topology::Job& job, plan::Rank me);

}  // namespace palmette::execute
