// What has to cross the edges of a machine, whatever the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/compose/composition.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::compose {

/// Bytes that must leave and enter a group.
struct Crossing {
    std::int64_t out = 0, in = 0;
};

/// By level of the job and group. What is multicast leaves the root's groups once if somebody outside wants it, and
/// enters each other group once that wants it; what is reduced leaves each group that contributes once, and enters the
/// root's once. Divided by an edge's capacity it is a bound on the time of the composition as it is written: another
/// composition for the same purpose may need less.
std::vector<std::vector<Crossing>> crossing(const Composition& composition, const topology::Job& job);

}  // namespace palmette::compose
