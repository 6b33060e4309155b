// A communicator's use of NCCL: whether its ranks can use it at all, NCCL's own communicator, and agreements before and
// after each operation.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "palmette/device/nccl.hpp"

namespace palmette::runtime {

/// All of it happens at the same calls on all ranks, and they come to the same conclusions: each has the library, as
/// they have agreed when this was made. Where an operation fails on one rank, all ranks learn it before any of them
/// returns, and NCCL is given up.
class NcclRanks {
  public:
    /// `least_bytes`: of the blocks that are tried.
    NcclRanks(MPI_Comm shadow_comm, int rank, int size, std::int64_t least_bytes, std::chrono::seconds limit)
        : comm_(shadow_comm), rank_(rank), size_(size), least_bytes_(least_bytes), limit_(limit) {}
    NcclRanks(const NcclRanks&) = delete;
    NcclRanks& operator=(const NcclRanks&) = delete;

    bool in_service() const { return in_service_; }
    std::int64_t least_bytes() const { return least_bytes_; }

    /// One rank's part of an operation.
    struct Part {
        device::Place place;       ///< of all its buffers
        std::int64_t bytes = 0;    ///< that it moves
        std::int64_t scratch = 0;  ///< memory that it needs for its result
        /// Adds the parts of the operation; the scratch memory.
        std::function<void(device::Nccl&, void*)> add;
        void* result = nullptr;  ///< where `scratch` bytes go once all ranks have succeeded
    };
    enum class Outcome : std::uint8_t {
        not_tried,  ///< a rank's buffers aren't on its device, or two ranks share one
        done,
        failed,          ///< the input is as it was
        not_copied_back  ///< at this rank, though all have succeeded
    };
    /// Collective. Null: this rank can't take part.
    Outcome run(const Part* part);

    /// Why NCCL was given up, as far as this rank knows; empty: it wasn't, or another rank knows.
    const std::string& why() const { return why_; }

  private:
    bool has_communicator(const Part& part);
    void give_up(const std::string& why);

    MPI_Comm comm_;
    int rank_, size_;
    std::int64_t least_bytes_;
    std::chrono::seconds limit_;
    bool in_service_ = true;
    std::unique_ptr<device::Nccl> nccl_;
    std::string why_;
};

}  // namespace palmette::runtime
