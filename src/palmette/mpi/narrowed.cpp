#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <vector>

#include "palmette/mpi/library.hpp"

namespace palmette::mpi {

using Word = std::uintptr_t;

namespace {

/// Reads a list that may point anywhere: with MPI_IN_PLACE, and on ranks other than the root, the MPI ignores it, and
/// programs leave it unset. The system call reports a bad address where a plain read would end the process.
bool read_list(Word list, std::vector<std::int64_t>& out) {
    const std::size_t bytes = out.size() * sizeof out[0];
    const iovec to{out.data(), bytes};
    const iovec from{reinterpret_cast<void*>(list), bytes};
    const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (got == static_cast<ssize_t>(bytes)) return true;
    if (got >= 0 || errno == EFAULT) return false;
    // Not permitted here, even to oneself.
    std::copy_n(reinterpret_cast<const std::int64_t*>(list), out.size(), out.begin());
    return true;
}

}  // namespace

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
    std::vector<std::int64_t> values(static_cast<std::size_t>(std::max(ranks, 0)));
    if (!read_list(list, values)) return list;
    static auto* mutex = new std::mutex;
    static auto* kept = new std::array<std::vector<int>, 4096>;
    static std::size_t used = 0;
    const std::lock_guard lock(*mutex);
    std::vector<int>& out = (*kept)[used++ % kept->size()];
    out.resize(values.size());
    std::transform(values.begin(), values.end(), out.begin(),
                   [](std::int64_t value) { return static_cast<int>(value); });
    return reinterpret_cast<Word>(out.data());
}

}  // namespace palmette::mpi
