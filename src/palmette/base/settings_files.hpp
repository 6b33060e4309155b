// Files of settings: a user's, and those that an administrator has laid down for everybody. The command line reads
// them by python/palmette/settings_files.py, which must give the same values and the same complaints.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace palmette::base {

/// What a reader of files must know of a setting: settings.json has the declarations.
struct DeclaredSetting {
    std::string_view name, kind;
    std::string_view choices;  ///< with blanks between them
    bool in_files = true;      ///< false: it belongs to one run
    std::string_view now;      ///< for a former setting: text after its name that says what holds now
};

struct SettingsFiles {
    struct Value {
        std::string text, where;  ///< where: FILE:LINE, or a file that counts by being there
    };
    std::map<std::string, Value, std::less<>> values;
    std::vector<std::string> mistakes;  ///< a sentence each: file, line, what to do
    std::vector<std::string> files;     ///< files that were read, or count by being there
};

/// The folder that palmette is installed below, by the path of a preload library: of `make install`, of a package in a
/// virtual environment, of a distribution. Empty where the path tells nothing.
std::string installation_prefix(std::string_view library);

/// What a setting of this kind expects where `value` is none of it, as in python/palmette/settings.py; otherwise
/// nothing. `choices`: as of DeclaredSetting.
std::string expected_instead(std::string_view kind, std::string_view choices, std::string_view value);

struct ForcedAlgorithm {
    std::string_view function, algorithm;
};
/// The parts of PALMETTE_FORCE, FUNCTION=ALGORITHM with `;` between them. Views of `text`.
std::vector<ForcedAlgorithm> forced_algorithms(std::string_view text);

/// Reads the user's file ($XDG_CONFIG_HOME/palmette/settings), and over which it counts those of the site:
/// `settings`, `topology.json` and `table.json`, each from the first of PREFIX/etc/palmette and /etc/palmette that has
/// it. `site`: the value of PALMETTE_SITE, a folder instead of these two; 0: no file at all is read.
SettingsFiles read_settings_files(std::string_view site, std::string_view library,
                                  std::span<const DeclaredSetting> declared);

}  // namespace palmette::base
