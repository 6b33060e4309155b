// Several processes in one test, as the ranks of a node.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>

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

inline std::string in_words(int status) {
    if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
}

/// How a process ended, in words; empty: well.
inline std::string end_of(pid_t process) {
    int status = 0;
    return waitpid(process, &status, 0) == process ? in_words(status) : "lost";
}

/// Runs `body(0)` to `body(count - 1)` at the same time, and expects all to end well. When one fails the others are
/// ended, since they may wait for it.
template <class Body>
void run_processes(int count, Body body) {
    std::map<pid_t, int> running;
    for (int i = 0; i < count; ++i) running[start_process(i, body)] = i;
    bool failed = false;
    while (!running.empty()) {
        int status = 0;
        const pid_t ended = waitpid(-1, &status, 0);
        ASSERT_GT(ended, 0);
        const auto found = running.find(ended);
        if (found == running.end()) continue;
        if (!failed) {
            EXPECT_EQ(in_words(status), "") << "process " << found->second;
        }
        running.erase(found);
        if (status == 0 || failed) continue;
        failed = true;
        for (const auto& [process, number] : running) kill(process, SIGKILL);
    }
}

}  // namespace palmette::test
