// What the ranks of a communicator of the fake NCCL share: a memfd that they open by /proc, with a channel for each
// ordered pair of ranks. A message is done when its receiver has all of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace fake_nccl {

constexpr int most_ranks = 64;
constexpr std::size_t ring = 32768;

struct Channel {
    std::atomic<std::uint64_t> sent, received;  ///< messages
    std::atomic<std::uint64_t> written, read;   ///< bytes of the one that is under way
    std::uint64_t size;
    std::uint32_t function;
    char data[ring];
};

struct Shared {
    std::atomic<int> joined;
    std::atomic<int> ranks;
    std::atomic<int> devices[most_ranks];  ///< physical number + 1
    Channel channels[most_ranks][most_ranks];
};

/// One message of this rank, moved in parts that don't wait.
struct Transfer {
    bool sends = false;
    int peer = 0;
    std::uint32_t function = 0;
    char* data = nullptr;
    std::size_t size = 0;
    std::size_t moved = 0;
    bool started = false;
    bool done = false;

    /// Goes on; returns what's wrong with the message that the peer sent.
    std::string move(Shared& shared, int rank);
};

}  // namespace fake_nccl
