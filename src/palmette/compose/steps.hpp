// Steps of one rank that wait for each other where they touch the same memory, and their pipelining.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "palmette/plan/program.hpp"

namespace palmette::compose {

/// Collects whole steps in order of their stages, finds out what each has to wait for, and cuts all of them in as many
/// slices as the pipeline is deep.
class Steps {
  public:
    using Regions = std::vector<plan::Region>;

    /// Blocks in the order in which a message carries them; neighbours become one region.
    static void append(Regions& regions, plan::Buffer buffer, std::int64_t block);

    /// Stages never go back. `name` is what people read.
    void stage(std::int32_t stage, const std::string& name);
    void send(plan::Rank to, const Regions& regions);
    void recv(plan::Rank from, const Regions& regions);
    void copy(const Regions& from, const Regions& to);
    /// Block by block: target = left op right.
    void reduce(std::uint8_t operation, const Regions& left, const Regions& right, const Regions& target);

    /// The program, with the room in scratch that the steps use. Tags are stage * pipeline + slice.
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
    /// The step at hand takes `regions`, each of whose cells waits for its writer; `note` writes down in a cell what is
    /// done with it.
    template <class Note>
    void touch(const Regions& regions, Note note);
    void read(const Regions& regions);
    void write(const Regions& regions);
    void end();
    Cell& cell(plan::Buffer buffer, std::int64_t block) {
        return cells_[(static_cast<std::int64_t>(buffer) << 48) | block];
    }
    std::vector<plan::Blocks> room() const;

    std::vector<Whole> wholes_;
    Regions regions_;
    std::vector<std::uint32_t> waits_, new_waits_;
    std::vector<std::string> names_;
    std::unordered_map<std::int64_t, Cell> cells_;
    std::int32_t stage_ = 0;
    std::uint8_t name_ = 0;
};

}  // namespace palmette::compose
