// Arrays of numpy's from rows of samples.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

namespace palmette::bindings {

template <class Value>
using Column = nanobind::ndarray<nanobind::numpy, Value, nanobind::ndim<1>>;

/// One value of each row, in an array that owns them.
template <class Value, class Row, class Get>
Column<Value> column_of(const std::vector<Row>& rows, Get get) {
    auto* const kept = new std::vector<Value>();
    kept->reserve(rows.size());
    for (const Row& row : rows) kept->push_back(static_cast<Value>(get(row)));
    const nanobind::capsule owner(kept,
                                  [](void* pointer) noexcept { delete static_cast<std::vector<Value>*>(pointer); });
    return Column<Value>(kept->data(), {kept->size()}, owner);
}

}  // namespace palmette::bindings
