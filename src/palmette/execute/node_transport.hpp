// The memory of a node as a transport, by two protocols: exposures on the board that its ranks share (SharedNode), and
// messages that their receiver reads in the sender's memory (rendezvous).
#pragma once

#include <vector>

#include "palmette/base/byte_buffer.hpp"
#include "palmette/execute/executor.hpp"

namespace palmette::runtime {

/// Rendezvous, driven by the receiver: the sender tells process and address, the receiver reads the payload and
/// acknowledges. Both are messages of another transport. Where the system refuses the read, the acknowledgement says
/// why, and the payload follows by that transport.
///
/// Exposures that the system doesn't let a reader read are copied by their owner, part by part.
class NodeTransport : public Transport {
  public:
    /// Shorter messages are sent: telling and acknowledging cost more than a copy.
    static constexpr std::int64_t least_rendezvous = 4096;

    explicit NodeTransport(Messages& messages) : messages_(messages) {}

    const char* name() const override { return "node"; }
    bool can(const StepOffer& step) const override;
    void prepare(const BoundProgram& program) override;
    bool begin(Executor& executor, int& error) override;
    int start(Executor& executor, std::uint32_t step, bool last, Started& started) override;
    int poll(Executor& executor, std::uint32_t step, bool& done) override;
    int through(Executor& executor, std::uint32_t step) override;
    bool keeps_order(const Executor& executor) const override;
    void end(Executor& executor, bool failed) override;
    std::int64_t take_refusals() override { return std::exchange(refusals_, 0); }

    /// Whether all ranks of each node may read each other's memory, the same on all ranks: then messages may be read
    /// so.
    void allow_rendezvous(bool works) { rendezvous_works_ = works; }

  private:
    /// Processes that can't be read, or can't read here: others are tried again, for it may have been one piece of
    /// memory alone.
    class Known {
      public:
        bool holds(std::int32_t number) const {
            return static_cast<std::size_t>(number) < set_.size() && set_[static_cast<std::size_t>(number)];
        }
        void insert(std::int32_t number) {
            if (!holds(number)) set_.resize(std::max(set_.size(), static_cast<std::size_t>(number) + 1));
            set_[static_cast<std::size_t>(number)] = true;
        }

      private:
        std::vector<bool> set_;
    };

    /// A step that reads an exposure by address, and how far it has come.
    struct Fetch {
        std::uint32_t step = 0;
        PieceCursor remote, own, target;  ///< own: the other operand of a reduction
        bool exposed_left = false;        ///< of a reduction
        std::int64_t rest = 0;            ///< bytes of the step
        std::int64_t part = 0, got = 0;   ///< of the part that is under way
        std::int64_t asked = 0;           ///< bytes that the owner was asked for
        bool refused = false;
    };

    /// What the sender of a rendezvous tells. Process 0: nothing to read, the payload comes in messages.
    struct Rendezvous {
        std::int64_t process;
        std::uint64_t address;
        std::int32_t acknowledgement;  ///< 0 when it was read, otherwise why not; a message of its own
        bool answered;                 ///< the receiver has seen what the sender told
        bool in_messages;              ///< the payload itself is under way
    };
    static constexpr std::int64_t told_bytes = 16;

    void expose(Executor& executor, const BoundStep& step);
    int pull(Executor& executor, std::uint32_t index, bool& done);
    int fetch(Executor& executor, const BoundStep& step, const Exposure& exposure, Fetch& fetch, bool& done);
    int bring(Executor& executor, const BoundStep& step, const Exposure& exposure, Fetch& fetch, char* to, bool& there);

    int start_rendezvous(Executor& executor, std::uint32_t index);
    int acknowledge(Executor& executor, std::uint32_t index);
    int send_payload(Executor& executor, std::uint32_t index);

    Messages& messages_;
    bool rendezvous_works_ = false;
    std::vector<Rendezvous> rendezvous_;  ///< by step, where there are such
    std::vector<Fetch> relayed_;          ///< refused ones; the first is asking
    Known unreadable_, refused_by_;       ///< members of the node; ranks
    std::int64_t refusals_ = 0;
    base::ByteBuffer bounce_;
};

}  // namespace palmette::runtime
