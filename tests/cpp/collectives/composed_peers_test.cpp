// MPI's collectives as compositions, beside the plans made by hand: messages, bytes between the outermost groups, messages in a row.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "palmette/collectives/registry.hpp"
#include "palmette/compose/factor.hpp"
#include "palmette/compose/named.hpp"
#include "palmette/plan/count.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

struct Figures {
    std::int64_t messages, outer_messages, outer_bytes, chain;
};
std::ostream& operator<<(std::ostream& out, const Figures& f) {
    return out << f.messages << " messages, " << f.outer_bytes << " bytes in " << f.outer_messages
               << " between the outermost groups, " << f.chain << " in a row";
}

Figures figures(const plan::Plan& plan, const Job& job, const std::vector<std::int64_t>& lengths) {
    const plan::PlanCount count = plan::count(plan, job, lengths);
    return {count.messages, count.levels.front().messages, count.levels.front().bytes, count.longest_chain};
}

constexpr std::int64_t bytes = 1 << 14;

Figures by_hand(const Job& job, plan::Collective collective, const char* spec) {
    plan::Request request{collective, Rank{0}, bytes};
    request.element_bytes = plan::is_reduction(collective) ? 4 : 1;
    return figures(make_plan(job, request, Spec::parse(spec)), job, {bytes});
}

Figures composed(const Job& job, const char* name, const char* methods, bool flat) {
    compose::NamedRequest request;
    request.ranks = job.size();
    request.bytes = {bytes};
    request.element_bytes = 4;
    const compose::Composition made = compose::compose(name, request);
    const compose::Tree tree =
        compose::Tree::of(flat ? compose::job_of_hierarchy(base::cat(job.size()), job.size()) : job);
    compose::Factoring factoring;
    factoring.methods.clear();
    for (const std::string_view method : base::split(methods, ','))
        factoring.methods.push_back(compose::Method::parse(method));
    const plan::Plan plan = compose::Factory(made, job, tree, factoring).plan();
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < plan.contract->blocks(); ++b) lengths.push_back(plan.contract->bytes_of(b));
    return figures(plan, job, lengths);
}

struct Pair {
    const char* name;
    const char* methods;
    bool flat;
    plan::Collective collective;
    const char* spec;
    /// What the composition may have more of, with the reason in docs/guide/compose.md; 0: nothing.
    std::int64_t more_messages = 0, more_outer_messages = 0, more_outer_bytes = 0, more_chain = 0;
};

using plan::Collective;
const Pair pairs[] = {
    {"gather", "direct/1", false, Collective::gather, "by_topology:node=linear,leaf=linear,top=linear"},
    {"gather", "direct", true, Collective::gather, "linear"},
    {"scatter", "direct/1", false, Collective::scatter, "by_topology:node=linear,leaf=linear,top=linear"},
    {"broadcast", "direct", false, Collective::bcast, "by_topology:node=linear,leaf=linear,top=linear"},
    {"broadcast", "tree.2", false, Collective::bcast, "by_topology:node=binomial,leaf=binomial,top=binomial"},
    {"broadcast", "tree.2", true, Collective::bcast, "k_nomial"},
    {"broadcast", "ring", true, Collective::bcast, "chain"},
    {"broadcast_scatter_allgather", "ring", true, Collective::bcast, "scatter_allgather"},
    {"reduce", "direct", false, Collective::reduce, "by_topology:node=linear,leaf=linear,top=linear"},
    {"reduce", "tree.2", true, Collective::reduce, "k_nomial"},
    {"reduce_scatter_gather", "tree.2", true, Collective::reduce, "reduce_scatter_gather"},
    {"allgather", "direct/1", false, Collective::allgather, "by_topology:node=linear,leaf=linear,top=all"},
    {"allgather", "ring", true, Collective::allgather, "ring:nested=no"},
    {"allgather", "ring", false, Collective::allgather, "ring"},
    {"allgather", "tree.2", true, Collective::allgather, "bruck"},
    {"allgather", "direct", true, Collective::allgather, "linear"},
    {"reduce_scatter", "direct", true, Collective::reduce_scatter, "direct"},
    {"reduce_scatter", "ring", true, Collective::reduce_scatter, "ring:nested=no"},
    {"reduce_scatter", "tree.2", true, Collective::reduce_scatter, "recursive_halving"},
    {"reduce_scatter", "direct/1", false, Collective::reduce_scatter, "leaders"},
    {"allreduce", "direct", true, Collective::allreduce, "direct"},
    {"allreduce", "tree.2", true, Collective::allreduce, "rabenseifner"},
    {"allreduce", "ring", true, Collective::allreduce, "ring:nested=no"},
    {"allreduce", "ring", false, Collective::allreduce, "ring"},
    {"allreduce", "direct", false, Collective::allreduce, "leaders:leaders=all,between=direct"},
    {"allreduce_reduce_broadcast", "direct", false, Collective::allreduce,
     "reduce_bcast:node=linear,leaf=linear,top=linear"},
    {"alltoall", "direct", true, Collective::alltoall, "linear"},
    {"alltoall", "direct,direct,direct", false, Collective::alltoall, "node_aware"},
    {"alltoall", "direct/1", false, Collective::alltoall, "leaders"},
};

TEST(ComposedCollectives, are_as_good_as_those_made_by_hand_but_for_what_the_guide_explains) {
    const bool tell = std::getenv("PALMETTE_TELL") != nullptr;
    for (const char* machine : {"2node:4core", "3leaf:3+3+2node:2core", "2leaf:4node:2core"}) {
        const Job job = test::job_on(machine);
        for (const Pair& pair : pairs) {
            const Figures made = composed(job, pair.name, pair.methods, pair.flat);
            const Figures hand = by_hand(job, pair.collective, pair.spec);
            if (tell)
                std::cout << machine << ' ' << pair.name << ' ' << pair.methods << (pair.flat ? " flat" : "") << ": "
                          << made << "\n      " << pair.spec << ": " << hand << '\n';
            SCOPED_TRACE(
                base::cat(machine, ": ", pair.name, " with ", pair.methods, ": ", made, "; ", pair.spec, ": ", hand));
            EXPECT_LE(made.messages, hand.messages + pair.more_messages);
            EXPECT_LE(made.outer_messages, hand.outer_messages + pair.more_outer_messages);
            EXPECT_LE(made.outer_bytes, hand.outer_bytes + pair.more_outer_bytes);
            EXPECT_LE(made.chain, hand.chain + pair.more_chain);
        }
    }
}

}  // namespace
}  // namespace palmette::collectives
