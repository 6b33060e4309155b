// palmette-aggregator: the aggregation daemon as a program.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "aggregator/options.hpp"
#include "aggregator/privileges.hpp"
#include "palmette/base/error.hpp"

namespace {

palmette::aggregate::Daemon* running = nullptr;

void on_signal(int) { running->stop(); }

int serve(const std::vector<std::string>& words) {
    using namespace palmette;
    aggregator::Options options = aggregator::read_options(words);
    if (options.help) {
        std::fputs(aggregator::usage, stdout);
        return 0;
    }
    if (options.trial) return aggregator::run_trial(*options.trial);
    // The key may be root's: read before its rights are given up.
    options.daemon.site_key = aggregate::read_site_key(options.key_path);
    aggregate::Daemon daemon(options.daemon);
    aggregator::become(options.user);
    aggregator::harden();
    if (geteuid() == 0)
        std::fputs("palmette-aggregator: runs as root, which it needs for nothing; name a user by --user\n", stderr);
    running = &daemon;
    struct sigaction action{};
    action.sa_handler = on_signal;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    const std::string address = aggregate::Address{options.daemon.listen.host, daemon.port()}.text();
    std::printf("listening on %s, profile %s\n", address.c_str(), options.daemon.limits.profile.c_str());
    std::fflush(stdout);
    daemon.run();
    return 0;
}

}  // namespace

int main(int number, char** words) {
    try {
        return serve({words + 1, words + number});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "palmette-aggregator: %s\n", error.what());
        return 2;
    }
}
