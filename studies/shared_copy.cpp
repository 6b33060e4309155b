// Intra-node copy benchmark: double copy through the shared ring in pipelined batches of 16, 32 or 64 KiB, against
// single copy with process_vm_readv (CMA), between two processes on a core each or on a common core.
//
// A transfer ends when the sender knows that its buffer may be reused.

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "palmette/node/shared_node.hpp"
#include "palmette/node/spin_wait.hpp"

namespace {

using namespace palmette::runtime;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t smallest = 1 << 10;
constexpr std::int64_t largest = 4 << 20;
constexpr std::array<std::int64_t, 3> batches{16 << 10, 32 << 10, 64 << 10};
constexpr int repeats = 9;

void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(core), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("shared_copy: sched_setaffinity");
}

/// One of the two processes.
class Transfer {
  public:
    Transfer(std::unique_ptr<node::SharedNode> node, int cores)
        : node_(std::move(node)), spin_wait_(2, cores), buffer_(largest, 'x') {}

    /// Median time of a transfer in microseconds, on the sender.
    template <class Once>
    double measure(Once once) {
        once();
        const int inner = 20;
        std::vector<double> times;
        for (int i = 0; i < repeats; ++i) {
            const auto begin = Clock::now();
            for (int k = 0; k < inner; ++k) once();
            times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / inner);
        }
        std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
        return times[repeats / 2];
    }

    void through_ring(std::int64_t size, std::int64_t batch) {
        for (std::int64_t at = 0; at < size; at += batch) {
            const std::int64_t bytes = std::min(batch, size - at);
            begin(sends() ? bytes : 0);
            if (sends()) {
                char* slot = node_->ring_slot(bytes);
                std::memcpy(slot, buffer_.data() + at, static_cast<std::size_t>(bytes));
                node_->expose_slot(0, slot, bytes);
            } else {
                receive(at);
            }
            node_->end();
        }
        begin(0);
        if (sends())
            wait_for(1, 0);
        else
            node_->expose_inline(0, nullptr, 0);
        node_->end();
    }

    void by_address(std::int64_t size) {
        begin(0);
        if (sends()) {
            node_->expose_address(0, buffer_.data(), size);
            spin_wait_.reset();
            while (!node_->read_by(0, 1)) spin_wait_.pause();
        } else {
            receive(0);
            node_->release(0, 0);
        }
        node_->end();
    }

    [[nodiscard]] bool sends() const { return node_->me() == 0; }

  private:
    void begin(std::int64_t ring_bytes) {
        spin_wait_.reset();
        while (!node_->begin(ring_bytes)) spin_wait_.pause();
    }
    const node::Exposure& wait_for(int member, unsigned tag) {
        spin_wait_.reset();
        const node::Exposure* exposure = nullptr;
        while (!(exposure = node_->find_exposure(member, tag))) spin_wait_.pause();
        return *exposure;
    }
    void receive(std::int64_t at) {
        const node::Exposure& exposure = wait_for(0, 0);
        if (const int error = node_->read(0, exposure, 0, buffer_.data() + at, exposure.bytes); error != 0)
            std::fprintf(stderr, "shared_copy: reading the sender's memory: %s\n", std::strerror(error));
    }

    std::unique_ptr<node::SharedNode> node_;
    node::SpinWait spin_wait_;
    std::vector<char> buffer_;
};

void run(const std::shared_ptr<node::SharedSegment>& segment, int me, int cores) {
    pin(cores == 1 ? 0 : me);
    std::string why;
    auto node = node::SharedNode::join(segment, me, why);
    if (!node) {
        std::fprintf(stderr, "shared_copy: %s\n", why.c_str());
        return;
    }
    Transfer transfer(std::move(node), cores);
    if (me == 0)
        std::printf("\n%s\n%10s %10s %10s %10s %18s\n", cores == 1 ? "both on one core, us" : "a core each, us",
                    "bytes", "ring 16K", "ring 32K", "ring 64K", "process_vm_readv");
    for (std::int64_t size = smallest; size <= largest; size *= 2) {
        std::array<double, batches.size() + 1> times{};
        for (std::size_t i = 0; i < batches.size(); ++i)
            times[i] = transfer.measure([&] { transfer.through_ring(size, batches[i]); });
        times.back() = transfer.measure([&] { transfer.by_address(size); });
        if (me == 0)
            std::printf("%10lld %10.2f %10.2f %10.2f %18.2f\n", static_cast<long long>(size), times[0], times[1],
                        times[2], times[3]);
    }
}

}  // namespace

int main(int count, char** arguments) {
    node::SharedShape shape;
    if (count > 1) shape.ring_bytes = std::max(std::int64_t{64}, std::int64_t{std::atoi(arguments[1])}) << 10;
    std::printf("a ring of %lld KiB (the first argument changes it)\n", static_cast<long long>(shape.ring_bytes >> 10));
    for (const int cores : {2, 1}) {
        std::string name;
        std::string why;
        const std::shared_ptr<node::SharedSegment> segment =
            node::SharedSegment::create(2, shape, node::SharedSegment::Backing::memfd, name, why);
        if (!segment) {
            std::fprintf(stderr, "shared_copy: %s\n", why.c_str());
            return 1;
        }
        for (int me = 0; me < 2; ++me) {
            std::fflush(stdout);
            if (fork() != 0) continue;
            run(segment, me, cores);
            std::fflush(stdout);
            _exit(0);
        }
        while (wait(nullptr) > 0) {
        }
    }
    return 0;
}
