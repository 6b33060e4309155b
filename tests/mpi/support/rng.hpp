// Random numbers that are the same everywhere for the same seed: ranks agree on a case without a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace test {

class Rng {
  public:
    explicit Rng(std::uint64_t seed) : state_(seed) {}
    Rng(std::uint64_t seed, std::uint64_t stream, std::uint64_t substream)
        : state_(mix(mix(mix(seed) + stream) + substream)) {}

    std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15U); }
    /// 0 to n - 1.
    int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
    /// low to high, both included.
    int between(int low, int high) { return low + below(high - low + 1); }
    bool one_in(int n) { return below(n) == 0; }

    /// Any bytes.
    void fill(char* data, std::size_t bytes) {
        for (; bytes >= sizeof(std::uint64_t); bytes -= sizeof(std::uint64_t), data += sizeof(std::uint64_t)) {
            const std::uint64_t word = next();
            std::memcpy(data, &word, sizeof word);
        }
        const std::uint64_t word = next();
        if (bytes > 0) std::memcpy(data, &word, bytes);
    }

    template <class T>
    const T& pick(const std::vector<T>& values) {
        return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
    }

    template <class T>
    void shuffle(std::vector<T>& values) {
        for (std::size_t i = values.size(); i > 1; --i) {
            std::swap(values[i - 1], values[static_cast<std::size_t>(below(static_cast<int>(i)))]);
        }
    }

  private:
    static std::uint64_t mix(std::uint64_t z) {  // the finalizer of splitmix64
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

}  // namespace test
