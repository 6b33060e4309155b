// Settings from the environment, and from the files of the user and the site.
#pragma once

#include <string>

#include "palmette/interpose/settings_list.hpp"
#include "palmette/runtime/settings/settings.hpp"

namespace palmette::interpose {

/// Reads the PALMETTE_ variables; what none sets comes from files (base/settings_files.hpp). Values that can't be used
/// are ignored and reported in Settings::warnings; nothing is thrown.
runtime::Settings settings_from_environment();

/// The text that a setting has in this process, or would have if MPI_Init came now.
std::string setting_text(const settings::Setting& setting);

/// PALMETTE_ENABLE is 0.
bool is_switched_off();

}  // namespace palmette::interpose
