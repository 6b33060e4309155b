// The plan that runs is the one that was verified: every algorithm and composition through the real executor, on real
// bytes, with messages that arrive in any order.
#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <random>

#include "palmette/collectives/registry.hpp"
#include "palmette/compose/factor.hpp"
#include "palmette/compose/factoring_text.hpp"
#include "palmette/compose/named.hpp"
#include "palmette/execute/packed_blocks.hpp"
#include "palmette/node/shared_single_copy.hpp"
#include "support/jobs.hpp"
#include "support/loopback.hpp"
#include "support/played_composition.hpp"
#include "support/real_bytes.hpp"
#include "support/shared_nodes.hpp"
#include "support/specs.hpp"

namespace palmette::execute {
namespace {

using collectives::Spec;
using plan::Collective;
using test::job_on;
using test::LoopbackRank;
using test::LoopbackRanks;

/// The memory of a job's nodes, by rank; null for a rank that is alone on its own.
class NodesOf {
  public:
    explicit NodesOf(const topology::Job& job) : by_rank_(static_cast<std::size_t>(job.size())) {
        const topology::Partition& nodes = job.nodes().groups;
        for (std::int32_t g = 0; g < nodes.count(); ++g) {
            if (nodes.size_of(g) < 2) continue;
            auto members = test::make_members(nodes.size_of(g), 1 << 18);
            for (std::int32_t m = 0; m < nodes.size_of(g); ++m)
                by_rank_[static_cast<std::size_t>(job.rank_at({nodes.first(g) + m}).value)] =
                    std::move(members[static_cast<std::size_t>(m)]);
        }
    }
    node::SharedNode* of(std::size_t rank) const { return by_rank_[rank].get(); }

  private:
    std::vector<std::unique_ptr<node::SharedNode>> by_rank_;
};

struct Job33 {
    topology::Job job;
    std::string where;
};

Job33 job_for(std::int32_t p) {
    const std::string& machine = test::machines()[static_cast<std::size_t>(p) % test::machines().size()];
    const std::string& placement = test::placements()[static_cast<std::size_t>(p / 5) % test::placements().size()];
    return {test::costed_job_on(machine, placement, p), machine + ", " + placement};
}

/// Runs one plan; false where the algorithm refuses the job.
bool expect_right(const topology::Job& job, const plan::Request& request, const std::string& text, LoopbackRanks& ranks,
                  const NodesOf& nodes, std::int64_t single_copy_from) {
    const Spec spec = Spec::parse(text);
    if (collectives::algorithm_named(request.collective, spec.name).refuse(job, request, spec)) return false;
    const plan::Plan plan = collectives::make_plan(job, request, spec);
    test::RealBytes bytes(request, job, plan.programs);
    test::AffineMemory memory;
    std::vector<LoopbackRank> all;
    for (std::size_t r = 0; r < plan.programs.size(); ++r) {
        Layout layout;
        layout.uniform_bytes = request.block_bytes;
        layout.element_bytes = request.element_bytes;
        layout.by_address_from = single_copy_from;
        layout.transports = &ranks.executors[r]->transports();
        LoopbackRank& one = all.emplace_back();
        one.program = bind(request.collective, plan.programs[r], job, layout);
        one.environment.bases = {bytes.send(r), bytes.recv(r)};
        one.environment.memory = &memory;
        one.environment.shared = request.shared_memory ? nodes.of(r) : nullptr;
        one.environment.single_copy_from = single_copy_from;
    }
    for (const int code : ranks.run(all)) EXPECT_EQ(code, 0) << text;
    EXPECT_TRUE(bytes.right()) << text;
    EXPECT_TRUE(ranks.world.nothing_is_left()) << text;
    EXPECT_EQ(ranks.world.wrong_lengths, 0) << text;
    return true;
}

class EveryPlan : public testing::TestWithParam<std::int32_t> {};

TEST_P(EveryPlan, of_an_algorithm_moves_the_right_bytes) {
    const std::int32_t p = GetParam();
    const auto [job, where] = job_for(p);
    const NodesOf nodes(job);
    LoopbackRanks ranks(p, static_cast<std::uint64_t>(p));
    int ran = 0;
    for (const test::NamedSpec& named : test::every_spec()) {
        plan::Request request{named.first, plan::Rank{ran % p}, 72, 1, false, false};
        if (plan::is_reduction(named.first)) request.element_bytes = 8;
        const auto& row = collectives::algorithm_named(named.first, Spec::parse(named.second).name);
        request.shared_memory = collectives::uses_node_memory(row, Spec::parse(named.second));
        ran += expect_right(job, request, named.second, ranks, nodes, INT64_MAX);
        if (plan::is_reduction(named.first)) {
            request.ordered = true;
            expect_right(job, request, named.second, ranks, nodes, INT64_MAX);
        }
        // In the owner's memory, where there is such.
        if (request.shared_memory) expect_right(job, request, named.second, ranks, nodes, 64);
        ASSERT_FALSE(HasFailure()) << plan::name_of(named.first) << " on " << where << ", " << p << " ranks";
    }
    EXPECT_GT(ran, p == 1 ? 10 : 50);
}

TEST(PlanWithAggregators, moves_the_right_bytes) {
    // The executor of a service position runs beside those of the ranks.
    for (const char* machine :
         {"aggregator:5node:2core", "aggregator@1GB/s+aggregator@2GB/s:3leaf@1GB/s:3+1+2node:2core"})
        for (const std::string& placement : test::placements()) {
            const topology::Job job = job_on(machine, placement);
            const std::size_t all = static_cast<std::size_t>(job.size()) + job.aggregators().size();
            LoopbackRanks ranks(static_cast<std::int32_t>(all), 7);
            for (const char* spec : {"in_network", "in_network:share=40,segment=256", "in_network:combine=hosts"}) {
                const plan::Request request{Collective::allreduce, plan::Rank{0}, 8000, 8, false, false};
                EXPECT_TRUE(expect_right(job, request, spec, ranks, NodesOf(job), INT64_MAX)) << machine;
            }
        }
}

TEST_P(EveryPlan, whose_reads_are_refused_moves_the_right_bytes) {
    const std::int32_t p = GetParam();
    if (p < 2 || p % 3 != 0) return;
    const auto [job, where] = job_for(p);
    const NodesOf nodes(job);
    LoopbackRanks ranks(p, static_cast<std::uint64_t>(p) + 99);
    node::inject_refusals_from(3);
    for (const test::NamedSpec& named : test::every_spec()) {
        const auto& row = collectives::algorithm_named(named.first, Spec::parse(named.second).name);
        if (!collectives::uses_node_memory(row, Spec::parse(named.second))) continue;
        plan::Request request{named.first, plan::Rank{0}, 1 << 9, plan::is_reduction(named.first) ? 8 : 1, false, true};
        expect_right(job, request, named.second, ranks, nodes, 64);
        if (HasFailure()) break;
    }
    node::inject_refusals_from(0);
    std::int64_t refusals = 0;
    for (const auto& executor : ranks.executors) refusals += executor->take_refusals();
    EXPECT_TRUE(refusals > 0 || job.nodes().groups.count() == p) << where;
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryPlan, testing::Range(1, 34));

/// Programs call collectives in threads of their own, and Fortran's arrays take much of a stack: neither planning nor
/// executing may use a stack that grows with a rank's steps.
TEST(SmallStack, suffices_for_every_plan_of_many_ranks) {
    struct Task {
        topology::Job job = test::costed_job_on("2leaf@18GB/s:3+2node@6GB/s:32core", "block", 160);
        NodesOf nodes{job};
        LoopbackRanks ranks{160, 7};
        int ran = 0;
    } task;
    const auto run = [](void* given) -> void* {
        auto& [job, nodes, ranks, ran] = *static_cast<Task*>(given);
        std::vector<test::NamedSpec> specs = test::every_spec();
        specs.push_back({Collective::allgather, "leaders:leaders=4,between=bruck,inside=binomial"});
        std::set<std::pair<Collective, std::string>> seen;
        for (const test::NamedSpec& named : specs) {
            // One of each algorithm, without those that send some 25,000 messages.
            const bool first = seen.emplace(named.first, Spec::parse(named.second).name).second;
            if ((!first && &named != &specs.back()) || named.first == Collective::alltoall) continue;
            plan::Request request{named.first, plan::Rank{0}, 64, plan::is_reduction(named.first) ? 8 : 1,
                                  false,       false};
            ran += expect_right(job, request, named.second, ranks, nodes, INT64_MAX);
        }
        return nullptr;
    };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // glibc gives threads on arm64 no less than 128 KiB.
    const auto least = static_cast<std::size_t>(PTHREAD_STACK_MIN);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::max<std::size_t>(64 * 1024, least)), 0);
    pthread_t thread{};
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &task), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    EXPECT_GT(task.ran, 30);
}

TEST(NodeMemory, is_declared_by_the_rows_whose_plans_use_it) {
    const topology::Job job = test::costed_job_on("3leaf:3+3+3node:4core", "block", 33);
    const topology::Job one_node = test::costed_job_on("1node:33core", "block", 33);
    std::set<const collectives::Algorithm*> declared, seen;
    for (const test::NamedSpec& named : test::every_spec())
        for (const topology::Job* on : {&job, &one_node}) {
            const Spec spec = Spec::parse(named.second);
            const auto& row = collectives::algorithm_named(named.first, spec.name);
            const plan::Request request{named.first, plan::Rank{0}, 64, 8, false, true};
            if (row.refuse(*on, request, spec)) continue;
            const plan::Plan plan = collectives::make_plan(*on, request, spec);
            bool uses = false;
            for (const plan::Program& program : plan.programs)
                for (const plan::Step& step : program.steps) uses = uses || plan::traits(step.kind).needs_node;
            if (uses) seen.insert(&row);
            if (row.node_memory != collectives::NodeMemory::never) declared.insert(&row);
        }
    for (const auto* row : seen)
        EXPECT_EQ(declared.count(row), 1U) << plan::name_of(row->collective) << ' ' << row->name;
    for (const auto* row : declared)
        EXPECT_EQ(seen.count(row), 1U) << plan::name_of(row->collective) << ' ' << row->name;
}

/// A device's memory: what is begun is done some looks later, in order, and in part before it is asked for.
class LateMemory final : public test::AffineMemory {
  public:
    explicit LateMemory(std::uint64_t seed) : random_(seed) {}

    void copy(char* to, const char* from, std::int64_t bytes) override {
        begin([=, this] { AffineMemory::copy(to, from, bytes); });
    }
    int combine(std::uint8_t index, const char* left, const char* right, char* target, std::int64_t bytes) override {
        begin([=, this] { AffineMemory::combine(index, left, right, target, bytes); });
        return 0;
    }
    std::uint64_t mark() override {
        has_begun_ = false;
        return begun_;
    }
    void look() override { advance(done_ + random_() % 3); }
    bool is_done(std::uint64_t mark) override { return done_ >= mark; }
    void await(std::uint64_t mark) override { advance(mark); }

    std::uint64_t begun() const { return begun_; }

  private:
    void begin(std::function<void()> work) {
        has_begun_ = true;
        ++begun_;
        queue_.push_back(std::move(work));
        if (random_() % 4 == 0) advance(done_ + 1);
    }
    void advance(std::uint64_t to) {
        for (; done_ < std::min(to, begun_); ++done_) {
            queue_.front()();
            queue_.pop_front();
        }
    }

    std::mt19937_64 random_;
    std::deque<std::function<void()>> queue_;
    std::uint64_t begun_ = 0, done_ = 0;
};

enum class Way { messages, rendezvous, on_devices };

/// `rendezvous`: messages inside of a node are read in the sender's memory, where they are long enough. Returns how
/// many were to be. `on_devices`: so, and half of the ranks' buffers are where no transport reaches them. Returns how
/// many commands their devices had.
std::int64_t expect_composition_right(std::string_view name, std::int32_t p, std::string_view hierarchy,
                                      std::string_view factoring, Way way, std::uint64_t seed) {
    const bool rendezvous = way != Way::messages;
    compose::NamedRequest request;
    request.ranks = p;
    request.root = plan::Rank{p / 2};
    request.bytes = {rendezvous ? 16384 : 96};
    request.element_bytes = 8;
    const compose::Composition composition = compose::compose(name, request);
    const topology::Job job = compose::job_of_hierarchy(hierarchy, p);
    const compose::Tree tree = compose::Tree::of(job);
    const compose::Factoring how = compose::parse_factoring(factoring).factoring;
    const compose::Factory factory(composition, job, tree, how);
    test::PlayedComposition expected(composition);
    LoopbackRanks ranks(p, seed, rendezvous);
    test::AffineMemory memory;
    std::vector<std::unique_ptr<LateMemory>> late;
    std::vector<LoopbackRank> all;
    std::vector<std::vector<std::vector<char>>> buffers(static_cast<std::size_t>(p));
    std::vector<std::vector<char*>> bases(static_cast<std::size_t>(p));
    for (std::int32_t r = 0; r < p; ++r) {
        const auto at = static_cast<std::size_t>(r);
        const plan::Program program = factory.program(plan::Rank{r});
        const PackedBlocks packed(composition, how.stripes, plan::Rank{r});
        Layout layout;
        layout.element_bytes = 8;
        layout.places = &packed;
        LoopbackRank& one = all.emplace_back();
        one.program = bind(Collective::composed, program, job, layout);
        for (std::size_t s = 0; s < program.steps.size(); ++s) {
            BoundStep& step = one.program.steps[s];
            step.single_copy = rendezvous && plan::is_message(step.kind);
            if (step.single_copy) ++one.program.single_copies;
        }
        choose_transports(one.program, ranks.executors[at]->transports(), job, plan::Rank{r});
        for (std::size_t b = 0; b < composition.buffers().size(); ++b)
            buffers[at].push_back(expected.buffer(r, b, false));
        for (auto& buffer : buffers[at]) bases[at].push_back(buffer.data());
        bases[at].resize(std::max<std::size_t>(2, bases[at].size()));
        one.environment.bases = {bases[at][0], bases[at][1], bases[at].data() + 2};
        one.environment.memory = &memory;
        one.environment.control_tags = static_cast<int>(factory.tag_limit());
        if (way == Way::on_devices && r % 2 == 0) {
            pack_messages(one.program, [](plan::Buffer) { return true; });
            one.environment.memory = late.emplace_back(std::make_unique<LateMemory>(seed + at)).get();
        }
    }
    std::int64_t read_in_place = 0;
    for (const LoopbackRank& one : all)
        for (const BoundStep& step : one.program.steps)
            read_in_place += plan::is_message(step.kind) && step.transport == 0;
    const auto codes = ranks.run(all);
    expected.play();
    for (std::int32_t r = 0; r < p; ++r) {
        EXPECT_EQ(codes[static_cast<std::size_t>(r)], 0);
        for (std::size_t b = 0; b < composition.buffers().size(); ++b)
            EXPECT_EQ(buffers[static_cast<std::size_t>(r)][b], expected.buffer(r, b, true))
                << name << ' ' << factoring << " on " << hierarchy << ": rank " << r << ", "
                << composition.buffers()[b];
    }
    EXPECT_TRUE(ranks.world.nothing_is_left());
    EXPECT_EQ(ranks.world.wrong_lengths, 0);
    if (way != Way::on_devices) return read_in_place;
    std::int64_t commands = 0;
    for (const auto& one : late) commands += static_cast<std::int64_t>(one->begun());
    return commands;
}

class EveryComposition : public testing::TestWithParam<std::int32_t> {};

TEST_P(EveryComposition, moves_the_right_bytes) {
    const std::int32_t p = GetParam();
    std::vector<std::string> hierarchies{std::to_string(p)};
    if (p % 2 == 0 && p > 2) hierarchies.push_back("2:" + std::to_string(p / 2));
    if (p > 3) hierarchies.push_back("2:" + std::to_string(p - p / 3) + "+" + std::to_string(p / 3));
    std::uint64_t seed = static_cast<std::uint64_t>(p);
    std::int64_t read_in_place = 0, commands = 0;
    for (const compose::NamedCollective& row : compose::named())
        for (const std::string& hierarchy : hierarchies)
            for (const char* factoring : {"method=direct", "method=tree stripes=2 pipeline=3", "method=ring/1"}) {
                expect_composition_right(row.name, p, hierarchy, factoring, Way::messages, ++seed);
                if (p % 4 == 0)
                    read_in_place +=
                        expect_composition_right(row.name, p, hierarchy, factoring, Way::rendezvous, ++seed);
                if (p % 3 == 0)
                    commands += expect_composition_right(row.name, p, hierarchy, factoring, Way::on_devices, ++seed);
                ASSERT_FALSE(HasFailure());
            }
    EXPECT_EQ(read_in_place > 0, p % 4 == 0);
    EXPECT_EQ(commands > 0, p % 3 == 0);
}

TEST_P(EveryComposition, whose_reads_are_refused_moves_the_right_bytes) {
    const std::int32_t p = GetParam();
    if (p % 4 != 0) return;
    for (const int from : {1, 5}) {
        node::inject_refusals_from(from);
        EXPECT_GT(expect_composition_right("alltoall", p, "2:" + std::to_string(p / 2), "method=direct",
                                           Way::rendezvous, static_cast<std::uint64_t>(p + from)),
                  0);
        node::inject_refusals_from(0);
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryComposition, testing::Range(1, 34));

}  // namespace
}  // namespace palmette::execute
