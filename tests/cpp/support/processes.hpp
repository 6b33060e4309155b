// Several processes in one test, as the ranks of a node.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace palmette::test {

/// Seconds after which a process that hangs is ended.
constexpr unsigned patience_s = 120;

/// Starts `body(i)` in a process of its own. Its failed expectations are printed there, and make its exit status 1.
template <class Body>
pid_t start_process(int i, Body body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child != 0) return child;
    alarm(patience_s);
    try {
        body(i);
    } catch (const std::exception& error) {
        ADD_FAILURE() << "process " << i << ": " << error.what();
    }
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
}

/// How a process ended, in words; empty: well.
inline std::string end_of(pid_t process) {
    int status = 0;
    if (waitpid(process, &status, 0) != process) return "lost";
    if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
}

/// Runs `body(0)` to `body(count - 1)` at the same time, and expects all to end well.
template <class Body>
void run_processes(int count, Body body) {
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) children.push_back(start_process(i, body));
    for (int i = 0; i < count; ++i) EXPECT_EQ(end_of(children[static_cast<std::size_t>(i)]), "") << "process " << i;
}

}  // namespace palmette::test
