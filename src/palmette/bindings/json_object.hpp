// JSON values as Python objects and back.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "palmette/base/json.hpp"

namespace palmette::bindings {

/// What Python's json module would make of the dumped text; whole numbers become int.
nanobind::object to_python(const base::Json& json);

/// An object's members as a dict.
nanobind::dict to_dict(const base::Json& json);

/// A text is parsed; a dict is taken as `json.loads` gives it. Throws base::Error on a text that is no JSON.
base::Json from_python(nanobind::object document);

/// The text of a str or os.PathLike.
std::string path_text(const nanobind::object& path);

}  // namespace palmette::bindings
