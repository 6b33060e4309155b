// Reading another process's strided block in place against packing it, reading it and unpacking it.
//
// An FFT's ranks exchange subarrays: runs of contiguous bytes at a stride. Within a node a receiver could read the
// sender's runs straight into its own by process_vm_readv with two lists of runs (one copy); palmette packs, reads the
// packed block, and unpacks it (three copies, one system call). Prints MB/s of both by the length of a run.
//
// Usage: strided_copy [BLOCK BYTES]        1 MB
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t gap = 4;        // the stride in runs: a quarter of the array is read
constexpr std::size_t most_iov = 1024;  // of a call
constexpr int repeats = 15;

double seconds_of(auto work) {
    std::vector<double> all;
    for (int i = 0; i < repeats; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::nth_element(all.begin(), all.begin() + repeats / 2, all.end());
    return all[repeats / 2];
}

void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t block = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : std::size_t{1} << 20;
    const std::size_t bytes = block * gap;
    // Private memory at the same address in both processes: the child's is another copy.
    auto* const theirs = static_cast<char*>(
        mmap(nullptr, bytes + block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (theirs == MAP_FAILED) fail("mmap");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        std::memset(theirs, 7, bytes + block);
        pause();
        _exit(0);
    }
    usleep(200'000);
    std::vector<char> mine(bytes, 1), packed(block, 1), staged(block, 1);
    std::printf("%10s %14s %14s %8s\n", "run", "in place MB/s", "3 copies MB/s", "ratio");
    for (std::size_t run = 64; run <= std::min<std::size_t>(block, 65536); run *= 2) {
        const std::size_t runs = block / run;
        std::vector<iovec> local(runs), remote(runs);
        for (std::size_t i = 0; i < runs; ++i) {
            local[i] = {mine.data() + i * run * gap, run};
            remote[i] = {theirs + i * run * gap, run};
        }
        const double in_place = seconds_of([&] {
            for (std::size_t at = 0; at < runs; at += most_iov) {
                const auto count = std::min(most_iov, runs - at);
                if (process_vm_readv(child, &local[at], count, &remote[at], count, 0) < 0) fail("process_vm_readv");
            }
        });
        // Packing is the sender's and overlaps with nothing here: the sum is what one block takes.
        const double copies = seconds_of([&] {
            for (std::size_t i = 0; i < runs; ++i)
                std::memcpy(packed.data() + i * run, mine.data() + i * run * gap, run);
            iovec to{staged.data(), block}, from{theirs + bytes, block};
            if (process_vm_readv(child, &to, 1, &from, 1, 0) < 0) fail("process_vm_readv");
            for (std::size_t i = 0; i < runs; ++i)
                std::memcpy(mine.data() + i * run * gap, staged.data() + i * run, run);
        });
        const double mb = static_cast<double>(block) / 1e6;
        std::printf("%10zu %14.0f %14.0f %8.2f\n", run, mb / in_place, mb / copies, in_place / copies);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}
