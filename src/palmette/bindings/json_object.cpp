#include "palmette/bindings/json_object.hpp"

#include <cmath>
#include <string>

namespace palmette::bindings {

namespace nb = nanobind;
using base::Json;

nb::object to_python(const Json& json) {
    constexpr std::string_view where = "json";
    switch (json.kind()) {
        case Json::Kind::null:
            return nb::none();
        case Json::Kind::boolean:
            return nb::bool_(json.boolean(where));
        case Json::Kind::number: {
            const double value = json.number(where);
            if (value == std::floor(value) && std::abs(value) < 0x1p53)
                return nb::int_(static_cast<std::int64_t>(value));
            return nb::float_(value);
        }
        case Json::Kind::string: {
            const std::string& text = json.string(where);
            return nb::str(text.data(), text.size());
        }
        case Json::Kind::array: {
            nb::list out;
            for (const Json& item : json.items(where)) out.append(to_python(item));
            return out;
        }
        case Json::Kind::object:
            return to_dict(json);
    }
    return nb::none();
}

nb::dict to_dict(const Json& json) {
    nb::dict out;
    for (const auto& [name, value] : json.members("json")) out[nb::str(name.data(), name.size())] = to_python(value);
    return out;
}

Json from_python(nb::object document) {
    if (!nb::isinstance<nb::str>(document)) document = nb::module_::import_("json").attr("dumps")(document);
    return Json::parse(nb::cast<nb::str>(document).c_str());
}

std::string path_text(const nb::object& path) {
    return nb::cast<nb::str>(nb::module_::import_("os").attr("fspath")(path)).c_str();
}

}  // namespace palmette::bindings
