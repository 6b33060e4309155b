// Where a process is bound, by the kernel's description of some machines.
#include "palmette/runtime/start/node_place.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::runtime {
namespace {

namespace fs = std::filesystem;

std::string joined(const std::vector<int>& cpus) {
    std::string out;
    for (const int cpu : cpus) out += (out.empty() ? "" : ",") + std::to_string(cpu);
    return out;
}

class NodePlaces : public testing::Test {
  protected:
    void SetUp() override {
        root_ = fs::temp_directory_path() / ("palmette-places-" + std::to_string(getpid()));
        fs::remove_all(root_);
    }
    void TearDown() override { fs::remove_all(root_); }

    void write(const fs::path& name, const std::string& text) {
        fs::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text << "\n";
    }
    /// Two sockets of two L3 caches of two cores of two threads, numbered in turns: processor n is on socket n % 2, as
    /// many firmwares do; threads of a core are 8 apart.
    void two_sockets() {
        write("cpu/online", "0-15");
        write("node/has_cpu", "0-1");
        for (int cpu = 0; cpu < 16; ++cpu) {
            const int socket = cpu % 2;
            const int core = cpu / 2 % 4;
            std::vector<int> of_socket, of_l3, of_core;
            for (int other = 0; other < 16; ++other) {
                if (other % 2 != socket) continue;
                of_socket.push_back(other);
                if (other / 2 % 4 / 2 == core / 2) of_l3.push_back(other);
                if (other / 2 % 4 == core) of_core.push_back(other);
            }
            const std::string at = "cpu/cpu" + std::to_string(cpu);
            write(at + "/topology/core_siblings_list", joined(of_socket));
            write(at + "/cache/index3/shared_cpu_list", joined(of_l3));
            write(at + "/topology/thread_siblings_list", joined(of_core));
            if (cpu < 2) write("node/node" + std::to_string(cpu) + "/cpulist", joined(of_socket));
        }
    }
    /// Two boards, each one NUMA node of two sockets of two cores; processor n is on board n / 2 % 2, on its socket
    /// n % 2.
    void boards_of_sockets() {
        write("cpu/online", "0-7");
        write("node/has_cpu", "0-1");
        for (int cpu = 0; cpu < 8; ++cpu) {
            std::vector<int> of_board, of_socket;
            for (int other = 0; other < 8; ++other) {
                if (other / 2 % 2 == cpu / 2 % 2) of_board.push_back(other);
                if (other % 4 == cpu % 4) of_socket.push_back(other);
            }
            const std::string at = "cpu/cpu" + std::to_string(cpu);
            write(at + "/topology/core_siblings_list", joined(of_socket));
            write(at + "/cache/index3/shared_cpu_list", joined(of_socket));
            write(at + "/topology/thread_siblings_list", std::to_string(cpu));
            write("node/node" + std::to_string(cpu / 2 % 2) + "/cpulist", joined(of_board));
        }
    }
    std::tuple<int, int, int, int> at(const std::vector<int>& allowed) const {
        const auto place = place_by_kernel(root_.string(), allowed);
        if (!place) return {-9, -9, -9, -9};
        return {place->socket, place->numa, place->l3, place->core};
    }

    fs::path root_;
};

using Numbers = std::tuple<int, int, int, int>;

TEST_F(NodePlaces, objects_are_numbered_from_the_outside_to_the_inside) {
    two_sockets();
    EXPECT_EQ(at({0}), Numbers(0, 0, 0, 0));
    EXPECT_EQ(at({1}), Numbers(1, 1, 2, 4));  // the first of the second socket
    EXPECT_EQ(at({2, 10}), Numbers(0, 0, 0, 1));
    EXPECT_EQ(at({6}), Numbers(0, 0, 1, 3));
    EXPECT_EQ(at({15}), Numbers(1, 1, 3, 7));
}

TEST_F(NodePlaces, a_numa_node_of_several_sockets_is_outside_of_them) {
    boards_of_sockets();
    EXPECT_EQ(at({0}), Numbers(0, 0, 0, 0));
    EXPECT_EQ(at({1}), Numbers(1, 0, 1, 2));
    EXPECT_EQ(at({2}), Numbers(2, 1, 2, 4));
    EXPECT_EQ(at({7}), Numbers(3, 1, 3, 7));
    EXPECT_EQ(at({2, 3}), Numbers(-1, 1, -1, -1)) << "bound to a NUMA node, to none of its sockets";
}

TEST(LevelsByKernel, numa_nodes_stand_outside_of_the_sockets_that_they_hold) {
    std::vector<PlacedRank> ranks;
    for (int rank = 0; rank < 8; ++rank) ranks.push_back({0, {rank / 2, rank / 4, rank / 2, rank}});
    const auto [names, keys] = levels_by_kernel(ranks);
    EXPECT_EQ(names, (std::vector<std::string>{"node", "numa", "socket", "l3"}));
    const auto job = topology::Job::from_groups(names, keys);
    ASSERT_TRUE(job.find_level("numa") && job.find_level("socket"));
    EXPECT_EQ(job.levels()[*job.find_level("numa")].groups.count(), 2);
    EXPECT_EQ(job.levels()[*job.find_level("socket")].groups.count(), 4);
    for (PlacedRank& rank : ranks) std::swap(rank.place.socket, rank.place.numa);
    EXPECT_EQ(levels_by_kernel(ranks).first[1], "socket");
}

TEST_F(NodePlaces, what_cuts_across_sockets_is_left_out_and_moves_no_number) {
    two_sockets();
    write("node/node0/cpulist", "0-11");
    write("node/node1/cpulist", "12-15");
    EXPECT_EQ(at({4}), Numbers(0, -1, 1, 2));
    EXPECT_EQ(at({15}), Numbers(1, -1, 3, 7));
}

TEST_F(NodePlaces, who_may_run_on_several_is_in_none) {
    two_sockets();
    EXPECT_EQ(at({0, 2, 8, 10}), Numbers(0, 0, 0, -1));
    EXPECT_EQ(at({0, 2, 4, 6}), Numbers(0, 0, -1, -1));
    EXPECT_EQ(at({0, 1}), Numbers(-1, -1, -1, -1));
}

TEST_F(NodePlaces, who_is_not_bound_is_in_none_even_of_one) {
    write("cpu/online", "0-1");
    EXPECT_EQ(at({0, 1}), Numbers(-1, -1, -1, -1));
}

TEST_F(NodePlaces, files_that_are_missing_say_nothing) {
    EXPECT_EQ(at({0}), Numbers(-9, -9, -9, -9));
    write("cpu/online", "0-1");
    EXPECT_EQ(at({}), Numbers(-9, -9, -9, -9));
    EXPECT_EQ(at({1}), Numbers(-1, -1, -1, -1));
    write("cpu/cpu0/topology/thread_siblings_list", "0");
    write("cpu/cpu1/topology/thread_siblings_list", "1");
    EXPECT_EQ(at({1}), Numbers(-1, -1, -1, 1));
}

}  // namespace
}  // namespace palmette::runtime
