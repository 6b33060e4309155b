// Which settings files may have.
#pragma once

#include <algorithm>
#include <vector>

#include "palmette/base/settings_files.hpp"
#include "palmette/interpose/settings_list.hpp"

namespace palmette::settings {

/// All of settings.json, those of a single run too, which a file mustn't set, and former names.
inline std::vector<base::DeclaredSetting> declared() {
    std::vector<base::DeclaredSetting> out;
    for (const Setting& setting : all)
        out.push_back({setting.name, setting.kind, setting.choices,
                       std::ranges::find(of_one_run, setting.name) == of_one_run.end(), ""});
    for (const Former& old : former) out.push_back({old.name, "", "", true, old.now});
    return out;
}

}  // namespace palmette::settings
