// Every byte of many operations between processes, and between threads for ThreadSanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "palmette/node/shared_node.hpp"
#include "support/processes.hpp"
#include "support/shared_nodes.hpp"

namespace palmette::node {
namespace {

using test::expose_in_ring;
using test::make_segment;
using test::pattern;
using test::SameAddressAttacher;

/// One exposure of one member in one operation, drawn by all members alike.
struct RandomExposure {
    unsigned tag;
    ExposureKind kind;
    std::int64_t bytes;
    std::vector<int> readers;
};

/// Members expose and read at random for `operations` operations; every byte is checked by every reader.
class RandomExchange {
  public:
    RandomExchange(std::unique_ptr<SharedNode> node, int cores, int operations)
        : node_(std::move(node)), spin_wait_(node_->members(), cores), operations_(operations) {}

    void run() {
        for (int i = 0; i < operations_ && !testing::Test::HasFailure(); ++i) operation(i);
    }

  private:
    std::vector<RandomExposure> draw(int operation, int member) const {
        std::uint32_t state =
            static_cast<std::uint32_t>(operation) * 7919u + static_cast<std::uint32_t>(member) * 104729u + 1;
        const auto random = [&state](std::int64_t below) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            return static_cast<std::int64_t>(state % static_cast<std::uint32_t>(below));
        };
        for (int i = 0; i < 8; ++i) random(2);
        std::vector<RandomExposure> out;
        const std::int64_t count = random(4);
        auto tag = static_cast<unsigned>(random(10));
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t most[] = {1, Exposure::inline_bytes + 1, 200, 9000, ring_share};
            RandomExposure drawn{tag, static_cast<ExposureKind>(random(3)), random(most[random(5)]), {}};
            if (drawn.kind == ExposureKind::in_entry) drawn.bytes = std::min(drawn.bytes, Exposure::inline_bytes);
            for (int reader = 0; reader < node_->members(); ++reader)
                if (random(3) != 0) drawn.readers.push_back(reader);
            out.push_back(drawn);
            tag += 1 + static_cast<unsigned>(random(15));
        }
        return out;
    }

    static std::int64_t seed(int operation, int member, unsigned tag) { return (operation * 64LL + member) * 64 + tag; }

    void operation(int number) {
        const int me = node_->me();
        const std::vector<RandomExposure> mine = draw(number, me);
        std::int64_t ring = 0;
        for (const RandomExposure& drawn : mine)
            if (drawn.kind == ExposureKind::in_ring) ring += SharedNode::slot_bytes(drawn.bytes);
        test::begin(*node_, spin_wait_, ring);
        std::vector<std::vector<char>> data;
        for (const RandomExposure& drawn : mine) data.push_back(pattern(seed(number, me, drawn.tag), drawn.bytes));
        for (std::size_t i = 0; i < mine.size(); ++i) {
            if (mine[i].kind == ExposureKind::in_entry)
                node_->expose_inline(mine[i].tag, data[i].data(), mine[i].bytes);
            if (mine[i].kind == ExposureKind::in_ring) expose_in_ring(*node_, mine[i].tag, data[i]);
            if (mine[i].kind == ExposureKind::at_address)
                node_->expose_address(mine[i].tag, data[i].data(), mine[i].bytes);
        }
        // Everybody is late at times, so that others run ahead.
        if ((number + me * 37) % 200 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        for (int i = 0; i < node_->members(); ++i) {
            const int from = (me + i) % node_->members();
            for (const RandomExposure& drawn : draw(number, from))
                if (std::find(drawn.readers.begin(), drawn.readers.end(), me) != drawn.readers.end())
                    check(number, from, drawn);
        }
        for (std::size_t i = 0; i < mine.size(); ++i) {
            spin_wait_.reset();
            while (!node_->read_by(mine[i].tag, static_cast<unsigned>(mine[i].readers.size()))) spin_wait_.pause();
            std::fill(data[i].begin(), data[i].end(), '!');  // who reads it now, reads it wrong
        }
        node_->end();
    }

    void check(int number, int from, const RandomExposure& drawn) {
        const std::vector<char> expected = pattern(seed(number, from, drawn.tag), drawn.bytes);
        const Exposure& exposure = test::wait_for(*node_, spin_wait_, from, drawn.tag);
        ASSERT_EQ(exposure.bytes, drawn.bytes)
            << "operation " << number << " of member " << from << " tag " << drawn.tag;
        std::vector<char> got(expected.size());
        const char* there = number % 3 == 0 ? node_->direct(from, exposure) : nullptr;
        if (there) {
            std::copy(there, there + drawn.bytes, got.begin());
        } else {
            const std::int64_t cut = drawn.bytes * (number % 7) / 7;
            ASSERT_EQ(node_->read(from, exposure, cut, got.data() + cut, drawn.bytes - cut), 0);
            ASSERT_EQ(node_->read(from, exposure, 0, got.data(), cut), 0);
        }
        node_->release(from, drawn.tag);
        ASSERT_TRUE(got == expected) << "operation " << number << " of member " << from << " tag " << drawn.tag;
    }

    static constexpr std::int64_t ring_share = 20000;  // three of them are less than the ring

    std::unique_ptr<SharedNode> node_;
    SpinWait spin_wait_;
    int operations_;
};

class SharedNodeOfSeveral : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(processes, SharedNodeOfSeveral, testing::Values(1, 2, 3, 5, 8, 16));

TEST_P(SharedNodeOfSeveral, carries_all_bytes_in_thousands_of_random_operations) {
    const int members = GetParam();
    const auto segment = make_segment(members);
    test::run_processes(members, [&](int me) {
        auto node = test::join(segment, me);
        ASSERT_TRUE(node);
        RandomExchange(std::move(node), 2, 24000 / (members + 5)).run();
    });
}

TEST(SharedNode, carries_all_bytes_between_threads) {
    const int members = 4;
    const auto segment = make_segment(members);
    std::vector<std::thread> threads;
    for (int me = 0; me < members; ++me)
        threads.emplace_back([&, me] { RandomExchange(test::join(segment, me), 2, 1000).run(); });
    for (std::thread& thread : threads) thread.join();
}

// The two tests below are for ThreadSanitizer: nothing but `completed` and `releases` tells the writer that its memory
// was read.

TEST(SharedNode, reuses_the_ring_after_its_reader_is_done) {
    const std::int64_t bytes = 1000;
    const int operations = 3000;
    const auto segment = make_segment(2, 4096);
    std::thread writer([&] {
        const auto node = test::join(segment, 0);
        SpinWait spin_wait(2, 2);
        for (int i = 0; i < operations; ++i) {
            test::begin(*node, spin_wait, bytes);
            char* slot = node->ring_slot(bytes);
            ASSERT_TRUE(slot);
            std::fill(slot, slot + bytes, static_cast<char>(i));
            node->expose_slot(0, slot, bytes);
            node->end();
        }
    });
    std::thread reader([&] {
        const auto node = test::join(segment, 1);
        SpinWait spin_wait(2, 2);
        for (int i = 0; i < operations; ++i) {
            test::begin(*node, spin_wait);
            const char* data = node->direct(0, test::wait_for(*node, spin_wait, 0, 0));
            EXPECT_EQ(std::count(data, data + bytes, static_cast<char>(i)), bytes);
            node->end();
        }
    });
    writer.join();
    reader.join();
}

TEST(SharedNode, reuses_exposed_memory_after_its_readers_released_it) {
    const std::int64_t bytes = 1000;
    const int operations = 3000;
    const auto segment = make_segment(3);
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
        const auto node = test::join(segment, 0);
        SpinWait spin_wait(3, 2);
        std::vector<char> data(bytes);
        for (int i = 0; i < operations; ++i) {
            test::begin(*node, spin_wait);
            std::fill(data.begin(), data.end(), static_cast<char>(i));
            node->expose_address(0, data.data(), bytes);
            spin_wait.reset();
            while (!node->read_by(0, 2)) spin_wait.pause();
            node->end();
        }
    });
    for (int me = 1; me < 3; ++me)
        threads.emplace_back([&, me] {
            const auto node = test::join(segment, me);
            node->map_with(std::make_unique<SameAddressAttacher>());
            SpinWait spin_wait(3, 2);
            for (int i = 0; i < operations; ++i) {
                test::begin(*node, spin_wait);
                const char* data = node->direct(0, test::wait_for(*node, spin_wait, 0, 0));
                ASSERT_TRUE(data);
                EXPECT_EQ(std::count(data, data + bytes, static_cast<char>(i)), bytes);
                node->release(0, 0);
                node->end();
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace palmette::node
