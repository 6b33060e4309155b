// The table that palmette brings: first choices, measured on an emulated cluster (docs/decisions/0005).
#include "palmette/select/table.hpp"

namespace palmette::select {
namespace {

constexpr std::string_view text = R"({
"format": "palmette-table", "version": 1,
"rows": [
  {"function": "gather", "max_nodes": 1, "algorithm": "mpi", "why": "inside one node the MPI's shared memory is faster than messages"},
  {"function": "gather", "max_bytes": "2K", "min_ranks": 8, "algorithm": "by_topology:node=linear,top=linear", "why": "small blocks: one message per node instead of one per rank"},
  {"function": "gather", "min_bytes": 2049, "algorithm": "linear", "why": "large blocks: the root's link is the limit, and nothing is stored and forwarded"},
  {"function": "scatter", "max_nodes": 1, "algorithm": "mpi", "why": "inside one node the MPI's shared memory is faster than messages"},
  {"function": "scatter", "max_bytes": "2K", "min_ranks": 8, "algorithm": "by_topology:node=linear,top=linear", "why": "small blocks: one message per node instead of one per rank"},
  {"function": "scatter", "min_bytes": 2049, "algorithm": "linear", "why": "large blocks: the root's link is the limit, and nothing is stored and forwarded"},
  {"function": "allgather", "max_nodes": 1, "algorithm": "mpi", "why": "inside one node the MPI's shared memory is faster than messages"},
  {"function": "allgather", "max_bytes": "2K", "algorithm": "leaders:between=bruck,inside=binomial", "why": "small blocks: few messages, one leader a node"},
  {"function": "allgather", "min_bytes": 2049, "algorithm": "ring", "why": "large blocks: each link carries each block once"},
  {"function": "allgatherv", "max_nodes": 1, "algorithm": "mpi", "why": "inside one node the MPI's shared memory is faster than messages"},
  {"function": "allgatherv", "max_bytes": "2K", "algorithm": "leaders:between=bruck,inside=binomial", "why": "small blocks: few messages, one leader a node"},
  {"function": "allgatherv", "min_bytes": 2049, "algorithm": "ring", "why": "large blocks: each link carries each block once"},
  {"function": "gatherv", "algorithm": "mpi", "why": "sizes are unknown to most ranks, and the MPI's direct messages are near the limit"},
  {"function": "scatterv", "algorithm": "mpi", "why": "sizes are unknown to most ranks, and the MPI's direct messages are near the limit"}
]})";

}  // namespace

const Table& Table::built_in() {
    static const Table table = Table::from_json(base::Json::parse(text));
    return table;
}

}  // namespace palmette::select
