// Settings from the environment, and from the files of the user and the site.
#pragma once

#include "palmette/runtime/settings/settings.hpp"

namespace palmette::interpose {

/// Reads the PALMETTE_ variables; what none sets comes from files (base/settings_files.hpp). Values that can't be used
/// are ignored and reported in Settings::warnings; nothing is thrown.
runtime::Settings settings_from_environment();

/// PALMETTE_ENABLE is 0.
bool is_switched_off();

}  // namespace palmette::interpose
