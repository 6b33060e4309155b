// What moves in a call, from its arguments: bytes of the blocks of a collective, to whom a neighbourhood's blocks go,
// and whether a call that failed has moved anything.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace palmette::record {

/// Bytes of `count` elements of a type; 0 for a handle that can't be a type's.
std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type);

#if !defined(PALMETTE_ABI_STANDARD) && !defined(PALMETTE_ABI_SMPI)
/// A Fortran program's list of types, each asked for only where something is sent: in place there may be nothing behind
/// the list, and how long it is depends on the call.
class FortranTypes {
  public:
    explicit FortranTypes(const MPI_Fint* list) : list_(list) {}
    template <class Index>
    MPI_Datatype operator[](Index i) const {
        return PMPI_Type_f2c(list_[i]);
    }

  private:
    const MPI_Fint* list_;
};
#define PALMETTE_HAS_FORTRAN_TYPES 1
#endif

/// Bytes of the blocks of a collective: all alike, a count for each, or a count and a type for each. Refers to the
/// call's own lists.
class Blocks {
  public:
    Blocks(std::int64_t count, MPI_Datatype type) : alike_(bytes_of(count, type)) {}
    Blocks(const int* counts, MPI_Datatype type) : counts_(counts), type_(type) {}
    Blocks(const MPI_Count* counts, MPI_Datatype type) : large_counts_(counts), type_(type) {}
    Blocks(const int* counts, const MPI_Datatype* types) : counts_(counts), types_(types) {}
    Blocks(const MPI_Count* counts, const MPI_Datatype* types) : large_counts_(counts), types_(types) {}
#if defined(PALMETTE_HAS_FORTRAN_TYPES)
    Blocks(const int* counts, const FortranTypes& types) : counts_(counts), fortran_types_(types), is_fortran_(true) {}
#endif

    bool alike() const { return !counts_ && !large_counts_; }
    std::uint64_t bytes(std::size_t block) const;

  private:
    MPI_Datatype type_of(std::size_t block) const;

    std::uint64_t alike_ = 0;
    const int* counts_ = nullptr;
    const MPI_Count* large_counts_ = nullptr;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    const MPI_Datatype* types_ = nullptr;
#if defined(PALMETTE_HAS_FORTRAN_TYPES)
    FortranTypes fortran_types_{nullptr};
    bool is_fortran_ = false;
#endif
};

/// Destinations of this rank in a neighbourhood collective, in the order of their blocks; MPI_PROC_NULL among them.
/// Local. Empty where the communicator has no topology.
std::vector<int> destinations_of(MPI_Comm comm);

/// Whether a call has returned an error before it did anything: the MPI didn't accept its arguments. What others have
/// begun is done, as far as anybody can tell: the receive whose message is too long has got it.
bool is_refusal(int code);
inline bool is_refused(int code) { return code != MPI_SUCCESS && is_refusal(code); }
/// Whether a receive that returned `code` has taken a message.
bool has_received(int code);

}  // namespace palmette::record
