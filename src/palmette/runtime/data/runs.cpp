#include "palmette/runtime/data/runs.hpp"

#include <cstring>
#include <memory>
#include <mutex>

#include "palmette/runtime/data/datatype.hpp"

namespace palmette::runtime {
namespace {

/// The bytes that `count` elements have, found by unpacking ones over zeros. False where MPI says no.
bool add_by_mask(Runs& runs, std::int64_t at, std::int64_t count, MPI_Datatype type, const TypeShape& shape,
                 std::int64_t true_lower, std::int64_t true_extent) {
    const std::int64_t last = (count - 1) * shape.extent;
    const std::int64_t low = true_lower + std::min<std::int64_t>(0, last);
    const std::int64_t high = true_lower + true_extent + std::max<std::int64_t>(0, last);
    const std::vector<char> ones(static_cast<std::size_t>(count * shape.size), 1);
    std::vector<char> mask(static_cast<std::size_t>(high - low), 0);
    if (unpack(ones.data(), count, type, shape, mask.data() - low, MPI_COMM_SELF) != MPI_SUCCESS) return false;
    const auto zero = [&](std::size_t from) {
        const void* found = std::memchr(mask.data() + from, 0, mask.size() - from);
        return found ? static_cast<std::size_t>(static_cast<const char*>(found) - mask.data()) : mask.size();
    };
    const auto one = [&](std::size_t from) {
        const void* found = std::memchr(mask.data() + from, 1, mask.size() - from);
        return found ? static_cast<std::size_t>(static_cast<const char*>(found) - mask.data()) : mask.size();
    };
    for (std::size_t begin = one(0), end = 0; begin < mask.size(); begin = one(end)) {
        end = zero(begin);
        runs.add(at + low + static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin));
    }
    return true;
}

constinit std::mutex types_mutex;
constinit int types_key = MPI_KEYVAL_INVALID;

int forget(MPI_Datatype, int, void* known, void*) {
    delete static_cast<std::shared_ptr<const Runs>*>(known);
    return MPI_SUCCESS;
}

/// Contiguous runs of one element of a type with holes. Kept with the type as an attribute: to find them takes
/// memory and time as the type's extent. Null where MPI says no.
std::shared_ptr<const Runs> runs_of_one(MPI_Datatype type, const TypeShape& shape, std::int64_t true_lower,
                                        std::int64_t true_extent) {
    const std::lock_guard lock(types_mutex);
    if (types_key == MPI_KEYVAL_INVALID &&
        PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &types_key, nullptr) != MPI_SUCCESS)
        return nullptr;
    void* known = nullptr;
    int is_known = 0;
    if (PMPI_Type_get_attr(type, types_key, &known, &is_known) == MPI_SUCCESS && is_known)
        return *static_cast<std::shared_ptr<const Runs>*>(known);
    auto found = std::make_shared<Runs>();
    if (!add_by_mask(*found, 0, 1, type, shape, true_lower, true_extent)) return nullptr;
    auto kept = std::make_unique<std::shared_ptr<const Runs>>(found);
    if (PMPI_Type_set_attr(type, types_key, kept.get()) == MPI_SUCCESS) kept.release();
    return found;
}

}  // namespace

bool add_elements(Runs& runs, std::int64_t at, std::int64_t count, MPI_Datatype type) {
    if (count == 0) return true;
    TypeShape shape;
    if (count < 0 || !size_of(type, shape)) return false;
    if (shape.size == 0) return true;
    if (complete(type, shape) != MPI_SUCCESS) return false;
    if (shape.dense) {
        runs.add(at, count * shape.size);
        return true;
    }
    MPI_Aint lower = 0, extent = 0;
    if (PMPI_Type_get_true_extent(type, &lower, &extent) != MPI_SUCCESS) return false;
    if (shape.extent < extent) return add_by_mask(runs, at, count, type, shape, lower, extent);
    const auto element = runs_of_one(type, shape, lower, extent);
    if (!element) return false;
    for (std::int64_t i = 0; i < count; ++i) runs.add(*element, at + i * shape.extent);
    return true;
}

bool add_side(Runs& runs, const Side& side, int blocks) {
    if (side.form == Side::Form::alike) {
        TypeShape shape;
        if (side.count == 0 || blocks == 0) return true;
        if (side.count < 0 || !size_of(side.type, shape)) return false;
        return add_elements(runs, 0, side.count * blocks, side.type);
    }
    if (!side.counts || !side.displacements || (side.form == Side::Form::typed && !side.types)) return false;
    MPI_Aint lower = 0, extent = 1;
    TypeShape shape;
    if (side.form == Side::Form::listed &&
        (!size_of(side.type, shape) || PMPI_Type_get_extent(side.type, &lower, &extent) != MPI_SUCCESS))
        return false;
    for (int b = 0; b < blocks; ++b) {
        const MPI_Datatype type = side.types ? side.types[b] : side.type;
        if (!add_elements(runs, side.displacements[b] * static_cast<std::int64_t>(extent), side.counts[b], type))
            return false;
    }
    return true;
}

void forget_runs_of_types() {
    const std::lock_guard lock(types_mutex);
    if (types_key != MPI_KEYVAL_INVALID) PMPI_Type_free_keyval(&types_key);
}

}  // namespace palmette::runtime
