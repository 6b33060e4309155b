// The leaders of a communicator's groups, and their messages out of band of what reduces for them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/aggregate/sharp/out_of_band.hpp"

namespace palmette::runtime {

/// Messages on a communicator of their own; the members are its ranks. Small ones to be sent are copied, so that only
/// receiving waits, and waiting ends when a member has aborted.
class Leaders final : public aggregate::sharp::OutOfBand {
  public:
    /// Collective over `comm`: ranks with a `member` number (-1: none) become that member.
    Leaders(MPI_Comm comm, int member);
    ~Leaders() override;

    /// Whether this rank is one, and the MPI has given them a communicator.
    bool works() const { return comm_ != MPI_COMM_NULL; }

    int bcast(void* buffer, int bytes, int root) noexcept override;
    int barrier() noexcept override;
    int gather(int root, const void* from, void* to, int bytes) noexcept override;
    void abort(aggregate::Reason reason) noexcept override;
    AbortNotice aborted() noexcept override;
    bool settle() noexcept override;
    void refuse() noexcept override { refuses_ = true; }
    void idle() noexcept override;

    /// Collective, once all messages have been settled.
    void free() noexcept;

  private:
    struct PendingSend {
        MPI_Request request = MPI_REQUEST_NULL;
        std::vector<char> bytes;
    };

    int send(int to, int tag, const void* data, int bytes) noexcept;
    int receive(int from, void* data, int bytes) noexcept;

    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, size_ = 0;
    std::vector<PendingSend> sent_;
    std::vector<std::uint32_t> sent_to_, received_from_;  ///< messages since settle(), by member
    AbortNotice aborted_;
    bool told_ = false, refuses_ = false;
};

}  // namespace palmette::runtime
