// Messages and bytes of neighbourhood collectives at each level of a machine, counted in their plans: the table of
// docs/results/2026-11-28-neighbours.md.
#include <cstdio>
#include <string>
#include <vector>

#include "palmette/plan/count.hpp"
#include "support/neighbourhoods.hpp"

using namespace palmette;

int main() {
    struct Case {
        const char* name;
        topology::Job job;
        test::AllNeighbours all;
    };
    const std::vector<Case> cases{
        {"halo, 16 ranks", topology::Job::regular({{"leaf", 2}, {"node", 4}, {"core", 2}}, true),
         test::halo_27(4, 2, 2)},
        {"random, 16 ranks", topology::Job::regular({{"leaf", 2}, {"node", 4}, {"core", 2}}, true),
         test::random_neighbours(16, 16, 1)},
        {"halo, 1,024 ranks", topology::Job::regular({{"leaf", 4}, {"node", 16}, {"core", 16}}),
         test::halo_27(8, 8, 16)},
        {"random, 1,024 ranks", topology::Job::regular({{"leaf", 4}, {"node", 16}, {"core", 16}}),
         test::random_neighbours(1024, 52, 1)},
    };
    std::printf(
        "| pattern | function | combined by | messages | leave a node | leave a switch | blocks that leave a node "
        "| a switch |\n|---|---|---|---:|---:|---:|---:|---:|\n");
    for (const Case& one : cases)
        for (const bool alltoall : {true, false})
            for (const std::vector<std::string>& levels :
                 std::vector<std::vector<std::string>>{{}, {"node"}, {"leaf", "node"}}) {
                test::NeighbourRoute route;
                std::string by;
                for (const std::string& level : levels) {
                    route.levels.push_back(*one.job.find_level(level));
                    by += (by.empty() ? "" : ", ") + level;
                }
                const plan::PlanCount count =
                    plan::count(test::neighbour_plan(one.all, one.job, alltoall, route), one.job, {1});
                const plan::LevelCount& leaf = count.levels[0];
                const plan::LevelCount& node = count.levels[1];
                std::printf("| %s | %s | %s | %lld | %lld | %lld | %lld | %lld |\n", one.name,
                            alltoall ? "alltoall" : "allgather", by.empty() ? "-" : by.c_str(),
                            static_cast<long long>(count.messages), static_cast<long long>(node.messages),
                            static_cast<long long>(leaf.messages), static_cast<long long>(node.bytes),
                            static_cast<long long>(leaf.bytes));
            }
    return 0;
}
