// Messages between buffers on devices of one node: the receiver opens the sender's memory by its handle and copies.
#pragma once

#include <utility>
#include <vector>

#include "palmette/device/ipc.hpp"
#include "palmette/execute/device_memory.hpp"
#include "palmette/execute/executor.hpp"

namespace palmette::execute {

/// Receiver-driven rendezvous (RGET): the sender posts an RTS with the handle of its memory; the receiver copies from
/// there to its own buffer, of a device or the host, and returns a FIN. Both are messages of another transport.
///
/// What each end has is known to itself alone. Where the sender's bytes aren't on a device, or have no handle, the RTS
/// says so and the payload follows in messages; where the receiver can't open them, the FIN does, and the same. Payload
/// on a device is staged for that, here: BoundStep::stages_itself.
class IpcTransport final : public Transport {
  public:
    /// Shorter messages are sent by the other transport.
    static constexpr std::int64_t least_bytes = 4096;

    explicit IpcTransport(Messages& messages) : messages_(messages) {}

    const char* name() const override { return "ipc"; }
    bool can(const StepOffer& step) const override {
        return step.ipc && plan::is_message(step.kind) && step.same_node && step.bytes >= least_bytes;
    }
    void prepare(const BoundProgram& program) override;
    int start(Executor& executor, std::uint32_t step, bool last, Started& started) override;
    int poll(Executor& executor, std::uint32_t step, bool& done) override;
    int posted_complete(Executor& executor, std::uint32_t step) override;
    void end(Executor& executor, bool failed) override;
    /// Messages that were copied by handle, since the last call.
    std::int64_t take_copied() { return std::exchange(copied_, 0); }

  private:
    /// What a sender tells.
    struct Offer {
        std::int64_t has_handle;  ///< 0: the payload follows
        device::Exported exported;
    };
    enum class State : std::uint8_t {
        meeting,    ///< RTS and, for the sender, FIN
        packing,    ///< the payload is copied to staging
        sending,    ///< the payload is in messages
        copying,    ///< from the sender's memory
        finishing,  ///< the FIN is on its way
        receiving,  ///< the payload
        unpacking,  ///< it is copied from staging
        done
    };
    struct Rendezvous {
        Offer offer;
        std::int32_t fin;  ///< 0: copied
        State state;
        std::uint64_t mark;  ///< of the copy
    };

    int send_payload(Executor& executor, std::uint32_t index);
    int post_payload(Executor& executor, std::uint32_t index);
    int receive(Executor& executor, std::uint32_t index);
    bool begin_copy(Executor& executor, std::uint32_t index);
    bool is_through(Executor& executor, const Rendezvous& one);
    /// Device memory of the operation where a message of this step's size is opened by handle; else null.
    static DeviceMemory* memory(Executor& executor, const BoundStep& step);
    /// A device's buffer of this rank that the message is all in; null: none.
    static char* on_device(Executor& executor, const BoundStep& step);

    Messages& messages_;
    std::vector<Rendezvous> rendezvous_;  ///< by step
    std::vector<std::int32_t> refused_by_;
    std::int64_t copied_ = 0;
};

}  // namespace palmette::execute
