// JSON values as Python objects and back.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "palmette/base/json.hpp"

namespace palmette::bindings {

/// The object that json.loads would make of the dumped text, but whole numbers become int.
nanobind::object to_python(const base::Json& json);

/// An object's members as a dict.
nanobind::dict to_dict(const base::Json& json);

/// From JSON text, or from a dict as `json.loads` returns it. Throws base::Error on a text that is no JSON.
base::Json from_python(nanobind::object document);

/// The text of a str or os.PathLike.
std::string path_text(const nanobind::object& path);

}  // namespace palmette::bindings
