// The theoretical frames in the figures of HiCCL (Hidayetoglu et al., 2024): GB/s of what all ranks end with (or begin
// with) together, on four nodes of Perlmutter, and of machines like the other three.
#include <gtest/gtest.h>

#include "palmette/model/bound/bound.hpp"
#include "palmette/plan/space.hpp"
#include "support/jobs.hpp"

namespace palmette::model {
namespace {

using plan::Collective;

/// A machine of the figures: its GPUs (or parts of them) are ranks, statically bound to the ports of their node, of 25
/// GB/s each.
struct Machine {
    const char* name;
    const char* synthetic;
    std::int32_t ports;
    double ranks;     ///< ranks on a node
    double node_GBs;  ///< bandwidth of a node that ranks bound to ports can use
};

/// The figures' own numbers are held for Perlmutter. The other shapes of nodes weren't looked up in the paper; what is
/// held for them follows from the shapes.
constexpr Machine machines[] = {
    {"Delta", "4node@25GB/s:4core", 1, 4, 25},
    {"Perlmutter", "4node@100GB/s:4core", 4, 4, 100},
    {"Frontier", "4node@100GB/s:8core", 4, 8, 100},
    // 12 tiles on 8 ports: four ports carry two of them while the others idle half of the time.
    {"Aurora", "4node@200GB/s:12core", 8, 12, 150},
};

class Frames {
  public:
    explicit Frames(const Machine& machine)
        : job_(test::job_on(machine.synthetic)), options_{{{"node", machine.ports}}, 0, false} {}

    /// With reduction and multicast in the network or without, of one collective or of several that follow each other.
    double rate(std::initializer_list<Collective> parts, bool in_network = false) const {
        double seconds = 0;
        for (const Collective collective : parts) {
            const bool of_vector = collective == Collective::bcast || collective == Collective::reduce ||
                                   collective == Collective::allreduce;
            const std::int64_t bytes = of_vector ? block * job_.size() : block;
            const BoundTerms terms = bound_terms(job_, {collective, topology::Rank{0}, bytes}, {bytes}, options_);
            seconds += (in_network ? terms.limit_in_network : terms.limit).seconds;
        }
        return static_cast<double>(block * job_.size()) / seconds / 1e9;
    }

  private:
    static constexpr std::int64_t block = 96'000'000;
    topology::Job job_;
    BoundOptions options_;
};

constexpr double rounding = 0.05;

// The numbers of the figures themselves.
TEST(BoundFrames, of_perlmutter_are_100_50_133_67_and_33_GBs) {
    const Frames perlmutter(machines[1]);
    EXPECT_NEAR(perlmutter.rate({Collective::bcast}), 100, rounding);
    EXPECT_NEAR(perlmutter.rate({Collective::reduce}), 100, rounding);
    EXPECT_NEAR(perlmutter.rate({Collective::reduce, Collective::bcast}), 50, rounding);
    for (const Collective c :
         {Collective::gather, Collective::scatter, Collective::allgather, Collective::reduce_scatter})
        EXPECT_NEAR(perlmutter.rate({c}), 133.3, rounding) << plan::name_of(c);
    EXPECT_NEAR(perlmutter.rate({Collective::reduce_scatter, Collective::allgather}), 66.7, rounding);
    EXPECT_NEAR(perlmutter.rate({Collective::allreduce}), 66.7, rounding);
    EXPECT_NEAR(perlmutter.rate({Collective::alltoall}), 33.3, rounding);
}

// Worked out by hand from what one node has to let through, with n = 4 nodes.
TEST(BoundFrames, of_all_four_machines_are_what_a_nodes_ports_let_through) {
    const double nodes = 4;
    for (const Machine& machine : machines) {
        const Frames frames(machine);
        const auto expect = [&](std::initializer_list<Collective> parts, double GBs) {
            EXPECT_NEAR(frames.rate(parts), GBs, rounding) << machine.name << ' ' << plan::name_of(*parts.begin());
        };
        expect({Collective::bcast}, machine.node_GBs);
        expect({Collective::reduce}, machine.node_GBs);
        expect({Collective::reduce, Collective::bcast}, machine.node_GBs / 2);
        for (const Collective c :
             {Collective::gather, Collective::scatter, Collective::allgather, Collective::reduce_scatter})
            expect({c}, machine.node_GBs * nodes / (nodes - 1));
        expect({Collective::allreduce}, machine.node_GBs * nodes / (nodes - 1) / 2);
        expect({Collective::reduce_scatter, Collective::allgather}, machine.node_GBs * nodes / (nodes - 1) / 2);
        // Each rank sends all that others get of it through one node's ports.
        expect({Collective::alltoall}, machine.node_GBs * nodes / (nodes - 1) / machine.ranks);
    }
}

TEST(BoundFrames, of_an_allreduce_rise_to_a_nodes_capacity_where_the_network_reduces) {
    for (const Machine& machine : machines) {
        const Frames frames(machine);
        EXPECT_NEAR(frames.rate({Collective::allreduce}, true), machine.node_GBs, rounding) << machine.name;
        // What only one node has to send or to get can't be helped by a network that computes.
        for (const Collective c : {Collective::bcast, Collective::reduce, Collective::gather, Collective::allgather,
                                   Collective::reduce_scatter, Collective::alltoall})
            EXPECT_DOUBLE_EQ(frames.rate({c}, true), frames.rate({c})) << machine.name << ' ' << plan::name_of(c);
    }
}

// Bytes that a node's adapter sends for an allreduce by messages, in those that it sends where the network reduces:
// 1.0, 1.5 and 1.75 (Ramesh et al.).
TEST(BoundFrames, of_2_4_and_8_nodes_are_1_15_and_175_times_slower_without_reduction_in_the_network) {
    for (const auto& [nodes, factor] : std::vector<std::pair<int, double>>{{2, 1.0}, {4, 1.5}, {8, 1.75}}) {
        const std::string synthetic = std::to_string(nodes) + "node@100GB/s:2core";
        const Frames frames({"", synthetic.c_str(), 1, 2, 100});
        EXPECT_NEAR(frames.rate({Collective::allreduce}, true) / frames.rate({Collective::allreduce}), factor, 1e-9);
    }
}

}  // namespace
}  // namespace palmette::model
