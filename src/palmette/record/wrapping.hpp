// What the generated wrappers of the recording library call.
#pragma once

#include <mpi.h>

#include "palmette/interpose/fortran.hpp"
#include "palmette/interpose/next.hpp"
#include "palmette/record/call_requests.hpp"

namespace palmette::record {

inline int peer_of(int rank) { return rank == MPI_ANY_SOURCE ? -2 : rank < 0 ? -1 : rank; }

/// False for the values that ranks pass which take no part on their side of an inter-communicator.
inline bool is_rank(int root) { return root >= 0; }
/// False for ranks that take no part on their side of an inter-communicator; true for the root itself.
inline bool takes_part(int root) { return root >= 0 || root == MPI_ROOT; }

inline void know_world() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->know_world();
}
inline void finalizing() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) {
        current->set_state(trace::State::finalizing);
        current->tell_next();
    }
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
inline bool ends_last_session() {
    Recorder* const current = recorder.load(std::memory_order_acquire);
    return current && current->is_last_session();
}
inline void session_ended() {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->session(-1);
}
inline void made(MPI_Comm parent, MPI_Comm comm, std::optional<int> tag_of_group = std::nullopt) {
    if (Recorder* const current = recorder.load(std::memory_order_acquire))
        current->made_communicator(parent, comm, tag_of_group);
}
inline void forget_types() { freed_types.fetch_add(1, std::memory_order_acq_rel); }
inline void will_make(MPI_Comm parent, MPI_Comm comm) {
    if (Recorder* const current = recorder.load(std::memory_order_acquire))
        current->will_make_communicator(parent, comm);
}
inline void forget(MPI_Comm comm) {
    if (Recorder* const current = recorder.load(std::memory_order_acquire)) current->freed_communicator(comm);
}
/// Requests by index, as C passes them.
class Requests {
  public:
    explicit Requests(const MPI_Request* list) : list_(list) {}
    explicit operator bool() const { return list_ != nullptr; }
    MPI_Request operator[](int i) const { return list_[i]; }

  private:
    const MPI_Request* list_;
};
/// The status that a call has filled in; null: the program ignores it.
inline const MPI_Status* filled(const MPI_Status* status) { return status == MPI_STATUS_IGNORE ? nullptr : status; }
inline const MPI_Status* filled_list(const MPI_Status* statuses) {
    return statuses == MPI_STATUSES_IGNORE ? nullptr : statuses;
}
inline const MPI_Status* at(const MPI_Status* statuses, int i) { return statuses && i >= 0 ? statuses + i : nullptr; }
/// Where `i` stands among the indices that a call has filled in; -1: nowhere, or it hasn't filled in any.
template <class IndexAt>
int position_of(int i, int outcount, int count, IndexAt index_at) {
    for (int k = 0; k < outcount && k < count; ++k)
        if (index_at(k) == i) return k;
    return -1;
}

#if !defined(PALMETTE_ABI_STANDARD) && !defined(PALMETTE_ABI_SMPI)
/// A list of requests as Fortran handles.
class FortranRequests {
  public:
    explicit FortranRequests(const MPI_Fint* list) : list_(list) {}
    explicit operator bool() const { return list_ != nullptr; }
    MPI_Request operator[](int i) const { return PMPI_Request_f2c(list_[i]); }

  private:
    const MPI_Fint* list_;
};
class FortranMessage {
  public:
    explicit FortranMessage(const MPI_Fint* message) : message_(message) {}
    MPI_Message operator*() const { return PMPI_Message_f2c(*message_); }

  private:
    const MPI_Fint* message_;
};
using interpose::fortran::first_index;
/// Fortran's statuses lie in memory as C's do.
inline const MPI_Status* filled_fortran(const MPI_Fint* status) {
    return interpose::fortran::is_ignored(status) ? nullptr : reinterpret_cast<const MPI_Status*>(status);
}
#endif

/// What Fortran's `ierror` says, an INTEGER that may be left out.
inline int code_of(interpose::Word error) {
    const auto* const code = reinterpret_cast<const int*>(error);
    return code ? *code : MPI_SUCCESS;
}
inline bool succeeded(interpose::Word error) { return code_of(error) == MPI_SUCCESS; }

}  // namespace palmette::record
