// Lower bound of the traffic over each edge of a machine, whatever the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/compose/composition.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::compose {

/// Bytes that at least leave and enter a group.
struct Crossing {
    std::int64_t out = 0, in = 0;
};

/// By level of the job and group. Multicast data leaves the root's groups once if a rank outside receives it, and
/// enters each other group with receivers once; reduced data leaves each other contributing group once, and enters the
/// root's once. Divided by an edge's capacity it is a lower bound of the time of the composition as it is written:
/// another composition for the same purpose may need less.
std::vector<std::vector<Crossing>> crossing(const Composition& composition, const topology::Job& job);

}  // namespace palmette::compose
