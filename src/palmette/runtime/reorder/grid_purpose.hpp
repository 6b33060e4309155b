// What Cartesian communicators are for, and so which order of their ranks is good: PALMETTE_REORDER and an info key.
#pragma once

#include <mpi.h>

#include <optional>
#include <string_view>

#include "palmette/topology/mapping/boxes.hpp"

namespace palmette::runtime {

/// `halo` or `exchange`; nothing for other words.
std::optional<topology::GridPurpose> grid_purpose_named(std::string_view word);

/// MPI_Comm_set_info and MPI_Comm_dup_with_info: keeps the value of `palmette_grid` (halo, exchange), which
/// MPI_Cart_create on this communicator and its duplicates goes by. Local; other values are reported and ignored.
/// `replaces`: without the key, what was kept goes.
void note_grid_purpose(MPI_Comm comm, MPI_Info info, bool replaces);

/// What grids made from a communicator are for: its key, or else the setting. Local.
topology::GridPurpose grid_purpose_of(MPI_Comm comm);
/// Collective: the same on all ranks; the setting where their keys differ, which is reported.
topology::GridPurpose agreed_grid_purpose(MPI_Comm comm);

}  // namespace palmette::runtime
