// Buffered eager sends: local completion without the transport's acknowledgement.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

namespace palmette::runtime {

/// MPICH over libfabric's tcp completes a send of more than some hundred bytes only when the receiver has acknowledged
/// it: on a link of 5 ms a sender waits 10 ms for a message that arrived after 5. A copy lets the program go on. One
/// thread at a time; all of it is local.
class BufferedSends {
  public:
    /// The one of this process.
    static BufferedSends& instance();

    static constexpr std::int64_t longest = 4096;  ///< bytes

    /// Starts to send a copy of `count` <= longest bytes. False: no room now, send it yourself. `error`: the MPI's
    /// code.
    bool send(const char* data, int count, int peer, int tag, MPI_Comm comm, int& error);

    /// Waits until nothing is under way. Before MPI_Finalize.
    void drain();

  private:
    static constexpr std::size_t places = 64;
    std::array<MPI_Request, places> requests_;
    std::vector<char> room_;  ///< made with the first message
    std::size_t next_ = 0;
};

}  // namespace palmette::runtime
