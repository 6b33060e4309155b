// Messages between devices by handles, in compositions whose buffers lie on a device, in the host's memory, or some
// here and some there.
#include "palmette/execute/ipc_transport.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "palmette/compose/factor.hpp"
#include "palmette/compose/factoring_text.hpp"
#include "palmette/compose/named.hpp"
#include "palmette/execute/packed_blocks.hpp"
#include "support/fake_device.hpp"
#include "support/jobs.hpp"
#include "support/loopback.hpp"
#include "support/played_composition.hpp"
#include "support/processes.hpp"

namespace palmette::execute::ipc_transport_tests {
namespace {

using test::DeviceBuffer;
using test::FakeDevice;
using test::LoopbackRank;
using test::LoopbackRanks;

struct Case {
    std::string_view name, factoring;
    int where = 0;                ///< 0: on the device; 1: the host's; 2: some of each rank's
    bool one_opens_none = false;  ///< rank 1 isn't to use handles
    int by_mpi = 0;               ///< one of so many tags goes another way; 0: none
};

/// Returns the number of messages that were copied by handle.
std::int64_t expect_right(const FakeDevice& device, const topology::Job& job, const Case& how, std::uint64_t seed) {
    const std::int32_t p = job.size();
    compose::NamedRequest request;
    request.ranks = p;
    request.root = plan::Rank{p / 2};
    request.bytes = {65536};
    request.element_bytes = 8;
    const compose::Composition composition = compose::compose(how.name, request);
    const compose::Tree tree = compose::Tree::of(job);
    const compose::Factoring factoring = compose::parse_factoring(how.factoring).factoring;
    const compose::Factory factory(composition, job, tree, factoring);
    test::PlayedComposition expected(composition);
    std::vector<IpcTransport*> transports;
    LoopbackRanks ranks(p, seed, false, [&](std::int32_t, Messages& messages) {
        auto made = std::make_unique<IpcTransport>(messages);
        transports.push_back(made.get());
        return made;
    });
    test::AffineMemory host;
    std::vector<LoopbackRank> all;
    std::vector<std::unique_ptr<DeviceMemory>> memories;
    std::vector<std::vector<std::vector<char>>> buffers(static_cast<std::size_t>(p));
    std::vector<std::vector<std::unique_ptr<DeviceBuffer>>> on_device(static_cast<std::size_t>(p));
    std::vector<std::vector<char*>> bases(static_cast<std::size_t>(p));
    for (std::int32_t r = 0; r < p; ++r) {
        const auto at = static_cast<std::size_t>(r);
        const PackedBlocks packed(composition, factoring.stripes, plan::Rank{r});
        Layout layout;
        layout.element_bytes = 8;
        layout.places = &packed;
        LoopbackRank& one = all.emplace_back();
        one.program = bind(plan::Collective::composed, factory.program(plan::Rank{r}), job, layout);
        for (BoundStep& step : one.program.steps) {
            if (!plan::is_message(step.kind)) continue;
            step.ipc = how.by_mpi == 0 || step.tag % how.by_mpi != 0;
            one.program.single_copies += step.ipc;
        }
        choose_transports(one.program, ranks.executors[at]->transports(), job, plan::Rank{r});
        auto memory = std::make_unique<DeviceMemory>();
        const bool opens = !(how.one_opens_none && r == 1);
        memory->use(host, opens ? 0 : INT64_MAX);
        for (std::size_t b = 0; b < composition.buffers().size(); ++b) {
            auto& buffer = buffers[at].emplace_back(expected.buffer(r, b, false));
            on_device[at].emplace_back();
            bases[at].push_back(buffer.data());
            if (buffer.empty() || how.where == 1 || (how.where == 2 && (at + b) % 2 == 0)) continue;
            on_device[at][b] = std::make_unique<DeviceBuffer>(device, buffer.size());
            bases[at][b] = on_device[at][b]->at();
            on_device[at][b]->write(buffer.data(), buffer.size());
            EXPECT_EQ(
                memory->add(bases[at][b], static_cast<std::int64_t>(buffer.size()), device::place_of(bases[at][b])),
                nullptr);
        }
        bases[at].resize(std::max<std::size_t>(2, bases[at].size()));
        one.environment.bases = {bases[at][0], bases[at][1], bases[at].data() + 2};
        one.environment.control_tags = static_cast<int>(factory.tag_limit());
        one.environment.memory = &host;
        if (memory->any()) {
            memory->prepare_reductions(8);
            pack_messages(
                one.program,
                [&](plan::Buffer buffer) {
                    return !plan::is_scratch(buffer) && on_device[at][plan::caller_index(buffer)] != nullptr;
                },
                opens ? 1U : 0U);
            one.environment.memory = memory.get();
        }
        memories.push_back(std::move(memory));
    }
    for (const int code : ranks.run(all)) EXPECT_EQ(code, 0);
    EXPECT_TRUE(ranks.world.nothing_is_left());
    EXPECT_EQ(ranks.world.wrong_lengths, 0);
    expected.play();
    std::int64_t copied = 0;
    for (std::int32_t r = 0; r < p; ++r) {
        const auto at = static_cast<std::size_t>(r);
        copied += transports[at]->take_copied();
        EXPECT_EQ(memories[at]->close(), nullptr);
        for (std::size_t b = 0; b < buffers[at].size(); ++b) {
            if (on_device[at][b]) on_device[at][b]->read(buffers[at][b].data(), buffers[at][b].size());
            EXPECT_EQ(buffers[at][b], expected.buffer(r, b, true)) << "rank " << r << ", buffer " << b;
        }
    }
    return copied;
}

class CompositionByIpc : public testing::TestWithParam<std::int32_t> {};

void expect_all_right(std::int32_t p) {
    const FakeDevice device("seed=3,lazy");
    const std::vector<std::pair<topology::Job, bool>> jobs{{test::job_on("1node:33core", "block", p), true},
                                                           {test::job_on("2leaf:2node:4core", "cyclic", p), false}};
    auto seed = static_cast<std::uint64_t>(p);
    for (const compose::NamedCollective& row : compose::named()) {
        std::int64_t copied = 0;
        for (const auto& [job, one_node] : jobs)
            for (const char* factoring : {"method=direct", "method=tree stripes=2 pipeline=2", "method=ring/1"})
                for (const int where : {0, 1, 2}) {
                    const std::int64_t now = expect_right(device, job, {row.name, factoring, where, false, 0}, ++seed);
                    EXPECT_TRUE(where != 1 || now == 0);
                    if (one_node) copied += now;
                    expect_right(device, job, {row.name, factoring, where, true, 0}, ++seed);
                    expect_right(device, job, {row.name, factoring, where, false, 2}, ++seed);
                    ASSERT_FALSE(testing::Test::HasFailure())
                        << row.name << ' ' << factoring << ", where " << where << (one_node ? ", one node" : "");
                }
        EXPECT_GT(copied, 0) << row.name;
    }
    device::Resources::instance().release();
}

TEST_P(CompositionByIpc, ends_and_moves_the_right_bytes) {
    if (!FakeDevice::is_there()) GTEST_SKIP() << "tests/fakes isn't built";
    test::run_processes(1, [](int) { expect_all_right(GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CompositionByIpc, testing::Values(2, 3, 5, 8));

}  // namespace
}  // namespace palmette::execute::ipc_transport_tests
