#include "palmette/base/byte_buffer.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace palmette::base {
namespace {

TEST(ByteBuffer, has_room_for_what_was_asked_for_last_and_stays_where_it_is_large_enough) {
    ByteBuffer room;
    EXPECT_EQ(room.size(), 0U);
    room.grow(0);
    EXPECT_EQ(room.data(), nullptr);
    room.grow(100);
    char* const at = room.data();
    at[99] = 7;
    room.grow(50);
    EXPECT_EQ(room.size(), 100U);
    EXPECT_EQ(room.data(), at);
    EXPECT_EQ(std::as_const(room).data()[99], 7);
    room.grow(1 << 20);
    room.data()[(1 << 20) - 1] = 1;
    EXPECT_EQ(room.size(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace palmette::base
