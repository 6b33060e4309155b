#include "palmette/interpose/control.hpp"

#include <optional>

#include "palmette/base/error.hpp"
#include "palmette/interpose/guard.hpp"
#include "palmette/runtime/state/process.hpp"

namespace palmette::interpose {
namespace {

std::optional<select::Function> function_of(const char* name) {
    try {
        if (name) return select::any_function_named(name);
    } catch (const base::Error&) {
        return std::nullopt;
    }
    return std::nullopt;
}

bool running() { return is_up.load(std::memory_order_acquire) && !runtime::Process::instance().off(); }

}  // namespace
}  // namespace palmette::interpose

int palmette_force(const char* function, const char* spec) {
    using namespace palmette;
    if (!interpose::running()) return PALMETTE_NOT_RUNNING;
    const auto found = interpose::function_of(function);
    if (!found) return PALMETTE_NO_FUNCTION;
    try {
        runtime::Process::instance().force(*found, spec ? spec : "");
        return PALMETTE_FORCED;
    } catch (const std::exception&) {
        return PALMETTE_NO_SPEC;
    }
}

long long palmette_served_calls(const char* function) {
    using namespace palmette;
    const auto found = interpose::function_of(function);
    if (!interpose::running() || !found) return -1;
    return runtime::Process::instance().report().served_calls(*found);
}
