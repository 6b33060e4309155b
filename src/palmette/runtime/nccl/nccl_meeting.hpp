// How the ranks of a communicator make one of NCCL's.
#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "palmette/device/nccl.hpp"

namespace palmette::runtime {

/// The ranks, on a communicator on which no other messages may be in flight but operations' with tags of their own.
struct Meeting {
    MPI_Comm comm;
    int rank, size;
};

/// Collective: polls this rank's progress until that of all is known. Whether all have succeeded.
bool all_succeed(const Meeting& ranks, const std::function<device::Progress()>& poll);

/// Collective; all ranks have the library and a context, this one at `place`. Null on all ranks where it fails on one,
/// or two ranks are on one device; `why` then, empty where another rank knows. `limit`: for half of it.
std::unique_ptr<device::Nccl> make_nccl(const Meeting& ranks, const device::Place& place, std::chrono::seconds limit,
                                        device::Nccl::Order order, std::string& why);

}  // namespace palmette::runtime
