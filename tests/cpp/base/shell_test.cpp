#include "palmette/base/shell.hpp"

#include <gmock/gmock.h>

namespace palmette::base {
namespace {

TEST(Shell, a_word_of_a_command_line_can_be_pasted) {
    EXPECT_EQ(shell_word("/home/me/run-1,a:b@c"), "/home/me/run-1,a:b@c");
    EXPECT_EQ(shell_word("my run"), "'my run'");
    EXPECT_EQ(shell_word("\xc3\x9cn\xc3\xaf"), "'\xc3\x9cn\xc3\xaf'");
    EXPECT_EQ(shell_word("it's $HOME"), "'it'\"'\"'s $HOME'");
    EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace palmette::base
