// Steps of one rank with dependencies inferred from memory accesses, and their pipelining.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "palmette/plan/program.hpp"

namespace palmette::compose {

/// Collects whole steps in order of their stages, infers each one's dependencies, and cuts all of them in as many
/// slices as the pipeline is deep.
class Steps {
  public:
    using Regions = std::vector<plan::Region>;

    /// Appends a block in the order in which a message carries them; adjacent blocks are merged into one region.
    static void append(Regions& regions, plan::Buffer buffer, std::int64_t block);

    /// Stages must not decrease. `name` is for listings.
    void stage(std::int32_t stage, const std::string& name);
    void send(plan::Rank to, const Regions& regions);
    void recv(plan::Rank from, const Regions& regions);
    void copy(const Regions& from, const Regions& to);
    /// Block by block: target = left op right.
    void reduce(std::uint8_t operation, const Regions& left, const Regions& right, const Regions& target);

    /// The program, with the scratch blocks that the steps use. Tags are stage * pipeline + slice.
    plan::Program finish(plan::Rank rank, std::int64_t blocks, std::int32_t pipeline);

  private:
    struct Whole {
        plan::Step step;
        std::int32_t stage;
    };
    struct Cell {
        std::int64_t writer = -1;
        std::vector<std::uint32_t> readers;
    };
    void begin(plan::StepKind kind, plan::Rank peer);
    /// Adds `regions` to the current step, which waits for the last writer of each cell; `note` records the access in
    /// the cell.
    template <class Note>
    void touch(const Regions& regions, Note note);
    void read(const Regions& regions);
    void write(const Regions& regions);
    void end();
    Cell& cell(plan::Buffer buffer, std::int64_t block) {
        return cells_[(static_cast<std::int64_t>(buffer) << 48) | block];
    }
    std::vector<plan::Blocks> scratch_blocks() const;

    std::vector<Whole> wholes_;
    Regions regions_;
    std::vector<std::uint32_t> waits_, new_waits_;
    std::vector<std::string> names_;
    std::unordered_map<std::int64_t, Cell> cells_;
    std::int32_t stage_ = 0;
    std::uint8_t name_ = 0;
};

}  // namespace palmette::compose
