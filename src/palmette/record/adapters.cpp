#include "palmette/record/adapters.hpp"

#include "palmette/record/node_file.hpp"

namespace palmette::record {

void size_adapters(trace::AdaptersHeader& header) {
    // Address space alone: what isn't written to takes no memory.
    header.adapters.capacity = simulated ? 0 : 64;
    header.readings.capacity = simulated ? 0 : 1U << 15U;
}

}  // namespace palmette::record

#if defined(PALMETTE_ABI_SMPI)

namespace palmette::record {

void watch_adapters(trace::SectionHeader&) {}
void end_watch_of_adapters() {}

}  // namespace palmette::record

#else

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "palmette/record/clock.hpp"

namespace palmette::record {
namespace {

constexpr std::uint64_t second_in_ns = 1'000'000'000;

struct Counters {
    std::uint64_t received_bytes = 0, sent_bytes = 0, received_packets = 0, sent_packets = 0, waited = 0;
};

/// A folder's entries, in order.
std::vector<std::string> entries_of(const std::string& folder) {
    std::vector<std::string> out;
    DIR* const directory = opendir(folder.c_str());
    if (!directory) return out;
    while (const dirent* const entry = readdir(directory))
        if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
    closedir(directory);
    std::sort(out.begin(), out.end());
    return out;
}

std::uint64_t number_in(const std::string& file) {
    std::uint64_t value = 0;
    std::ifstream(file) >> value;
    return value;
}

/// The interfaces of this process's network namespace but for its loopback, whose counters aren't those of an adapter.
/// /proc follows the namespace; /sys, where it was mounted before, doesn't.
template <class Give>
void each_interface(Give give) {
    std::ifstream file("/proc/thread-self/net/dev");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::size_t first = line.find_first_not_of(' ');
        const std::string name = line.substr(first, colon - first);
        if (name == "lo") continue;
        std::istringstream numbers(line.substr(colon + 1));
        Counters found;
        std::uint64_t other = 0;
        constexpr int between = 6;  // errors, drops and the like of what is received
        numbers >> found.received_bytes >> found.received_packets;
        for (int i = 0; i < between; ++i) numbers >> other;
        if (numbers >> found.sent_bytes >> found.sent_packets) give(name, found);
    }
}

class Watch {
  public:
    explicit Watch(trace::SectionHeader& section) : header_(section.adapters) {
        auto* const adapters = trace::entries<trace::AdapterEntry>(section, header_.adapters);
        readings_ = trace::entries<trace::AdapterReading>(section, header_.readings);
        std::uint32_t count = 0;
        const auto add = [&](const std::string& name, bool is_infiniband) {
            if (count == header_.adapters.capacity) return;
            put_text(adapters[count].name, name);
            adapters[count++].is_infiniband = is_infiniband ? 1 : 0;
            names_.push_back(name);
        };
        each_interface([&](const std::string& name, const Counters&) { add(name, false); });
        interfaces_ = count;
        std::string ports = "/sys/class/infiniband";
        if (const std::string fake = setting("PALMETTE_FAKE_INFINIBAND"); !fake.empty()) ports = fake;  // for tests
        for (const std::string& device : entries_of(ports)) {
            const std::string folder = ports + "/" + device + "/ports";
            for (const std::string& port : entries_of(folder)) {
                if (count == header_.adapters.capacity) break;
                add(device + ":" + port, true);
                ports_.push_back(folder + "/" + port + "/counters/");
            }
        }
        header_.interval_ns.store(second_in_ns);
        header_.adapters.count.store(count, std::memory_order_release);
        read();
    }

    bool is_any() const { return !names_.empty(); }

    bool start() {
        using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
        // Past this library's own, by which threads of the program are sampled.
        const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
        if (!create || pthread_mutex_init(&mutex_, nullptr) != 0) return false;
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&ends_, &attributes);
        pthread_condattr_destroy(&attributes);
        // The program's signals are for its own threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        is_running_ = create(
                          &thread_, nullptr,
                          [](void* self) -> void* {
                              static_cast<Watch*>(self)->run();
                              return nullptr;
                          },
                          this) == 0;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (is_running_) pthread_setname_np(thread_, "palmette-net");
        return is_running_;
    }

    void end() {
        if (is_running_) {
            pthread_mutex_lock(&mutex_);
            is_ending_ = true;
            pthread_cond_signal(&ends_);
            pthread_mutex_unlock(&mutex_);
            pthread_join(thread_, nullptr);
            is_running_ = false;
        }
        read();
    }

  private:
    void run() {
        pthread_mutex_lock(&mutex_);
        std::int64_t next_ns = monotonic_now_ns();
        while (!is_ending_) {
            next_ns += static_cast<std::int64_t>(header_.interval_ns.load());
            timespec until{};
            until.tv_sec = static_cast<time_t>(next_ns / static_cast<std::int64_t>(second_in_ns));
            until.tv_nsec = static_cast<long>(next_ns % static_cast<std::int64_t>(second_in_ns));
            while (!is_ending_ && pthread_cond_timedwait(&ends_, &mutex_, &until) == 0) continue;
            if (!is_ending_) read();
        }
        pthread_mutex_unlock(&mutex_);
    }

    void read() {
        std::vector<Counters> found(names_.size());
        each_interface([&](const std::string& name, const Counters& counters) {
            const auto end = names_.begin() + interfaces_;
            if (const auto at = std::find(names_.begin(), end, name); at != end)
                found[static_cast<std::size_t>(at - names_.begin())] = counters;
        });
        for (std::size_t i = 0; i < ports_.size(); ++i) {
            Counters& to = found[interfaces_ + i];
            constexpr std::uint64_t word_bytes = 4;  // data are counted so
            to.received_bytes = word_bytes * number_in(ports_[i] + "port_rcv_data");
            to.sent_bytes = word_bytes * number_in(ports_[i] + "port_xmit_data");
            to.received_packets = number_in(ports_[i] + "port_rcv_packets");
            to.sent_packets = number_in(ports_[i] + "port_xmit_packets");
            to.waited = number_in(ports_[i] + "port_xmit_wait");
        }
        put(found);
    }

    void put(const std::vector<Counters>& found) {
        const auto adapters = static_cast<std::uint32_t>(found.size());
        std::uint32_t count = header_.readings.count.load(std::memory_order_relaxed);
        if (count + adapters > header_.readings.capacity) count = thin_out(adapters);
        const std::uint64_t at = now();
        for (std::uint32_t i = 0; i < adapters; ++i) {
            trace::AdapterReading& to = readings_[count + i];
            to.received_bytes.store(found[i].received_bytes, std::memory_order_relaxed);
            to.sent_bytes.store(found[i].sent_bytes, std::memory_order_relaxed);
            to.received_packets.store(found[i].received_packets, std::memory_order_relaxed);
            to.sent_packets.store(found[i].sent_packets, std::memory_order_relaxed);
            to.waited.store(found[i].waited, std::memory_order_relaxed);
            to.ticks.store(at, std::memory_order_release);
        }
        header_.readings.count.store(count + adapters, std::memory_order_release);
    }

    /// Keeps every second moment.
    std::uint32_t thin_out(std::uint32_t adapters) {
        header_.interval_ns.store(2 * header_.interval_ns.load());
        const std::uint32_t moments = header_.readings.count.load() / adapters;
        header_.readings.count.store(adapters, std::memory_order_release);
        for (std::uint32_t moment = 2; moment < moments; moment += 2)
            for (std::uint32_t i = 0; i < adapters; ++i) {
                trace::AdapterReading& to = readings_[moment / 2 * adapters + i];
                const trace::AdapterReading& from = readings_[moment * adapters + i];
                using Counter = trace::Shared<std::uint64_t> trace::AdapterReading::*;
                using Reading = trace::AdapterReading;
                for (const Counter counter :
                     {&Reading::received_bytes, &Reading::sent_bytes, &Reading::received_packets,
                      &Reading::sent_packets, &Reading::waited, &Reading::ticks})
                    (to.*counter).store((from.*counter).load());
            }
        return (moments + 1) / 2 * adapters;
    }

    trace::AdaptersHeader& header_;
    trace::AdapterReading* readings_;
    std::vector<std::string> names_;  ///< interfaces, then ports
    std::vector<std::string> ports_;  ///< folders of their counters
    std::uint32_t interfaces_ = 0;
    pthread_t thread_{};
    pthread_mutex_t mutex_{};
    pthread_cond_t ends_{};
    bool is_running_ = false, is_ending_ = false;
};

/// Never destroyed: its thread may run to the end of the process.
Watch* watch = nullptr;

}  // namespace

void watch_adapters(trace::SectionHeader& section) {
    if (watch) return;
    auto made = std::make_unique<Watch>(section);
    if (!made->is_any()) return;
    made->start();
    watch = made.release();
}

void end_watch_of_adapters() {
    if (watch) watch->end();
}

}  // namespace palmette::record

#endif
