// Intra-node transport, with two protocols: exposures through the shared-memory segment (SharedNode), and
// receiver-driven rendezvous by single copy (RGET).
#pragma once

#include <vector>

#include "palmette/base/byte_buffer.hpp"
#include "palmette/execute/executor.hpp"

namespace palmette::execute {

/// Receiver-driven rendezvous (RGET): the sender posts an RTS with process and address; the receiver reads the payload
/// and returns a FIN. Both are messages of another transport. Where the system refuses the read, the FIN carries the
/// errno, and the sender falls back to sending the payload by that transport.
///
/// Fallback for exposures that the system doesn't let a reader read: their owner copies them, part by part.
///
/// Exposures in device memory carry what their readers open them with, each by itself; that fallback is the same for
/// readers that can't.
class NodeTransport : public Transport {
  public:
    /// Shorter messages are sent by that transport: RTS and FIN cost more than a second copy.
    static constexpr std::int64_t least_rendezvous = 4096;

    explicit NodeTransport(Messages& messages) : messages_(messages) {}

    const char* name() const override { return "node"; }
    bool can(const StepOffer& step) const override;
    void prepare(const BoundProgram& program) override;
    bool begin(Executor& executor, int& error) override;
    int start(Executor& executor, std::uint32_t step, bool last, Started& started) override;
    int poll(Executor& executor, std::uint32_t step, bool& done) override;
    int posted_complete(Executor& executor, std::uint32_t step) override;
    bool keeps_order(const Executor& executor) const override;
    bool may_wait_for_later_steps(const Executor& executor) const override;
    void end(Executor& executor, bool failed) override;

    /// `works`: whether all ranks of each node may read each other's memory, which the rendezvous needs; the same on
    /// all ranks.
    void allow_rendezvous(bool works) { rendezvous_works_ = works; }

    /// Whether some reader couldn't open an exposure of this rank's in device memory, and has got copies: copying it to
    /// the host beforehand is faster then.
    bool device_was_refused() const { return device_refused_; }

  private:
    /// Processes that can't be read, or can't read this one. After other failures, which may concern one piece of
    /// memory alone, single copy is tried again.
    class RankSet {
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

    /// Progress of a step that reads an exposure by address.
    struct Fetch {
        std::uint32_t step = 0;
        PieceCursor remote, own, target;  ///< own: the other operand of a reduction
        bool exposed_left = false;        ///< of a reduction
        std::int64_t rest = 0;            ///< bytes of the step
        std::int64_t part = 0, got = 0;   ///< of the current part
        std::int64_t asked = 0;           ///< bytes of the outstanding request to the owner
        bool refused = false;
    };

    /// RTS and FIN of a rendezvous, and its state. Process 0: nothing to read, the payload follows in messages.
    struct Rendezvous {
        std::int64_t process;
        std::uint64_t address;
        std::int32_t fin;   ///< errno of the read, 0 on success; a message of its own
        bool rts_received;  ///< the receiver has processed the RTS
        bool in_messages;   ///< the payload itself is in flight
    };
    static constexpr std::int64_t rts_bytes = 16;

    void expose(Executor& executor, const BoundStep& step);
    bool expose_on_device(Executor& executor, const BoundStep& step, const char* data);
    const char* reach(Executor& executor, const BoundStep& step, const node::Exposure& exposure);
    int pull(Executor& executor, std::uint32_t index, bool& done);
    [[gnu::cold, gnu::noinline]] void defer(Memory& memory, std::uint32_t pull);
    [[gnu::cold, gnu::noinline]] bool poll_deferred(Memory& memory, std::uint32_t pull, bool& done);
    int fetch(Executor& executor, const BoundStep& step, const node::Exposure& exposure, Fetch& fetch, bool& done);
    int read_part(Executor& executor, const BoundStep& step, const node::Exposure& exposure, Fetch& fetch, char* to,
                  bool& there);

    int start_rendezvous(Executor& executor, std::uint32_t index);
    int read_and_finish(Executor& executor, std::uint32_t index);
    int send_payload(Executor& executor, std::uint32_t index);

    Messages& messages_;
    bool rendezvous_works_ = false;
    std::vector<Rendezvous> rendezvous_;  ///< by step
    std::vector<Fetch> relayed_;          ///< refused ones; the first has the outstanding request
    RankSet unreadable_, refused_by_;     ///< members of the node; ranks
    base::ByteBuffer bounce_;
    struct DeferredPull {
        std::uint32_t step;
        std::uint64_t mark;  ///< of Memory
    };
    std::vector<DeferredPull> deferred_;  ///< pulls whose copies by a device's queue are outstanding
    bool descriptors_fit_ = true;         ///< in the ring of this operation, beside what is copied there
    bool device_refused_ = false;
};

}  // namespace palmette::execute
