// Refusals: each with its reason, at the member that asked, and counted.
#include "aggregate/harness.hpp"
#include "palmette/base/error.hpp"

namespace palmette::aggregate::testing {
namespace {

using kernels::Element;
using kernels::Operator;

/// The reason that a member with this membership gets; the others of the world stay.
Reason refusal(World& world, Membership with) {
    Client& client = world.join(std::move(with));
    EXPECT_TRUE(world.until([&] { return client.failed() || client.ready(); })) << world.reasons();
    const Reason reason = client.reason();
    EXPECT_TRUE(reason == Reason::none || !client.detail().empty());
    return reason;
}

Membership alone(World& world, const Shape& of = shape()) {
    ++world.group;
    return world.membership(world.daemons[0]->port(), 0, 1, of, world.invitation());
}

std::uint64_t refused(const World& world, Reason reason) {
    return world.daemons[0]->metrics().refused[static_cast<std::size_t>(reason)];
}

TEST(AggregateLimits, ATokenOfAnotherSiteIsRefused) {
    World world;
    world.add();
    world.token.key = token_key("another site's key, as long as ours", world.token.text);
    EXPECT_EQ(refusal(world, alone(world)), Reason::authentication);
    EXPECT_EQ(refused(world, Reason::authentication), 1U);
}

TEST(AggregateLimits, AChangedTokenIsRefused) {
    World world;
    world.add();
    world.token.text = Grant{0, 1LL << 40, 1000}.text();
    EXPECT_EQ(refusal(world, alone(world)), Reason::authentication);
}

TEST(AggregateLimits, AnExpiredTokenIsRefused) {
    World world;
    world.add();
    world.token = make_token(1000, 1, 1);
    EXPECT_EQ(refusal(world, alone(world)), Reason::authentication);
}

TEST(AggregateLimits, AWrongSecretIsRefused) {
    World world;
    world.add();
    const Invitation by = world.invitation();
    world.join(world.membership(world.daemons[0]->port(), 0, 2, shape(), by));
    ASSERT_TRUE(world.until([&] { return world.daemons[0]->groups() == 1; }));
    Membership with = world.membership(world.daemons[0]->port(), 1, 2, shape(), by);
    with.token.reset();
    with.invitation.secret[5] ^= 1;
    EXPECT_EQ(refusal(world, with), Reason::authentication);
    with.invitation.secret[5] ^= 1;
    EXPECT_EQ(refusal(world, with), Reason::none);
    EXPECT_TRUE(world.clients[0]->ready());
}

TEST(AggregateLimits, JoiningNeedsAGroup) {
    World world;
    world.add();
    Membership with = alone(world);
    with.token.reset();
    EXPECT_EQ(refusal(world, with), Reason::unknown_group);
}

TEST(AggregateLimits, AMemberNumberIsTakenOnce) {
    World world;
    world.add();
    const Invitation by = world.invitation();
    world.join(world.membership(world.daemons[0]->port(), 0, 2, shape(), by));
    ASSERT_TRUE(world.until([&] { return world.daemons[0]->groups() == 1; }));
    EXPECT_EQ(refusal(world, world.membership(world.daemons[0]->port(), 0, 2, shape(), by)), Reason::member_taken);
}

TEST(AggregateLimits, MembersAgreeOnTheShape) {
    World world;
    world.add();
    const Invitation by = world.invitation();
    world.join(world.membership(world.daemons[0]->port(), 0, 2, shape(), by));
    ASSERT_TRUE(world.until([&] { return world.daemons[0]->groups() == 1; }));
    EXPECT_EQ(refusal(world, world.membership(world.daemons[0]->port(), 1, 2, shape(512), by)), Reason::mismatch);
    Membership joins = world.membership(world.daemons[0]->port(), 1, 2, shape(512), by);
    joins.token.reset();
    EXPECT_EQ(refusal(world, joins), Reason::mismatch);
}

TEST(AggregateLimits, AnOldEpochIsRefusedAndANewOneEndsTheOld) {
    World world;
    world.add();
    world.join_all(2);
    const Invitation old = world.invitation();
    world.epoch = 2;
    const Invitation made_anew = world.invitation();
    Client& first = world.join(world.membership(world.daemons[0]->port(), 0, 2, shape(), made_anew));
    ASSERT_TRUE(world.until([&] { return world.clients[0]->failed() && world.clients[1]->failed(); }));
    EXPECT_EQ(world.clients[0]->reason(), Reason::old_epoch);
    Membership with = world.membership(world.daemons[0]->port(), 1, 2, shape(), old);
    EXPECT_EQ(refusal(world, with), Reason::old_epoch);
    with.token.reset();
    EXPECT_EQ(refusal(world, with), Reason::old_epoch);
    EXPECT_EQ(refusal(world, world.membership(world.daemons[0]->port(), 1, 2, shape(), made_anew)), Reason::none);
    EXPECT_TRUE(world.until([&] { return first.ready(); }));
}

TEST(AggregateLimits, AnotherUserCantTakeOverAGroup) {
    World world;
    world.add();
    world.join_all(2);
    world.token = make_token(1001);
    world.epoch = 2;
    EXPECT_EQ(refusal(world, world.membership(world.daemons[0]->port(), 0, 2, shape(), world.invitation())),
              Reason::authentication);
    EXPECT_TRUE(world.clients[0]->ready());
}

TEST(AggregateLimits, GroupsOfAToken) {
    World world;
    world.add();
    world.token = make_token(1000, 2);
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    EXPECT_EQ(refusal(world, alone(world)), Reason::quota);
    world.clients[0]->leave();
    ASSERT_TRUE(world.until([&] { return world.daemons[0]->groups() == 1; }));
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    EXPECT_EQ(refused(world, Reason::quota), 1U);
}

TEST(AggregateLimits, AUsersShareLeavesTheRestToOthers) {
    World world;
    DaemonSettings with = settings();
    with.limits.slots_total = 20;
    with.limits.user_percent = 40;
    world.add(with);
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    EXPECT_EQ(refusal(world, alone(world)), Reason::quota);
    world.token = make_token(1001);
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    world.token = make_token(1002);
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    EXPECT_EQ(refusal(world, alone(world)), Reason::no_resource);
}

TEST(AggregateLimits, MemoryIsReservedAndGivenBack) {
    World world;
    DaemonSettings with = settings();
    with.limits.memory_bytes = Window::bytes_of(1, shape()) + 100;
    Daemon& daemon = world.add(with);
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
    EXPECT_EQ(daemon.usage().bytes, Window::bytes_of(1, shape()));
    EXPECT_EQ(refusal(world, alone(world)), Reason::no_resource);
    world.clients.clear();
    ASSERT_TRUE(world.until([&] { return daemon.usage().bytes == 0; }));
    EXPECT_EQ(refusal(world, alone(world)), Reason::none);
}

TEST(AggregateLimits, ShapesBeyondTheLimits) {
    World world;
    DaemonSettings with = settings();
    with.limits = Limits::of_profile("quantum");
    world.add(with);
    Shape of = shape(1024, 8);
    EXPECT_EQ(refusal(world, alone(world, of)), Reason::none);
    for (const auto& change : std::vector<std::function<void(Shape&)>>{
             [](Shape& one) { one.chunk_bytes = 1025; }, [](Shape& one) { one.chunk_bytes = 0; },
             [](Shape& one) { one.slots = 9; }, [](Shape& one) { one.slots = 0; }, [](Shape& one) { one.tree = 2; }}) {
        Shape beyond = of;
        change(beyond);
        EXPECT_EQ(refusal(world, alone(world, beyond)), Reason::no_resource);
    }
    EXPECT_EQ(refused(world, Reason::no_resource), 5U);
    Membership climbs = alone(world, of);
    climbs.levels.count = 2;
    climbs.levels.at[1] = {2, 0};
    EXPECT_EQ(refusal(world, climbs), Reason::no_resource);
}

TEST(AggregateLimits, OneGroupStreamsOverATree) {
    World world;
    DaemonSettings with = settings();
    with.limits = Limits::of_profile("quantum");
    world.add(with);
    Shape stream = shape(16384, 4);
    EXPECT_EQ(refusal(world, alone(world, stream)), Reason::no_resource);
    stream.mode = Mode::stream;
    EXPECT_EQ(refusal(world, alone(world, stream)), Reason::none);
    Client& holder = *world.clients.back();
    EXPECT_EQ(refusal(world, alone(world, stream)), Reason::stream_lock);
    EXPECT_EQ(refused(world, Reason::stream_lock), 1U);
    stream.tree = 1;
    EXPECT_EQ(refusal(world, alone(world, stream)), Reason::none);
    stream.tree = 0;
    EXPECT_EQ(refusal(world, alone(world, shape(1024, 8))), Reason::none) << "datagrams need no lock";
    holder.leave();
    ASSERT_TRUE(world.until([&] { return world.daemons[0]->groups() == 2; }));
    EXPECT_EQ(refusal(world, alone(world, stream)), Reason::none);
}

TEST(AggregateLimits, OperationsThatAProfileLacks) {
    World world;
    DaemonSettings with = settings();
    with.limits = Limits::of_profile("switch-ib2");
    world.add(with);
    world.join_all(2, shape(256, 8));
    std::uint32_t number = 0;
    double one = 1;
    Client& client = *world.clients[0];
    EXPECT_EQ(client.post(Operation::allreduce(Operator::prod, Element::float64, &one, &one, 1), number),
              Reason::unsupported);
    EXPECT_EQ(client.post(Operation::allreduce(Operator::sum, Element::complex_float, &one, &one, 1), number),
              Reason::unsupported);
    EXPECT_FALSE(client.failed());
    EXPECT_EQ(client.post(Operation::allreduce(Operator::sum, Element::float64, &one, &one, 1), number), Reason::none);
    Window window(2, shape(), true, false);
    Header header;
    header.type = FrameType::data;
    header.collective = Collective::allreduce;
    header.op = Operator::prod;
    header.element = Element::float64;
    header.flags = gives | wants;
    header.count = 1;
    header.bytes = sizeof one;
    char* to = nullptr;
    Detail why;
    EXPECT_EQ(window.accept(0, header, to, why), Reason::unsupported) << "a client that doesn't ask";
}

TEST(AggregateLimits, ConnectionsThatDontJoinAreClosed) {
    World world;
    DaemonSettings with = settings();
    with.greeting_ms = 50;
    with.limits.connections_per_address = 2;
    Daemon& daemon = world.add(with);
    Detail why;
    const Fd one = begin_connect({"127.0.0.1", daemon.port()}, why);
    const Fd two = begin_connect({"127.0.0.1", daemon.port()}, why);
    const Fd three = begin_connect({"127.0.0.1", daemon.port()}, why);
    ASSERT_TRUE(
        world.until([&] { return daemon.metrics().refused[static_cast<std::size_t>(Reason::no_resource)] == 1; }));
    EXPECT_EQ(daemon.connections(), 2U);
    EXPECT_TRUE(world.until([&] { return daemon.connections() == 0; }));
    EXPECT_EQ(refused(world, Reason::authentication), 2U);
}

TEST(AggregateLimits, MembersThatNeverComeEndTheGroup) {
    World world;
    DaemonSettings with = settings();
    with.timeouts.join_ms = 60;
    world.add(with);
    EXPECT_EQ(refusal(world, world.membership(world.daemons[0]->port(), 0, 2, shape(), world.invitation())),
              Reason::late_join);
    EXPECT_EQ(world.daemons[0]->groups(), 0U);
}

TEST(AggregateLimits, ProfilesAndTheirNames) {
    EXPECT_EQ(Limits::of_profile("slingshot").datagram_bytes, 32U);
    EXPECT_THROW(Limits::of_profile("wide"), base::Error);
    Limits limits;
    limits.read(base::Json::parse(R"({"trees": 3, "sharp_types": true})"), "limits");
    EXPECT_EQ(limits.trees, 3U);
    EXPECT_TRUE(limits.sharp_types);
    EXPECT_THROW(limits.read(base::Json::parse(R"({"tree": 3})"), "limits"), base::Error);
    EXPECT_THROW(limits.read(base::Json::parse(R"({"trees": 0})"), "limits"), base::Error);
    EXPECT_THROW(limits.read(base::Json::parse(R"({"trees": "3"})"), "limits"), base::Error);
}

TEST(AggregateLimits, StatusTellsUsersGroupsAndRefusals) {
    World world;
    DaemonSettings with = settings();
    with.name = "leaf0";
    Daemon& daemon = world.add(with);
    world.join_all(2);
    world.token.key[0] ^= 1;
    EXPECT_EQ(refusal(world, alone(world)), Reason::authentication);
    const base::Json status = base::Json::parse(daemon.status().dump());
    EXPECT_EQ(status.find("name")->string("name"), "leaf0");
    const base::Json& group = status.find("groups")->items("groups").at(0);
    EXPECT_EQ(group.find("members")->integer("members"), 2);
    EXPECT_EQ(group.find("group")->string("group"), "0000000000000007");
    EXPECT_EQ(status.find("users")->items("users").at(0).find("uid")->integer("uid"), 1000);
    EXPECT_EQ(status.find("counters")->find("refused")->find("authentication")->integer("refused"), 1);
}

}  // namespace
}  // namespace palmette::aggregate::testing
