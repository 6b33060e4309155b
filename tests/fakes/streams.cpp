#include "streams.hpp"

#include <unistd.h>

#include <algorithm>

namespace fake {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

}  // namespace

bool Place::reached() const { return !stream || stream->done.load(std::memory_order_acquire) >= until; }

microseconds Streams::delay() {
    if (settings_.lazy) return microseconds(20000);
    const std::uint64_t drawn = random_();
    if (settings_.delay_us == 0 || drawn % 4 != 0) return microseconds(0);
    return microseconds(drawn / 4 % (settings_.delay_us + 1));
}

void Streams::add(const StreamPointer& stream, Step step, std::vector<Place> after) {
    const std::lock_guard<std::mutex> lock(mutex_);
    {
        const std::lock_guard<std::mutex> guard(stream->guard);
        stream->queue.push_back({std::move(step), std::move(after), Clock::now() + delay()});
        stream->queued.fetch_add(1);
    }
    if (std::find(active_.begin(), active_.end(), stream) == active_.end()) active_.push_back(stream);
    if (stopping_.load()) return;
    if (!worker_.joinable()) worker_ = std::thread([this] { run(); });
    wake_.notify_one();
}

bool Streams::advance(const StreamPointer& stream, bool now) {
    if (stream->busy.test_and_set(std::memory_order_acquire)) return false;
    bool moved = false;
    for (;;) {
        Work* work = nullptr;
        {
            const std::lock_guard<std::mutex> guard(stream->guard);
            if (!stream->queue.empty()) work = &stream->queue.front();
        }
        if (work == nullptr || (!now && Clock::now() < work->due)) break;
        bool ready = true;
        for (const Place& place : work->after) {
            if (!place.reached()) moved = advance(place.stream, now) || moved;
            ready = ready && place.reached();
        }
        if (!ready) break;
        int error = 0;
        if (!work->step(error)) break;
        int none = 0;
        if (error != 0) stream->error.compare_exchange_strong(none, error);
        Work gone;  // destroyed without the lock
        {
            const std::lock_guard<std::mutex> guard(stream->guard);
            gone = std::move(stream->queue.front());
            stream->queue.pop_front();
        }
        stream->done.fetch_add(1, std::memory_order_release);
        moved = true;
    }
    stream->busy.clear(std::memory_order_release);
    return moved;
}

int Streams::wait(const Place& place) {
    for (unsigned idle = 0; !place.reached() && !stopping_.load();) {
        idle = advance(place.stream, true) ? 0 : idle + 1;
        if (idle > 0 && !place.reached()) usleep(std::min(idle * 5, 500U));
    }
    return place.stream ? place.stream->error.load() : 0;
}

bool Streams::query(const Place& place) {
    if (!place.reached()) advance(place.stream, settings_.lazy);
    return place.reached();
}

void Streams::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    unsigned idle = 0;
    while (!stopping_.load()) {
        active_.erase(std::remove_if(active_.begin(), active_.end(),
                                     [](const StreamPointer& s) { return s->done.load() == s->queued.load(); }),
                      active_.end());
        if (active_.empty()) {
            wake_.wait(lock);
            idle = 0;
            continue;
        }
        const std::vector<StreamPointer> streams = active_;
        lock.unlock();
        bool moved = false;
        for (const StreamPointer& stream : streams) moved = advance(stream, false) || moved;
        lock.lock();
        idle = moved ? 0 : std::min(idle + 1, 50U);
        if (idle > 0 && !stopping_.load()) wake_.wait_for(lock, microseconds(20 * idle));
    }
}

void Streams::stop() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_.store(true);
    }
    wake_.notify_all();
    if (worker_.joinable()) worker_.join();
}

}  // namespace fake
