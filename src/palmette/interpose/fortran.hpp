// Conversion of Fortran's arguments to C's. Handles are integers there; MPI_IN_PLACE, MPI_BOTTOM and the ignored
// statuses are addresses of variables.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

// The standard ABI says nothing of Fortran's handles.
#if !defined(PALMETTE_ABI_STANDARD) && !defined(PALMETTE_ABI_SMPI)

namespace palmette::interpose::fortran {

#if defined(PALMETTE_ABI_OMPI)

/// Fortran's constants that stand for addresses: common blocks, each at the address that it has in the program and in
/// modules that bring their own.
enum class Constant : std::uint8_t { in_place, bottom, status_ignore, statuses_ignore, unweighted, weights_empty };
bool is(Constant constant, const void* address);

inline bool is_in_place(const void* address) { return is(Constant::in_place, address); }
inline void* buffer(void* address) {
    if (is_in_place(address)) return MPI_IN_PLACE;
    return is(Constant::bottom, address) ? MPI_BOTTOM : address;
}
inline const int* weights(const MPI_Fint* list) {
    if (is(Constant::unweighted, list)) return MPI_UNWEIGHTED;
    return is(Constant::weights_empty, list) ? MPI_WEIGHTS_EMPTY : list;
}
inline bool is_ignored(const MPI_Fint* status) {
    return is(Constant::status_ignore, status) || is(Constant::statuses_ignore, status);
}

#else

/// use mpi_f08 of MPICH; its functions with buffers come in as C's.
inline bool is_ignored(const MPI_Fint* status) {
    const void* address = status;
    return address == MPI_F08_STATUS_IGNORE || address == MPI_F08_STATUSES_IGNORE;
}
/// Unless it is the address that stands for one of C's constants.
const int* weights(const MPI_Fint* list);

#endif

constexpr int status_size = static_cast<int>(sizeof(MPI_Status) / sizeof(MPI_Fint));

/// Logicals as C's 0 and 1.
class Flags {
  public:
    Flags(const MPI_Fint* logicals, int count) {
        for (int i = 0; i < count; ++i) flags_.push_back(logicals[i] != 0 ? 1 : 0);
    }
    operator const int*() const { return flags_.data(); }

  private:
    std::vector<int> flags_;
};

/// A handle that the call may change. `is_new`: the program's variable holds nothing yet.
#define PALMETTE_FORTRAN_HANDLE(Name, Handle, null)                                    \
    class Name {                                                                       \
      public:                                                                          \
        explicit Name(MPI_Fint* handle, bool is_new = false)                           \
            : fortran_(handle), handle_(is_new ? null : PMPI_##Name##_f2c(*handle)) {} \
        Name(const Name&) = delete;                                                    \
        Name& operator=(const Name&) = delete;                                         \
        ~Name() { *fortran_ = PMPI_##Name##_c2f(handle_); }                            \
        operator Handle*() { return &handle_; }                                        \
                                                                                       \
      private:                                                                         \
        MPI_Fint* fortran_;                                                            \
        Handle handle_;                                                                \
    };
PALMETTE_FORTRAN_HANDLE(Request, MPI_Request, MPI_REQUEST_NULL)
PALMETTE_FORTRAN_HANDLE(Comm, MPI_Comm, MPI_COMM_NULL)
PALMETTE_FORTRAN_HANDLE(Type, MPI_Datatype, MPI_DATATYPE_NULL)
PALMETTE_FORTRAN_HANDLE(Op, MPI_Op, MPI_OP_NULL)
PALMETTE_FORTRAN_HANDLE(Message, MPI_Message, MPI_MESSAGE_NULL)
#ifdef MPI_SESSION_NULL
PALMETTE_FORTRAN_HANDLE(Session, MPI_Session, MPI_SESSION_NULL)
#endif
#undef PALMETTE_FORTRAN_HANDLE

class Requests {
  public:
    Requests(MPI_Fint* requests, int count) : fortran_(requests), requests_(size_of(count)) {
        // Some MPIs have these as macros.
        std::transform(requests, requests + size_of(count), requests_.begin(),
                       [](MPI_Fint request) { return PMPI_Request_f2c(request); });
    }
    Requests(const Requests&) = delete;
    Requests& operator=(const Requests&) = delete;
    ~Requests() {
        std::transform(requests_.begin(), requests_.end(), fortran_,
                       [](MPI_Request request) { return PMPI_Request_c2f(request); });
    }
    operator MPI_Request*() { return requests_.data(); }

    static std::size_t size_of(int count) { return static_cast<std::size_t>(std::max(count, 0)); }

  private:
    MPI_Fint* fortran_;
    std::vector<MPI_Request> requests_;
};

class Status {
  public:
    explicit Status(MPI_Fint* status) : fortran_(is_ignored(status) ? nullptr : status) {
        if (fortran_) PMPI_Status_f2c(fortran_, &status_);
    }
    Status(const Status&) = delete;
    Status& operator=(const Status&) = delete;
    ~Status() {
        if (fortran_) PMPI_Status_c2f(&status_, fortran_);
    }
    operator MPI_Status*() { return fortran_ ? &status_ : MPI_STATUS_IGNORE; }

  private:
    MPI_Fint* fortran_;
    MPI_Status status_{};
};

class Statuses {
  public:
    Statuses(MPI_Fint* statuses, int count) : fortran_(is_ignored(statuses) ? nullptr : statuses) {
        if (!fortran_) return;
        statuses_.resize(Requests::size_of(count));
        for (std::size_t i = 0; i < statuses_.size(); ++i) PMPI_Status_f2c(fortran_ + i * status_size, &statuses_[i]);
    }
    Statuses(const Statuses&) = delete;
    Statuses& operator=(const Statuses&) = delete;
    ~Statuses() {
        for (std::size_t i = 0; i < statuses_.size(); ++i) PMPI_Status_c2f(&statuses_[i], fortran_ + i * status_size);
    }
    operator MPI_Status*() { return fortran_ ? statuses_.data() : MPI_STATUSES_IGNORE; }

  private:
    MPI_Fint* fortran_;
    std::vector<MPI_Status> statuses_;
};

/// One type for each rank that the communicator talks to. Null stays null: MPI_IN_PLACE.
class Types {
  public:
    Types(const MPI_Fint* types, MPI_Comm comm) {
        int inter = 0;
        int size = 0;
        PMPI_Comm_test_inter(comm, &inter);
        if (inter)
            PMPI_Comm_remote_size(comm, &size);
        else
            PMPI_Comm_size(comm, &size);
        types_.resize(static_cast<std::size_t>(size));
        if (types)
            std::transform(types, types + size, types_.begin(), [](MPI_Fint type) { return PMPI_Type_f2c(type); });
    }
    operator const MPI_Datatype*() const { return types_.data(); }

  private:
    std::vector<MPI_Datatype> types_;
};

/// Where this MPI's Fortran layer begins to count requests: 1, but for use mpi_f08 of some MPICH 4, which programs have
/// got used to.
int first_index();

/// Indices as Fortran counts them; MPI_UNDEFINED stays.
inline void count_as_fortran(MPI_Fint* indices, int count) {
    for (int i = 0; i < count; ++i)
        if (indices[i] != MPI_UNDEFINED) indices[i] += first_index();
}

}  // namespace palmette::interpose::fortran

#endif
