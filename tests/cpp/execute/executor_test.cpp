// What an executor promises whatever the plan: errors end an operation and nothing arrives after it, blocking runs
// wait, observers are told.
#include <gtest/gtest.h>

#include <thread>

#include "palmette/collectives/registry.hpp"
#include "support/jobs.hpp"
#include "support/loopback.hpp"
#include "support/mailbox_transport.hpp"
#include "support/real_bytes.hpp"
#include "support/shared_nodes.hpp"

namespace palmette::execute {
namespace {

using plan::Collective;
using test::LoopbackRank;
using test::LoopbackRanks;

/// One collective of all ranks, bound to real bytes.
struct BoundCollective {
    BoundCollective(const topology::Job& job, const plan::Request& asked, const std::string& text, LoopbackRanks& ranks)
        : request(asked),
          plan(collectives::make_plan(job, request, collectives::Spec::parse(text))),
          bytes(request, job, plan.programs) {
        for (std::size_t r = 0; r < plan.programs.size(); ++r) {
            Layout layout;
            layout.uniform_bytes = request.block_bytes;
            layout.element_bytes = request.element_bytes;
            layout.transports = &ranks.executors[r]->transports();
            LoopbackRank& one = all.emplace_back();
            one.program = bind(request.collective, plan.programs[r], job, layout);
            one.environment.bases = {bytes.send(r), bytes.recv(r)};
            one.environment.memory = &memory;
        }
    }

    plan::Request request;
    plan::Plan plan;
    test::RealBytes bytes;
    test::AffineMemory memory;
    std::vector<LoopbackRank> all;
};

plan::Request allreduce_of(std::int64_t bytes) {
    return {Collective::allreduce, plan::Rank{0}, bytes, 8, false, false};
}

TEST(Executor, that_meets_an_error_returns_it_and_leaves_nothing_under_way) {
    const topology::Job job = test::job_on("3leaf:3+3+3node:4core", "block", 12);
    for (std::int64_t nth = 1; nth < 60; nth += 7) {
        LoopbackRanks ranks(12, static_cast<std::uint64_t>(nth));
        BoundCollective bound(job, allreduce_of(96), "leaders:leaders=2", ranks);
        ranks.world.fail_at(nth);
        const auto codes = ranks.run(bound.all);
        EXPECT_EQ(std::count(codes.begin(), codes.end(), test::LoopbackWorld::injected_error), 1);
        for (std::size_t r = 0; r < codes.size(); ++r) {
            if (codes[r] != test::LoopbackWorld::injected_error) continue;
            for (const auto& transport : ranks.executors[r]->transports()) EXPECT_EQ(transport->pending(), 0U);
            // What arrives from now on stays out of its buffers.
            const std::string before(bound.bytes.recv(r), 96);
            std::vector<bool> goes_on(codes.size());
            for (std::size_t other = 0; other < codes.size(); ++other) goes_on[other] = codes[other] == -2;
            for (int turn = 0; turn < 100; ++turn)
                for (std::size_t other = 0; other < codes.size(); ++other) {
                    bool done = false;
                    if (!goes_on[other]) continue;
                    EXPECT_EQ(ranks.executors[other]->progress(done), 0);
                    if (done) goes_on[other] = false;
                }
            EXPECT_EQ(std::string(bound.bytes.recv(r), 96), before);
        }
    }
}

TEST(Executor, that_blocks_waits_for_ranks_in_other_threads) {
    const topology::Job job = test::job_on("2node:3core", "block", 6);
    for (const char* text : {"leaders", "leaders:inside=shared", "recursive_doubling"}) {
        LoopbackRanks ranks(6, 11);
        plan::Request request = allreduce_of(256);
        request.shared_memory = std::string_view(text).find("shared") != std::string_view::npos;
        BoundCollective bound(job, request, text, ranks);
        auto left = test::make_members(3, 1 << 16), right = test::make_members(3, 1 << 16);
        std::vector<int> codes(6, -1);
        {
            std::vector<std::jthread> threads;
            for (std::size_t r = 0; r < 6; ++r) {
                if (request.shared_memory) bound.all[r].environment.shared = (r < 3 ? left[r] : right[r - 3]).get();
                threads.emplace_back([&, r] {
                    ranks.executors[r]->prepare(bound.all[r].program);
                    codes[r] = ranks.executors[r]->run(bound.all[r].program, bound.all[r].environment);
                });
            }
        }
        EXPECT_EQ(codes, std::vector<int>(6, 0)) << text;
        EXPECT_TRUE(bound.bytes.right()) << text;
    }
}

TEST(Executor, that_blocks_runs_one_node_in_the_programs_order) {
    const topology::Job job = test::job_on("1node:4core", "block", 4);
    LoopbackRanks ranks(4, 3);
    plan::Request request{Collective::alltoall, plan::Rank{0}, 64, 1, false, true};
    BoundCollective bound(job, request, "shared", ranks);
    auto members = test::make_members(4, 1 << 18);
    std::vector<int> codes(4, -1);
    {
        std::vector<std::jthread> threads;
        for (std::size_t r = 0; r < 4; ++r) {
            bound.all[r].environment.shared = members[r].get();
            threads.emplace_back([&, r] {
                for (int round = 0; round < 40; ++round) {
                    ranks.executors[r]->prepare(bound.all[r].program);
                    codes[r] = ranks.executors[r]->run(bound.all[r].program, bound.all[r].environment);
                }
            });
        }
    }
    EXPECT_EQ(codes, std::vector<int>(4, 0));
    EXPECT_TRUE(bound.bytes.right());
}

struct StepCounter : StepObserver {
    void step_started(const BoundProgram&, std::uint32_t) override { ++started; }
    void step_completed(const BoundProgram&, std::uint32_t) override { ++completed; }
    std::size_t started = 0, completed = 0;
};

TEST(Executor, tells_an_observer_of_each_step_once) {
    const topology::Job job = test::job_on("3leaf:3+3+3node:4core", "cyclic", 17);
    LoopbackRanks ranks(17, 8);
    BoundCollective bound(job, allreduce_of(120), "leaders:leaders=2,inside=binomial", ranks);
    std::vector<StepCounter> counted(17);
    for (std::size_t r = 0; r < 17; ++r) bound.all[r].environment.observer = &counted[r];
    for (const int code : ranks.run(bound.all)) EXPECT_EQ(code, 0);
    for (std::size_t r = 0; r < 17; ++r) {
        EXPECT_EQ(counted[r].started, bound.all[r].program.steps.size());
        EXPECT_EQ(counted[r].completed, bound.all[r].program.steps.size());
    }
}

TEST(MailboxTransport, carries_what_it_can_and_leaves_the_rest) {
    const topology::Job job = test::job_on("3leaf:3+3+3node:4core", "block", 33);
    for (const std::int64_t bytes : {64, 4096}) {
        test::Mailboxes boxes;
        std::vector<const test::MailboxTransport*> made;
        LoopbackRanks ranks(33, 21, false, [&](std::int32_t rank, Messages&) {
            auto one = std::make_unique<test::MailboxTransport>(boxes, rank);
            made.push_back(one.get());
            return one;
        });
        BoundCollective bound(job, allreduce_of(bytes), "leaders", ranks);
        for (const int code : ranks.run(bound.all)) EXPECT_EQ(code, 0);
        EXPECT_TRUE(bound.bytes.right());
        EXPECT_TRUE(boxes.empty());
        std::int64_t carried = 0;
        for (const auto* one : made) carried += one->carried;
        // Each rank of a node that isn't its leader sends its vector and is sent the result.
        EXPECT_EQ(carried, bytes <= test::MailboxTransport::longest ? 2 * (33 - 9) : 0);
    }
}

TEST(Executor, has_no_transport_for_steps_that_none_can_carry) {
    const topology::Job job = test::job_on("3node:2core", "block", 6);
    LoopbackRanks ranks(1, 1);
    Transports none;
    const plan::Plan plan = collectives::make_plan(job, allreduce_of(64), collectives::Spec::parse("leaders"));
    Layout layout;
    layout.uniform_bytes = 64;
    layout.element_bytes = 8;
    layout.transports = &none;
    try {
        bind(Collective::allreduce, plan.programs[0], job, layout);
        FAIL() << "was bound";
    } catch (const std::exception& error) {
        EXPECT_NE(std::string(error.what()).find("no transport carries"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace palmette::execute
