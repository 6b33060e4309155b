// An all-to-all on data that isn't contiguous: blocks are packed and unpacked one by one while others travel.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/execute/executor.hpp"
#include "palmette/runtime/data/caller_buffer.hpp"

namespace palmette::runtime {

/// Packs a block of the send buffer when a step first reads from it, and unpacks one of the receive buffer when all of
/// it has arrived: the plan writes each of its bytes once.
class StagedExchange : public execute::StepData {
  public:
    /// For one operation. The buffers have been prepared and must outlive it. `packed`: the send buffer is already.
    void open(CallerBuffer& send, CallerBuffer& recv, const execute::Bases& bases, bool packed, MPI_Comm comm);
    /// Unpacks what is left. Returns the first error.
    int close();

    int about_to_read(std::int64_t offset, std::int64_t bytes) override;
    void wrote(std::int64_t offset, std::int64_t bytes) override;

  private:
    CallerBuffer* send_ = nullptr;
    CallerBuffer* recv_ = nullptr;
    execute::Bases bases_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    std::vector<char> packed_;        ///< by rank
    std::vector<std::int64_t> left_;  ///< by rank: bytes of its block that haven't arrived; -1: unpacked
    int error_ = MPI_SUCCESS;
};

}  // namespace palmette::runtime
