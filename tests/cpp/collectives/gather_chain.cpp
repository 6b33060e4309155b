// gather, chain: blocks move towards the root hand to hand, from both ends of the topology order.
//
//   p = 8, root at position 3:   0 → 1 → 2 → 3 ← 4 ← 5 ← 6 ← 7
//
// A template for new algorithms (docs/guide/add-an-algorithm.md). Its tests are in template_algorithm_test.cpp;
// tests/python/mpi/test_new_algorithm.py puts this file, as it is, among the others.
#include "palmette/base/error.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {

extern const Algorithm gather_chain;

namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

// 1. What keeps it from serving a job. It may look only at what all ranks share, because all of them must decide alike.
std::optional<std::string> refuse_chain(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"longest"});
    const std::int32_t longest = spec.integer("longest", 1024);
    if (job.size() > longest) return base::cat("a chain of ", job.size(), " ranks is longer than ", longest);
    return std::nullopt;
}

// 2. One rank's program, from arithmetic on its own position; no loop over the other ranks.
Program make_chain(const Job& job, Rank rank, const Request& request, const Spec&) {
    const std::int32_t me = job.position_of(rank).value;
    const std::int32_t root = job.position_of(request.root).value;
    const std::int32_t last = job.size() - 1;
    plan::ProgramBuilder builder(rank, plan::BlockOrder::topology);
    builder.stage("chain");
    if (me == root) {
        if (me > 0) builder.recv(job.rank_at({me - 1}), 0, Buffer::recv, Blocks(0, me), {});
        if (me < last) builder.recv(job.rank_at({me + 1}), 0, Buffer::recv, Blocks(me + 1, last - me), {});
        builder.copy(Buffer::send, Buffer::recv, Blocks(me, 1), {});
        return builder.finish();
    }
    const std::int32_t towards = me < root ? me + 1 : me - 1;
    const std::int32_t away = me < root ? me - 1 : me + 1;
    const Blocks behind = me < root ? Blocks(0, me) : Blocks(me + 1, last - me);
    if (behind.empty()) {
        builder.send(job.rank_at({towards}), 0, Buffer::send, Blocks(me, 1), {});
        return builder.finish();
    }
    Blocks passed_on = behind;
    passed_on.insert({me, 1});
    builder.reserve_scratch(passed_on);
    const StepId arrived = builder.recv(job.rank_at({away}), 0, Buffer::scratch, behind, {});
    const StepId own = builder.copy(Buffer::send, Buffer::scratch, Blocks(me, 1), {});
    builder.send(job.rank_at({towards}), 0, Buffer::scratch, passed_on, {arrived, own});
    return builder.finish();
}

}  // namespace

// 3. The row: with one line in rows.hpp everything knows the algorithm.
const Algorithm gather_chain{
    .collective = Collective::gather,
    .name = "chain",
    .sentence = "Blocks move towards the root hand to hand, from both ends of the topology order.",
    .source = "folklore; a tree of depth p, here to be read",
    .keys = "longest=N (1024)",
    .preconditions = "at most `longest` ranks",
    .relays = true,
    .refuse = refuse_chain,
    .make = make_chain,
    .candidates = "chain",
    .samples = "chain chain:longest=64",
};

}  // namespace palmette::collectives
