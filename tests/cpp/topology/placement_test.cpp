#include "palmette/topology/placement.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <set>

#include "support/errors.hpp"

namespace palmette::topology {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int32_t> hosts(const Placement& placement) {
    std::vector<std::int32_t> out;
    for (const Seat& seat : placement) out.push_back(seat.host);
    return out;
}

class PlacementFile : public testing::Test {
  protected:
    std::string write(std::string_view text) {
        path_ = testing::TempDir() + "placement_test_hosts.txt";
        std::ofstream(path_) << text;
        return path_;
    }
    ~PlacementFile() override { std::remove(path_.c_str()); }
    std::string path_;
};

TEST(Placement, block_fills_host_after_host_and_cyclic_deals_round) {
    const Machine machine = Machine::synthetic("3node:2+1+3core");
    EXPECT_THAT(hosts(make_placement(machine, "block")), ElementsAre(0, 0, 1, 2, 2, 2));
    EXPECT_THAT(hosts(make_placement(machine, "cyclic")), ElementsAre(0, 1, 2, 0, 2, 2));
    EXPECT_THAT(hosts(make_placement(machine, "cyclic", 4)), ElementsAre(0, 1, 2, 0));
}

TEST(Placement, random_uses_every_slot_once_and_is_the_same_everywhere) {
    const Machine machine = Machine::synthetic("4node:4core");
    const Placement placement = make_placement(machine, "random:1");
    std::set<std::pair<std::int32_t, std::int32_t>> seats;
    for (const Seat& seat : placement) seats.insert({seat.host, seat.slot});
    EXPECT_EQ(seats.size(), 16U);
    EXPECT_THAT(hosts(placement), ElementsAre(0, 2, 2, 1, 1, 3, 3, 0, 3, 1, 3, 2, 0, 2, 1, 0));
    EXPECT_NE(hosts(make_placement(machine, "random:2")), hosts(placement));
}

TEST(Placement, a_list_of_hosts_gives_slots_in_order_of_rank) {
    const Machine machine = Machine::synthetic("3node:2core");
    const Placement placement = make_placement(machine, "hosts=h2,h0,h2,h2");
    EXPECT_THAT(hosts(placement), ElementsAre(2, 0, 2, 2));
    EXPECT_EQ(placement[2].slot, 1);
    EXPECT_EQ(placement[3].slot, 0) << "more ranks than slots share them";
}

TEST_F(PlacementFile, has_one_host_a_line_with_comments_and_counts) {
    const Machine machine = Machine::synthetic("3node:4core");
    EXPECT_THAT(hosts(make_placement(machine, write("# by hand\nh1:2\n\n h0 # one\r\nh2 : 3\n"))),
                ElementsAre(1, 1, 0, 2, 2, 2));
}

TEST_F(PlacementFile, names_the_line_at_fault) {
    const Machine machine = Machine::synthetic("3node:4core");
    EXPECT_THAT(error_of([&] { make_placement(machine, write("h0\nh1:zero\n")); }),
                HasSubstr("line 2: 'zero' is not a count of ranks"));
    EXPECT_THAT(error_of([&] { make_placement(machine, write("# nothing\n")); }), HasSubstr("names no host"));
}

TEST(Placement, errors_name_the_form_or_the_host) {
    const Machine machine = Machine::synthetic("2node:2core");
    EXPECT_THAT(error_of([&] { make_placement(machine, "spread"); }),
                HasSubstr("placement 'spread' is neither block, cyclic"));
    EXPECT_THAT(error_of([&] { make_placement(machine, "random:x"); }), HasSubstr("the seed must be a whole number"));
    EXPECT_THAT(error_of([&] { make_placement(machine, "hosts=h0,n9"); }), HasSubstr("rank 1 sits on host 'n9'"));
    EXPECT_THAT(error_of([&] { make_placement(machine, "block", 5); }),
                HasSubstr("5 ranks don't fit: placement 'block' has 4 slots"));
    EXPECT_THAT(error_of([&] { make_placement(machine, "block", -1); }), HasSubstr("-1 ranks"));
}

}  // namespace
}  // namespace palmette::topology
