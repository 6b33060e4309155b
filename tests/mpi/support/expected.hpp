// What a program has sent to each rank, for whoever compares it with a matrix that was counted.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <utility>

namespace test {

/// By rank of MPI_COMM_WORLD: bytes, and messages or calls.
using Expected = std::map<int, std::pair<long long, long long>>;

/// One line for each rank, `expected FROM TO BYTES MESSAGES`, all at once.
inline void print(const Expected& expected, int world_rank) {
    std::string text;
    for (const auto& [peer, sum] : expected)
        text += "expected " + std::to_string(world_rank) + " " + std::to_string(peer) + " " +
                std::to_string(sum.first) + " " + std::to_string(sum.second) + "\n";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

}  // namespace test
