#include "palmette/aggregate/daemon/window.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace palmette::aggregate {
namespace {

constexpr std::size_t numbers = 4;

Shape small(std::uint16_t slots) {
    Shape shape;
    shape.slots = slots;
    shape.chunk_bytes = numbers * sizeof(float);
    return shape;
}

Header chunk(std::uint64_t number) {
    Header header;
    header.type = FrameType::data;
    header.flags = gives | wants;
    header.collective = Collective::allreduce;
    header.element = kernels::Element::float32;
    header.chunk = number;
    header.offset = number * numbers;
    header.count = 1000;
    header.bytes = numbers * sizeof(float);
    return header;
}

/// A member's chunk, all of one value.
Reason give(Window& window, unsigned member, std::uint64_t number, float value) {
    char* to = nullptr;
    Detail why;
    const Reason reason = window.accept(member, chunk(number), to, why);
    if (reason != Reason::none) return reason;
    for (std::size_t i = 0; i < numbers; ++i) std::memcpy(to + i * sizeof value, &value, sizeof value);
    EXPECT_TRUE(window.arrived(member, why));
    return Reason::none;
}

float result(Window& window, unsigned member) {
    Header header;
    const char* payload = nullptr;
    if (!window.next_result(member, header, payload)) return -1;
    float value = 0;
    std::memcpy(&value, payload, sizeof value);
    return value;
}

TEST(Window, CombinesInTheOrderOfMembersWhoeverComesFirst) {
    // (1e8 + -1e8) + 1 is 1; any other order of these loses the 1.
    const std::vector<float> values{1e8F, -1e8F, 1.0F};
    for (const std::vector<unsigned>& order :
         {std::vector<unsigned>{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
        Window window(3, small(2), false, false);
        for (const unsigned member : order) ASSERT_EQ(give(window, member, 0, values[member]), Reason::none);
        EXPECT_EQ(result(window, 0), 1.0F);
    }
}

TEST(Window, AResultStaysUntilItHasBeenSentToAll) {
    Window window(2, small(2), false, false);
    for (unsigned member = 0; member < 2; ++member) give(window, member, 0, 1);
    window.result_sent(0);
    give(window, 0, 1, 10);
    give(window, 0, 2, 100);  // the slot of chunk 0
    EXPECT_EQ(result(window, 1), 2);
    give(window, 1, 1, 20);
    EXPECT_EQ(result(window, 1), 2);
    EXPECT_EQ(give(window, 1, 2, 200), Reason::protocol) << "before it was sent the result of chunk 0";
    window.result_sent(1);
    EXPECT_EQ(give(window, 1, 2, 200), Reason::none);
    EXPECT_EQ(result(window, 1), 30);
    window.result_sent(1);
    EXPECT_EQ(result(window, 1), 300);
}

TEST(Window, WhatIsHalfCombinedIsNoResultYet) {
    Window window(3, small(2), false, false);
    for (std::uint64_t number = 0; number < 2; ++number)
        for (unsigned member = 0; member < 3; ++member) give(window, member, number, 1);
    for (unsigned member = 0; member < 2; ++member) window.result_sent(member);
    for (unsigned member = 0; member < 2; ++member) give(window, member, 2, 100);  // the slot of chunk 0
    EXPECT_EQ(result(window, 2), 3) << "the last member still has to be sent chunk 0";
}

TEST(Window, NothingBeyondTheWindowOrOutOfTurn) {
    Window window(2, small(2), false, false);
    EXPECT_EQ(give(window, 0, 1, 1), Reason::protocol);
    EXPECT_EQ(give(window, 0, 0, 1), Reason::none);
    EXPECT_EQ(give(window, 0, 0, 1), Reason::protocol);
    EXPECT_EQ(give(window, 0, 1, 1), Reason::none);
    EXPECT_EQ(give(window, 0, 2, 1), Reason::protocol);
}

TEST(Window, MissingMembersAreTold) {
    Window window(3, small(2), false, false);
    unsigned first = 9;
    EXPECT_EQ(window.missing(first), 3U);
    EXPECT_EQ(first, 0U);
    give(window, 0, 0, 1);
    give(window, 2, 0, 1);
    EXPECT_EQ(window.missing(first), 1U);
    EXPECT_EQ(first, 1U);
}

TEST(Window, ResultsFromAboveComeBeforeMembersGetThem) {
    Window window(2, small(2), false, true);
    for (unsigned member = 0; member < 2; ++member) give(window, member, 0, 3);
    EXPECT_EQ(result(window, 0), -1);
    Header up;
    const char* payload = nullptr;
    ASSERT_TRUE(window.next_above(0, up, payload));
    EXPECT_FALSE(window.next_above(1, up, payload));
    ASSERT_TRUE(window.next_above(0, up, payload));
    up.type = FrameType::result;
    char* to = nullptr;
    Header wrong = up;
    wrong.bytes = sizeof(float);
    EXPECT_FALSE(window.place_from_above(wrong, to)) << "shorter than what was sent up";
    ASSERT_TRUE(window.place_from_above(up, to));
    const float total = 50;
    std::memcpy(to, &total, sizeof total);
    window.arrived_from_above(up);
    EXPECT_EQ(result(window, 0), 50);
    EXPECT_FALSE(window.place_from_above(up, to)) << "one more than was sent up";
}

}  // namespace
}  // namespace palmette::aggregate
