// What the generated wrappers of the recording library call.
#pragma once

#include <mpi.h>

#include "palmette/interpose/fortran.hpp"
#include "palmette/interpose/next.hpp"
#include "palmette/record/recorder.hpp"

namespace palmette::record {

inline int peer_of(int rank) { return rank == MPI_ANY_SOURCE ? -2 : rank < 0 ? -1 : rank; }

/// False for the values that ranks pass which take no part on their side of an inter-communicator.
inline bool is_rank(int root) { return root >= 0; }

inline void know_world() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->know_world();
}
inline void finalizing() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire))
        current->set_state(trace::State::finalizing);
}
inline void finalized() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->stop();
}
inline void aborting() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->set_state(trace::State::aborted);
}
inline void session_begun() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->session(1);
}
inline void session_ended() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->session(-1);
}
inline void made(MPI_Comm parent, MPI_Comm comm) {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->made_communicator(parent, comm);
}
inline void forget(MPI_Comm comm) {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->freed_communicator(comm);
}
/// Whether Fortran's `ierror`, an INTEGER, says so; it may be left out.
inline bool succeeded(interpose::Word error) {
    const auto* const code = reinterpret_cast<const int*>(error);
    return code == nullptr || *code == MPI_SUCCESS;
}

}  // namespace palmette::record
