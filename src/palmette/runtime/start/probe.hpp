// Costs of messages between a few ranks of a job, measured at its first call that nothing is known for.
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::runtime {

/// One entry for each level of a job and one for ranks that no level tells apart; a level that wasn't measured has
/// unknown costs.
using ProbedCosts = std::vector<topology::LevelCosts>;

/// Collective over `comm`, on which no other messages may be in flight and whose ranks are the job's. Between the rank
/// at position 0 and one rank for each level, messages of 8 bytes give the latency, batches of them the overhead, and
/// longer ones the rate of a pair, in some 3 ms a level and 20 ms in all; then all ranks get the result. Nothing on an
/// MPI error. What a link or a node's memory carries for many pairs at once isn't measured: `palmette calibrate` does.
std::optional<ProbedCosts> probe_costs(MPI_Comm comm, const topology::Job& job, int rank);

/// Sets the measured costs of a job, which may be a part of the one that they were measured on: levels go by name.
void apply_costs(const ProbedCosts& costs, const topology::Job& measured_on, topology::Job& job);

}  // namespace palmette::runtime
