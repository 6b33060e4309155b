// The table that palmette brings: first choices, measured on an emulated cluster (docs/decisions/0005).
#include "palmette/select/table.hpp"

namespace palmette::select {
namespace {

constexpr std::string_view text = R"({
"format": "palmette-table", "version": 1,
"rows": [
  {"function": "gather", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "gather", "mpi": "impi", "max_nodes": 1, "min_bytes": "16K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "gather", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "gather", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "gather", "max_bytes": "2K", "mpi": "impi", "algorithm": "mpi", "why": "small blocks: Intel MPI's direct messages cost as little as a leader's"},
  {"function": "gather", "max_bytes": "2K", "min_ranks": 4, "algorithm": "by_topology:node=linear,top=linear", "why": "small blocks: one message per node instead of one per rank"},
  {"function": "gather", "min_bytes": 2049, "algorithm": "linear", "why": "large blocks: the root's link is the limit, and nothing is stored and forwarded"},

  {"function": "scatter", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "scatter", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "scatter", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "scatter", "max_bytes": "2K", "mpi": "impi", "algorithm": "mpi", "why": "small blocks: Intel MPI's direct messages cost as little as a leader's"},
  {"function": "scatter", "max_bytes": "2K", "min_ranks": 4, "algorithm": "by_topology:node=linear,top=linear", "why": "small blocks: one message per node instead of one per rank"},
  {"function": "scatter", "min_bytes": 2049, "algorithm": "linear", "why": "large blocks: the root's link is the limit, and nothing is stored and forwarded"},

  {"function": "allgather", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "allgather", "mpi": "impi", "max_nodes": 1, "min_bytes": "4K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "allgather", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "allgather", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "allgather", "min_latency": "500us", "max_bytes": "1K", "max_ranks": 64, "algorithm": "by_topology:node=linear,leaf=linear,top=all", "why": "small blocks over a slow spine: leaders of switches tell each other directly, so that it is crossed once"},
  {"function": "allgather", "min_bytes": 128, "max_bytes": 511, "max_ranks": 64, "algorithm": "by_topology:node=linear,leaf=linear,top=all", "why": "small blocks: leaders of switches tell each other directly"},
  {"function": "allgather", "min_bytes": 512, "max_ranks": 32, "algorithm": "ring:segment=32K", "why": "few ranks: each link carries each block once"},
  {"function": "allgather", "min_bytes": "16K", "algorithm": "ring:segment=32K", "why": "large blocks: each link carries each block once"},
  {"function": "allgather", "algorithm": "leaders:between=recursive_doubling,inside=binomial", "why": "small blocks: few messages, one leader a node"},
  {"function": "allgather", "algorithm": "leaders:between=bruck,inside=binomial", "why": "small blocks: few messages, one leader a node, any number of nodes"},

  {"function": "allgatherv", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "allgatherv", "mpi": "impi", "max_nodes": 1, "min_bytes": "4K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "allgatherv", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "allgatherv", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "allgatherv", "min_latency": "500us", "max_bytes": "1K", "max_ranks": 64, "algorithm": "by_topology:node=linear,leaf=linear,top=all", "why": "small blocks over a slow spine: leaders of switches tell each other directly, so that it is crossed once"},
  {"function": "allgatherv", "min_bytes": 128, "max_bytes": 511, "max_ranks": 64, "algorithm": "by_topology:node=linear,leaf=linear,top=all", "why": "small blocks: leaders of switches tell each other directly"},
  {"function": "allgatherv", "min_bytes": 512, "max_ranks": 32, "algorithm": "ring:segment=32K", "why": "few ranks: each link carries each block once"},
  {"function": "allgatherv", "min_bytes": "16K", "algorithm": "ring:segment=32K", "why": "large blocks: each link carries each block once"},
  {"function": "allgatherv", "algorithm": "leaders:between=recursive_doubling,inside=binomial", "why": "small blocks: few messages, one leader a node"},
  {"function": "allgatherv", "algorithm": "leaders:between=bruck,inside=binomial", "why": "small blocks: few messages, one leader a node, any number of nodes"},

  {"function": "bcast", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "bcast", "mpi": "mpich", "max_nodes": 1, "max_bytes": "4K", "algorithm": "mpi", "why": "small and on one node: MPICH's own shared memory is as fast"},
  {"function": "bcast", "mpi": "impi", "max_nodes": 1, "min_bytes": "16K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "bcast", "mpi": "openmpi", "max_nodes": 1, "min_bytes": "16K", "algorithm": "mpi", "why": "one node: Open MPI reads long vectors where they are, which never costs much"},
  {"function": "bcast", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "bcast", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "bcast", "blocking": false, "max_bytes": "8K", "algorithm": "mpi", "why": "small and nonblocking: the MPI's own start costs less"},
  {"function": "bcast", "mpi": "impi", "min_bytes": 33, "max_bytes": 255, "max_nodes": 16, "algorithm": "mpi", "why": "few nodes: Intel MPI sends straight to each node from 33 bytes on"},
  {"function": "bcast", "max_bytes": "4K", "max_nodes": 256, "algorithm": "by_topology:node=linear,leaf=linear,top=linear", "why": "small vectors: one hop between switches, one inside, one in the node"},
  {"function": "bcast", "max_bytes": "4K", "algorithm": "by_topology:node=linear,leaf=k_nomial.4,top=k_nomial.4", "why": "small vectors on many nodes: few hops, each link once"},
  {"function": "bcast", "max_bytes": "96K", "algorithm": "by_topology:node=linear,leaf=chain,top=chain,segment=4K", "why": "segments flow through every switch once"},
  {"function": "bcast", "max_bytes": "512K", "algorithm": "by_topology:node=linear,leaf=chain,top=chain,segment=8K", "why": "segments flow through every switch once"},
  {"function": "bcast", "algorithm": "by_topology:node=linear,leaf=chain,top=chain,segment=32K", "why": "segments flow through every switch once"},

  {"function": "reduce", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "reduce", "mpi": "impi", "max_nodes": 1, "min_bytes": "16K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "reduce", "mpi": "openmpi", "max_nodes": 1, "min_bytes": "16K", "algorithm": "mpi", "why": "one node: Open MPI reads long vectors where they are, which never costs much"},
  {"function": "reduce", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "reduce", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "reduce", "blocking": false, "max_bytes": "8K", "algorithm": "mpi", "why": "small and nonblocking: the MPI's own start costs less"},
  {"function": "reduce", "mpi": "impi", "min_bytes": 64, "max_bytes": "2K", "max_nodes": 16, "algorithm": "mpi", "why": "few nodes: Intel MPI sends each node's sum straight to the root from 64 bytes on"},
  {"function": "reduce", "max_bytes": "4K", "max_nodes": 256, "algorithm": "by_topology:node=linear,leaf=linear,top=linear", "why": "small vectors: one hop between switches, one inside, one in the node"},
  {"function": "reduce", "max_bytes": "4K", "algorithm": "by_topology:node=linear,leaf=k_nomial.4,top=k_nomial.4", "why": "small vectors on many nodes: few hops, each link once"},
  {"function": "reduce", "max_bytes": "48K", "algorithm": "by_topology:node=linear,leaf=chain,top=chain,segment=4K", "why": "segments flow through every switch once"},
  {"function": "reduce", "max_bytes": "512K", "algorithm": "by_topology:node=linear,leaf=chain,top=chain,segment=8K", "why": "segments flow through every switch once"},
  {"function": "reduce", "algorithm": "by_topology:node=linear,leaf=chain,top=chain,segment=32K", "why": "segments flow through every switch once"},
  {"function": "reduce", "max_bytes": "16K", "algorithm": "k_nomial:order=rank", "why": "an operation that keeps the order of ranks"},

  {"function": "allreduce", "mpi": "impi", "max_nodes": 1, "min_bytes": "4K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "allreduce", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "allreduce", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "allreduce", "blocking": false, "max_bytes": "8K", "algorithm": "mpi", "why": "small and nonblocking: the MPI's own start costs less"},
  {"function": "allreduce", "max_bytes": "4K", "max_ranks": 256, "algorithm": "leaders:level=leaf,between=all,inside=linear", "why": "small vectors: leaders of switches exchange directly, so a slow spine is crossed once"},
  {"function": "allreduce", "max_bytes": "8K", "algorithm": "leaders:between=recursive_multiplying.4,inside=linear", "why": "small vectors: one leader a node, few exchanges"},
  {"function": "allreduce", "min_bytes": "16K", "max_ranks": 64, "algorithm": "ring:segment=32K", "why": "large vectors: each link carries its share once in each direction"},
  {"function": "allreduce", "min_bytes": "512K", "algorithm": "leaders:leaders=all,between=ring,inside=shared", "why": "large vectors on many ranks: every rank of a node drives a lane"},
  {"function": "allreduce", "algorithm": "leaders:between=rabenseifner,inside=linear", "why": "medium vectors: halves of halves between nodes"},
  {"function": "allreduce", "max_bytes": "16K", "algorithm": "recursive_doubling:order=rank", "why": "an operation that keeps the order of ranks"},

  {"function": "reduce_scatter_block", "mpi": "impi", "max_nodes": 1, "min_bytes": "4K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "reduce_scatter_block", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "reduce_scatter_block", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "reduce_scatter_block", "max_bytes": "2K", "max_ranks": 256, "algorithm": "leaders:level=leaf,inside=linear", "why": "small blocks: one leader a switch"},
  {"function": "reduce_scatter_block", "max_bytes": 512, "algorithm": "leaders:inside=linear", "why": "small blocks: one leader a node"},
  {"function": "reduce_scatter_block", "algorithm": "ring:segment=32K", "why": "each link carries each block once, combined on the way"},
  {"function": "reduce_scatter_block", "algorithm": "mpi", "why": "an operation that keeps the order of ranks"},

  {"function": "reduce_scatter", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "reduce_scatter", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "reduce_scatter", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "reduce_scatter", "max_bytes": "2K", "max_ranks": 256, "algorithm": "leaders:level=leaf,inside=linear", "why": "small blocks: one leader a switch"},
  {"function": "reduce_scatter", "max_bytes": 512, "algorithm": "leaders:inside=linear", "why": "small blocks: one leader a node"},
  {"function": "reduce_scatter", "algorithm": "ring:segment=32K", "why": "each link carries each block once, combined on the way"},
  {"function": "reduce_scatter", "algorithm": "mpi", "why": "an operation that keeps the order of ranks"},

  {"function": "alltoall", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "alltoall", "mpi": "impi", "max_nodes": 1, "min_bytes": "4K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "alltoall", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "alltoall", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "alltoall", "max_bytes": "2K", "algorithm": "node_aware:inside=linear", "why": "small blocks: one message for each rank and node instead of one for each pair"},
  {"function": "alltoall", "max_ranks": 64, "algorithm": "linear", "why": "few ranks: all messages at once, in an order that keeps every uplink busy"},
  {"function": "alltoall", "algorithm": "pairwise:window=8", "why": "many ranks: few messages under way, in an order that keeps every uplink busy"},

  {"function": "barrier", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "barrier", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "barrier", "blocking": false, "algorithm": "mpi", "why": "small and nonblocking: the MPI's own start costs less"},
  {"function": "barrier", "algorithm": "leaders", "why": "leaders of switches tell each other directly, so a slow spine is crossed once"},

  {"function": "scan", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "scan", "mpi": "openmpi", "max_nodes": 1, "min_bytes": "16K", "algorithm": "mpi", "why": "one node: Open MPI reads long vectors where they are, which never costs much"},
  {"function": "scan", "mpi": "impi", "max_nodes": 1, "min_bytes": "4K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "scan", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "scan", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "scan", "blocking": false, "max_bytes": "2K", "algorithm": "mpi", "why": "small and nonblocking: the MPI's own start costs less"},
  {"function": "scan", "min_latency": "500us", "max_bytes": "1K", "max_ranks": 32, "algorithm": "all", "why": "tiny vectors over a slow spine, few ranks: one message each, so that it is crossed once"},
  {"function": "scan", "max_bytes": "2K", "algorithm": "recursive_doubling", "why": "small vectors"},
  {"function": "scan", "max_bytes": "32K", "algorithm": "linear:segment=2K", "why": "segments flow from rank to rank"},
  {"function": "scan", "algorithm": "linear:segment=4K", "why": "segments flow from rank to rank"},

  {"function": "exscan", "mpi": "openmpi", "max_nodes": 1, "max_bytes": 256, "algorithm": "mpi", "why": "tiny and on one node: Open MPI's own message costs less"},
  {"function": "exscan", "mpi": "openmpi", "max_nodes": 1, "min_bytes": "16K", "algorithm": "mpi", "why": "one node: Open MPI reads long vectors where they are, which never costs much"},
  {"function": "exscan", "mpi": "impi", "max_nodes": 1, "min_bytes": "4K", "algorithm": "mpi", "why": "one node: Intel MPI's own copies are as fast"},
  {"function": "exscan", "max_nodes": 1, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "exscan", "max_nodes": 1, "algorithm": "mpi", "why": "one node: nonblocking calls can't use its memory, and the MPI's messages do"},
  {"function": "exscan", "blocking": false, "max_bytes": "2K", "algorithm": "mpi", "why": "small and nonblocking: the MPI's own start costs less"},
  {"function": "exscan", "min_latency": "500us", "max_bytes": "1K", "max_ranks": 32, "algorithm": "all", "why": "tiny vectors over a slow spine, few ranks: one message each, so that it is crossed once"},
  {"function": "exscan", "max_bytes": "2K", "algorithm": "recursive_doubling", "why": "small vectors"},
  {"function": "exscan", "max_bytes": "32K", "algorithm": "linear:segment=2K", "why": "segments flow from rank to rank"},
  {"function": "exscan", "algorithm": "linear:segment=4K", "why": "segments flow from rank to rank"},

  {"function": "gatherv", "mpi": "mpich", "max_nodes": 1, "max_ranks": 32, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "gatherv", "mpi": "mpich", "min_latency": "500us", "min_nodes": 2, "max_ranks": 64, "algorithm": "linear", "why": "a slow spine: every block crosses it once, in a message that nobody waits to be acknowledged"},
  {"function": "gatherv", "mpi": "impi", "min_latency": "500us", "min_nodes": 2, "max_ranks": 64, "algorithm": "linear", "why": "a slow spine: every block crosses it once, in a message that nobody waits to be acknowledged"},
  {"function": "gatherv", "algorithm": "mpi", "why": "ranks don't know the sizes, and the MPI's direct messages are near the limit"},
  {"function": "scatterv", "mpi": "mpich", "max_nodes": 1, "max_ranks": 32, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "scatterv", "mpi": "impi", "max_nodes": 1, "max_ranks": 32, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "scatterv", "mpi": "impi", "min_nodes": 2, "algorithm": "linear", "why": "the root's link is the limit, and Intel MPI's own sends its blocks one after the other"},
  {"function": "scatterv", "mpi": "mpich", "min_latency": "500us", "min_nodes": 2, "max_ranks": 64, "algorithm": "linear", "why": "a slow spine: every block crosses it once, in a message that nobody waits to be acknowledged"},
  {"function": "scatterv", "algorithm": "mpi", "why": "ranks don't know the sizes, and the MPI's direct messages are near the limit"},
  {"function": "alltoallv", "mpi": "mpich", "max_nodes": 1, "max_ranks": 32, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "alltoallv", "mpi": "mpich", "min_latency": "500us", "min_nodes": 2, "max_ranks": 64, "algorithm": "linear", "why": "a slow spine: every block crosses it once, in a message that nobody waits to be acknowledged"},
  {"function": "alltoallv", "algorithm": "mpi", "why": "ranks don't know the sizes, and the MPI's direct messages are near the limit"},
  {"function": "alltoallw", "mpi": "mpich", "max_nodes": 1, "max_ranks": 32, "algorithm": "shared", "why": "one node: everybody reads what it needs where it is"},
  {"function": "alltoallw", "mpi": "mpich", "min_latency": "500us", "min_nodes": 2, "max_ranks": 64, "algorithm": "linear", "why": "a slow spine: every block crosses it once, in a message that nobody waits to be acknowledged"},
  {"function": "alltoallw", "algorithm": "mpi", "why": "ranks don't know the sizes, and the MPI's direct messages are near the limit"}
]})";

}  // namespace

const Table& Table::built_in() {
    static const Table table = Table::from_json(base::Json::parse(text));
    return table;
}

}  // namespace palmette::select
