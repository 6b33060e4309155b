// What registering memory costs, and what keeping registrations saves: buffers of io_uring, sent over a connection on
// this host, and look-ups in the cache's tree. registration.py starts it and makes tables.
//
//   registration transfer ROUNDS BYTES...    each way of sending by turns; a JSON object a line for each of them
//   registration lookup ROUNDS ENTRIES...    nanoseconds of finding a registration among so many
//
// Buffers are one, some that rotate, or a new one for each call (mmap and munmap, as malloc does from 128 KB on).
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
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
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Pinned memory of this process, in kB.
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

/// The end of a connection to a child, which discards so many bytes at a time and then answers with one.
Fd connection(std::size_t bytes) {
    const Fd listener(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.get(), where, length) || listen(listener.get(), 1) || getsockname(listener.get(), where, &length))
        fail("no connection on this host");
    const int now = 1;
    if (fork() == 0) {
        const Fd from(accept(listener.get(), nullptr, nullptr));
        setsockopt(from.get(), IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
        for (std::size_t left = bytes;; left = bytes) {
            while (left > 0) {
                const ssize_t got = recv(from.get(), nullptr, left, MSG_TRUNC);
                if (got <= 0) _exit(0);
                left -= static_cast<std::size_t>(got);
            }
            if (send(from.get(), "", 1, MSG_NOSIGNAL) != 1) _exit(0);
        }
    }
    Fd out(socket(AF_INET, SOCK_STREAM, 0));
    if (connect(out.get(), where, sizeof address)) fail("no connection on this host");
    setsockopt(out.get(), IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
    return out;
}

char* fresh(std::size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("no memory");
    std::memset(memory, 1, bytes);  // the program's data, in all modes
    return static_cast<char*>(memory);
}

enum Mode { each, cache, pool, copy, modes };
constexpr const char* mode_names[] = {"each", "cache", "pool", "copy"};
constexpr std::size_t rotating_bytes = std::size_t{128} << 20;

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

    /// Calls of all modes by turns, each with buffers of its own; the first ones fill the cache and aren't counted.
    void round(const char* buffers, std::size_t count, bool renewed, int number) {
        RegistrationCache cached(registrar_, {128, std::int64_t{1} << 30}, RegistrationCache::Others::trusted);
        const long pinned_before = pinned();
        std::vector<char*> memory[modes];
        for (auto& of : memory)
            for (std::size_t i = 0; !renewed && i < count; ++i) of.push_back(fresh(bytes_));
        for (std::size_t i = 0; i < memory[cache].size(); ++i) call(cached, memory[cache][i], cache);
        const auto before = cached.counts();
        const int calls = static_cast<int>(std::clamp<std::size_t>((std::size_t{16} << 20) / bytes_, 5, 64));
        std::vector<double> seconds[modes], registering[modes];
        double used[modes] = {};
        long most_pinned = 0;
        for (int i = 0; i < calls; ++i)
            for (int turn = 0; turn < modes; ++turn) {
                const auto mode = static_cast<Mode>((turn + i) % modes);
                char* const one = renewed ? fresh(bytes_) : memory[mode][static_cast<std::size_t>(i) % count];
                registering_ = 0;
                const double cpu_before = cpu();
                const auto start = Clock::now();
                call(cached, one, mode);
                double took = since(start);
                used[mode] += cpu() - cpu_before;
                most_pinned = std::max(most_pinned, pinned() - pinned_before);
                if (renewed && mode == cache) {
                    const auto unmapping = Clock::now();
                    cached.withdraw(one, bytes_);
                    took += since(unmapping);
                    registering_ += since(unmapping);
                }
                seconds[mode].push_back(took);
                registering[mode].push_back(registering_);
                if (renewed) munmap(one, bytes_);
            }
        const auto after = cached.counts();
        for (int mode = 0; mode < modes; ++mode) {
            std::printf(
                "{\"bytes\": %zu, \"buffers\": \"%s\", \"count\": %zu, \"mode\": \"%s\", \"round\": %d, \"calls\": %d, "
                "\"seconds\": %.9g, \"registering_s\": %.9g, \"cpu_s\": %.9g, \"hits\": %ld, \"misses\": %ld, "
                "\"pinned_kb\": %ld, \"copied\": %s}\n",
                bytes_, buffers, count, mode_names[mode], number, calls, median(seconds[mode]),
                median(registering[mode]), used[mode] / calls, static_cast<long>(after.hits - before.hits),
                static_cast<long>(after.misses - before.misses), most_pinned,
                copied_ < 0 ? "null"
                : copied_   ? "true"
                            : "false");
        }
        std::fflush(stdout);
        for (auto& of : memory)
            for (char* const one : of) cached.withdraw(one, bytes_), munmap(one, bytes_);
    }

  private:
    void call(RegistrationCache& cached, char* memory, Mode mode) {
        const auto start = Clock::now();
        if (mode == each) {
            const std::uintptr_t handle = registrar_.register_memory(memory, bytes_);
            registering_ += since(start);
            if (!handle) fail(std::string("registering: ") + std::strerror(registrar_.refused_by()));
            send(handle, memory);
            const auto end = Clock::now();
            registrar_.unregister_memory(handle);
            registering_ += since(end);
        } else if (mode == cache) {
            auto* const registration = cached.take(memory, bytes_);
            registering_ += since(start);
            if (!registration) fail(std::string("registering: ") + std::strerror(registrar_.refused_by()));
            send(registration->handle, memory);
            cached.release(registration);
        } else if (mode == pool) {
            std::memcpy(pool_, memory, bytes_);
            send(pool_handle_, pool_);
        } else {
            for (std::size_t done = 0; done < bytes_;) {
                const ssize_t sent = ::send(socket_.get(), memory + done, bytes_ - done, 0);
                if (sent <= 0) fail("sending");
                done += static_cast<std::size_t>(sent);
            }
            answered();
        }
    }
    void send(std::uintptr_t handle, const char* memory) {
        const IoUringRegistrar::SendResult sent = registrar_.send(socket_.get(), handle, memory, bytes_);
        if (sent.error) fail(std::string("sending from registered memory: ") + std::strerror(sent.error));
        if (sent.copied) copied_ = *sent.copied;
        answered();
    }
    /// The other end has all of it.
    void answered() {
        char answer = 0;
        if (recv(socket_.get(), &answer, 1, 0) != 1) fail("the other end is gone");
    }

    IoUringRegistrar& registrar_;
    std::size_t bytes_;
    Fd socket_ = connection(bytes_);
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
        for (int round = -1; round < rounds; ++round) {  // the first warms up, and isn't counted
            transfers.round("one", 1, false, round);
            transfers.round("rotating", rotating, false, round);
            transfers.round("new", 1, true, round);
        }
    }
    while (wait(nullptr) > 0) continue;
}

struct NumberingRegistrar : palmette::aggregate::Registrar {
    std::uintptr_t register_memory(void*, std::size_t) override { return ++next; }
    void unregister_memory(std::uintptr_t) noexcept override {}
    std::uintptr_t next = 0;
};

void lookup(int rounds, const std::vector<std::size_t>& counts) {
    constexpr std::uint64_t base = std::uint64_t{1} << 40, apart = 1 << 20;
    constexpr int finds = 100000;
    for (const std::size_t entries : counts) {
        NumberingRegistrar registrar;
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
