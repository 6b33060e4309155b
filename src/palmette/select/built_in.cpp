// The table that palmette brings: first choices, measured on an emulated cluster (docs/decisions/0005).
#include "palmette/select/table.hpp"

namespace palmette::select {
namespace {

constexpr std::string_view text = R"({
"format": "palmette-table", "version": 1,
"rows": [
  {"function": "gather", "max_nodes": 1, "algorithm": "mpi", "why": "inside one node the MPI's shared memory is faster than messages"},
  {"function": "gather", "max_bytes": "2K", "mpi": "impi", "algorithm": "mpi", "why": "small blocks: Intel MPI's direct messages cost as little as a leader's"},
  {"function": "gather", "max_bytes": "2K", "min_ranks": 4, "algorithm": "by_topology:node=linear,top=linear", "why": "small blocks: one message per node instead of one per rank"},
  {"function": "gather", "algorithm": "linear", "min_bytes": 2049, "why": "large blocks: the root's link is the limit, and nothing is stored and forwarded"},

  {"function": "scatter", "max_nodes": 1, "algorithm": "mpi", "why": "inside one node the MPI's shared memory is faster than messages"},
  {"function": "scatter", "max_bytes": "2K", "mpi": "impi", "algorithm": "mpi", "why": "small blocks: Intel MPI's direct messages cost as little as a leader's"},
  {"function": "scatter", "max_bytes": "2K", "min_ranks": 4, "algorithm": "by_topology:node=linear,top=linear", "why": "small blocks: one message per node instead of one per rank"},
  {"function": "scatter", "algorithm": "linear", "min_bytes": 2049, "why": "large blocks: the root's link is the limit, and nothing is stored and forwarded"},

  {"function": "allgather", "max_nodes": 1, "algorithm": "mpi", "why": "inside one node the MPI's shared memory is faster than messages"},
  {"function": "allgather", "min_bytes": 512, "max_ranks": 32, "algorithm": "ring:segment=32K", "why": "few ranks: each link carries each block once"},
  {"function": "allgather", "min_bytes": "16K", "algorithm": "ring:segment=32K", "why": "large blocks: each link carries each block once"},
  {"function": "allgather", "algorithm": "leaders:between=recursive_doubling,inside=binomial", "why": "small blocks: few messages, one leader a node"},
  {"function": "allgather", "algorithm": "leaders:between=bruck,inside=binomial", "why": "small blocks: few messages, one leader a node, any number of nodes"},

  {"function": "allgatherv", "max_nodes": 1, "algorithm": "mpi", "why": "inside one node the MPI's shared memory is faster than messages"},
  {"function": "allgatherv", "min_bytes": 512, "max_ranks": 32, "algorithm": "ring:segment=32K", "why": "few ranks: each link carries each block once"},
  {"function": "allgatherv", "min_bytes": "16K", "algorithm": "ring:segment=32K", "why": "large blocks: each link carries each block once"},
  {"function": "allgatherv", "algorithm": "leaders:between=recursive_doubling,inside=binomial", "why": "small blocks: few messages, one leader a node"},
  {"function": "allgatherv", "algorithm": "leaders:between=bruck,inside=binomial", "why": "small blocks: few messages, one leader a node, any number of nodes"},

  {"function": "gatherv", "algorithm": "mpi", "why": "most ranks don't know the sizes, and the MPI's direct messages are near the limit"},
  {"function": "scatterv", "algorithm": "mpi", "why": "most ranks don't know the sizes, and the MPI's direct messages are near the limit"}
]})";

}  // namespace

const Table& Table::built_in() {
    static const Table table = Table::from_json(base::Json::parse(text));
    return table;
}

}  // namespace palmette::select
