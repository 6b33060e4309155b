// Message transport over the MPI's point-to-point calls.
#pragma once

#include <mpi.h>

#include <vector>

#include "palmette/execute/aggregation_transport.hpp"
#include "palmette/execute/executor.hpp"
#include "palmette/execute/ipc_transport.hpp"
#include "palmette/execute/nccl_transport.hpp"
#include "palmette/execute/node_transport.hpp"
#include "palmette/runtime/transport/buffered_sends.hpp"
#include "palmette/runtime/transport/simulated_services.hpp"
#include "palmette/runtime/transport/waiting.hpp"

namespace palmette::runtime {

/// Carries every message. Codes are the MPI's.
class MpiTransport final : public execute::Messages {
  public:
    explicit MpiTransport(Waiting waiting) : waiting_(waiting) {}

    /// For the next operations. `buffered_sends`: set where short messages are to be sent from copies.
    void use(MPI_Comm comm, BufferedSends* buffered_sends) {
        comm_ = comm;
        buffered_sends_ = buffered_sends;
    }

    const char* name() const override { return "mpi"; }
    bool can(const execute::StepOffer& step) const override {
        return plan::is_message(step.kind) && (!step.service || simulated_services > 0);
    }
    void prepare(const execute::BoundProgram& program) override;
    bool takes_part(const execute::BoundProgram& program) const override {
        return program.most_requests > 0 || program.single_copies > 0 || program.channels > 0;
    }
    int start(execute::Executor& executor, std::uint32_t step, bool last, execute::Started& started) override;
    int post(execute::Executor& executor, plan::StepKind kind, char* data, std::int64_t bytes, std::int32_t peer,
             std::int32_t tag, std::uint32_t step) override;
    int progress(execute::Executor& executor, bool& any) override;
    int wait(execute::Executor& executor) override;
    std::size_t pending() const override { return static_cast<std::size_t>(active_); }
    int idle() override;
    void end(execute::Executor& executor, bool failed) override;

  private:
    int take_finished(execute::Executor& executor, int count);
    /// Where messages tell by their length whether counts have changed (Environment::counts_changed).
    static void note_length(const execute::Executor& executor, std::uint32_t step, const MPI_Status& status);

    Waiting waiting_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    BufferedSends* buffered_sends_ = nullptr;
    std::vector<std::uint32_t>
        outstanding_of_step_;  ///< by step: its requests that are outstanding; all 0 between operations
    std::vector<MPI_Request> requests_;
    std::vector<std::uint32_t> step_of_request_;
    std::vector<int> finished_;
    std::vector<std::uint32_t> completed_steps_;
    int active_ = 0;  ///< the first so many requests
};

/// An executor's code as one of MPI's.
inline int mpi_code(int code) { return code == execute::internal_error ? MPI_ERR_INTERN : code; }

/// An executor with the transports that this MPI's processes have.
class MpiExecutor : public execute::Executor {
  public:
    static constexpr std::uint8_t node_index = 0, aggregation_index = 2;

    explicit MpiExecutor(Waiting waiting);
    /// For plans by the memory of a node, too.
    MpiExecutor(Waiting waiting, const node::SharedNode& node);

    /// With those for messages between devices, too, which only compositions ask for.
    struct ForCompositions {};
    MpiExecutor(Waiting waiting, ForCompositions);
    static constexpr std::uint8_t ipc_index = 1, nccl_index = 2;

    MpiTransport& messages() { return *messages_; }
    execute::NodeTransport& node() { return *node_; }
    execute::AggregationTransport& aggregation() { return *aggregation_; }
    // Of compositions.
    execute::IpcTransport& ipc() { return *ipc_; }
    execute::NcclTransport& nccl() { return *nccl_; }

  private:
    MpiExecutor(execute::Transports all, node::SpinWait spin_wait);

    execute::NodeTransport* node_;
    MpiTransport* messages_;
    execute::AggregationTransport* aggregation_;
    execute::IpcTransport* ipc_ = nullptr;
    execute::NcclTransport* nccl_ = nullptr;
};

}  // namespace palmette::runtime
