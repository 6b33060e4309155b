// Streams of work that runs late: a thread does it after a random delay, or who waits for it. Events are places in
// streams.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "settings.hpp"

namespace fake {

struct Context;
struct Stream;

/// A place in a stream: everything before it is done when `stream->done` has reached it.
struct Place {
    std::shared_ptr<Stream> stream;
    std::uint64_t until = 0;

    bool reached() const;
};

/// Does a part of the work that doesn't block, and returns whether that was the last. Counts nothing, asks the loader
/// for nothing, and uses no variable of its thread: the library may be going.
using Step = std::function<bool(int& error)>;

struct Work {
    Step step;
    std::vector<Place> after;
    std::chrono::steady_clock::time_point due;
};

struct Stream {
    Context* context = nullptr;
    /// Waits for the legacy default stream, which waits for it.
    bool ordered_with_default = true;
    int priority = 0;
    std::string library;
    std::mutex guard;  ///< of the queue
    std::deque<Work> queue;
    std::atomic<std::uint64_t> queued{0}, done{0};
    std::atomic_flag busy;
    std::atomic<int> error{0};
};
using StreamPointer = std::shared_ptr<Stream>;

class Streams {
  public:
    explicit Streams(const Settings& settings) : settings_(settings), random_(settings.seed) {}
    /// Appends work.
    void add(const StreamPointer& stream, Step step, std::vector<Place> after = {});
    /// Works until the place is reached, and returns the stream's error.
    int wait(const Place& place);
    /// Whether it's reached, after doing what is due.
    bool query(const Place& place);
    /// Everything that was added until now.
    static Place end_of(const StreamPointer& stream) { return {stream, stream->queued.load()}; }
    /// Ends the thread, whatever is left to do.
    void stop();
    bool stopping() const { return stopping_.load(); }

  private:
    bool advance(const StreamPointer& stream, bool now);
    void run();
    std::chrono::microseconds delay();

    Settings settings_;
    std::mt19937_64 random_;
    std::mutex mutex_;  ///< of what follows, and of random_
    std::condition_variable wake_;
    std::vector<StreamPointer> active_;
    std::thread worker_;
    std::atomic<bool> stopping_{false};
};

}  // namespace fake
