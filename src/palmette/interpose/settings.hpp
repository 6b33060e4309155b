// Settings from the environment.
#pragma once

#include "palmette/runtime/state/settings.hpp"

namespace palmette::interpose {

/// Reads the PALMETTE_ variables. Values that can't be used are ignored and reported in Settings::warnings; nothing
/// is thrown.
runtime::Settings settings_from_environment();

}  // namespace palmette::interpose
