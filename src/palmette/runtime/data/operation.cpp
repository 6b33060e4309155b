#include "palmette/runtime/data/operation.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "palmette/runtime/data/datatype.hpp"
#include "palmette/runtime/data/operation_predefined.hpp"
#include "palmette/runtime/data/plausible_handle.hpp"

namespace palmette::runtime {
namespace {

/// Copies are made in pieces that stay in the first-level cache with what they are reduced with.
constexpr std::int64_t piece_bytes = 16 << 10;
/// Elements in one call of the MPI, whose counts are int.
constexpr std::int64_t most_at_once = std::int64_t{1} << 30;
constexpr std::size_t line_bytes = 64;

/// A buffer for a span of elements with the same offset in a cache line as another one: alignment is preserved.
class Copy {
  public:
    explicit Copy(const ElementLayout::Span& span)
        : span_(span), bytes_(new char[static_cast<std::size_t>(span.bytes) + 2 * line_bytes]) {}

    /// Where the first element would be if its span began like that of `elements`.
    char* like(const char* elements) const {
        // As numbers: an element's address may be far from its first byte.
        const auto first = static_cast<std::uintptr_t>(span_.first);
        const auto wanted = (reinterpret_cast<std::uintptr_t>(elements) + first) % line_bytes;
        const auto bytes = reinterpret_cast<std::uintptr_t>(bytes_.get());
        return reinterpret_cast<char*>(bytes + (wanted + line_bytes - bytes % line_bytes) % line_bytes - first);
    }

  private:
    ElementLayout::Span span_;
    std::unique_ptr<char[]> bytes_;
};

void copy_raw(const char* from, char* to, const ElementLayout& layout, std::int64_t count) {
    const ElementLayout::Span span = layout.span(count);
    std::memcpy(to + span.first, from + span.first, static_cast<std::size_t>(span.bytes));
}

std::int64_t elements_of_a_piece(const ElementLayout& layout) {
    return std::max<std::int64_t>(1, piece_bytes / std::max<std::int64_t>(1, std::abs(layout.extent)));
}

}  // namespace

ElementLayout::Span ElementLayout::span(std::int64_t count) const {
    if (count <= 0) return {};
    const std::int64_t last = (count - 1) * extent;
    return {true_lower + std::min<std::int64_t>(0, last), std::abs(last) + true_extent};
}

const char* describe(Obstacle obstacle) {
    switch (obstacle) {
        case Obstacle::none:
            return "";
        case Obstacle::undefined:
            return "the operation isn't defined for the datatype";
        case Obstacle::interleaved:
            return "the elements of the datatype interleave";
        case Obstacle::too_large:
            return "an element is larger than 2 GiB";
    }
    return "";
}

Operation::Operation(MPI_Op op, MPI_Datatype type, MPI_Comm comm) : op_(op), type_(type), comm_(comm) {
    if (!is_plausible_op(op) || !is_plausible(type)) {
        obstacle_ = Obstacle::undefined;
        return;
    }
    const Predefined& predefined = Predefined::instance();
    if (const PredefinedOp* known = predefined.find_op(op)) {
        const PredefinedType* on = predefined.find_type(type);
        if (on == nullptr && known->op) on = predefined.find_f90(type);
        const std::size_t which = known->op ? static_cast<std::size_t>(*known->op) : 0;
        if (on == nullptr || !known->op || !on->defined[which]) {
            obstacle_ = Obstacle::undefined;
            return;
        }
        if (on->has_element) {
            layout_ = on->layout;
            kernel_ = on->kernels[which];
            known_ = {*known->op, on->element};
            exact_ = on->exact[which];
            return;
        }
    } else {
        int commute = 0;
        if (PMPI_Op_commutative(op, &commute) != MPI_SUCCESS) {
            obstacle_ = Obstacle::undefined;
            return;
        }
        commutative_ = commute != 0;
    }
    obstacle_ = query_layout();
}

Obstacle Operation::query_layout() {
    TypeShape shape;
    MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    if (!size_of(type_, shape)) return Obstacle::too_large;
    if (PMPI_Type_get_extent(type_, &lower, &extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent(type_, &true_lower, &true_extent) != MPI_SUCCESS)
        return Obstacle::undefined;
    layout_ = {shape.size, extent, true_lower, true_extent};
    return std::abs(layout_.extent) < layout_.true_extent ? Obstacle::interleaved : Obstacle::none;
}

int Operation::reduce(const char* left, char* right_and_target, std::int64_t count) const {
    for (std::int64_t done = 0; done < count; done += most_at_once) {
        const auto elements = static_cast<int>(std::min(count - done, most_at_once));
        const std::int64_t offset = done * layout_.extent;
        if (const int error = PMPI_Reduce_local(left + offset, right_and_target + offset, elements, type_, op_))
            return error;
    }
    return MPI_SUCCESS;
}

int Operation::apply_by_mpi(const void* left, const void* right, void* target, std::int64_t count) const {
    if (count <= 0 || layout_.size == 0) return MPI_SUCCESS;
    const auto* a = static_cast<const char*>(left);
    const auto* b = static_cast<const char*>(right);
    auto* to = static_cast<char*>(target);
    // MPI_Reduce_local reduces into its second operand, which must not alias the first.
    if (to == b && to != a) return reduce(a, to, count);
    if (to == a || !layout_.has_no_holes()) return apply_in_copy(a, b, to, count);
    const std::int64_t piece = elements_of_a_piece(layout_);
    for (std::int64_t done = 0; done < count; done += piece) {
        const std::int64_t elements = std::min(count - done, piece);
        const std::int64_t offset = done * layout_.extent;
        copy_raw(b + offset, to + offset, layout_, elements);
        if (const int error = reduce(a + offset, to + offset, elements)) return error;
    }
    return MPI_SUCCESS;
}

/// The right operand is copied with its holes, reduced into, and only its data goes to the target.
int Operation::apply_in_copy(const char* left, const char* right, char* target, std::int64_t count) const {
    const std::int64_t piece = std::min(count, elements_of_a_piece(layout_));
    const TypeShape shape{layout_.size, layout_.extent, layout_.has_no_holes()};
    try {
        const Copy copy(layout_.span(piece));
        const std::unique_ptr<char[]> packed(shape.dense ? nullptr
                                                         : new char[static_cast<std::size_t>(piece * layout_.size)]);
        for (std::int64_t done = 0; done < count; done += piece) {
            const std::int64_t elements = std::min(count - done, piece);
            const std::int64_t offset = done * layout_.extent;
            char* result = copy.like(right + offset);
            copy_raw(right + offset, result, layout_, elements);
            if (const int error = reduce(left + offset, result, elements)) return error;
            if (shape.dense) {
                copy_raw(result, target + offset, layout_, elements);
                continue;
            }
            if (const int error = pack(result, elements, type_, shape, packed.get(), comm_)) return error;
            if (const int error = unpack(packed.get(), elements, type_, shape, target + offset, comm_)) return error;
        }
    } catch (const std::bad_alloc&) {
        return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

}  // namespace palmette::runtime
