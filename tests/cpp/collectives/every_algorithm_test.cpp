// Every algorithm is proved right on every kind of job: 1 to 33 ranks, uneven trees, three placements, every root (of
// the larger ones in make test-long).
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <string_view>
#include <vector>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/space.hpp"
#include "palmette/plan/verify.hpp"
#include "support/jobs.hpp"
#include "support/specs.hpp"

namespace palmette::collectives {
namespace {

using test::costed_job_on;
using test::job_on;
using topology::Position;

/// Verifies one plan; false when the algorithm refuses the job.
bool expect_right(const Job& job, const Request& request, const std::string& text, std::string_view where) {
    const Spec spec = Spec::parse(text);
    if (algorithm_named(request.collective, spec.name).refuse(job, request, spec)) return false;
    const plan::Plan plan = make_plan(job, request, spec);
    const std::int64_t limit = tag_limit(job, request, spec);
    for (const Program& program : plan.programs)
        for (const plan::Step& step : program.steps)
            if (step.tag < 0 || step.tag >= limit)
                ADD_FAILURE() << text << ": tag " << step.tag << " is not below " << limit;
    const auto complaint = plan::verify(plan, job);
    EXPECT_EQ(complaint, std::nullopt) << plan::name_of(request.collective) << ' ' << text << " on " << where << ", "
                                       << job.size() << " ranks, root " << request.root
                                       << (request.ordered ? ", ordered" : "");
    return true;
}

/// With and without the order of ranks to keep, where it matters.
bool expect_right(const Job& job, const test::NamedSpec& named, std::int32_t root, std::string_view where) {
    Request request{named.first, Rank{root}, 64};
    request.element_bytes = plan::is_reduction(named.first) ? 4 : 1;
    request.shared_memory = named.second.find("shared") != std::string::npos;
    const bool any = expect_right(job, request, named.second, where);
    if (named.second == "shared") {
        // Read in the owner's memory; and what MPI_Gatherv and the like need, where nobody knows all lengths.
        expect_right(job, request, "shared:single=1", where);
        const bool some = named.first == Collective::gather || named.first == Collective::scatter ||
                          named.first == Collective::alltoall;
        Request unknown = request;
        unknown.block_bytes = -1;
        if (some) expect_right(job, unknown, "shared", where);
    }
    if (!plan::is_reduction(named.first)) return any;
    request.ordered = true;
    return expect_right(job, request, named.second, where) || any;
}

std::int32_t roots(Collective collective, std::int32_t p) { return plan::is_rooted(collective) ? p : 1; }

constexpr std::int32_t most_ranks = 33;

bool places_alike(const Job& a, const Job& b) {
    const auto same_at = [&](std::int32_t at) {
        return a.rank_at(Position{at}).value == b.rank_at(Position{at}).value &&
               std::equal(
                   a.levels().begin(), a.levels().end(), b.levels().begin(), b.levels().end(),
                   [at](const auto& x, const auto& y) { return x.groups.group_of(at) == y.groups.group_of(at); });
    };
    for (std::int32_t at = 0; at < a.size(); ++at)
        if (!same_at(at)) return false;
    return true;
}

using MachineAndPlacement = std::pair<std::string, std::string>;

/// Each machine with each placement, but for those that place ranks as "block" does.
std::vector<MachineAndPlacement> machines_and_placements() {
    std::vector<MachineAndPlacement> out;
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements()) {
            bool alike = placement != "block";
            for (std::int32_t p = 1; alike && p <= most_ranks; ++p)
                alike = places_alike(job_on(machine, placement, p), job_on(machine, "block", p));
            if (!alike) out.emplace_back(machine, placement);
        }
    return out;
}

/// In make test-long all roots and jobs; else of larger jobs a sample.
bool all_shapes() {
    const char* const wanted = std::getenv("PALMETTE_TEST_EVERY_SHAPE");
    return wanted != nullptr && *wanted == '1';
}

/// Largest number of ranks with which all roots are tried; of more ranks only some are, unless all are asked for.
constexpr std::int32_t all_roots_up_to = 17;

std::vector<std::int32_t> roots_of(Collective collective, std::int32_t p) {
    const std::int32_t count = roots(collective, p);
    std::vector<std::int32_t> found;
    for (std::int32_t root = 0; root < count; ++root)
        if (all_shapes() || p <= all_roots_up_to || root < 2 || root == p / 2 || root == p - 1) found.push_back(root);
    return found;
}

class EveryAlgorithm : public testing::TestWithParam<MachineAndPlacement> {};

TEST_P(EveryAlgorithm, is_right_for_1_to_33_ranks_and_for_every_root) {
    const auto& [machine, placement] = GetParam();
    std::set<test::NamedSpec> used;
    for (std::int32_t p = 1; p <= most_ranks; ++p) {
        // Beyond two nodes of 8 what is special: multiples and powers of 2 and 3, one more than these.
        if (!all_shapes() && p > all_roots_up_to && p != 24 && p != 27 && p < 32) continue;
        const Job job = costed_job_on(machine, placement, p);
        for (const test::NamedSpec& named : test::every_spec())
            for (const std::int32_t root : roots_of(named.first, p)) {
                if (expect_right(job, named, root, machine + ", " + placement)) used.insert(named);
                if (HasFailure()) return;
            }
    }
    // One rank a node is too few for layouts that need two leaders in each.
    const std::size_t most = test::every_spec().size() - (machine == "33node" ? 3 : 0);
    // One specification is refused on most machines where ranks aren't in order.
    EXPECT_GE(used.size(), placement == "block" ? most : most - 1)
        << "a specification was refused for every number of ranks";
    EXPECT_LE(used.size(), most);
}

INSTANTIATE_TEST_SUITE_P(Machines, EveryAlgorithm, testing::ValuesIn(machines_and_placements()), [](const auto& made) {
    std::string name;
    for (const char c : made.param.first + "_" + made.param.second)
        name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
});

TEST(LargeJobs, are_right_on_uneven_trees) {
    for (const auto& [machine, p] :
         std::vector<std::pair<const char*, std::int32_t>>{{"3leaf:5+9+7node:8core", 128},
                                                           {"2pod:2+3leaf:7+5node:4+9core", 173},
                                                           {"3leaf:5+9+7node:2socket:6+7core", 256}})
        for (const char* placement : {"block", "random:9"}) {
            if (!all_shapes() && (p > 173 || std::string_view(placement) == "block")) continue;
            for (const test::NamedSpec& named : test::every_spec()) {
                const Job job = costed_job_on(machine, placement, p);
                for (const std::int32_t root : {p / 3})
                    if (!HasFailure()) expect_right(job, named, root, machine);
            }
        }
}

TEST(LargeJobs, of_512_ranks_are_right) {
    const Job job = job_on("4leaf:16+15+14+19node:8core", "random:1", 512);
    for (const test::NamedSpec& named : {test::NamedSpec{Collective::gather, "by_topology"},
                                         {Collective::scatter, "by_topology:node=linear,leaf=binomial"},
                                         {Collective::gather, "k_nomial:radix=3,segment=16"},
                                         {Collective::allgather, "ring"},
                                         {Collective::allgather, "bruck:radix=4"},
                                         {Collective::allgather, "recursive_doubling"},
                                         {Collective::allgather, "leaders:leaders=4,between=bruck"}})
        EXPECT_TRUE(expect_right(job, named, 311, "512 ranks"));
}

}  // namespace
}  // namespace palmette::collectives
