// The memory of a node in SimGrid: copies through it and waiting for its flags take simulated time.
//
// All ranks of a simulation are in one process, so a node's segment is a real one, which each of its ranks has mapped,
// and others' memory is read where it is. What is simulated is time: each copy is work of the host that all its ranks
// share, at most at the rate of a core; a flag is seen after a latency; and a rank that polls sleeps until another one
// has changed something that it waits for, since no time passes while it spins. The platform's hosts have the values
// as properties (python/palmette_lab/simulate/platform.py).
#pragma once

#include "palmette/node/shared_node.hpp"

#if defined(PALMETTE_ABI_SMPI)

#include <memory>
#include <vector>

#include "palmette/execute/node_transport.hpp"
#include "palmette/node/spin_wait.hpp"

namespace palmette::runtime {

/// Exposures and pulls as usual, with their time. Messages inside of a host are the simulated MPI's, all of them.
class SimulatedMemory final : public execute::NodeTransport, public node::Pauses {
  public:
    explicit SimulatedMemory(execute::Messages& messages);
    ~SimulatedMemory() override;

    bool can(const execute::StepOffer& step) const override { return plan::traits(step.kind).needs_node; }
    bool begin(execute::Executor& executor, int& error) override;
    int start(execute::Executor& executor, std::uint32_t index, bool last, execute::Started& started) override;
    int poll(execute::Executor& executor, std::uint32_t index, bool& done) override;
    void end(execute::Executor& executor, bool failed) override;

    /// Sleeps until another rank of the host has changed what this one has last found unchanged; where messages are
    /// outstanding, also until any in the simulation is complete.
    bool pause() override;

  private:
    struct Waiter;
    struct Waiters;
    int pull(execute::Executor& executor, std::uint32_t index, bool& done);
    template <class Waits>
    void wake(Waits waits) const;

    std::unique_ptr<Waiter> waiter_;
    std::vector<Waiter*>* neighbours_ = nullptr;  ///< of all ranks of the host
    execute::Executor* executor_ = nullptr;
};

/// Lets a node's ranks read each other's memory. Returns from which size on they do, INT64_MAX: never.
std::int64_t share_simulated(node::SharedNode& node);

}  // namespace palmette::runtime

#endif
