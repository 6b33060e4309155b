// What an aggregator's limits do, and what chunks cost where no link is a limit: daemon and members in one thread, turn
// by turn. claims.py starts it; a JSON object a line.
//
//   in_network_limits PROFILE ROUNDS BYTES
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "palmette/aggregate/client/client.hpp"
#include "palmette/aggregate/daemon/daemon.hpp"

namespace {

using namespace palmette::aggregate;
using Clock = std::chrono::steady_clock;

constexpr const char* site_key = "0123456789abcdef0123456789abcdef";

Token token_of(std::uint32_t user) {
    const std::string text = Grant{user, 1LL << 40, 1000}.text();
    return {text, token_key(site_key, text)};
}

class Site {
  public:
    explicit Site(const char* profile) {
        DaemonSettings settings;
        settings.site_key = site_key;
        settings.limits = Limits::of_profile(profile);
        daemon_ = std::make_unique<Daemon>(std::move(settings));
    }

    using Group = std::vector<std::unique_ptr<Client>>;

    /// Members of a new group; none where it was refused, for which see `reason`.
    Group join(std::uint32_t user, std::uint16_t members, const Shape& shape) {
        Membership with;
        with.daemon = {"127.0.0.1", daemon_->port()};
        with.token = token_of(user);
        with.invitation = *invite(*with.token, ++group_, 1);
        with.levels.count = 1;
        with.shape = shape;
        Group out;
        for (std::uint16_t member = 0; member < members; ++member) {
            with.levels.at[0] = {members, member};
            out.push_back(std::make_unique<Client>(with, Timeouts{}));
            out.back()->start();
        }
        const auto any = [&](auto holds) {
            return std::any_of(out.begin(), out.end(), [&](auto& c) { return holds(*c); });
        };
        while (!any([](Client& c) { return c.failed(); }) && any([](Client& c) { return !c.ready(); })) turn(out);
        for (const auto& client : out)
            if (client->failed()) {
                reason = name_of(client->reason());
                return {};
            }
        return out;
    }

    void leave(Group& group) {
        for (const auto& client : group) client->leave();
        group.clear();
        const auto until = Clock::now() + std::chrono::milliseconds(200);
        while (Clock::now() < until) daemon_->turn(1);
    }

    /// Seconds of an allreduce; below 0: it failed.
    double sum(Group& group, std::size_t bytes) {
        const std::vector<double> input(bytes / sizeof(double), 1.0);
        std::vector<std::vector<double>> output(group.size(), std::vector<double>(input.size()));
        const auto start = Clock::now();
        std::uint32_t number = 0;
        for (std::size_t member = 0; member < group.size(); ++member)
            group[member]->post(
                Operation::allreduce(palmette::kernels::Operator::sum, palmette::kernels::Element::float64,
                                     input.data(), output[member].data(), input.size()),
                number);
        for (bool idle = false; !idle;) {
            idle = true;
            turn(group);
            for (const auto& client : group) {
                if (client->failed()) return -1;
                idle &= client->idle();
            }
        }
        const std::chrono::duration<double> took = Clock::now() - start;
        for (const auto& one : output)
            for (const double value : one)
                if (value != static_cast<double>(group.size())) return -1;
        return took.count();
    }

    std::string reason;

  private:
    void turn(Group& group) {
        daemon_->turn(0);
        for (const auto& client : group) client->progress();
    }

    std::unique_ptr<Daemon> daemon_;
    std::uint64_t group_ = 0;
};

Shape shape_of(Mode mode, std::uint32_t bytes, std::uint16_t slots) {
    Shape out;
    out.mode = mode;
    out.chunk_bytes = bytes;
    out.slots = slots;
    return out;
}

/// Groups of one user, then of another one, until they are refused.
void groups(const char* profile, std::uint16_t slots, std::uint16_t members) {
    Site site(profile);
    std::vector<Site::Group> all;
    for (const std::uint32_t user : {1000U, 1001U}) {
        int made = 0;
        for (; made < 400; ++made) {
            Site::Group group = site.join(user, members, shape_of(Mode::datagram, 1024, slots));
            if (group.empty()) break;
            all.push_back(std::move(group));
        }
        std::printf("{\"what\": \"groups\", \"user\": %u, \"slots\": %d, \"made\": %d, \"reason\": \"%s\"}\n", user,
                    slots, made, site.reason.c_str());
    }
}

/// Two jobs that want to stream on one tree, on another one, and when the first has left.
void streams(const char* profile) {
    Site site(profile);
    const auto ask = [&](const char* when, const Shape& shape) {
        site.reason = "made";
        Site::Group group = site.join(1001, 2, shape);
        std::printf("{\"what\": \"streams\", \"when\": \"%s\", \"reason\": \"%s\"}\n", when, site.reason.c_str());
        if (!group.empty()) site.leave(group);
    };
    const Shape shape = shape_of(Mode::stream, 16384, 8);
    Site::Group first = site.join(1000, 2, shape);
    if (first.empty()) return;
    ask("while another job streams on the tree", shape);
    ask("the same, in datagrams", shape_of(Mode::datagram, 1024, 8));
    Shape other = shape;
    other.tree = 1;
    ask("the same, on the other tree", other);
    site.leave(first);
    ask("when the other has left", shape);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "in_network_limits: PROFILE ROUNDS BYTES\n");
        return 2;
    }
    const int rounds = std::atoi(argv[2]);
    const auto bytes = static_cast<std::size_t>(std::atoll(argv[3]));
    for (const std::uint16_t slots : {std::uint16_t{1}, std::uint16_t{8}}) groups(argv[1], slots, 2);
    streams(argv[1]);
    for (int round = -1; round < rounds; ++round) {
        const auto timed = [&](Site& site, const char* what, std::uint16_t members, std::uint32_t chunk,
                               std::size_t size) {
            Site::Group group = site.join(1000, members, shape_of(Mode::datagram, chunk, 8));
            const double seconds = group.empty() ? -1 : site.sum(group, size);
            if (round >= 0)
                std::printf("{\"what\": \"%s\", \"members\": %d, \"chunk\": %u, \"round\": %d, \"seconds\": %.9g}\n",
                            what, members, chunk, round, seconds);
            site.leave(group);
        };
        for (std::uint16_t members = 2; members <= 64; members = static_cast<std::uint16_t>(2 * members)) {
            Site site(argv[1]);
            timed(site, "members", members, 1024, bytes);
        }
        for (std::uint32_t chunk = 1024; chunk <= 1 << 18; chunk *= 2) {
            Site site("open");
            timed(site, "chunks", 4, chunk, std::size_t{1} << 20);
        }
        std::fflush(stdout);
    }
}
