// Communication written down as multicasts, reductions and fences, before anybody decides who relays what.
//
//     Composition sum(8, Lengths::uniform(1024));               allreduce as reduce-scatter and allgather:
//     const auto input = sum.buffer("input"), output = sum.buffer("output");
//     for (int i = 0; i < 8; ++i) sum.reduce(RankSet::all(8), {i}, input, {i, 1}, output, plus);
//     sum.fence();
//     for (int i = 0; i < 8; ++i) sum.multicast({i}, RankSet::all(8), output, {i, 1}, output);
//
// The primitives are those of HiCCL: Hidayetoglu, Garcia de Gonzalo, Slaughter, Li, Zimmer, Bicer, Ren, Gropp, Hwu,
// Aiken, "HiCCL: A hierarchical collective communication library", 2024.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/base/ids.hpp"
#include "palmette/plan/blocks.hpp"
#include "palmette/plan/program.hpp"

namespace palmette::compose {

using base::Rank;
using plan::Buffer;
using plan::Interval;

/// Ranks as intervals, ascending. Copies of `all` and of single ranks cost no memory.
class RankSet {
  public:
    RankSet() = default;
    static RankSet all(std::int32_t ranks) { return RankSet({0, ranks}); }
    static RankSet one(Rank rank) { return RankSet({rank.value, 1}); }
    /// In any order, each once or more.
    static RankSet of(std::vector<std::int32_t> ranks);

    bool contains(std::int32_t rank) const;
    std::int64_t count() const { return count_in(0, INT32_MAX); }
    /// Members from `first` to `end` - 1.
    std::int64_t count_in(std::int32_t first, std::int32_t end) const;
    /// The least member from `first` on, or -1.
    std::int32_t next(std::int32_t first) const;
    std::size_t runs() const { return rest_.empty() ? (first_.count > 0 ? 1 : 0) : rest_.size(); }
    Interval run(std::size_t index) const { return rest_.empty() ? first_ : rest_[index]; }
    std::int32_t least() const { return static_cast<std::int32_t>(run(0).first); }
    std::int32_t most() const { return static_cast<std::int32_t>(run(runs() - 1).end() - 1); }

  private:
    explicit RankSet(Interval only) : first_(only) {}
    Interval first_;
    std::vector<Interval> rest_;  ///< where there is more than one
};

/// How long blocks are, in bytes: all alike, one vector cut as evenly as elements allow, or by a rule.
class Lengths {
  public:
    static Lengths uniform(std::int64_t blocks, std::int64_t bytes);
    static Lengths cut(std::int64_t blocks, std::int64_t total_bytes, std::int64_t element_bytes);
    static Lengths list(std::vector<std::int64_t> bytes);
    static Lengths rule(std::int64_t blocks, std::function<std::int64_t(std::int64_t)> bytes_of);

    std::int64_t blocks() const { return blocks_; }
    std::int64_t operator[](std::int64_t block) const;

  private:
    enum class Kind : std::uint8_t { uniform, cut, rule };
    Kind kind_ = Kind::uniform;
    std::int64_t blocks_ = 0, bytes_ = 0, element_ = 1;
    std::function<std::int64_t(std::int64_t)> bytes_of_;
};

/// What a reduction applies. The name is told to people; the runtime is given MPI's handles in the same order.
struct Operation {
    std::string name = "sum";
    bool commutative = true;
};

/// multicast: `root`'s blocks of `source` go to `target` of all `others`, itself among them or not.
/// reduce: the operation over all `others`' blocks of `source`, in the order of ranks, goes to `target` of `root`,
/// whether it contributes or not.
struct Primitive {
    bool reduces = false;
    Rank root;
    RankSet others;
    Interval blocks;
    Buffer source = Buffer::send, target = Buffer::recv;
    std::uint8_t operation = 0;
};

/// A list of primitives in phases. Those of one phase happen at the same time: none may touch what another one writes.
/// A fence ends a phase, and orders only what touches the same blocks. Equal on all ranks; primitives may come from
/// rules, so that nobody holds a list of p^2.
class Composition {
  public:
    using Visit = std::function<void(std::int32_t phase, const Primitive&)>;
    using Emit = std::function<void(const Primitive&)>;

    /// `element_bytes`: no cut goes through an element. Throws base::Error on lengths that are no whole number of
    /// elements.
    Composition(std::int32_t ranks, Lengths lengths, std::int64_t element_bytes = 1);

    /// A buffer of that name, a new one or the one that there is. Blocks lie in it in ascending order without gaps.
    Buffer buffer(std::string_view name);
    /// Throws base::Error past 256 operations.
    std::uint8_t operation(Operation operation);
    /// Says that `rank` has these blocks in a buffer even where no primitive touches them, so that they take room.
    void hold(Rank rank, Buffer buffer, Interval blocks);

    /// All three throw base::Error that names the primitive on ranks, blocks, buffers or operations that there aren't,
    /// and on empty sets.
    void multicast(Rank from, RankSet to, Buffer source, Interval blocks, Buffer target);
    void reduce(RankSet from, Rank to, Buffer source, Interval blocks, Buffer target, std::uint8_t operation);
    void add(Primitive primitive);
    void fence() { ++phases_; }
    /// Primitives of this phase by rule: `generate` is called whenever somebody goes through them. What it emits is
    /// checked then.
    void rule(std::function<void(const Emit&)> generate);

    std::int32_t ranks() const { return ranks_; }
    std::int64_t blocks() const { return lengths_.blocks(); }
    std::int64_t element_bytes() const { return element_bytes_; }
    const Lengths& lengths() const { return lengths_; }
    const std::vector<std::string>& buffers() const { return buffers_; }
    const std::vector<Operation>& operations() const { return operations_; }
    std::int32_t phases() const { return phases_ + 1; }

    /// All primitives, phase by phase, in the order in which they were added.
    void visit(const Visit& visit) const;
    /// What was said with `hold`.
    struct Held {
        Rank rank;
        Buffer buffer;
        Interval blocks;
    };
    const std::vector<Held>& held() const { return held_; }

  private:
    struct Item {
        std::int32_t phase;
        Primitive primitive;
        std::function<void(const Emit&)> generate;  ///< instead, where there is one
    };
    void check(const Primitive& primitive) const;

    std::int32_t ranks_;
    Lengths lengths_;
    std::int64_t element_bytes_;
    std::vector<std::string> buffers_;
    std::vector<Operation> operations_;
    std::vector<Item> items_;
    std::vector<Held> held_;
    std::int32_t phases_ = 0;
};

}  // namespace palmette::compose
