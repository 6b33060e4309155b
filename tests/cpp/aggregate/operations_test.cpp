#include <numeric>

#include "aggregate/harness.hpp"

namespace palmette::aggregate::testing {
namespace {

using kernels::Element;
using kernels::Operator;

constexpr unsigned members = 3;

/// What members contribute and get.
struct Data {
    std::vector<std::vector<char>> inputs;
    std::vector<std::vector<char>> outputs;

    Data(std::size_t number, std::size_t size, std::mt19937& random) {
        for (std::size_t member = 0; member < number; ++member) {
            inputs.push_back(random_bytes(size, random));
            outputs.emplace_back(size, '\x5a');
        }
    }
};

void post_allreduce(World& world, Operator op, Element element, Data& data, std::size_t count) {
    std::uint32_t number = 0;
    for (std::size_t member = 0; member < world.clients.size(); ++member) {
        const Operation operation =
            Operation::allreduce(op, element, data.inputs[member].data(), data.outputs[member].data(), count);
        ASSERT_EQ(world.clients[member]->post(operation, number), Reason::none);
    }
}

void check_allreduce(World& world, Operator op, Element element, Data& data, std::size_t count) {
    ASSERT_TRUE(world.until_idle()) << world.reasons();
    const std::vector<char> sum = combined(op, element, data.inputs, count);
    for (std::size_t member = 0; member < world.clients.size(); ++member) {
        ASSERT_FALSE(world.clients[member]->failed()) << world.reasons();
        EXPECT_TRUE(same_data(element, data.outputs[member].data(), sum.data(), count))
            << name_of(op) << " of " << count << ' ' << name_of(element) << ", member " << member;
    }
}

TEST(Aggregate, AllOperationsOnAllTypesGiveTheHostsBits) {
    World world;
    world.add();
    world.join_all(members, shape(64, 3));
    std::mt19937 random(5);
    int pairs = 0;
    for (std::size_t op = 0; op < kernels::operator_count; ++op) {
        for (std::size_t element = 0; element < kernels::element_count; ++element) {
            const auto o = static_cast<Operator>(op);
            const auto e = static_cast<Element>(element);
            const std::size_t count = 11;
            Data data(members, count * kernels::bytes_of(e).extent, random);
            if (kernels::kernel_for(o, e) == nullptr) {
                std::uint32_t number = 0;
                EXPECT_EQ(world.clients[0]->post(
                              Operation::allreduce(o, e, data.inputs[0].data(), data.outputs[0].data(), count), number),
                          Reason::unsupported);
                continue;
            }
            ++pairs;
            post_allreduce(world, o, e, data, count);
            check_allreduce(world, o, e, data, count);
        }
    }
    EXPECT_GT(pairs, 100);
}

TEST(Aggregate, SizesFromNothingToSeveralWindows) {
    World world;
    world.add();
    world.join_all(2, shape(256, 3));
    std::mt19937 random(6);
    for (const std::size_t count : {0, 1, 31, 32, 33, 95, 96, 97, 1000, 10000}) {
        Data data(2, count * sizeof(double), random);
        post_allreduce(world, Operator::max, Element::float64, data, count);
        check_allreduce(world, Operator::max, Element::float64, data, count);
    }
}

TEST(Aggregate, TwoToNineMembers) {
    for (std::uint16_t number = 1; number <= 9; ++number) {
        World world;
        world.add();
        world.join_all(number);
        std::mt19937 random(number);
        Data data(number, 300 * sizeof(float), random);
        post_allreduce(world, Operator::prod, Element::float32, data, 300);
        check_allreduce(world, Operator::prod, Element::float32, data, 300);
    }
}

TEST(Aggregate, InPlaceWhereTheCallerNeedsNoWayBack) {
    World world;
    world.add();
    world.join_all(members);
    std::mt19937 random(7);
    Data data(members, 4000, random);
    const std::vector<char> sum = combined(Operator::bxor, Element::byte, data.inputs, 4000);
    std::uint32_t number = 0;
    for (unsigned member = 0; member < members; ++member) {
        char* both = data.inputs[member].data();
        world.clients[member]->post(Operation::allreduce(Operator::bxor, Element::byte, both, both, 4000), number);
    }
    ASSERT_TRUE(world.until_idle());
    for (const auto& input : data.inputs) EXPECT_EQ(input, sum);
}

TEST(Aggregate, ReduceBcastReduceScatterAndBarrier) {
    World world;
    world.add();
    world.join_all(members);
    std::mt19937 random(8);
    const std::size_t count = 997;
    for (std::uint16_t root = 0; root < members; ++root) {
        Data reduced(members, count * sizeof(int), random);
        Data sent(members, count * sizeof(int), random);
        Data scattered(members, count * sizeof(int), random);
        const std::vector<std::size_t> lengths{500, 3, 494};
        std::size_t first = 0;
        std::uint32_t number = 0;
        for (std::uint16_t member = 0; member < members; ++member) {
            Client& client = *world.clients[member];
            const bool is_root = member == root;
            client.post(Operation::reduce(Operator::sum, Element::int32, reduced.inputs[member].data(),
                                          reduced.outputs[member].data(), count, root, is_root),
                        number);
            client.post(Operation::bcast(Element::int32, (is_root ? sent.inputs : sent.outputs)[member].data(), count,
                                         root, is_root),
                        number);
            client.post(Operation{}, number);
            client.post(Operation::reduce_scatter(Operator::sum, Element::int32, scattered.inputs[member].data(),
                                                  scattered.outputs[member].data(), count, first, lengths[member]),
                        number);
            first += lengths[member];
        }
        ASSERT_TRUE(world.until_idle()) << world.reasons();
        ASSERT_TRUE(world.all([](const Client& client) { return !client.failed(); })) << world.reasons();
        const std::vector<char> sum = combined(Operator::sum, Element::int32, reduced.inputs, count);
        const std::vector<char> parts = combined(Operator::sum, Element::int32, scattered.inputs, count);
        const std::vector<char> untouched(count * sizeof(int), '\x5a');
        std::size_t at = 0;
        for (std::uint16_t member = 0; member < members; ++member) {
            EXPECT_EQ(reduced.outputs[member], member == root ? sum : untouched);
            EXPECT_EQ(sent.outputs[member], member == root ? untouched : sent.inputs[root]);
            const std::size_t size = lengths[member] * sizeof(int);
            EXPECT_EQ(0, std::memcmp(scattered.outputs[member].data(), parts.data() + at, size));
            EXPECT_EQ(0,
                      std::memcmp(scattered.outputs[member].data() + size, untouched.data(), untouched.size() - size));
            at += size;
        }
    }
}

TEST(Aggregate, ResultsGoOnlyToWhoWantsThem) {
    World world;
    Daemon& daemon = world.add();
    world.join_all(members);
    std::mt19937 random(9);
    Data data(members, 4096, random);
    std::uint32_t number = 0;
    for (std::uint16_t member = 0; member < members; ++member)
        world.clients[member]->post(Operation::reduce(Operator::bor, Element::byte, data.inputs[member].data(),
                                                      data.outputs[member].data(), 4096, 0, member == 0),
                                    number);
    ASSERT_TRUE(world.until_idle());
    EXPECT_EQ(daemon.metrics().bytes_sent, 4096U);
}

TEST(Aggregate, ManyOperationsAreOutstanding) {
    World world;
    world.add();
    world.join_all(members, shape(128, 2));
    std::mt19937 random(10);
    std::vector<Data> data;
    std::uint32_t number = 0;
    for (unsigned i = 0; i < Client::most_outstanding; ++i) {
        data.emplace_back(members, 100 * sizeof(double), random);
        post_allreduce(world, Operator::min, Element::float64, data.back(), 100);
    }
    Data more(members, 8, random);
    const Operation operation =
        Operation::allreduce(Operator::min, Element::float64, more.inputs[0].data(), more.outputs[0].data(), 1);
    EXPECT_EQ(world.clients[0]->post(operation, number), Reason::no_resource);
    for (Data& one : data) check_allreduce(world, Operator::min, Element::float64, one, 100);
}

/// Two daemons with 2 and 3 members below one that has a member of its own.
void make_tree(World& world, const Shape& of) {
    world.add();
    for (int below = 0; below < 2; ++below) {
        DaemonSettings with = settings();
        with.parent = Address{"127.0.0.1", world.daemons[0]->port()};
        world.add(with);
    }
    const Invitation by = world.invitation();
    const std::vector<std::uint16_t> sizes{2, 3};
    for (std::uint16_t below = 0; below < 2; ++below) {
        for (std::uint16_t member = 0; member < sizes[below]; ++member) {
            Membership with = world.membership(world.daemons[below + 1U]->port(), member, sizes[below], of, by);
            with.levels.count = 2;
            with.levels.at[1] = {3, below};
            world.join(with);
        }
    }
    world.join(world.membership(world.daemons[0]->port(), 2, 3, of, by));
    ASSERT_TRUE(world.until([&] { return world.all([](const Client& client) { return client.ready(); }); }))
        << world.reasons();
}

TEST(Aggregate, ATreeOfDaemonsCombinesInTheTreesOrder) {
    World world;
    make_tree(world, shape(96, 3));
    std::mt19937 random(11);
    const std::size_t count = 777;
    Data data(6, count * sizeof(float), random);
    for (auto& input : data.inputs)
        for (std::size_t i = 0; i < count; ++i) {
            const float value = std::uniform_real_distribution<float>(-1, 1)(random);
            std::memcpy(input.data() + i * sizeof value, &value, sizeof value);
        }
    post_allreduce(world, Operator::sum, Element::float32, data, count);
    ASSERT_TRUE(world.until_idle()) << world.reasons();
    const auto bracket = [&](std::size_t first, std::size_t end) {
        return combined(Operator::sum, Element::float32,
                        {data.inputs.begin() + static_cast<std::ptrdiff_t>(first),
                         data.inputs.begin() + static_cast<std::ptrdiff_t>(end)},
                        count);
    };
    const std::vector<char> sum =
        combined(Operator::sum, Element::float32, {bracket(0, 2), bracket(2, 5), data.inputs[5]}, count);
    for (const auto& output : data.outputs) EXPECT_EQ(output, sum);
}

TEST(Aggregate, ATreeOfDaemonsServesAllCollectives) {
    for (std::uint16_t root = 0; root < 6; ++root) {
        World world;
        make_tree(world, shape(128, 2));
        std::mt19937 random(root);
        const std::size_t count = 2000;
        Data data(6, count, random);
        Data sent(6, count, random);
        std::uint32_t number = 0;
        for (std::uint16_t member = 0; member < 6; ++member) {
            Client& client = *world.clients[member];
            client.post(Operation::bcast(Element::byte, (member == root ? sent.inputs : sent.outputs)[member].data(),
                                         count, root, member == root),
                        number);
            client.post(Operation{}, number);
            client.post(Operation::reduce(Operator::bxor, Element::byte, data.inputs[member].data(),
                                          data.outputs[member].data(), count, root, member == root),
                        number);
        }
        ASSERT_TRUE(world.until_idle()) << world.reasons();
        const std::vector<char> sum = combined(Operator::bxor, Element::byte, data.inputs, count);
        EXPECT_EQ(data.outputs[root], sum) << world.reasons();
        for (std::uint16_t member = 0; member < 6; ++member) {
            if (member == root) continue;
            EXPECT_EQ(sent.outputs[member], sent.inputs[root]) << world.reasons();
        }
    }
}

TEST(Aggregate, SeveralGroupsAtOnce) {
    World world;
    Daemon& daemon = world.add();
    for (world.group = 1; world.group <= 5; ++world.group) world.join_all(members);
    EXPECT_EQ(daemon.groups(), 5U);
    EXPECT_EQ(daemon.usage().slots, 5U * 4U);
    std::mt19937 random(12);
    Data data(members * 5, 5000, random);
    post_allreduce(world, Operator::bxor, Element::uint8, data, 5000);
    ASSERT_TRUE(world.until_idle()) << world.reasons();
    for (std::size_t group = 0; group < 5; ++group) {
        const auto begin = data.inputs.begin() + static_cast<std::ptrdiff_t>(group * members);
        const std::vector<char> sum = combined(Operator::bxor, Element::uint8, {begin, begin + members}, 5000);
        for (std::size_t member = 0; member < members; ++member) EXPECT_EQ(data.outputs[group * members + member], sum);
    }
}

TEST(Aggregate, ALateMemberIsNoDeadDaemon) {
    World world;
    world.add();
    world.join_all(members);
    std::mt19937 random(13);
    Data data(members, 80, random);
    std::uint32_t number = 0;
    for (std::size_t member : {0, 2})
        world.clients[member]->post(Operation::allreduce(Operator::sum, Element::int64, data.inputs[member].data(),
                                                         data.outputs[member].data(), 10),
                                    number);
    const int much_longer_than_silence = 3 * (world.timeouts.silent_ms + world.timeouts.ping_ms);
    EXPECT_FALSE(world.until([] { return false; }, std::chrono::milliseconds(much_longer_than_silence)));
    ASSERT_FALSE(world.clients[0]->failed()) << world.reasons();
    EXPECT_EQ(world.clients[0]->link().missing(), 1U);
    EXPECT_EQ(world.clients[0]->link().first_missing(), 1U);
    world.clients[1]->post(
        Operation::allreduce(Operator::sum, Element::int64, data.inputs[1].data(), data.outputs[1].data(), 10), number);
    check_allreduce(world, Operator::sum, Element::int64, data, 10);
}

TEST(Aggregate, AMemberThatComputesForLongHasNotWaited) {
    World world;
    world.add();
    world.join_all(2);
    std::mt19937 random(14);
    Data data(2, 80, random);
    std::uint32_t number = 0;
    world.clients[0]->post(
        Operation::allreduce(Operator::sum, Element::int64, data.inputs[0].data(), data.outputs[0].data(), 10), number);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2 * world.timeouts.silent_ms);
    while (std::chrono::steady_clock::now() < until) {
        world.daemons[0]->turn(1);
        world.clients[1]->progress();
    }
    world.clients[0]->progress();
    ASSERT_FALSE(world.clients[0]->failed()) << world.reasons();
    world.clients[1]->post(
        Operation::allreduce(Operator::sum, Element::int64, data.inputs[1].data(), data.outputs[1].data(), 10), number);
    check_allreduce(world, Operator::sum, Element::int64, data, 10);
}

TEST(Aggregate, AMemberThatDoesntReadIsNotLost) {
    World world;
    Daemon& daemon = world.add();
    world.join_all(2, shape(1U << 17, 64));
    std::mt19937 random(16);
    const std::size_t size = 64U << 17;
    Data data(2, size, random);
    post_allreduce(world, Operator::bxor, Element::byte, data, size);
    // Until the first one has sent everything; it has read next to nothing, and results fill its socket.
    Client& idle = *world.clients[0];
    ASSERT_TRUE(world.until([&] {
        if (idle.link().sent() < 64) idle.progress();
        return idle.link().sent() == 64 && daemon.metrics().chunks > 8;
    }));
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3 * world.timeouts.silent_ms);
    while (std::chrono::steady_clock::now() < until) {
        daemon.turn(1);
        world.clients[1]->progress();
    }
    EXPECT_FALSE(world.clients[1]->failed()) << world.reasons();
    check_allreduce(world, Operator::bxor, Element::byte, data, size);
}

TEST(Aggregate, LeavingInOrderIsNoFailureOfAnOperation) {
    World world;
    Daemon& daemon = world.add();
    world.join_all(members);
    std::mt19937 random(15);
    Data data(members, 8000, random);
    post_allreduce(world, Operator::sum, Element::float64, data, 1000);
    std::vector<bool> gone(members);
    ASSERT_TRUE(world.until([&] {
        for (unsigned member = 0; member < members; ++member) {
            if (gone[member] || !world.clients[member]->idle()) continue;
            EXPECT_FALSE(world.clients[member]->failed()) << world.reasons();
            world.clients[member]->leave();
            gone[member] = true;
        }
        return daemon.groups() == 0 && daemon.connections() == 0;
    }));
    const std::vector<char> sum = combined(Operator::sum, Element::float64, data.inputs, 1000);
    for (const auto& output : data.outputs) EXPECT_EQ(output, sum);
    EXPECT_EQ(daemon.metrics().ended[static_cast<std::size_t>(Reason::left)], 1U);
    EXPECT_EQ(daemon.usage().bytes, 0U);
}

}  // namespace
}  // namespace palmette::aggregate::testing
