// Allreduce through aggregators: plans with service positions are right, and break where they are broken on purpose.
#include <gmock/gmock.h>

#include <set>

#include "palmette/base/text.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/edit_program.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives::in_network_tests {
namespace {

using plan::Plan;
using plan::StepId;
using plan::StepKind;
using test::error_of;
using test::job_on;
using test::LooseStep;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Optional;

const char* const lab = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core";

std::string with_aggregator(const char* machine, const char* rate = "") {
    return base::cat("aggregator", *rate != 0 ? "@" : "", rate, ":", machine);
}

Request request_of(std::int64_t bytes) {
    Request out{Collective::allreduce, Rank{0}, bytes};
    out.element_bytes = 8;
    return out;
}

Plan plan_of(const Job& job, const char* spec = "in_network", std::int64_t bytes = 1 << 18) {
    return make_plan(job, request_of(bytes), Spec::parse(spec));
}

std::optional<std::string> refusal(const std::string& machine, const char* spec = "in_network", bool ordered = false) {
    Request request = request_of(1 << 18);
    request.ordered = ordered;
    return algorithm_named(Collective::allreduce, "in_network").refuse(job_on(machine), request, Spec::parse(spec));
}

TEST(InNetwork, is_right_on_even_and_uneven_trees_for_every_placement) {
    int made = 0;
    for (const char* machine :
         {"aggregator:8node:2core", "aggregator:3node", "aggregator@100Mbit/s:8node@50Mbit/s:2core",
          "aggregator@20Mbit/s+aggregator@60Mbit/s:5node@50Mbit/s:1+3core",
          "aggregator@50Mbit/s:3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "aggregator:4leaf:1+5+2+3node:2+4+3core",
          "aggregator@1GB/s:2pod@2GB/s:2+3leaf@1GB/s:2+1+3node@1GB/s:2socket:2+3core"})
        for (const std::string& placement : test::placements())
            for (const char* spec : {"in_network", "in_network:share=50,segment=256,window=1", "in_network:level=leaf",
                                     "in_network:level=node,window=3", "in_network:combine=hosts",
                                     "in_network:share=50,segment=256,combine=hosts"})
                for (const int bytes : {0, 3000}) {
                    const Job job = job_on(machine, placement);
                    const Request request = request_of(bytes / 8 * 8);
                    if (algorithm_named(Collective::allreduce, "in_network").refuse(job, request, Spec::parse(spec)))
                        continue;
                    const Plan plan = make_plan(job, request, Spec::parse(spec));
                    ASSERT_EQ(plan::verify(plan, job), std::nullopt) << machine << ' ' << placement << ' ' << spec;
                    const std::int64_t limit = tag_limit(job, request, Spec::parse(spec));
                    for (const Program& program : plan.programs)
                        for (const plan::Step& step : program.steps) ASSERT_LT(step.tag, limit) << spec;
                    ++made;
                }
    EXPECT_GT(made, 100);
}

TEST(InNetwork, moves_the_vector_once_over_an_adapter_where_hosts_move_two_shares_of_it) {
    // Host algorithms: 2 (p - 1) / p of the vector; 1.5 and 1.75 on 4 and 8 nodes.
    for (const auto& [machine, hosts] : {std::pair("4node", 1.5), std::pair("8node", 1.75)}) {
        const Job job = job_on(with_aggregator(machine));
        const auto out_of = [&](const char* spec) {
            const plan::PlanCount count = plan::count(plan_of(job, spec), job, {1 << 18});
            return static_cast<double>(count.levels[0].links[1].bytes_out) / (1 << 18);
        };
        EXPECT_EQ(out_of("in_network"), 1.0);
        EXPECT_EQ(out_of("ring"), hosts);
    }
}

/// The machine's top switch reduces, as all below it do.
Job below_switches(const char* machine, const char* placement = "block") {
    std::string text = topology::Machine::synthetic(machine).to_json().dump();
    text.insert(text.find('{', text.find(R"("tree")")) + 1, R"("aggregators": [{"name": "x", "kind": "sharp"}], )");
    const topology::Machine made = topology::Machine::from_json(base::Json::parse(text));
    return Job(made, topology::make_placement(made, placement));
}

TEST(InNetwork, switches_have_one_member_a_node_whatever_the_tree) {
    for (const char* machine : {"8node:2core", "3node", "4leaf:1+5+2+3node:2+4+3core",
                                "2pod@2GB/s:2+3leaf@1GB/s:2+1+3node@1GB/s:2socket:2+3core"})
        for (const std::string& placement : test::placements())
            for (const char* spec : {"in_network", "in_network:segment=256,window=1", "in_network:combine=hosts"}) {
                const Job job = below_switches(machine, placement.c_str());
                const Plan plan = plan_of(job, spec, 3000);
                ASSERT_EQ(plan::verify(plan, job), std::nullopt) << machine << ' ' << placement << ' ' << spec;
                if (std::string_view(spec).ends_with("hosts")) continue;
                std::set<std::int32_t> members;
                for (std::int32_t rank = 0; rank < job.size(); ++rank)
                    for (const plan::Step& step : plan.programs[static_cast<std::size_t>(rank)].steps)
                        if (plan::is_message(step.kind) && step.peer.value >= job.size()) members.insert(rank);
                std::set<std::int32_t> nodes;
                for (const std::int32_t rank : members)
                    nodes.insert(job.nodes().groups.group_of(job.position_of(Rank{rank}).value));
                EXPECT_EQ(members.size(), nodes.size());
                EXPECT_EQ(static_cast<std::int32_t>(nodes.size()), job.nodes().groups.count());
            }
}

TEST(InNetwork, switches_have_no_limit_of_groups_and_no_link) {
    const Job job = below_switches("10leaf@50Mbit/s:20node@100Mbit/s");
    EXPECT_EQ(job.aggregators()[0].up_bytes_per_s, 0);
    EXPECT_EQ(network_share(job, network_level(job, Spec::parse("in_network")), top_aggregators(job)), 1);
    EXPECT_EQ(plan::verify(plan_of(job, "in_network", 3200), job), std::nullopt);
    // On one leaf alone they are still the leaf's.
    std::vector<Rank> ranks;
    for (std::int32_t rank = 0; rank < 20; ++rank) ranks.push_back({rank});
    const Job part = job.restricted_to(ranks);
    EXPECT_EQ(part.aggregators()[0].up_bytes_per_s, 0);
    EXPECT_TRUE(switches_reduce(part));
    EXPECT_EQ(Job::from_json(job.to_json()).aggregators()[0].kind, topology::Aggregator::Kind::sharp);
}

TEST(InNetwork, switches_come_before_daemons) {
    const topology::Machine machine = topology::Machine::from_json(base::Json::parse(
        R"({"levels": [{"name": "node"}], "tree": {"aggregators": [{"name": "d"}, {"name": "s", "kind": "sharp"}],
            "children": [{"level": "node", "name": "a"}, {"level": "node", "name": "b"}]}})"));
    Job job(machine, topology::make_placement(machine, "block"));
    EXPECT_EQ(top_aggregators(job), std::vector<std::int32_t>{1});
    job.drop_aggregators(topology::Aggregator::Kind::sharp);
    EXPECT_FALSE(switches_reduce(job));
    EXPECT_EQ(top_aggregators(job), std::vector<std::int32_t>{0});
}

TEST(InNetwork, counts_the_links_of_aggregators) {
    const Job job = job_on(with_aggregator("8node@50Mbit/s", "100Mbit/s"));
    const Plan plan = plan_of(job, "in_network:share=100");
    EXPECT_EQ(plan.programs.size(), 9U);
    const plan::PlanCount count = plan::count(plan, job, {1 << 18});
    ASSERT_EQ(count.levels.back().level, "aggregator");
    ASSERT_EQ(count.levels.back().links.size(), 1U);
    EXPECT_EQ(count.levels.back().links[0].bytes_in, 8 << 18);
    EXPECT_EQ(count.levels.back().links[0].bytes_out, 8 << 18);
    EXPECT_EQ(count.busiest_level, 1);  // behind the level of the nodes
    EXPECT_DOUBLE_EQ(count.busiest_s, (8 << 18) / 12.5e6);
    EXPECT_EQ(count.reduced_bytes, 7 << 18);
    // Without service positions there is no such level.
    EXPECT_EQ(plan::count(plan_of(job, "ring"), job, {1 << 18}).levels.size(), 1U);
}

TEST(InNetwork, splits_the_vector_by_the_capacities) {
    // f = h / (k / r + h - 1), h = 2 (k - 1) / k, with three quarters of the aggregator's capacity.
    for (const auto& [rate, r] : {std::pair("50Mbit/s", 1.0), {"100Mbit/s", 2.0}, {"200Mbit/s", 4.0}}) {
        const Job job = job_on(with_aggregator("8node@50Mbit/s:2core", rate));
        EXPECT_NEAR(network_share(job, 0, {0}), 1.75 / (8 / (0.75 * r) + 0.75), 1e-3) << rate;
    }
    EXPECT_EQ(network_share(job_on(with_aggregator("8node@50Mbit/s", "400Mbit/s")), 0, {0}), 1);
    EXPECT_EQ(network_share(job_on(with_aggregator("8node@50Mbit/s")), 0, {0}), 1);
    EXPECT_EQ(network_share(job_on(with_aggregator("8node")), 0, {0}), 1);
    // In the plan: what hosts send alone, 1.75, for their share, and the rest once.
    const double share = 1.75 / (8 / 1.5 + 0.75);
    const Job job = job_on(with_aggregator("8node@50Mbit/s:2core", "100Mbit/s"));
    const plan::PlanCount count = plan::count(plan_of(job), job, {1 << 20});
    for (const plan::LinkCount& link : count.levels[0].links)
        EXPECT_NEAR(static_cast<double>(link.busiest_bytes()) / (1 << 20), share + (1 - share) * 1.75, 0.01);
    EXPECT_NEAR(static_cast<double>(count.levels.back().links[0].bytes_in) / (1 << 20), 8 * share, 0.05);
}

TEST(InNetwork, stripes_over_aggregators_by_their_links) {
    const Job job = job_on("aggregator@20Mbit/s+aggregator@60Mbit/s:4node@50Mbit/s");
    const plan::PlanCount count = plan::count(plan_of(job), job, {1 << 20});
    ASSERT_EQ(count.levels.back().links.size(), 2U);
    const auto one = static_cast<double>(count.levels.back().links[0].bytes_in);
    EXPECT_NEAR(static_cast<double>(count.levels.back().links[1].bytes_in) / one, 3, 0.05);
    // One whose link is no limit takes all.
    EXPECT_EQ(top_aggregators(job_on("aggregator@20Mbit/s+aggregator:4node")), std::vector<std::int32_t>{1});
}

TEST(InNetwork, groups_reduce_first_where_uplinks_are_the_limit) {
    const Job job = job_on(with_aggregator(lab));
    const plan::PlanCount count = plan::count(plan_of(job), job, {3 << 18});
    for (const plan::LinkCount& link : count.levels[0].links) {
        EXPECT_EQ(link.bytes_out, 3 << 18);
        EXPECT_EQ(link.bytes_in, 3 << 18);
    }
    // (2 m - 1) / m of the vector over the adapters of m hosts.
    EXPECT_EQ(count.levels[1].links[0].bytes_out, 5 << 18);
}

TEST(InNetwork, says_why_it_serves_no_job) {
    EXPECT_THAT(refusal("8node"), Optional(HasSubstr("no aggregator serves the job")));
    EXPECT_THAT(refusal("2leaf+aggregator:4node"), Optional(HasSubstr("no aggregator stands above all groups")));
    EXPECT_THAT(refusal("aggregator:2node:4core"),
                Optional(HasSubstr("an aggregator saves nothing between fewer than 3 groups of level node")));
    EXPECT_THAT(refusal("aggregator:2leaf:4node"), Optional(HasSubstr("fewer than 3 groups of level leaf")));
    EXPECT_EQ(refusal("aggregator:2leaf:4node", "in_network:level=node"), std::nullopt);
    EXPECT_THAT(refusal("aggregator:8node", "in_network", true), Optional(HasSubstr("rank order")));
    EXPECT_THAT(refusal("aggregator:127node"), Optional(HasSubstr("127 groups of level node are more than the 126")));
    EXPECT_THAT(error_of([] { (void)refusal("aggregator:8node", "in_network:share=101"); }),
                HasSubstr("share is auto or 1 to 100, not 101"));
    EXPECT_THAT(error_of([] { (void)refusal("aggregator:8node", "in_network:radix=2"); }),
                HasSubstr("key 'radix' is unknown"));
}

/// Eight nodes and an aggregator with limits.
Job limited(const char* limits) {
    std::string nodes;
    for (int h = 0; h < 8; ++h)
        nodes += base::cat(h == 0 ? "" : ",", R"({"name":"h)", h, R"(","level":"node","up_bytes_per_s":6.25e6})");
    const topology::Machine machine = topology::Machine::from_json(base::Json::parse(
        base::cat(R"({"levels":[{"name":"node"}],"tree":{"name":"top","aggregators":[{"name":"agg","limits":)", limits,
                  R"(}],"children":[)", nodes, "]}}")));
    return {machine, topology::make_placement(machine, "block")};
}

TEST(InNetwork, keeps_the_limits_of_an_aggregator) {
    const auto why = [](const char* limits) {
        return algorithm_named(Collective::allreduce, "in_network")
            .refuse(limited(limits), request_of(1 << 18), Spec::parse("in_network:segment=16K"));
    };
    EXPECT_THAT(why(R"({"children":7})"), Optional(HasSubstr("agg combines at most 7 contributions")));
    EXPECT_EQ(why(R"({"children":8})"), std::nullopt);
    EXPECT_THAT(why(R"({"bytes":131071})"), Optional(HasSubstr("too few for a segment of each group")));
    // Room for two segments of each node: the third waits for the first result.
    const Job job = limited(R"({"bytes":262144})");
    const Plan plan = plan_of(job, "in_network:segment=16K");
    EXPECT_EQ(plan::verify(plan, job), std::nullopt);
    const Program& program = plan.programs[0];
    std::int64_t in_flight = 0, most = 0;
    for (const plan::Step& step : program.steps) {
        if (step.kind == StepKind::send) {
            for (const StepId wait : program.waits_of(step)) in_flight -= program.steps[wait].kind == StepKind::recv;
            most = std::max(most, ++in_flight);
        }
    }
    EXPECT_EQ(most, 2);
}

class BrokenService : public testing::Test {
  protected:
    template <class Change>
    std::optional<std::string> verdict(std::size_t who, const Change& change) {
        Plan broken = plan_;
        std::vector<LooseStep> steps = test::take_apart(broken.programs[who]);
        change(steps);
        test::put_together(broken.programs[who], steps);
        return plan::verify(broken, job_);
    }
    const std::vector<plan::Step>& service() const { return plan_.programs.back().steps; }
    std::size_t at() const { return plan_.programs.size() - 1; }

    Job job_ = job_on(with_aggregator("3leaf:2+2+1node"), "random:2");
    Plan plan_ = plan_of(job_, "in_network:share=60,segment=512", 4096);
};

TEST_F(BrokenService, is_right_before) {
    EXPECT_EQ(plan_.programs.back().service, 0);
    EXPECT_EQ(plan::verify(plan_, job_), std::nullopt);
}

TEST_F(BrokenService, lacks_one_step) {
    for (StepId s = 0; s < service().size(); ++s) {
        Plan plan = plan_;
        test::drop_step(plan.programs.back(), s);
        EXPECT_NE(plan::verify(plan, job_), std::nullopt) << s;
    }
}

TEST_F(BrokenService, misses_one_dependency) {
    for (StepId s = 0; s < service().size(); ++s)
        for (std::uint32_t w = 0; w < service()[s].wait_count; ++w)
            EXPECT_THAT(verdict(at(), [&](auto& steps) { steps[s].waits.erase(steps[s].waits.begin() + w); }),
                        Optional(ContainsRegex("aggregator 0, step .*(before anything is there|neither waits)")))
                << s << ' ' << w;
}

TEST_F(BrokenService, combines_one_contribution_twice) {
    int broken = 0;
    for (StepId s = 0; s < service().size(); ++s) {
        if (service()[s].kind != StepKind::reduce) continue;
        EXPECT_NE(verdict(at(), [&](auto& steps) { steps[s].regions[1].buffer = plan::Buffer::scratch; }),
                  std::nullopt);
        ++broken;
    }
    EXPECT_GT(broken, 3);
}

TEST_F(BrokenService, has_no_memory_of_a_rank) {
    for (const plan::Buffer buffer : {plan::Buffer::send, plan::Buffer::recv})
        EXPECT_THAT(verdict(at(), [&](auto& steps) { steps[0].regions[0].buffer = buffer; }),
                    Optional(HasSubstr("which this rank doesn't have")));
    EXPECT_THAT(verdict(at(), [&](auto& steps) { steps[0].step.kind = StepKind::expose; }),
                Optional(HasSubstr("an aggregator shares no memory with ranks")));
}

TEST_F(BrokenService, is_not_the_jobs) {
    EXPECT_THAT(plan::verify(plan_, job_on("3leaf:2+2+1node", "random:2")),
                Optional(HasSubstr("6 programs for a job of 5 ranks and 0 aggregators")));
    Plan lacking = plan_;
    lacking.programs.pop_back();
    EXPECT_THAT(plan::verify(lacking, job_), Optional(HasSubstr("its peer is not another rank of the job")));
    Plan rank = plan_;
    rank.programs.back().service = -1;
    EXPECT_THAT(plan::verify(rank, job_), Optional(HasSubstr("program 5 is made for rank 5")));
}

}  // namespace
}  // namespace palmette::collectives::in_network_tests
