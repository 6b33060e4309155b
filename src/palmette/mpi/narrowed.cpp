#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "palmette/mpi/library.hpp"

namespace palmette::mpi {

using Word = std::uintptr_t;

Word narrowed(Word list, Word comm) {
    if (list == 0) return 0;
    // In every ABI these return an int and take the communicator as it came.
    using Ask = int (*)(Word, int*);
    const auto ask = [comm](const char* name) {
        int answer = 0;
        if (const auto function = reinterpret_cast<Ask>(next(name))) function(comm, &answer);
        return answer;
    };
    const int ranks = ask(ask("MPI_Comm_test_inter") ? "MPI_Comm_remote_size" : "MPI_Comm_size");
    static auto* mutex = new std::mutex;
    static auto* kept = new std::array<std::vector<int>, 4096>;
    static std::size_t used = 0;
    const std::lock_guard lock(*mutex);
    std::vector<int>& out = (*kept)[used++ % kept->size()];
    out.resize(static_cast<std::size_t>(std::max(ranks, 0)));
    const auto* from = reinterpret_cast<const std::int64_t*>(list);
    std::transform(from, from + out.size(), out.begin(), [](std::int64_t value) { return static_cast<int>(value); });
    return reinterpret_cast<Word>(out.data());
}

}  // namespace palmette::mpi
