// MPI's predefined operations and the predefined datatypes that they work on, found by handle.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "palmette/kernels/kernels.hpp"
#include "palmette/runtime/data/operation.hpp"
#include "palmette/runtime/data/operation_handles.hpp"

namespace palmette::runtime {

/// The groups of datatypes by which MPI says what an operation is defined for (MPI 5.0, section 6.9.2).
enum class TypeGroup : std::uint8_t {
    c_integer,
    fortran_integer,
    multi_language,  ///< MPI_AINT, MPI_OFFSET, MPI_COUNT
    floating,
    complex,
    logical,
    byte,
    pair,  ///< for MINLOC and MAXLOC
};

/// Fortran's default kinds and what follows from their size; of a pair, `members` are its two members.
struct SizedAs {
    TypeGroup group = TypeGroup::byte;
    TypeGroup members = TypeGroup::byte;
    bool operator==(const SizedAs&) const = default;
};

struct PredefinedType {
    bool has_element = false;  ///< not so: the kernels don't know it, as Fortran's reals of 16 bytes
    kernels::Element element{};
    ElementLayout layout;                                            ///< of the element
    std::array<kernels::Kernel, kernels::operator_count> kernels{};  ///< for the element
    std::array<bool, kernels::operator_count> exact{};
    std::array<bool, kernels::operator_count> defined{};  ///< whether MPI defines the operation
    std::optional<SizedAs> sized;                         ///< the element follows from the size, which the MPI defines
};

struct PredefinedOp {
    std::optional<kernels::Operator> op;  ///< none: MPI_REPLACE and MPI_NO_OP, which reduce nothing
};

/// Everything predefined. A look-up costs a few nanoseconds, and for Fortran's default kinds a PMPI_Type_size.
class Predefined {
  public:
    /// Made at the first call, by any thread.
    static const Predefined& instance();

    /// Null for user-defined operations and MPI_OP_NULL.
    const PredefinedOp* find_op(MPI_Op op) const { return ops_.find(op); }
    /// Null for types that no predefined operation works on.
    const PredefinedType* find_type(MPI_Datatype type) const {
        const PredefinedType* found = types_.find(type);
        return found == nullptr || !found->sized ? found : by_size(type, *found);
    }
    /// For what MPI_Type_create_f90_* made, which is as good as predefined. Null for other types.
    const PredefinedType* find_f90(MPI_Datatype type) const;

  private:
    Predefined();
    void add_operations();
    void add_c();
    void add_extensions();
    void add_fortran();
    void add(MPI_Datatype type, TypeGroup group, std::optional<kernels::Element> element);
    void add_by_size(MPI_Datatype type, TypeGroup group, TypeGroup members);
    template <class T>
    void add_integer(MPI_Datatype type, TypeGroup group = TypeGroup::c_integer);
    const PredefinedType* by_size(MPI_Datatype type, const PredefinedType& row) const;

    struct Sized {
        std::int64_t size_bytes = 0;
        SizedAs as;
        PredefinedType type;
    };
    HandleTable<MPI_Op, PredefinedOp, 6> ops_;
    HandleTable<MPI_Datatype, PredefinedType, 8> types_;
    std::vector<Sized> sized_;
};

}  // namespace palmette::runtime
