// What registering memory costs, and what keeping registrations saves: buffers of io_uring, sent over a connection on
// this host, and look-ups in the cache's tree. registration.py starts it and makes tables.
//
//   registration transfer ROUNDS BYTES...    each way of sending by turns; a JSON object a line for each of them
//   registration lookup ROUNDS ENTRIES...    nanoseconds of finding a registration among so many
//
// Buffers are one, some that rotate, or a new one for each call (mmap and munmap, as malloc does from 128 KB on).
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "palmette/aggregate/io_uring_registrar.hpp"
#include "palmette/aggregate/registration_cache.hpp"
#include "palmette/aggregate/socket.hpp"

namespace {

using palmette::aggregate::Fd;
using palmette::aggregate::IoUringRegistrar;
using palmette::aggregate::RegistrationCache;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void fail(const std::string& what) {
    std::cerr << "registration: " << what << '\n';
    std::exit(3);
}

double cpu() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](timeval at) {
        return static_cast<double>(at.tv_sec) + 1e-6 * static_cast<double>(at.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Of this process, in kB.
long pinned() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (word == "VmPin:") {
            long kb = 0;
            status >> kb;
            return kb;
        }
    return -1;
}

/// The end of a connection whose other one a child discards.
Fd connection() {
    const Fd listener(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.get(), where, length) || listen(listener.get(), 1) || getsockname(listener.get(), where, &length))
        fail("no connection on this host");
    if (fork() == 0) {
        const Fd from(accept(listener.get(), nullptr, nullptr));
        while (recv(from.get(), nullptr, std::size_t{1} << 24, MSG_TRUNC) > 0) continue;
        _exit(0);
    }
    Fd out(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(out.get(), where, sizeof address)) fail("no connection on this host");
    return out;
}

char* fresh(std::size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("no memory");
    std::memset(memory, 1, bytes);  // the program's data, in all modes
    return static_cast<char*>(memory);
}

enum class Mode { each, cache, pool, copy };
constexpr const char* mode_names[] = {"each", "cache", "pool", "copy"};
constexpr std::size_t rotating_bytes = std::size_t{256} << 20;

class Transfers {
  public:
    Transfers(IoUringRegistrar& registrar, std::size_t bytes) : registrar_(registrar), bytes_(bytes) {
        pool_ = fresh(bytes);
        pool_handle_ = registrar.register_memory(pool_, bytes);
        if (!pool_handle_) fail(std::string("registering: ") + std::strerror(registrar.refused_by()));
    }
    ~Transfers() {
        registrar_.unregister_memory(pool_handle_);
        munmap(pool_, bytes_);
    }
    Transfers(const Transfers&) = delete;
    Transfers& operator=(const Transfers&) = delete;

    void round(const char* buffers, std::size_t count, bool renewed, Mode mode, int round_number) {
        RegistrationCache cache(registrar_, {128, std::int64_t{1} << 30}, RegistrationCache::Others::trusted);
        std::vector<char*> memory;
        for (std::size_t i = 0; !renewed && i < count; ++i) memory.push_back(fresh(bytes_));
        const int calls = static_cast<int>(std::clamp<std::size_t>((std::size_t{32} << 20) / bytes_, 4, 192));
        // As many before as fill the cache.
        for (std::size_t i = 0; mode != Mode::each && i < memory.size(); ++i) call(cache, memory[i], mode);
        registering_ = 0;
        const auto before = cache.counts();
        double seconds = 0, used = 0;
        for (int i = 0; i < calls; ++i) {
            char* const one = renewed ? fresh(bytes_) : memory[static_cast<std::size_t>(i) % count];
            const double cpu_before = cpu();
            const auto start = Clock::now();
            call(cache, one, mode);
            if (renewed) {
                const auto unmapping = Clock::now();
                if (mode == Mode::cache) cache.withdraw(one, bytes_);
                registering_ += mode == Mode::cache ? since(unmapping) : 0;
            }
            seconds += since(start);
            used += cpu() - cpu_before;
            if (renewed) munmap(one, bytes_);
        }
        const auto after = cache.counts();
        std::printf(
            "{\"bytes\": %zu, \"buffers\": \"%s\", \"count\": %zu, \"mode\": \"%s\", \"round\": %d, \"calls\": %d, "
            "\"seconds\": %.9g, \"registering_s\": %.9g, \"cpu_s\": %.9g, \"hits\": %ld, \"misses\": %ld, "
            "\"pinned_kb\": %ld, \"copied\": %s}\n",
            bytes_, buffers, count, mode_names[static_cast<int>(mode)], round_number, calls, seconds / calls,
            registering_ / calls, used / calls, static_cast<long>(after.hits - before.hits),
            static_cast<long>(after.misses - before.misses), pinned(),
            copied_ < 0 ? "null"
            : copied_   ? "true"
                        : "false");
        std::fflush(stdout);
        for (char* const one : memory) cache.withdraw(one, bytes_), munmap(one, bytes_);
    }

  private:
    void call(RegistrationCache& cache, char* memory, Mode mode) {
        const auto start = Clock::now();
        if (mode == Mode::each) {
            const std::uintptr_t handle = registrar_.register_memory(memory, bytes_);
            registering_ += since(start);
            if (!handle) fail(std::string("registering: ") + std::strerror(registrar_.refused_by()));
            send(handle, memory);
            const auto end = Clock::now();
            registrar_.unregister_memory(handle);
            registering_ += since(end);
        } else if (mode == Mode::cache) {
            auto* const registration = cache.take(memory, bytes_);
            registering_ += since(start);
            if (!registration) fail(std::string("registering: ") + std::strerror(registrar_.refused_by()));
            send(registration->handle, memory);
            cache.release(registration);
        } else if (mode == Mode::pool) {
            std::memcpy(pool_, memory, bytes_);
            send(pool_handle_, pool_);
        } else {
            for (std::size_t done = 0; done < bytes_;) {
                const ssize_t sent = ::send(socket_.get(), memory + done, bytes_ - done, 0);
                if (sent <= 0) fail("sending");
                done += static_cast<std::size_t>(sent);
            }
        }
    }
    void send(std::uintptr_t handle, const char* memory) {
        const IoUringRegistrar::Sent sent = registrar_.send(socket_.get(), handle, memory, bytes_);
        if (sent.error) fail(std::string("sending from registered memory: ") + std::strerror(sent.error));
        if (sent.copied) copied_ = *sent.copied;
    }

    IoUringRegistrar& registrar_;
    std::size_t bytes_;
    Fd socket_ = connection();
    char* pool_;
    std::uintptr_t pool_handle_;
    double registering_ = 0;
    int copied_ = -1;
};

void transfer(int rounds, const std::vector<std::size_t>& sizes) {
    std::string why;
    const auto registrar = IoUringRegistrar::open(256, why);
    if (!registrar) fail(why);
    for (const std::size_t bytes : sizes) {
        Transfers transfers(*registrar, bytes);
        const std::size_t rotating = std::min<std::size_t>(64, rotating_bytes / bytes);
        for (int round = -1; round < rounds; ++round)  // the first warms up, and isn't counted
            for (const Mode mode : {Mode::each, Mode::cache, Mode::pool, Mode::copy}) {
                transfers.round("one", 1, false, mode, round);
                transfers.round("rotating", rotating, false, mode, round);
                transfers.round("new", 1, true, mode, round);
            }
    }
    while (wait(nullptr) > 0) continue;
}

struct Numbered : palmette::aggregate::Registrar {
    std::uintptr_t register_memory(void*, std::size_t) override { return ++next; }
    void unregister_memory(std::uintptr_t) noexcept override {}
    std::uintptr_t next = 0;
};

void lookup(int rounds, const std::vector<std::size_t>& counts) {
    constexpr std::uint64_t base = std::uint64_t{1} << 40, apart = 1 << 20;
    constexpr int finds = 100000;
    for (const std::size_t entries : counts) {
        Numbered registrar;
        RegistrationCache cache(registrar, {static_cast<std::int64_t>(entries), std::int64_t{1} << 50},
                                RegistrationCache::Others::trusted);
        std::mt19937_64 random(entries);
        std::vector<const void*> order(entries);
        for (std::size_t i = 0; i < entries; ++i) order[i] = reinterpret_cast<const void*>(base + apart * i);
        std::shuffle(order.begin(), order.end(), random);
        const auto filling = Clock::now();
        for (const void* const one : order) cache.release(cache.take(one, 65536));
        const double filled = since(filling) / static_cast<double>(entries);
        std::shuffle(order.begin(), order.end(), random);
        for (int round = -1; round < rounds; ++round) {
            const auto start = Clock::now();
            for (int i = 0; i < finds; ++i)
                cache.release(cache.take(order[static_cast<std::size_t>(i) % entries], 4096));
            std::printf("{\"entries\": %zu, \"round\": %d, \"find_s\": %.9g, \"insert_s\": %.9g, \"hits\": %ld}\n",
                        entries, round, since(start) / finds, filled, static_cast<long>(cache.counts().hits));
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 3 ? argv[1] : "";
    std::vector<std::size_t> numbers;
    for (int a = 3; a < argc; ++a) numbers.push_back(std::strtoull(argv[a], nullptr, 10));
    if (what == "transfer")
        transfer(std::atoi(argv[2]), numbers);
    else if (what == "lookup")
        lookup(std::atoi(argv[2]), numbers);
    else
        fail("transfer ROUNDS BYTES... or lookup ROUNDS ENTRIES...");
}
