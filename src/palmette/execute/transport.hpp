// How a step's bytes get from one rank to another: one small interface, and a file for each way.
//
// An executor keeps what steps wait for; a transport moves bytes. Which of the executor's transports a step takes is
// set when the program is bound (choose_transports), from what both ends know. docs/guide/add-a-transport.md writes
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "palmette/execute/binding.hpp"

namespace palmette::runtime {

class Executor;

/// How far `Transport::start` has come with a step.
enum class Started : std::uint8_t {
    done,    ///< its bytes are where they belong, or the program may write them again
    polled,  ///< the executor asks `poll` until they are
    pending  ///< `progress` or `wait` will call Executor::complete
};

/// One way of moving bytes, as one executor uses it: it carries one operation at a time. Codes are 0 or an error's,
/// which ends the operation. Only `wait` and a `start` that may block wait for others.
class Transport {
  public:
    virtual ~Transport() = default;

    virtual const char* name() const = 0;

    /// Whether it can carry a step. Both ends ask, and must come to the same answer.
    virtual bool can(const StepOffer& step) const = 0;

    /// Room for a program, before any rank has sent anything. Throws std::bad_alloc.
    virtual void prepare(const BoundProgram&) {}

    /// An operation begins, whether or not it has steps for this transport. False: not yet, ask again.
    virtual bool begin(Executor&, int& error) {
        error = 0;
        return true;
    }

    /// Starts a step that was bound to this transport. `last`: nothing else is under way and nothing is left to start,
    /// so that it may wait right here.
    virtual int start(Executor& executor, std::uint32_t step, bool last, Started& started) = 0;

    /// Asked again and again for steps that are `polled`.
    virtual int poll(Executor&, std::uint32_t /*step*/, bool& done) {
        done = true;
        return 0;
    }

    /// Lets pending steps go on and completes those that are through; `any`: there were such.
    virtual int progress(Executor&, bool& /*any*/) { return 0; }

    /// The same where nothing else is under way: may wait for one.
    virtual int wait(Executor& executor);

    /// How many things are pending.
    virtual std::size_t pending() const { return 0; }

    /// The messages that this transport had posted for a step by Messages::post are through.
    virtual int through(Executor& executor, std::uint32_t step);

    /// Now and then while the executor waits for something that it polls.
    virtual int idle() { return 0; }

    /// Whether steps that start in the program's order, each when the one before is done, get through (plan/verify.hpp
    /// shows it for plans without messages).
    virtual bool keeps_order(const Executor&) const { return false; }

    /// The operation is over on this rank. `failed`: nothing that is pending may arrive any more.
    virtual void end(Executor&, bool /*failed*/) {}

    /// Steps, since the last question, that went another way than planned because a system or a peer refused.
    virtual std::int64_t take_refusals() { return 0; }
};

/// A transport of messages, by which others send what they have to tell the peer.
class Messages : public Transport {
  public:
    /// Starts a message from or to `data` for a step that another transport carries. Once all that were posted for the
    /// step are through, its transport's `through` is called.
    virtual int post(Executor& executor, plan::StepKind kind, char* data, std::int64_t bytes, std::int32_t peer,
                     std::int32_t tag, std::uint32_t step) = 0;
};

/// In order of preference: a step takes the first that can carry it.
using Transports = std::vector<std::unique_ptr<Transport>>;

/// Sets each remote step's transport. `me` is a rank of `job`. Throws base::Error for a step that none can carry.
void choose_transports(BoundProgram& program, const Transports& transports, const topology::Job& job, plan::Rank me);

}  // namespace palmette::runtime
