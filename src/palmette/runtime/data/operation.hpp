// A reduction operator: MPI's operation together with the datatype.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

#include "palmette/kernels/kernels.hpp"

namespace palmette::runtime {

/// Where elements lie, in bytes.
struct ElementLayout {
    std::int64_t size = 0;         ///< data of one element
    std::int64_t extent = 0;       ///< from one element to the next; negative where they run backwards
    std::int64_t true_lower = 0;   ///< from an element's address to its first byte
    std::int64_t true_extent = 0;  ///< from its first byte to the end of its last

    /// `count` elements are size * count bytes from their address on, without holes.
    bool dense() const { return true_lower == 0 && has_no_holes(); }
    bool has_no_holes() const { return size == extent && size == true_extent; }

    /// All bytes of `count` elements, holes among them, as an offset from the address of the first and a length.
    struct Span {
        std::int64_t first = 0;
        std::int64_t bytes = 0;
    };
    Span span(std::int64_t count) const;
};

/// Why palmette doesn't reduce with an operation and a datatype.
enum class Obstacle : std::uint8_t {
    none,
    undefined,    ///< not defined by MPI, or by an extension of one MPI: the MPI must check the call
    interleaved,  ///< the bytes of an element lie between those of others
    too_large,    ///< an element's size doesn't fit an int
};
/// For the report: "the elements of the datatype interleave".
const char* describe(Obstacle obstacle);

/// target = left op right, element by element and in that order. Made for each call: a few nanoseconds for predefined
/// operations on predefined types; some queries of the MPI for others. Local. Handles must outlive it.
class Operation {
  public:
    /// `comm` is one that the process may pack for; only datatypes with holes need it.
    Operation(MPI_Op op, MPI_Datatype type, MPI_Comm comm = MPI_COMM_SELF);

    /// Whether this is the same, of predefined handles, which mean the same for ever: then it is made for `comm`.
    bool is_again(MPI_Op op, MPI_Datatype type, MPI_Comm comm) {
        if (!kernel_ || op != op_ || type != type_) return false;
        comm_ = comm;
        return true;
    }

    /// Whether it can be applied; else obstacle() says why not. The same on ranks whose datatypes have the same layout.
    bool valid() const { return obstacle_ == Obstacle::none; }
    Obstacle obstacle() const { return obstacle_; }
    MPI_Op handle() const { return op_; }
    /// Another communicator for datatypes with holes.
    void pack_for(MPI_Comm comm) { comm_ = comm; }

    /// left op right equals right op left.
    bool commutative() const { return commutative_; }
    /// Bitwise the same result for any order and any grouping of the operands.
    bool exact() const { return exact_; }
    /// Null when the MPI reduces: user-defined operations, and elements that the kernels don't know. A kernel needs no
    /// MPI and may run in any thread, at any time, on any copy of the elements.
    kernels::Kernel kernel() const { return kernel_; }
    const ElementLayout& layout() const { return layout_; }
    /// What the kernel is for; nothing where the MPI reduces.
    struct KernelKind {
        kernels::Operator op;
        kernels::Element element;
    };
    std::optional<KernelKind> known() const { return kernel_ ? std::optional(known_) : std::nullopt; }

    /// `count` elements, any number. `target` may be `left` or `right`, or both; otherwise they don't overlap. Holes of
    /// `target` are not written. Needs valid(). Returns an MPI code; user-defined operations are called in this thread.
    int apply(const void* left, const void* right, void* target, std::int64_t count) const {
        if (kernel_ == nullptr) return apply_by_mpi(left, right, target, count);
        kernel_(left, right, target, static_cast<std::size_t>(count > 0 ? count : 0));
        return MPI_SUCCESS;
    }

  private:
    Obstacle query_layout();
    int apply_by_mpi(const void* left, const void* right, void* target, std::int64_t count) const;
    int apply_in_copy(const char* left, const char* right, char* target, std::int64_t count) const;
    int reduce(const char* left, char* right_and_target, std::int64_t count) const;

    MPI_Op op_;
    MPI_Datatype type_;
    MPI_Comm comm_;
    kernels::Kernel kernel_ = nullptr;
    KernelKind known_{};
    ElementLayout layout_;
    Obstacle obstacle_ = Obstacle::none;
    bool commutative_ = true;
    bool exact_ = false;
};

}  // namespace palmette::runtime
