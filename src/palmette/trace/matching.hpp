// What belongs together in a trace: the ranks' calls of a collective, both ends of a message.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace palmette::trace {

inline constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();

/// A rank's part of a scan.
struct ScanPart {
    std::int32_t rank;
    std::int64_t begin_ns;
    std::int32_t process;
};

/// One collective on all of its ranks.
struct Instance {
    std::int32_t came = 0;
    std::int32_t last = -1;  ///< process that came last
    std::int64_t last_begin = none, second_begin = none;
    std::int64_t first_end = std::numeric_limits<std::int64_t>::max();
    std::int64_t root_begin = none;
    std::int32_t counted = -1;  ///< the first process that one of its calls has waited for
    double bound_s = -1;
    std::vector<ScanPart> begins;  ///< when each rank's part of a scan began

    /// Sorts the parts of a scan by rank; each then tells who of all ranks up to it began last.
    void order_scan() {
        std::sort(begins.begin(), begins.end(), [](const ScanPart& a, const ScanPart& b) { return a.rank < b.rank; });
        for (std::size_t i = 1; i < begins.size(); ++i) {
            if (begins[i].begin_ns > begins[i - 1].begin_ns) continue;
            begins[i].begin_ns = begins[i - 1].begin_ns;
            begins[i].process = begins[i - 1].process;
        }
    }
    /// The part that began last among a scan's ranks up to `rank`; null: none. Requires order_scan.
    const ScanPart* last_until(std::int32_t rank) const {
        const auto behind =
            std::upper_bound(begins.begin(), begins.end(), rank,
                             [](std::int32_t value, const ScanPart& part) { return value < part.rank; });
        return behind == begins.begin() ? nullptr : &*(behind - 1);
    }
};

struct InstanceKey {
    std::uint32_t communicator = 0;
    std::uint64_t instance = 0;
    bool operator==(const InstanceKey&) const = default;
};
/// What is known of each instance of collectives, as One has it. Those with neighbouring numbers lie side by side: each
/// rank's calls come in that order.
template <class One>
class ByInstance {
  public:
    One& at(const InstanceKey& key) { return (*chunk(key, true))[key.instance % size]; }
    /// The instance of `key`; null: no rank has begun it.
    One* find(const InstanceKey& key) {
        Chunk* const found = chunk(key, false);
        One* const one = found ? &(*found)[key.instance % size] : nullptr;
        return one && one->came > 0 ? one : nullptr;
    }
    /// `use(communicator, one)`.
    template <class Use>
    void for_each(Use use) {
        for (auto& [key, chunk] : chunks_)
            for (One& one : *chunk)
                if (one.came > 0) use(key.communicator, one);
    }

  private:
    static constexpr std::size_t size = 64;
    using Chunk = std::array<One, size>;
    struct HashOfKey {
        std::size_t operator()(const InstanceKey& key) const {
            return (key.instance * 0x9E3779B97F4A7C15ULL) ^ (key.communicator * 0xC2B2AE3D27D4EB4FULL);
        }
    };
    Chunk* chunk(const InstanceKey& key, bool make) {
        const InstanceKey number{key.communicator, key.instance / size};
        if (last_ && number == last_key_) return last_;
        const auto found = chunks_.find(number);
        if (found == chunks_.end() && !make) return nullptr;
        last_ = found != chunks_.end() ? found->second.get()
                                       : chunks_.emplace(number, std::make_unique<Chunk>()).first->second.get();
        last_key_ = number;
        return last_;
    }
    std::unordered_map<InstanceKey, std::unique_ptr<Chunk>, HashOfKey> chunks_;
    Chunk* last_ = nullptr;
    InstanceKey last_key_{};
};

using Instances = ByInstance<Instance>;

/// What a map has under the keys that were asked for lately: most calls come from one of a few places by turns. Values
/// keep their addresses.
template <class Key, class Value>
class RecentEntries {
  public:
    /// `find` looks for it in the map.
    template <class Find>
    Value& at(const Key& key, std::size_t hash, Find find) {
        Slot& slot = slots_[hash % slots_.size()];
        if (!slot.value || slot.key != key) slot = {key, &find()};
        return *slot.value;
    }

  private:
    struct Slot {
        Key key{};
        Value* value = nullptr;
    };
    std::array<Slot, 64> slots_;
};

/// Messages from one process to another on a communicator with a tag, in the order in which they were started.
using Channel = std::tuple<std::uint32_t, std::int32_t, std::int32_t, std::int32_t>;
struct Message {
    std::int64_t begin_ns;
    float bytes;
};

struct Traffic {
    std::vector<Message> sends, receives;
    std::size_t next_send = 0, next_receive = 0;  ///< behind the one that was asked for last
};

}  // namespace palmette::trace
