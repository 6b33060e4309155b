#include "palmette/node/shared_node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/node/shared_single_copy.hpp"
#include "support/processes.hpp"
#include "support/shared_nodes.hpp"

namespace palmette::node {
namespace {

using test::expose_in_ring;
using test::make_members;
using test::make_segment;
using test::pattern;
using test::SameAddressAttacher;
using testing::HasSubstr;

/// Ends an operation in which a member has nothing to do.
void idle(SharedNode& node, int times = 1) {
    for (int i = 0; i < times; ++i) {
        ASSERT_TRUE(node.begin(0));
        node.end();
    }
}

TEST(SharedNode, shows_an_exposure_in_its_operation_only) {
    auto nodes = make_members(2);
    ASSERT_TRUE(nodes[0]->begin(0));
    nodes[0]->expose_inline(5, "leaf", 4);
    nodes[0]->end();
    ASSERT_TRUE(nodes[0]->begin(0));

    ASSERT_TRUE(nodes[1]->begin(0));
    EXPECT_EQ(nodes[1]->find_exposure(0, 4), nullptr);
    const Exposure* exposure = nodes[1]->find_exposure(0, 5);
    ASSERT_TRUE(exposure);
    EXPECT_EQ(std::string(nodes[1]->direct(0, *exposure), 4), "leaf");
    nodes[1]->end();
    ASSERT_TRUE(nodes[1]->begin(0));
    EXPECT_EQ(nodes[1]->find_exposure(0, 5), nullptr) << "the operation before is over";
    nodes[0]->expose_inline(5, nullptr, 0);
    ASSERT_TRUE(nodes[1]->find_exposure(0, 5));
    EXPECT_EQ(nodes[1]->find_exposure(0, 5)->bytes, 0);
}

TEST(SharedNode, lets_a_member_run_sixteen_operations_ahead) {
    auto nodes = make_members(3);
    idle(*nodes[0], 16);
    EXPECT_FALSE(nodes[0]->begin(0));
    idle(*nodes[1], 16);
    EXPECT_FALSE(nodes[0]->begin(0));
    idle(*nodes[2]);
    ASSERT_TRUE(nodes[0]->begin(0));
    nodes[0]->end();
    EXPECT_FALSE(nodes[0]->begin(0));
}

TEST(SharedNode, waits_for_ring_space_until_the_slowest_has_read_it) {
    const std::int64_t ring = 16 * 4096;
    auto nodes = make_members(2, ring);
    const auto first = pattern(1, ring / 2);
    const auto second = pattern(2, ring / 2);
    ASSERT_TRUE(nodes[0]->begin(ring / 2));
    expose_in_ring(*nodes[0], 0, first);
    nodes[0]->end();
    ASSERT_TRUE(nodes[0]->begin(ring / 2));
    expose_in_ring(*nodes[0], 0, second);
    nodes[0]->end();
    EXPECT_FALSE(nodes[0]->begin(64));

    ASSERT_TRUE(nodes[1]->begin(0));
    EXPECT_FALSE(nodes[0]->begin(64)) << "the reader may still read";
    const Exposure* exposure = nodes[1]->find_exposure(0, 0);
    ASSERT_TRUE(exposure);
    EXPECT_EQ(std::memcmp(nodes[1]->direct(0, *exposure), first.data(), first.size()), 0);
    nodes[1]->end();
    ASSERT_TRUE(nodes[0]->begin(ring / 2));
    expose_in_ring(*nodes[0], 0, first);
    nodes[0]->end();
    EXPECT_FALSE(nodes[0]->begin(64));
    ASSERT_TRUE(nodes[1]->begin(0));
    exposure = nodes[1]->find_exposure(0, 0);
    ASSERT_TRUE(exposure);
    EXPECT_EQ(std::memcmp(nodes[1]->direct(0, *exposure), second.data(), second.size()), 0);
}

TEST(SharedNode, never_splits_an_operations_space_at_the_end_of_the_ring) {
    const std::int64_t ring = 16 * 4096;
    auto nodes = make_members(2, ring);
    const std::int64_t piece = ring / 8 * 3;
    const auto data = pattern(3, piece);
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(nodes[0]->begin(piece)) << i;
        char* begin = nodes[0]->ring_slot(piece);
        ASSERT_TRUE(begin);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % 64, 0u);
        std::copy(data.begin(), data.end(), begin);
        nodes[0]->expose_slot(0, begin, piece);
        nodes[0]->end();
        ASSERT_TRUE(nodes[1]->begin(0));
        const Exposure* exposure = nodes[1]->find_exposure(0, 0);
        ASSERT_TRUE(exposure);
        EXPECT_LE(exposure->offset + piece, ring);
        std::vector<char> got(data.size());
        EXPECT_EQ(nodes[1]->read(0, *exposure, 0, got.data(), piece), 0);
        ASSERT_EQ(got, data);
        nodes[1]->end();
    }
}

TEST(SharedNode, keeps_small_operations_in_the_beginning_of_the_ring) {
    auto nodes = make_members(2, 1 << 20);
    std::int64_t most = 0;
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(nodes[0]->begin(4096));
        expose_in_ring(*nodes[0], 0, pattern(i, 4096));
        nodes[0]->end();
        if (i < 2) continue;  // the reader stays two operations behind
        ASSERT_TRUE(nodes[1]->begin(0));
        const Exposure* exposure = nodes[1]->find_exposure(0, 0);
        ASSERT_TRUE(exposure);
        EXPECT_EQ(std::memcmp(nodes[1]->direct(0, *exposure), pattern(i - 2, 4096).data(), 4096), 0);
        most = std::max(most, exposure->offset + exposure->bytes);
        nodes[1]->end();
    }
    EXPECT_LE(most, 128 << 10);
}

TEST(SharedNode, gives_the_whole_ring_to_one_operation_and_no_more) {
    const std::int64_t ring = 16 * 4096;
    auto nodes = make_members(2, ring);
    ASSERT_EQ(nodes[0]->ring_bytes(), ring);
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(nodes[0]->begin(ring)) << i;
        EXPECT_TRUE(nodes[0]->ring_slot(ring - 64));
        EXPECT_TRUE(nodes[0]->ring_slot(1));
        EXPECT_EQ(nodes[0]->ring_slot(1), nullptr) << "more than was asked for";
        nodes[0]->end();
        EXPECT_FALSE(nodes[0]->begin(64));
        idle(*nodes[1]);
        idle(*nodes[0]);
        idle(*nodes[1]);
    }
    EXPECT_THROW(nodes[0]->begin(ring + 1), base::Error);
}

TEST(SharedNode, copies_small_exposures_by_address_and_waits_for_the_readers_of_large_ones) {
    auto nodes = make_members(3);
    const auto small = pattern(1, Exposure::inline_bytes);
    const auto large = pattern(2, Exposure::inline_bytes + 1);
    for (auto& node : nodes) ASSERT_TRUE(node->begin(0));
    nodes[0]->expose_address(0, small.data(), Exposure::inline_bytes);
    nodes[0]->expose_address(1, large.data(), Exposure::inline_bytes + 1);
    EXPECT_TRUE(nodes[0]->read_by(0, 2));
    EXPECT_FALSE(nodes[0]->read_by(1, 1));
    for (int reader = 1; reader < 3; ++reader) {
        SharedNode& node = *nodes[static_cast<std::size_t>(reader)];
        for (const unsigned tag : {0u, 1u}) {
            const Exposure* exposure = node.find_exposure(0, tag);
            ASSERT_TRUE(exposure);
            EXPECT_EQ(node.direct(0, *exposure) == nullptr, tag == 1);
            std::vector<char> got(static_cast<std::size_t>(exposure->bytes));
            EXPECT_EQ(node.read(0, *exposure, 0, got.data(), exposure->bytes), 0);
            EXPECT_EQ(got, tag == 0 ? small : large);
            node.release(0, tag);
        }
        EXPECT_TRUE(nodes[0]->read_by(1, static_cast<unsigned>(reader)));
        EXPECT_FALSE(nodes[0]->read_by(1, static_cast<unsigned>(reader) + 1));
    }
    const Exposure* own = nodes[0]->find_exposure(0, 1);
    EXPECT_EQ(nodes[0]->direct(0, *own), large.data());
}

TEST(SharedNode, owners_copy_what_readers_ask_for) {
    auto nodes = make_members(3);
    const std::int64_t most = nodes[0]->most_asked();
    const std::int64_t bytes = most + 1000;
    const auto data = pattern(3, bytes);
    for (auto& node : nodes) ASSERT_TRUE(node->begin(0));
    nodes[0]->expose_address(5, data.data(), bytes);
    for (int reader = 1; reader < 3; ++reader) {
        SharedNode& node = *nodes[static_cast<std::size_t>(reader)];
        node.refuse(0, 5);
        std::vector<char> got;
        for (std::int64_t at = 0; at < bytes; at += most) {
            const std::int64_t part = std::min(bytes - at, most);
            node.ask(0, 5, at, part);
            EXPECT_EQ(node.answer(), nullptr);
            // Others' exposures are theirs to answer for.
            nodes[static_cast<std::size_t>(3 - reader)]->answer_requests();
            EXPECT_EQ(node.answer(), nullptr);
            EXPECT_FALSE(nodes[0]->read_by(5, 2));
            const char* answer = node.answer();
            ASSERT_TRUE(answer);
            got.insert(got.end(), answer, answer + part);
        }
        EXPECT_EQ(got, data);
        node.release(0, 5);
    }
    EXPECT_TRUE(nodes[0]->read_by(5, 2));
    EXPECT_FALSE(nodes[1]->has_left(0));
    nodes[0]->end();
    EXPECT_TRUE(nodes[1]->has_left(0));
}

TEST(SharedNode, refuses_to_read_outside_of_an_exposure) {
    auto nodes = make_members(2);
    for (auto& node : nodes) ASSERT_TRUE(node->begin(0));
    nodes[0]->expose_inline(0, "abcd", 4);
    const Exposure& exposure = *nodes[1]->find_exposure(0, 0);
    char to[8] = {};
    EXPECT_EQ(nodes[1]->read(0, exposure, 3, to, 1), 0);
    EXPECT_EQ(to[0], 'd');
    EXPECT_EQ(nodes[1]->read(0, exposure, 4, to, 0), 0);
    EXPECT_EQ(nodes[1]->read(0, exposure, 3, to, 2), EINVAL);
    EXPECT_EQ(nodes[1]->read(0, exposure, -1, to, 1), EINVAL);
    EXPECT_EQ(nodes[1]->read(0, exposure, 0, to, -1), EINVAL);
    EXPECT_EQ(nodes[1]->read(0, exposure, INT64_MAX, to, 1), EINVAL);
}

TEST(SharedNode, knows_of_single_copy_when_everyone_has_tried) {
    const auto segment = make_segment(2);
    const auto first = test::join(segment, 0);
    const auto second = test::join(segment, 1);
    EXPECT_EQ(first->single_copy(), std::nullopt);
    first->all_joined();
    EXPECT_EQ(first->single_copy(), std::nullopt);
    second->all_joined();
    EXPECT_EQ(first->single_copy(), std::optional<bool>(true));
    EXPECT_EQ(second->single_copy(), std::optional<bool>(true));
}

TEST(SharedNode, refuses_a_place_that_is_taken_or_does_not_exist) {
    const auto segment = make_segment(2);
    const auto node = test::join(segment, 1);
    std::string why;
    EXPECT_FALSE(SharedNode::join(segment, 1, why));
    EXPECT_THAT(why, HasSubstr("member 1 of this shared memory has already joined"));
    EXPECT_FALSE(SharedNode::join(segment, 2, why));
    EXPECT_THAT(why, HasSubstr("member 2 of shared memory for 2 ranks"));
    EXPECT_FALSE(SharedNode::join(segment, -1, why));
    EXPECT_THROW(node->all_joined(), base::Error) << "member 0 isn't";
}

TEST(SharedNode, counts_the_cores_that_any_member_may_run_on) {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    auto nodes = make_members(2);
    EXPECT_EQ(nodes[0]->cores(), CPU_COUNT(&all));
    if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two processors";
    // Two members, bound to one core each, have two cores together.
    const auto segment = make_segment(2);
    std::vector<std::unique_ptr<SharedNode>> bound;
    std::thread([&] {
        for (int cpu = 0, me = 0; me < 2; ++cpu) {
            if (!CPU_ISSET(cpu, &all)) continue;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
            bound.push_back(test::join(segment, me++));
        }
    }).join();
    bound[0]->all_joined();
    EXPECT_EQ(bound[0]->cores(), 2);
}

TEST(SharedNode, says_when_a_peers_memory_cannot_be_read) {
    const auto segment = make_segment(2);
    const auto node = test::join(segment, 0);
    const pid_t child = test::start_process(1, [&](int) {
        const auto peer = test::join(segment, 1);
        const std::vector<char> data(1000);
        ASSERT_TRUE(peer->begin(0));
        peer->expose_address(0, data.data(), 1000);
        peer->expose_address(1, reinterpret_cast<const void*>(8), 1000);
        peer->end();
        sleep(test::patience_s);
    });
    SpinWait spin_wait(2, 2);
    test::begin(*node, spin_wait);
    std::vector<char> to(1000);
    const Exposure& nowhere = test::wait_for(*node, spin_wait, 1, 1);
    EXPECT_EQ(node->read(1, nowhere, 0, to.data(), 1000), EFAULT);
    kill(child, SIGKILL);
    EXPECT_EQ(test::end_of(child), "signal 9");
    EXPECT_EQ(node->read(1, *node->find_exposure(1, 0), 0, to.data(), 1000), ESRCH);
}

TEST(SharedNode, reads_what_its_peers_have_mapped_in_place) {
    auto nodes = make_members(2);
    nodes[1]->map_with(std::make_unique<SameAddressAttacher>());
    const auto data = pattern(9, 10000);
    for (int i = 0; i < 3; ++i) {
        for (auto& node : nodes) ASSERT_TRUE(node->begin(0));
        nodes[0]->expose_address(0, data.data(), 10000);
        EXPECT_EQ(nodes[1]->direct(0, *nodes[1]->find_exposure(0, 0)), data.data());
        nodes[1]->release(0, 0);
        EXPECT_TRUE(nodes[0]->read_by(0, 1));
        for (auto& node : nodes) node->end();
    }
    EXPECT_EQ(nodes[1]->attach_counts().hits, 2);
    EXPECT_EQ(nodes[1]->attach_counts().misses, 1);
}

TEST(SingleCopy, tells_a_process_by_its_word) {
    const std::uint64_t word = 42;
    const auto address = reinterpret_cast<std::uint64_t>(&word);
    EXPECT_TRUE(can_read_process(getpid(), address, 42));
    EXPECT_FALSE(can_read_process(getpid(), address, 43));
    EXPECT_FALSE(can_read_process(getpid(), 8, 42));
}

}  // namespace
}  // namespace palmette::node
