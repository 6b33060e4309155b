// Ranks of one process that exchange messages in memory, in an order that a seed chooses: executors without an MPI.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "palmette/execute/executor.hpp"
#include "palmette/execute/node_transport.hpp"

namespace palmette::test {

/// The messages of all ranks. MPI's rules: those of one pair and tag arrive in the order in which they were sent, all
/// others in any order; a send may end before its receive is there, or only after it.
class LoopbackWorld {
  public:
    explicit LoopbackWorld(std::uint64_t seed) : random_(seed) {}

    static constexpr int injected_error = 77;
    /// The n-th message that is posted from now on fails.
    void fail_at(std::int64_t nth) { fails_in_ = nth; }

    int post(std::int32_t rank, plan::StepKind kind, char* data, std::int64_t bytes, std::int32_t peer,
             std::int32_t tag, std::uint32_t step) {
        const std::lock_guard guard(mutex_);
        if (fails_in_ > 0 && --fails_in_ == 0) return injected_error;
        const bool sends = kind == plan::StepKind::send;
        Half half{rank, step, data, bytes, {}, false};
        if (sends && chance(2)) {
            // Eager: from a copy, so that the sender may go on at once.
            half.copy.assign(data, data + bytes);
            half.eager = true;
            finished_[rank].push_back(step);
        }
        Channel& channel = sends ? channels_[{rank, peer, tag}] : channels_[{peer, rank, tag}];
        (sends ? channel.sends : channel.recvs).push_back(std::move(half));
        if (!channel.sends.empty() && !channel.recvs.empty()) {
            matched_.emplace_back(std::move(channel.sends.front()), std::move(channel.recvs.front()));
            channel.sends.pop_front();
            channel.recvs.pop_front();
        }
        return 0;
    }

    /// Some messages arrive; returns the steps of `rank` of which one has ended since it last asked.
    std::vector<std::uint32_t> ended_of(std::int32_t rank) {
        const std::lock_guard guard(mutex_);
        for (std::size_t some = matched_.empty() ? 0 : 1 + random_() % matched_.size(); some > 0; --some) {
            std::swap(matched_[random_() % matched_.size()], matched_.back());
            arrive(matched_.back().first, matched_.back().second);
            matched_.pop_back();
        }
        std::vector<std::uint32_t> out = std::move(finished_[rank]);
        finished_[rank].clear();
        std::shuffle(out.begin(), out.end(), random_);
        return out;
    }

    /// Nothing of a rank's may be read or written any more.
    void forget(std::int32_t rank) {
        const std::lock_guard guard(mutex_);
        const auto is_its = [rank](const Half& half) { return half.rank == rank && !half.eager; };
        for (auto& [key, channel] : channels_) {
            std::erase_if(channel.sends, is_its);
            std::erase_if(channel.recvs, is_its);
        }
        std::erase_if(matched_, [&](const auto& pair) { return is_its(pair.first) || is_its(pair.second); });
        finished_[rank].clear();
    }

    bool nothing_is_left() const {
        return matched_.empty() && std::all_of(channels_.begin(), channels_.end(), [](const auto& entry) {
                   return entry.second.sends.empty() && entry.second.recvs.empty();
               });
    }
    bool chance(std::uint64_t one_of) { return random_() % one_of == 0; }
    std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  private:
    struct Half {
        std::int32_t rank;
        std::uint32_t step;
        char* data;
        std::int64_t bytes;
        std::vector<char> copy;
        bool eager;
    };
    struct Channel {
        std::deque<Half> sends, recvs;
    };

    void arrive(const Half& send, const Half& recv) {
        // A message that is shorter or longer than its receive is a fault of binding.
        if (send.bytes != recv.bytes) ++wrong_lengths;
        const std::int64_t bytes = std::min(send.bytes, recv.bytes);
        if (bytes > 0)
            std::memcpy(recv.data, send.eager ? send.copy.data() : send.data, static_cast<std::size_t>(bytes));
        if (!send.eager) finished_[send.rank].push_back(send.step);
        finished_[recv.rank].push_back(recv.step);
    }

    std::mutex mutex_;
    std::mt19937_64 random_;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Channel> channels_;
    std::vector<std::pair<Half, Half>> matched_;
    std::map<std::int32_t, std::vector<std::uint32_t>> finished_;
    std::int64_t fails_in_ = 0;

  public:
    std::int64_t wrong_lengths = 0;
};

/// One rank's end of it.
class Loopback : public execute::Messages {
  public:
    Loopback(LoopbackWorld& world, std::int32_t rank) : world_(world), rank_(rank) {}

    const char* name() const override { return "loopback"; }
    bool can(const execute::StepOffer& step) const override { return plan::is_message(step.kind); }
    int start(execute::Executor& executor, std::uint32_t index, bool, execute::Started& started) override {
        const execute::BoundStep& step = executor.step(index);
        started = execute::Started::pending;
        return post(executor, step.kind, executor.message_data(step), step.bytes, step.peer,
                    executor.environment().first_tag + step.tag, index);
    }
    int post(execute::Executor&, plan::StepKind kind, char* data, std::int64_t bytes, std::int32_t peer,
             std::int32_t tag, std::uint32_t step) override {
        const int error = world_.post(rank_, kind, data, bytes, peer, tag, step);
        if (error == 0) ++left_[step], ++pending_;
        return error;
    }
    int progress(execute::Executor& executor, bool& any) override {
        for (const std::uint32_t step : world_.ended_of(rank_)) {
            --pending_;
            any = true;
            if (--left_[step] > 0) continue;
            if (const int error = executor.carrier(step).posted_complete(executor, step); error != 0) return error;
        }
        return 0;
    }
    std::size_t pending() const override { return pending_; }
    void end(execute::Executor&, bool failed) override {
        if (failed) world_.forget(rank_);
        left_.clear();
        pending_ = 0;
    }

  private:
    LoopbackWorld& world_;
    std::int32_t rank_;
    std::map<std::uint32_t, int> left_;
    std::size_t pending_ = 0;
};

/// What each rank brings: its program, bound, and where its buffers begin.
struct LoopbackRank {
    execute::BoundProgram program;
    execute::Environment environment;
};

/// Executors of all ranks over one world.
class LoopbackRanks {
  public:
    /// `first`: makes a rank's transport that stands before the others.
    using MakeTransport = std::function<std::unique_ptr<execute::Transport>(std::int32_t rank, execute::Messages&)>;
    LoopbackRanks(std::int32_t ranks, std::uint64_t seed, bool rendezvous = false, const MakeTransport& first = {})
        : world(seed) {
        for (std::int32_t r = 0; r < ranks; ++r) {
            auto messages = std::make_unique<Loopback>(world, r);
            auto node = std::make_unique<execute::NodeTransport>(*messages);
            node->allow_rendezvous(rendezvous);
            execute::Transports all;
            if (first) all.push_back(first(r, *messages));
            all.push_back(std::move(node));
            all.push_back(std::move(messages));
            executors.push_back(std::make_unique<execute::Executor>(std::move(all)));
        }
    }

    /// Runs all to their ends, one step of one rank at a time. Returns each rank's code; -2: it didn't end.
    std::vector<int> run(std::vector<LoopbackRank>& ranks) {
        std::vector<int> codes(ranks.size(), 0);
        std::vector<std::size_t> open;
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            executors[r]->prepare(ranks[r].program);
            open.push_back(r);
        }
        std::set<std::size_t> begun;
        // As long as every rank does something now and then this is far from being reached.
        for (std::int64_t turns = 0; !open.empty(); ++turns) {
            if (between_turns) between_turns();
            const std::size_t at = world.draw(open.size());
            const std::size_t r = open[at];
            bool done = false;
            if (begun.insert(r).second) {
                codes[r] = executors[r]->begin(ranks[r].program, ranks[r].environment);
                done = codes[r] != 0;
            } else {
                codes[r] = executors[r]->progress(done);
            }
            if (done) {
                open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
                if (codes[r] != 0) failed_ = true;
            }
            // Whoever waits for an answer outside of this process waits for time to pass, not for turns.
            if (waits_for_time && turns % 100 == 99) std::this_thread::sleep_for(std::chrono::microseconds(50));
            if (turns > most_turns || (failed_ && turns > 2000 * static_cast<std::int64_t>(ranks.size()))) {
                for (const std::size_t other : open) codes[other] = -2;
                break;
            }
        }
        return codes;
    }

    static constexpr std::int64_t most_turns = 5'000'000;
    bool waits_for_time = false;
    std::function<void()> between_turns;
    LoopbackWorld world;
    std::vector<std::unique_ptr<execute::Executor>> executors;

  private:
    bool failed_ = false;
};

}  // namespace palmette::test
