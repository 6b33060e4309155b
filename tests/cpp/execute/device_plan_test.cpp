// Plans of one node on device memory, by the real executor and transport: ranks whose buffers lie on the device beside
// others whose don't, in one process, and processes that open each other's memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "palmette/collectives/registry.hpp"
#include "palmette/execute/device_memory.hpp"
#include "support/fake_device.hpp"
#include "support/jobs.hpp"
#include "support/loopback.hpp"
#include "support/processes.hpp"
#include "support/real_bytes.hpp"
#include "support/shared_nodes.hpp"
#include "support/specs.hpp"

namespace palmette::execute::device_plan_tests {
namespace {

using collectives::Spec;
using plan::Collective;
using test::DeviceBuffer;
using test::FakeDevice;
using test::LoopbackRank;
using test::LoopbackRanks;

/// Skips a test without the driver. Each test's body runs in processes of its own, which load it.
#define NEEDS_FAKES() \
    if (!FakeDevice::is_there()) GTEST_SKIP() << "tests/fakes isn't built"

/// The one of this process: work begins when somebody waits for it, or late.
const FakeDevice& fake() {
    static const auto* one = new FakeDevice("seed=5,lazy");
    return *one;
}

/// Sums of floats, which the device has a kernel for.
class FloatSums final : public HostMemory {
  public:
    int combine(std::uint8_t, const char* left, const char* right, char* target, std::int64_t bytes) override {
        kernels::kernel_for(kernels::Operator::sum, kernels::Element::float32)(left, right, target,
                                                                               static_cast<std::size_t>(bytes / 4));
        return 0;
    }
    std::int64_t element_bytes(std::uint8_t) const override { return 4; }
    std::optional<KnownOperation> known(std::uint8_t) const override {
        return KnownOperation{kernels::Operator::sum, kernels::Element::float32};
    }
};

struct Case {
    std::int64_t single_copy_from = INT64_MAX, by_handle_from = 128;
    unsigned on_device = ~0U;  ///< bit mask of ranks
};

void expect_added(DeviceMemory& memory, const DeviceBuffer& buffer, std::int64_t bytes) {
    EXPECT_EQ(memory.add(buffer.at(), bytes, device::place_of(buffer.at())), nullptr);
}

/// False: the algorithm refuses the job, or sends messages.
bool expect_right(const topology::Job& job, const plan::Request& request, const std::string& text, const Case& how,
                  std::vector<std::unique_ptr<node::SharedNode>>& members, LoopbackRanks& ranks) {
    const Spec spec = Spec::parse(text);
    if (collectives::algorithm_named(request.collective, spec.name).refuse(job, request, spec)) return false;
    const plan::Plan plan = collectives::make_plan(job, request, spec);
    test::RealBytes bytes(request, job, plan.programs);
    test::AffineMemory host;
    std::vector<LoopbackRank> all;
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    std::vector<std::unique_ptr<DeviceMemory>> memories;
    for (std::size_t r = 0; r < plan.programs.size(); ++r) {
        Layout layout;
        layout.uniform_bytes = request.block_bytes;
        layout.element_bytes = request.element_bytes;
        layout.by_address_from = how.single_copy_from;
        layout.transports = &ranks.executors[r]->transports();
        LoopbackRank& one = all.emplace_back();
        one.program = bind(request.collective, plan.programs[r], job, layout);
        if (one.program.transports != 1) return false;
        one.environment.bases = {bytes.send(r), bytes.recv(r)};
        one.environment.memory = &host;
        one.environment.shared =
            members[static_cast<std::size_t>(job.position_of(plan::Rank{static_cast<int>(r)}).value)].get();
        one.environment.single_copy_from = how.single_copy_from;
        buffers.emplace_back();
        buffers.emplace_back();
        memories.emplace_back();
        if ((how.on_device >> r & 1) == 0) continue;
        for (const bool send : {true, false}) {
            auto& buffer = buffers[2 * r + (send ? 0 : 1)];
            buffer = std::make_unique<DeviceBuffer>(fake(), bytes.room());
            buffer->write(send ? bytes.send(r) : bytes.recv(r), bytes.room());
        }
        memories[r] = std::make_unique<DeviceMemory>();
        memories[r]->use(host, how.by_handle_from);
        for (const std::size_t b : {2 * r, 2 * r + 1})
            expect_added(*memories[r], *buffers[b], static_cast<std::int64_t>(bytes.room()));
        if (r % 2 == 0) memories[r]->prepare_reductions(request.element_bytes);
        one.environment.bases = {buffers[2 * r]->at(), buffers[2 * r + 1]->at()};
        if (r % 3 > 0) one.environment.scratch = memories[r]->scratch(one.program.scratch_bytes);
        one.environment.memory = memories[r].get();
    }
    for (const int code : ranks.run(all)) EXPECT_EQ(code, 0) << text;
    for (std::size_t r = 0; r < memories.size(); ++r) {
        if (!memories[r]) continue;
        EXPECT_EQ(memories[r]->close(), nullptr) << text;
        buffers[2 * r + 1]->read(bytes.recv(r), bytes.room());
    }
    EXPECT_TRUE(bytes.right()) << text;
    return true;
}

class EveryNodePlan : public testing::TestWithParam<std::int32_t> {};

void expect_all_right(std::int32_t p) {
    const topology::Job job = test::costed_job_on("1node:33core", "block", p);
    auto members = test::make_members(p, 1 << 19);
    LoopbackRanks ranks(p, static_cast<std::uint64_t>(p));
    std::mt19937 random(static_cast<unsigned>(p));
    int ran = 0;
    std::int64_t refusals = 0;
    for (const test::NamedSpec& named : test::every_spec()) {
        const auto& row = collectives::algorithm_named(named.first, Spec::parse(named.second).name);
        if (!collectives::uses_node_memory(row, Spec::parse(named.second))) continue;
        plan::Request request{named.first, plan::Rank{ran % p}, 1944, 1, false, true};
        if (plan::is_reduction(named.first)) request.element_bytes = 8;
        for (const std::int64_t single : {INT64_MAX, std::int64_t{64}})
            for (const std::int64_t by_handle : {std::int64_t{128}, INT64_MAX})
                for (const bool all : {true, false}) {
                    const Case how{single, by_handle, all ? ~0U : static_cast<unsigned>(random())};
                    ran += expect_right(job, request, named.second, how, members, ranks);
                    ASSERT_FALSE(testing::Test::HasFailure())
                        << plan::name_of(named.first) << ' ' << named.second << ", single " << single << ", by handle "
                        << by_handle << ", device " << how.on_device;
                }
        for (const auto& executor : ranks.executors) refusals += executor->take_refusals();
    }
    EXPECT_GT(ran, 40);
    // Ranks whose buffers are the host's can't read a device.
    EXPECT_GT(refusals, 0);
}

TEST_P(EveryNodePlan, on_device_memory_moves_the_right_bytes) {
    NEEDS_FAKES();
    test::run_processes(1, [](int) { expect_all_right(GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryNodePlan, testing::Values(2, 3, 5, 8));

void expect_combined() {
    constexpr std::size_t count = 200'000, bytes = count * 4;
    FloatSums host;
    std::vector<float> left(count), right(count), got(count);
    for (std::size_t i = 0; i < count; ++i) left[i] = static_cast<float>(i) / 7, right[i] = static_cast<float>(i % 100);
    const DeviceBuffer a(fake(), bytes + 8), b(fake(), bytes + 8), sum(fake(), bytes + 8);
    DeviceMemory memory;
    memory.use(host, 128);
    for (const DeviceBuffer* one : {&a, &b, &sum}) expect_added(memory, *one, bytes + 8);
    const auto check = [&](std::int64_t on_device) {
        return [&, on_device](const char* l, const char* r, char* t) {
            std::fill(got.begin(), got.end(), 0.0F);
            EXPECT_EQ(memory.combine(0, l, r, t, bytes), 0);
            memory.await_begun();
            memory.read(got.data(), t, bytes);
            EXPECT_EQ(memory.take_counts().combined_on_device, on_device);
            for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(got[i], left[i] + right[i]) << i;
        };
    };
    a.write(left.data(), bytes);
    b.write(right.data(), bytes);
    check(1)(a.at(), b.at(), sum.at());
    // The host's operands and targets.
    std::vector<float> other(count);
    check(0)(reinterpret_cast<char*>(left.data()), b.at(), sum.at());
    check(0)(a.at(), b.at(), reinterpret_cast<char*>(other.data()));
    check(0)(a.at(), reinterpret_cast<char*>(right.data()), reinterpret_cast<char*>(other.data()));
    check(1)(a.at(), b.at(), b.at());
    b.write(right.data(), bytes);
    // Not aligned.
    std::memcpy(fake().alias(a.at()) + 2, left.data(), bytes);
    check(0)(a.at() + 2, b.at(), sum.at() + 4);
    EXPECT_EQ(memory.close(), nullptr);
}

TEST(DeviceMemory, combines_on_the_device_what_is_aligned_there) {
    NEEDS_FAKES();
    test::run_processes(1, [](int) { expect_combined(); });
}

TEST(DeviceMemory, tells_of_a_driver_that_fails_and_goes_on) {
    NEEDS_FAKES();
    test::run_processes(1, [](int) {
        const FakeDevice device("fail=cuMemcpyAsync:2");
        FloatSums host;
        std::vector<char> to(100);
        const DeviceBuffer from(device, 100);
        DeviceMemory memory;
        memory.use(host, 128);
        expect_added(memory, from, 100);
        for (int i = 0; i < 3; ++i) memory.copy(to.data(), from.at(), 100);
        EXPECT_NE(memory.close(), nullptr);
        EXPECT_EQ(memory.close(), nullptr);
    });
}

/// Rank 0's exposures wait for their reader, as on a device, which rank 1 doesn't know: it begins in the program's
/// order, in which the second one comes first.
TEST(Executor, that_runs_in_order_goes_on_where_a_peer_waits_for_a_later_step) {
    const topology::Job job = test::costed_job_on("1node:2core", "block", 2);
    auto members = test::make_members(2);
    std::vector<char> data(4096, 'a'), got(4096, 'b');
    const auto rank = [&](int me) {
        plan::ProgramBuilder builder(plan::Rank{me}, plan::BlockOrder::rank);
        if (me == 0) {
            const plan::StepId first = builder.expose(0, plan::Buffer::send, {0, 1}, 1, {});
            builder.expose(1, plan::Buffer::send, {0, 1}, 1, {first});
        } else {
            builder.pull(plan::Rank{0}, 1, {0, 1}, plan::Buffer::recv, plan::Blocks(0, 1), {});
            builder.pull(plan::Rank{0}, 0, {0, 1}, plan::Buffer::recv, plan::Blocks(0, 1), {});
        }
        test::LoopbackWorld world(1);
        auto messages = std::make_unique<test::Loopback>(world, me);
        Transports transports;
        transports.push_back(std::make_unique<NodeTransport>(*messages));
        transports.push_back(std::move(messages));
        Executor executor(std::move(transports), node::SpinWait(2, 1));
        Environment environment;
        HostMemory memory;
        environment.memory = &memory;
        environment.shared = members[static_cast<std::size_t>(me)].get();
        environment.single_copy_from = me == 0 ? 64 : INT64_MAX;
        environment.bases = {data.data(), got.data()};
        Layout layout;
        layout.uniform_bytes = 4096;
        layout.by_address_from = environment.single_copy_from;
        layout.transports = &executor.transports();
        const BoundProgram bound = bind(Collective::allgather, builder.finish(), job, layout);
        executor.prepare(bound);
        EXPECT_EQ(executor.run(bound, environment), 0);
    };
    std::thread other([&] { rank(1); });
    rank(0);
    other.join();
    EXPECT_EQ(got, data);
}

/// Allgathers of processes that each have a device's memory, or the host's.
void exchange(node::SharedNode& node, int me, int ranks, const FakeDevice& device, bool on_device, int rounds,
              std::int64_t single_copy_from) {
    const topology::Job job = test::costed_job_on("1node:8core", "block", ranks);
    const plan::Request request{Collective::allgather, plan::Rank{0}, 8192, 1, false, true};
    const plan::Program program =
        collectives::make_program(job, plan::Rank{me}, request, Spec::parse("shared:single=1"));
    test::LoopbackWorld world(1);
    auto messages = std::make_unique<test::Loopback>(world, me);
    auto transport = std::make_unique<NodeTransport>(*messages);
    Transports transports;
    transports.push_back(std::move(transport));
    transports.push_back(std::move(messages));
    Executor executor(std::move(transports), node::SpinWait(ranks, 1));
    Layout layout;
    layout.uniform_bytes = request.block_bytes;
    layout.by_address_from = single_copy_from;
    layout.transports = &executor.transports();
    const BoundProgram bound = bind(Collective::allgather, program, job, layout);
    executor.prepare(bound);
    HostMemory host;
    DeviceMemory memory;
    std::vector<char> sent(8192), received(8192 * static_cast<std::size_t>(ranks));
    std::unique_ptr<DeviceBuffer> send, recv;
    for (int round = 0; round < rounds; ++round) {
        const auto byte = [round](int rank, std::size_t i) {
            return static_cast<char>(rank * 50 + round + static_cast<int>(i % 7));
        };
        for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = byte(me, i);
        Environment environment;
        environment.shared = &node;
        environment.single_copy_from = single_copy_from;
        environment.memory = &host;
        environment.bases = {sent.data(), received.data()};
        if (on_device) {
            // Allocated anew now and then: what others have opened is gone.
            if (round % 3 == 0) {
                send.reset();
                send = std::make_unique<DeviceBuffer>(device, sent.size());
                recv = std::make_unique<DeviceBuffer>(device, received.size());
            }
            send->write(sent.data(), sent.size());
            memory.use(host, 128);
            expect_added(memory, *send, 8192);
            expect_added(memory, *recv, 8192 * ranks);
            environment.memory = &memory;
            environment.bases = {send->at(), recv->at()};
        }
        ASSERT_EQ(executor.run(bound, environment), 0);
        ASSERT_EQ(memory.close(), nullptr);
        if (on_device) recv->read(received.data(), received.size());
        for (int r = 0; r < ranks; ++r)
            for (std::size_t i = 0; i < sent.size(); ++i)
                ASSERT_EQ(received[static_cast<std::size_t>(r) * 8192 + i], byte(r, i))
                    << "rank " << me << ", round " << round << ", of " << r << ", byte " << i;
    }
}

/// Three processes; `host`: one of them has its buffers there. Each checks its counts by itself.
template <class Check>
void exchange_in_processes(const std::string& settings, int host, std::int64_t single_copy_from, Check check,
                           std::size_t most_open = 128) {
    constexpr int ranks = 3, rounds = 30;
    const auto segment = test::make_segment(ranks);
    test::run_processes(ranks, [&](int me) {
        const FakeDevice device(settings);
        device::Imports::instance().set_most(most_open);
        const auto node = test::join(segment, me);
        exchange(*node, me, ranks, device, me != host, rounds, single_copy_from);
        EXPECT_LE(device::Imports::instance().count(), most_open);
        device::Resources::instance().release();
        EXPECT_EQ(device::ipc_counts.opens, device::ipc_counts.closes);
        EXPECT_EQ(device::Imports::instance().count(), 0U);
        check(me, device::ipc_counts);
    });
}

TEST(DeviceExposure, is_opened_by_its_readers_once) {
    NEEDS_FAKES();
    exchange_in_processes("seed=1,lazy", -1, INT64_MAX, [](int, const device::IpcCounts& counts) {
        // Ten allocations of two others; what lies at the same address is opened anew.
        EXPECT_GE(counts.opens, 2);
        EXPECT_LE(counts.opens, 20);
        EXPECT_EQ(counts.opens + counts.hits, 60);
        EXPECT_EQ(counts.refusals, 0);
        EXPECT_EQ(counts.evictions, 0);
        EXPECT_EQ(counts.exports, 10);
    });
    // Its ring has no space for it either.
    exchange_in_processes("seed=1,lazy", -1, 64,
                          [](int, const device::IpcCounts& counts) { EXPECT_EQ(counts.opens + counts.hits, 60); });
}

TEST(DeviceExposure, is_closed_where_too_many_are_open) {
    NEEDS_FAKES();
    exchange_in_processes(
        "seed=1", -1, INT64_MAX,
        [](int, const device::IpcCounts& counts) {
            EXPECT_EQ(counts.opens + counts.hits + counts.refusals, 60);
            EXPECT_GT(counts.evictions + counts.refusals, 0);
        },
        1);
}

TEST(DeviceExposure, is_copied_by_its_owner_where_it_cant_be_opened) {
    NEEDS_FAKES();
    for (const std::int64_t single : {INT64_MAX, std::int64_t{64}}) {
        exchange_in_processes("seed=2,lazy,no_ipc_open", -1, single, [](int, const device::IpcCounts& counts) {
            EXPECT_EQ(counts.opens, 0);
            EXPECT_GT(counts.refusals, 0);
        });
        exchange_in_processes("seed=2,no_ipc", -1, single, [](int, const device::IpcCounts& counts) {
            EXPECT_EQ(counts.exports, 0);
            EXPECT_EQ(counts.opens + counts.refusals, 0);
            EXPECT_GT(counts.unexported, 0);
        });
    }
}

TEST(DeviceExposure, reaches_ranks_whose_memory_is_the_hosts) {
    NEEDS_FAKES();
    for (int host = 0; host < 3; ++host)
        for (const std::int64_t single : {INT64_MAX, std::int64_t{64}})
            exchange_in_processes("seed=3,lazy", host, single, [host](int me, const device::IpcCounts& counts) {
                EXPECT_EQ(counts.opens + counts.hits, me == host ? 0 : 30);
            });
}

}  // namespace
}  // namespace palmette::execute::device_plan_tests
