// Many operations in random order against the host's loops, and daemons that are sent anything.
#include <dirent.h>
#include <malloc.h>

#include <cstdlib>

#include "aggregate/harness.hpp"
#include "palmette/aggregate/crc32c.hpp"

namespace palmette::aggregate::testing {
namespace {

using kernels::Element;
using kernels::Operator;

std::size_t open_files() {
    DIR* folder = opendir("/proc/self/fd");
    std::size_t number = 0;
    while (readdir(folder) != nullptr) ++number;
    closedir(folder);
    return number;
}

/// 1,000, or PALMETTE_AGGREGATE_OPERATIONS.
int operations() {
    const char* given = std::getenv("PALMETTE_AGGREGATE_OPERATIONS");
    return given != nullptr ? std::atoi(given) : 1000;
}

/// What the allocator keeps for later counts as used.
constexpr std::size_t allocator_slack = 1U << 17;

struct PostedOperation {
    Operation operation;
    std::vector<std::vector<char>> inputs, outputs;
};

TEST(AggregateRandom, OperationsInRandomOrderLeakNothing) {
    std::mt19937 random(20);
    const auto below = [&](std::size_t most) { return random() % most; };
    World world;
    Daemon& daemon = world.add();
    const std::size_t files = open_files();
    std::size_t held = 0;
    const int all = operations();
    for (int done = 0; done < all;) {
        const auto group_size = static_cast<std::uint16_t>(2 + below(4));
        world.join_all(group_size,
                       shape(static_cast<std::uint32_t>(32 << below(5)), static_cast<std::uint16_t>(1 + below(8))));
        for (int batch = 0; batch < 25; ++batch) {
            std::vector<PostedOperation> posted(1 + below(4));
            for (PostedOperation& one : posted) {
                Operator op{};
                Element element{};
                do {
                    op = static_cast<Operator>(below(kernels::operator_count));
                    element = static_cast<Element>(below(kernels::element_count));
                } while (kernels::kernel_for(op, element) == nullptr);
                const std::size_t count = below(3) == 0 ? below(4) : below(300);
                const auto root = static_cast<std::uint16_t>(below(group_size));
                const std::size_t kind = below(4);
                std::uint32_t number = 0;
                for (std::uint16_t member = 0; member < group_size; ++member) {
                    one.inputs.push_back(random_bytes(count * kernels::bytes_of(element).extent, random));
                    one.outputs.emplace_back(count * kernels::bytes_of(element).extent, '\x5a');
                }
                for (std::uint16_t member = 0; member < group_size; ++member) {
                    char* input = one.inputs[member].data();
                    char* output = one.outputs[member].data();
                    const std::uint64_t first = count * member / group_size;
                    const std::uint64_t end = count * (member + 1U) / group_size;
                    one.operation =
                        kind == 0   ? Operation::allreduce(op, element, input, output, count)
                        : kind == 1 ? Operation::reduce(op, element, input, output, count, root, member == root)
                        : kind == 2
                            ? Operation::bcast(element, member == root ? input : output, count, root, member == root)
                            : Operation::reduce_scatter(op, element, input,
                                                        output + first * kernels::bytes_of(element).extent, count,
                                                        first, end - first);
                    one.operation.first = kind == 3 ? first : 0;
                    ASSERT_EQ(world.clients[member]->post(one.operation, number), Reason::none);
                }
            }
            ASSERT_TRUE(world.until_idle()) << world.reasons();
            for (const PostedOperation& one : posted) {
                const Operation& operation = one.operation;
                const std::size_t extent = kernels::bytes_of(operation.element).extent;
                const bool moves = operation.collective == Collective::bcast;
                const std::vector<char> sum =
                    moves ? one.inputs[operation.root]
                          : combined(operation.op, operation.element, one.inputs, operation.count);
                for (std::uint16_t member = 0; member < group_size; ++member) {
                    ASSERT_FALSE(world.clients[member]->failed()) << world.reasons();
                    std::size_t first = 0, end = operation.count;
                    if (operation.collective == Collective::reduce_scatter) {
                        first = operation.count * member / group_size;
                        end = operation.count * (member + 1U) / group_size;
                    } else if ((operation.collective == Collective::reduce) != (member == operation.root) &&
                               operation.collective != Collective::allreduce) {
                        continue;
                    }
                    ASSERT_TRUE(same_data(operation.element, one.outputs[member].data() + first * extent,
                                          sum.data() + first * extent, end - first))
                        << name_of(operation.collective) << ' ' << name_of(operation.op) << ' '
                        << name_of(operation.element) << ' ' << operation.count;
                }
            }
            done += static_cast<int>(posted.size());
        }
        world.clients.clear();
        ++world.epoch;
        ASSERT_TRUE(world.until([&] { return daemon.connections() == 0 && daemon.groups() == 0; }));
        EXPECT_EQ(daemon.usage().bytes, 0U);
        EXPECT_EQ(open_files(), files);
        const std::size_t now = mallinfo2().uordblks;
        if (done < 200) continue;  // until the allocator's caches are filled
        if (held == 0) held = now;
        EXPECT_LT(now, held + allocator_slack) << "after " << done << " operations";
    }
}

void seal(char* header) {
    Writer out(header + header_bytes - 4, 4);
    out.put(crc32c(header, header_bytes - 4));
}

/// What a member sends from its first frame on, damaged: with wrong checksums and with right ones.
TEST(AggregateRandom, ADaemonThatIsSentAnythingServesOn) {
    std::mt19937 random(21);
    World world;
    DaemonSettings with = settings();
    with.greeting_ms = 50;
    with.closing_ms = 20;
    with.timeouts.join_ms = 50;
    Daemon& daemon = world.add(with);
    for (int trial = 0; trial < 600; ++trial) {
        std::string sent;
        for (int frame = 0; frame < 4; ++frame) {
            Header header;
            header.type = static_cast<FrameType>(1 + random() % 10);
            header.group = random() % 3;
            header.epoch = static_cast<std::uint32_t>(random() % 3);
            if (header.type == FrameType::data || header.type == FrameType::result)
                header.collective = static_cast<Collective>(1 + random() % (collective_count - 1));
            const std::vector<char> payload = random_bytes(random() % 300, random);
            header.bytes = static_cast<std::uint32_t>(payload.size());
            header.payload_crc = crc32c(payload.data(), payload.size());
            HeaderBytes bytes{};
            write_header(header, bytes.data());
            if (random() % 3 == 0) bytes[random() % header_bytes] = static_cast<char>(random());
            if (random() % 3 == 0) seal(bytes.data());
            sent.append(bytes.data(), bytes.size()).append(payload.data(), payload.size());
        }
        if (random() % 2 == 0) sent.resize(random() % sent.size());
        Detail why;
        const Fd fd = begin_connect({"127.0.0.1", daemon.port()}, why);
        ASSERT_TRUE(world.until([&] { return connect_status(fd.get()) == 0; }));
        send_some(fd.get(), sent, {});
        for (int turns = 0; turns < 3; ++turns) world.turn();
    }
    ASSERT_TRUE(world.until([&] { return daemon.connections() == 0; }));
    EXPECT_EQ(daemon.usage().bytes, 0U);
    world.join_all(2);
}

/// Sends random bytes from a member that has joined: its group ends, another one goes on.
TEST(AggregateRandom, AMemberThatSendsAnythingHarmsOnlyItsGroup) {
    std::mt19937 random(22);
    World world;
    Daemon& daemon = world.add();
    world.join_all(2);
    for (int trial = 0; trial < 300; ++trial) {
        ++world.group;
        Window window(2, shape(), false, random() % 2 == 0);
        for (int frame = 0; frame < 20; ++frame) {
            Header header;
            header.type = FrameType::data;
            header.collective = static_cast<Collective>(1 + random() % (collective_count - 1));
            header.op = static_cast<Operator>(random() % kernels::operator_count);
            header.element = static_cast<Element>(random() % kernels::element_count);
            header.flags = static_cast<std::uint8_t>(random() % 4);
            header.chunk = window.received(static_cast<unsigned>(random() % 2)) + random() % 2;
            header.count = random() % 40;
            header.offset = random() % 2 * (random() % 40);
            header.bytes = static_cast<std::uint32_t>(random() % 300);
            const auto member = static_cast<unsigned>(random() % 2);
            char* to = nullptr;
            Detail why;
            if (window.accept(member, header, to, why) != Reason::none) break;
            std::memset(to, 1, header.bytes);
            if (!window.arrived(member, why)) break;
            const char* payload = nullptr;
            for (unsigned one = 0; one < 2; ++one) {
                while (window.next_result(one, header, payload)) {
                    ASSERT_LE(header.bytes, shape().chunk_bytes);
                    window.result_sent(one);
                }
            }
        }
    }
    world.turn();
    EXPECT_EQ(daemon.groups(), 1U);
    EXPECT_TRUE(world.all([](const Client& client) { return client.ready(); })) << world.reasons();
}

}  // namespace
}  // namespace palmette::aggregate::testing
