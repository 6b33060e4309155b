// Buffered eager sends: local completion without the transport's acknowledgement.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

namespace palmette::runtime {

/// MPICH over libfabric's tcp completes a send of more than some hundred bytes only when the receiver has acknowledged
/// it: on a link of 5 ms a sender waits 10 ms for a message that arrived after 5. A buffered copy lets the program
/// continue. One thread at a time; all of it is local.
class BufferedSends {
  public:
    /// The one of this process.
    static BufferedSends& instance();

    static constexpr std::int64_t longest = 4096;  ///< bytes

    /// Starts to send a copy of `count` <= longest bytes. False: no buffer is free, the caller must send. `error`: the
    /// MPI's code.
    bool send(const char* data, int count, int peer, int tag, MPI_Comm comm, int& error);

    /// Waits until no send is outstanding. Before MPI_Finalize.
    void drain();

  private:
    static constexpr std::size_t most_outstanding = 64;
    std::array<MPI_Request, most_outstanding> requests_;
    std::vector<char> buffer_;  ///< allocated with the first message
    std::size_t next_ = 0;
};

}  // namespace palmette::runtime
