// Reading another process's strided block in place against packing it, reading it and unpacking it.
//
// An FFT's ranks exchange subarrays: runs of contiguous bytes at a stride. Within a node a receiver could read the
// sender's runs straight into its own by process_vm_readv with two lists of runs (one copy); palmette packs, reads the
// packed block, and unpacks it (three copies, one system call). Prints MB/s of both by the length of a run.
//
// Usage: strided_copy [BLOCK BYTES]        1 MB
#include <sys/mman.h>
#include <sys/prctl.h>
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

constexpr std::size_t gap = 4;          // the stride in runs: a quarter of the array is read
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

void read_all(pid_t process, const iovec* to, const iovec* from, std::size_t count, std::size_t bytes) {
    const ssize_t got = process_vm_readv(process, to, count, from, count, 0);
    if (got < 0) fail("process_vm_readv");
    if (static_cast<std::size_t>(got) == bytes) return;
    std::fprintf(stderr, "process_vm_readv: %zd of %zu bytes\n", got, bytes);
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t block = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : std::size_t{1} << 20;
    if (block < 65536) {
        std::fprintf(stderr, "strided_copy: a block has at least 65536 bytes\n");
        return 2;
    }
    const std::size_t bytes = block * gap;
    // Private memory at the same address in both processes: the child's is another copy.
    auto* const theirs =
        static_cast<char*>(mmap(nullptr, bytes + block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (theirs == MAP_FAILED) fail("mmap");
    int ready[2];
    if (pipe(ready) != 0) fail("pipe");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::memset(theirs, 7, bytes + block);
        close(ready[0]);
        close(ready[1]);  // its end says that the memory is there
        pause();
        _exit(0);
    }
    close(ready[1]);
    char none = 0;
    if (read(ready[0], &none, 1) < 0) fail("read");
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
                read_all(child, &local[at], &remote[at], count, count * run);
            }
        });
        // Packing is the sender's and overlaps with nothing here: the sum is what one block takes.
        const double copies = seconds_of([&] {
            for (std::size_t i = 0; i < runs; ++i)
                std::memcpy(packed.data() + i * run, mine.data() + i * run * gap, run);
            iovec to{staged.data(), block}, from{theirs + bytes, block};
            read_all(child, &to, &from, 1, block);
            for (std::size_t i = 0; i < runs; ++i)
                std::memcpy(mine.data() + i * run * gap, staged.data() + i * run, run);
        });
        const double mb = static_cast<double>(block) / 1e6;
        std::printf("%10zu %14.0f %14.0f %8.2f\n", run, mb / in_place, mb / copies, in_place / copies);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}
