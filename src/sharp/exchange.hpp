// What ranks of the twin tell each other by the functions of the caller.
#pragma once

#include <array>
#include <cstdint>

#include "palmette/aggregate/client/client.hpp"
#include "palmette/aggregate/sharp/api.hpp"
#include "sharp/faults.hpp"

namespace palmette::sharp_twin {

/// What rank 0 of a job has read and asked.
struct Opening {
    int error = 0;
    std::array<char, aggregate::most_token_bytes> token{};
    std::uint32_t token_bytes = 0;
    aggregate::Digest key{};
    std::array<char, 64> daemon{};  ///< HOST:PORT, the host as a number
    std::uint32_t most_slots = 0, most_datagram_bytes = 0, most_stream_bytes = 0;
    std::uint8_t sharp_types = 0;
};

/// Opening that rank 0 makes from its environment and the daemon's greeting.
Opening open_daemon();

/// The caller's functions, with pretended failures; 0 or an Error.
class OutOfBand {
  public:
    OutOfBand(const aggregate::sharp::OutOfBandCalls& calls, void* context, Faults& faults, int rank)
        : calls_(calls), context_(context), faults_(faults), rank_(rank) {}
    int bcast(void* data, std::size_t bytes) const;
    int barrier() const;
    /// Gathers one number a rank; `good` is false where they aren't 0, 1, 2, ...
    int gather_ranks(int rank, int size, bool& good) const;

  private:
    const aggregate::sharp::OutOfBandCalls& calls_;
    void* context_;
    Faults& faults_;
    int rank_;
};

}  // namespace palmette::sharp_twin
