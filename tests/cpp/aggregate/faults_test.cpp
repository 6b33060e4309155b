// A daemon that dies, stops, lies or is cut off at any moment, and members that do: all end with a reason or with the
// right result, within a bounded time.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregate/harness.hpp"
#include "aggregate/proxy.hpp"

namespace palmette::aggregate::testing {
namespace {

using kernels::Element;
using kernels::Operator;

constexpr std::size_t vector_count = 100;

/// Integers, so that the sum is known.
struct Job {
    std::vector<std::vector<std::int64_t>> inputs, outputs;
    std::vector<bool> posted;
    std::uint32_t number = 0;

    explicit Job(std::size_t members) : outputs(members, std::vector<std::int64_t>(vector_count)), posted(members) {
        for (std::size_t member = 0; member < members; ++member)
            inputs.emplace_back(vector_count, static_cast<std::int64_t>(1) << (8 * member));
    }
    /// Posts the operation at each member that has become ready.
    void post(World& world) {
        for (std::size_t member = 0; member < posted.size(); ++member) {
            if (posted[member] || !world.clients[member]->ready()) continue;
            posted[member] = true;
            const Operation operation = Operation::allreduce(Operator::sum, Element::int64, inputs[member].data(),
                                                             outputs[member].data(), vector_count);
            EXPECT_EQ(world.clients[member]->post(operation, number), Reason::none);
        }
    }
    bool right(std::size_t member) const {
        std::int64_t sum = 0;
        for (const auto& input : inputs) sum += input[0];
        return outputs[member] == std::vector<std::int64_t>(vector_count, sum);
    }
    bool done(const World& world, std::size_t member) const {
        return posted[member] && world.clients[member]->done(number);
    }
    bool ended(const World& world) const {
        for (std::size_t member = 0; member < posted.size(); ++member)
            if (!done(world, member) && !world.clients[member]->failed()) return false;
        return true;
    }
    /// Each member has the right result, or a reason.
    void check(const World& world) const {
        for (std::size_t member = 0; member < posted.size(); ++member) {
            if (done(world, member)) {
                EXPECT_TRUE(right(member)) << "member " << member;
            } else {
                EXPECT_TRUE(world.clients[member]->failed());
                EXPECT_NE(world.clients[member]->reason(), Reason::none);
                EXPECT_FALSE(world.clients[member]->detail().empty());
            }
        }
    }
};

/// Where one member may never join, the others wait in vain.
World impatient() {
    World world;
    world.timeouts.join_ms = 60;
    world.timeouts.silent_ms = 60;
    return world;
}

void begin(World& world, std::uint16_t members, std::uint16_t port = 0) {
    const Invitation by = world.invitation();
    for (std::uint16_t member = 0; member < members; ++member)
        world.join(
            world.membership(port != 0 && member == 0 ? port : world.daemons[0]->port(), member, members, shape(), by));
}

TEST(AggregateFaults, TheDaemonDiesAfterAnyFrame) {
    bool survived = false;
    for (std::uint64_t frames = 0; !survived; ++frames) {
        World world = impatient();
        DaemonSettings with = settings();
        with.frames_a_turn = with.events_a_turn = 1;
        world.add(with);
        begin(world, 3);
        Job job(3);
        ASSERT_TRUE(world.until([&] {
            job.post(world);
            if (!world.daemons.empty()) {
                const Metrics& metrics = world.daemons[0]->metrics();
                if (metrics.frames_received + metrics.frames_sent >= frames) world.daemons.clear();
            }
            return job.ended(world);
        })) << frames
            << ": " << world.reasons();
        job.check(world);
        survived = !world.daemons.empty();
        ASSERT_LT(frames, 1000U);
    }
}

TEST(AggregateFaults, ADaemonOfATreeDiesAfterAnyFrame) {
    for (std::size_t victim = 0; victim < 2; ++victim) {
        bool survived = false;
        for (std::uint64_t frames = 0; !survived; frames += 2) {
            World world = impatient();
            DaemonSettings with = settings();
            with.frames_a_turn = with.events_a_turn = 1;
            world.add(with);
            with.parent = Address{"127.0.0.1", world.daemons[0]->port()};
            world.add(with);
            const Invitation by = world.invitation();
            for (std::uint16_t member = 0; member < 2; ++member) {
                Membership below = world.membership(world.daemons[1]->port(), member, 2, shape(), by);
                below.levels.count = 2;
                below.levels.at[1] = {2, 0};
                world.join(below);
            }
            world.join(world.membership(world.daemons[0]->port(), 1, 2, shape(), by));
            Job job(3);
            bool killed = false;
            ASSERT_TRUE(world.until([&] {
                job.post(world);
                if (!killed) {
                    const Metrics& metrics = world.daemons[victim]->metrics();
                    killed = metrics.frames_received + metrics.frames_sent >= frames;
                    if (killed) world.daemons.erase(world.daemons.begin() + static_cast<std::ptrdiff_t>(victim));
                }
                return job.ended(world);
            })) << frames
                << ": " << world.reasons();
            job.check(world);
            survived = !killed;
            ASSERT_LT(frames, 1000U);
        }
    }
}

TEST(AggregateFaults, AConnectionIsCutAtAnyByte) {
    for (const bool to_daemon : {false, true}) {
        bool whole = false;
        for (std::uint64_t at = 0; !whole; at += 61) {
            World world = impatient();
            world.add();
            Proxy proxy(world.daemons[0]->port(), {Proxy::Kind::cut, to_daemon, at});
            begin(world, 2, proxy.port());
            Job job(2);
            ASSERT_TRUE(world.until([&] {
                proxy.turn();
                job.post(world);
                return job.ended(world);
            })) << at
                << ": " << world.reasons();
            job.check(world);
            whole = proxy.passed(to_daemon) < at;
            ASSERT_LT(at, 10000U);
        }
    }
}

TEST(AggregateFaults, ADamagedByteNeverGivesAWrongResult) {
    for (const bool to_daemon : {false, true}) {
        bool beyond = false;
        for (std::uint64_t at = 0; !beyond; at += 37) {
            World world = impatient();
            world.add();
            Proxy proxy(world.daemons[0]->port(), {Proxy::Kind::flip, to_daemon, at});
            begin(world, 2, proxy.port());
            Job job(2);
            ASSERT_TRUE(world.until([&] {
                proxy.turn();
                job.post(world);
                return job.ended(world);
            })) << at
                << ": " << world.reasons();
            job.check(world);
            beyond = proxy.passed(to_daemon) <= at;
            const bool failed = world.clients[0]->failed();
            EXPECT_TRUE(failed || beyond || job.done(world, 0)) << at;
            if (!beyond && !failed) {
                EXPECT_TRUE(job.right(0) && job.right(1)) << at;
            }
            ASSERT_LT(at, 10000U);
        }
    }
}

TEST(AggregateFaults, AStalledConnectionIsNoticed) {
    for (const std::uint64_t at : {0, 10, 150, 300, 500}) {
        for (const bool to_daemon : {false, true}) {
            World world = impatient();
            world.timeouts.join_ms = 5000;  // a silent daemon is noticed before members that don't come
            DaemonSettings with = settings();
            with.timeouts.join_ms = 150;
            world.add(with);
            Proxy proxy(world.daemons[0]->port(), {Proxy::Kind::stall, to_daemon, at});
            begin(world, 2, proxy.port());
            Job job(2);
            ASSERT_TRUE(world.until([&] {
                proxy.turn();
                job.post(world);
                return world.clients[0]->failed();
            })) << at
                << ": " << world.reasons();
            EXPECT_EQ(world.clients[0]->reason(), Reason::silent) << at << to_daemon;
            ASSERT_TRUE(world.until([&] {
                proxy.turn();
                return world.clients[1]->failed();
            })) << world.reasons();
        }
    }
}

TEST(AggregateFaults, ADaemonThatLiesIsLeft) {
    struct Lie {
        const char* name;
        std::function<bool(Header&)> tell;
    };
    const auto in_result = [](void (*change)(Header&)) {
        return [change](Header& header) {
            if (header.type != FrameType::result) return false;
            change(header);
            return true;
        };
    };
    const std::vector<Lie> lies{
        {"chunk", in_result([](Header& header) { ++header.chunk; })},
        {"offset", in_result([](Header& header) { ++header.offset; })},
        {"epoch", in_result([](Header& header) { ++header.epoch; })},
        {"group", in_result([](Header& header) { ++header.group; })},
        {"sequence", in_result([](Header& header) { ++header.sequence; })},
        {"count", in_result([](Header& header) { --header.count; })},
        {"operation", in_result([](Header& header) { header.op = Operator::max; })},
        {"type", in_result([](Header& header) { header.element = Element::uint64; })},
        {"collective", in_result([](Header& header) { header.collective = Collective::bcast; })},
        {"READY again", in_result([](Header& header) {
             header.type = FrameType::ready;
             header.collective = Collective::none;
         })},
        {"PONG unasked", in_result([](Header& header) {
             header.type = FrameType::pong;
             header.collective = Collective::none;
         })},
        {"DATA", in_result([](Header& header) { header.type = FrameType::data; })},
        {"READY without the secret", [](Header& header) {
             if (header.type != FrameType::ready) return false;
             ++header.payload_crc;
             return true;
         }}};
    for (const Lie& lie : lies) {
        World world = impatient();
        world.add();
        Proxy proxy(world.daemons[0]->port(), {});
        proxy.rewrite = lie.tell;
        begin(world, 2, proxy.port());
        Job job(2);
        ASSERT_TRUE(world.until([&] {
            proxy.turn();
            job.post(world);
            return job.ended(world);
        })) << lie.name
            << ": " << world.reasons();
        EXPECT_TRUE(world.clients[0]->failed()) << lie.name;
        EXPECT_TRUE(world.clients[0]->reason() == Reason::protocol || world.clients[0]->reason() == Reason::damaged)
            << lie.name << ": " << world.reasons();
        job.check(world);
    }
}

TEST(AggregateFaults, PongsThatDenyDataAreALie) {
    World world;
    world.add();
    Proxy proxy(world.daemons[0]->port(), {});
    proxy.rewrite = [](Header& header) {
        if (header.type != FrameType::pong) return false;
        header.chunk = 0;
        return true;
    };
    begin(world, 2, proxy.port());
    ASSERT_TRUE(world.until([&] {
        proxy.turn();
        return world.clients[0]->ready() && world.clients[1]->ready();
    }));
    Job job(2);
    job.posted[1] = true;  // never comes
    job.post(world);
    ASSERT_TRUE(world.until([&] {
        proxy.turn();
        return world.clients[0]->failed();
    }));
    EXPECT_EQ(world.clients[0]->reason(), Reason::protocol);
}

TEST(AggregateFaults, ADaemonOfAnotherVersionIsRefused) {
    World world;
    world.add();
    Fd listener = listen_on({"127.0.0.1", 0});
    Membership with = world.membership(port_of(listener.get()), 0, 1, shape(), world.invitation());
    Client& client = world.join(with);
    std::string host;
    int error = 0;
    Fd accepted;
    ASSERT_TRUE(world.until([&] {
        if (!accepted) accepted = accept_from(listener.get(), host, error);
        return static_cast<bool>(accepted);
    }));
    HeaderBytes bytes{};
    write_header(Header{}, bytes.data());
    bytes[4] = 2;
    send_some(accepted.get(), {bytes.data(), bytes.size()}, {});
    ASSERT_TRUE(world.until_failed());
    EXPECT_EQ(client.reason(), Reason::version);

    Detail why;
    const Fd newer = begin_connect({"127.0.0.1", world.daemons[0]->port()}, why);
    ASSERT_TRUE(world.until([&] { return connect_status(newer.get()) == 0; }));
    send_some(newer.get(), {bytes.data(), bytes.size()}, {});
    EXPECT_TRUE(world.until(
        [&] { return world.daemons[0]->metrics().refused[static_cast<std::size_t>(Reason::version)] == 1; }));
}

/// The daemon in a process of its own.
class DaemonProcess {
  public:
    DaemonProcess() {
        auto daemon = std::make_unique<Daemon>(settings());
        port = daemon->port();
        pid = fork();
        if (pid == 0) {
            daemon->run();
            _exit(0);
        }
    }
    DaemonProcess(const DaemonProcess&) = delete;
    DaemonProcess& operator=(const DaemonProcess&) = delete;
    ~DaemonProcess() {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
    std::uint16_t port = 0;
    pid_t pid = 0;
};

TEST(AggregateFaults, AStoppedOrKilledProcessIsNoticed) {
    for (const int signal : {SIGSTOP, SIGKILL}) {
        DaemonProcess daemon;
        World world;
        const Invitation by = world.invitation();
        for (std::uint16_t member = 0; member < 2; ++member)
            world.join(world.membership(daemon.port, member, 2, shape(), by));
        ASSERT_TRUE(world.until([&] { return world.all([](const Client& client) { return client.ready(); }); }));
        kill(daemon.pid, signal);
        Job job(2);
        job.post(world);
        ASSERT_TRUE(world.until_failed()) << world.reasons();
        for (const auto& client : world.clients)
            EXPECT_EQ(client->reason(), signal == SIGSTOP ? Reason::silent : Reason::closed);
    }
}

TEST(AggregateFaults, NobodyListens) {
    World world;
    const std::uint16_t port = port_of(listen_on({"127.0.0.1", 0}).get());
    world.join(world.membership(port, 0, 1, shape(), world.invitation()));
    ASSERT_TRUE(world.until_failed());
    EXPECT_EQ(world.clients[0]->reason(), Reason::connect);
}

TEST(AggregateFaults, AMemberThatDiesEndsTheGroupForAll) {
    World world;
    world.add();
    world.join_all(3);
    Job job(3);
    job.posted[2] = true;
    job.post(world);
    world.turn();
    world.clients.pop_back();
    ASSERT_TRUE(world.until_failed());
    for (const auto& client : world.clients) {
        EXPECT_EQ(client->reason(), Reason::member_lost);
        EXPECT_EQ(client->detail(), "member 2's connection ended");
    }
    EXPECT_EQ(world.daemons[0]->groups(), 0U);
}

TEST(AggregateFaults, MembersThatCallDifferentOperations) {
    const std::vector<std::function<Operation(std::int64_t*, std::int64_t*)>> calls{
        [](auto* in, auto* out) { return Operation::allreduce(Operator::sum, Element::int64, in, out, 3); },
        [](auto* in, auto* out) { return Operation::allreduce(Operator::sum, Element::int64, in, out, 4); },
        [](auto* in, auto* out) { return Operation::allreduce(Operator::max, Element::int64, in, out, 3); },
        [](auto* in, auto* out) { return Operation::allreduce(Operator::sum, Element::uint64, in, out, 3); },
        [](auto* in, auto* out) { return Operation::reduce(Operator::sum, Element::int64, in, out, 3, 0, true); },
        [](auto* in, auto* out) { return Operation::reduce(Operator::sum, Element::int64, in, out, 3, 1, false); },
        [](auto* in, auto*) { return Operation::bcast(Element::int64, in, 3, 0, true); },
        [](auto*, auto*) { return Operation{}; }};
    for (std::size_t one = 0; one < calls.size(); ++one) {
        for (std::size_t other = 0; other < calls.size(); ++other) {
            if (one == other) continue;
            World world;
            world.add();
            world.join_all(2);
            std::vector<std::int64_t> in(4, 1), out(4), more(4);
            std::uint32_t number = 0;
            world.clients[0]->post(calls[one](in.data(), out.data()), number);
            world.clients[1]->post(calls[other](in.data(), more.data()), number);
            ASSERT_TRUE(world.until_failed()) << one << ' ' << other << world.reasons();
            EXPECT_EQ(world.clients[0]->reason(), Reason::mismatch) << world.reasons();
            EXPECT_EQ(world.clients[1]->reason(), Reason::mismatch) << world.reasons();
        }
    }
}

TEST(AggregateFaults, TwoRootsOrNone) {
    for (const bool is_root : {false, true}) {
        World world;
        world.add();
        world.join_all(2);
        std::vector<char> one(10), other(10);
        std::uint32_t number = 0;
        world.clients[0]->post(Operation::bcast(Element::byte, one.data(), 10, 0, is_root), number);
        world.clients[1]->post(Operation::bcast(Element::byte, other.data(), 10, 0, is_root), number);
        ASSERT_TRUE(world.until_failed());
        EXPECT_EQ(world.clients[0]->reason(), Reason::mismatch);
    }
}

TEST(AggregateFaults, AStoppedDaemonTellsItsMembers) {
    World world;
    world.add();
    world.join_all(2);
    world.daemons[0]->stop();
    world.daemons[0]->turn(0);
    Daemon& daemon = *world.daemons[0];
    daemon.run();
    ASSERT_TRUE(world.until_failed());
    EXPECT_EQ(world.clients[0]->reason(), Reason::shutdown);
}

}  // namespace
}  // namespace palmette::aggregate::testing
