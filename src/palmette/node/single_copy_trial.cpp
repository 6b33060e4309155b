#include "palmette/node/single_copy_trial.hpp"
#include "palmette/base/never_destroyed.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "palmette/node/spin_wait.hpp"

namespace palmette::node {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::int64_t, 4> sizes{16 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr std::int64_t batch = 16 << 10;
/// Required ratio. Double copy through the ring gets faster once all of the ring is in use, which the trial doesn't
/// wait for.
constexpr double clearly = 0.6;
/// But it moves each byte between cores twice, counting the cache lines that the writer reclaims when it reuses the
/// ring. Where cores migrate far from each other while a job runs, as virtual CPUs may, long blocks then take twice as
/// long as by the MPI. From this size on it is the double copy that has to be clearly faster.
constexpr std::int64_t long_from = 64 << 10;
constexpr double barely = 1.5;
constexpr int repeats = 4;
constexpr double never = 1e9;  ///< seconds
/// Where the node is oversubscribed: a double copy lets the writer continue, but the copies take CPU time that ranks
/// share.
constexpr std::int64_t oversubscribed_from = 64 << 10;

class Trial {
  public:
    explicit Trial(SharedNode& node) : node_(node), spin_wait_(node.members(), node.cores()) {}

    std::int64_t pays_from() {
        if (writes() || reads()) memory_.assign(static_cast<std::size_t>(sizes.back()), 'p');
        std::int64_t from = INT64_MAX;
        bool at_all_above = true;
        for (std::size_t i = sizes.size(); i-- > 0;) {
            double twice = never;
            double once = never;
            for (int k = 0; k < repeats; ++k) {
                twice = std::min(twice, copy_twice(sizes[i]));
                once = std::min(once, copy_once(sizes[i]));
            }
            at_all_above = at_all_above && once < (sizes[i] < long_from ? clearly : barely) * twice;
            if (at_all_above) from = sizes[i];
        }
        return tell(reader(), from);
    }

    /// Broadcasts one member's number.
    std::int64_t tell(int member, std::int64_t number) {
        begin(0);
        if (node_.me() == member)
            node_.expose_inline(0, &number, sizeof number);
        else
            node_.read(member, wait_for(member), 0, &number, sizeof number);
        node_.end();
        return number;
    }

  private:
    bool writes() const { return node_.me() == 0; }
    bool reads() const { return node_.me() == node_.members() - 1; }
    int reader() const { return node_.members() - 1; }

    void begin(std::int64_t ring) {
        spin_wait_.reset();
        while (!node_.begin(ring)) spin_wait_.pause();
    }
    const Exposure& wait_for(int member) {
        spin_wait_.reset();
        const Exposure* found = nullptr;
        while (!(found = node_.find_exposure(member, 0))) spin_wait_.pause();
        return *found;
    }
    /// Synchronises with the reader, so that the writer's time counts as well from here on.
    void meet() {
        begin(0);
        if (reads()) node_.expose_inline(0, nullptr, 0);
        if (writes()) wait_for(reader());
        node_.end();
    }

    double copy_twice(std::int64_t bytes) {
        if (writes()) std::memset(memory_.data(), ++value_, static_cast<std::size_t>(bytes));
        meet();
        const auto start = Clock::now();
        for (std::int64_t at = 0; at < bytes; at += batch) {
            begin(batch);
            if (writes()) {
                char* slot = node_.ring_slot(batch);
                std::memcpy(slot, memory_.data() + at, batch);
                node_.expose_slot(0, slot, batch);
            }
            if (reads()) node_.read(0, wait_for(0), 0, memory_.data() + at, batch);
            node_.end();
        }
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    double copy_once(std::int64_t bytes) {
        if (writes()) std::memset(memory_.data(), ++value_, static_cast<std::size_t>(bytes));
        meet();
        const auto start = Clock::now();
        begin(0);
        if (writes()) {
            node_.expose_address(0, memory_.data(), bytes);
            spin_wait_.reset();
            while (!node_.read_by(0, 1)) spin_wait_.pause();
        }
        bool right = true;
        if (reads()) {
            right = node_.read(0, wait_for(0), 0, memory_.data(), bytes) == 0;
            node_.release(0, 0);
        }
        node_.end();
        return !right ? never : std::chrono::duration<double>(Clock::now() - start).count();
    }

    SharedNode& node_;
    SpinWait spin_wait_;
    std::vector<char> memory_;
    int value_ = 0;  ///< written last; changes so that each copy moves new data
};

}  // namespace

std::int64_t single_copy_pays_from(SharedNode& node) {
    if (!node.single_copy().value_or(false)) return INT64_MAX;
    if (node.members() > node.cores() || node.ring_bytes() < batch) return oversubscribed_from;
    // Results are cached by number of members, from trials in other communicators. The first member's cache decides,
    // since not all members need have taken part.
    constexpr std::int64_t unknown = -1;
    static std::mutex mutex;
    static base::NeverDestroyed learned_in(std::map<int, std::int64_t>{});
    std::map<int, std::int64_t>& learned = *learned_in;
    std::int64_t known = unknown;
    {
        const std::lock_guard lock(mutex);
        if (const auto at = learned.find(node.members()); at != learned.end()) known = at->second;
    }
    Trial trial(node);
    known = trial.tell(0, known);
    if (known == unknown) known = trial.pays_from();
    const std::lock_guard lock(mutex);
    learned[node.members()] = known;
    return known;
}

}  // namespace palmette::node
