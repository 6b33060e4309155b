"""Write the C++ list of settings from python/palmette/settings.json.

Usage: generate_settings_header.py SETTINGS_JSON HEADER
"""

import json
import sys
from pathlib import Path
from typing import Any

TEMPLATE = """\
// Made by tools/generate_settings_header.py from python/palmette/settings.json: change that file.
#pragma once

#include <array>
#include <string_view>

namespace palmette::settings {{

/// What ranks must have in common, so that calls are served: the value; its presence, which is that it isn't
/// empty, 0 or off; nothing.
enum class Agree {{ value, presence, no }};

struct Setting {{
  const char* name;             // the environment variable
  std::string_view kind;        // as in python/palmette/settings.py
  std::string_view choices;     // with blanks between them: values of a choice, functions of MPI to force
  Agree agree;
  std::string_view default_value;
  std::string_view help;
}};

inline constexpr std::array<Setting, {count}> all = {{{{
{rows}
}}}};

/// Prefixes of internal variables, which palmette's own programs pass to each other.
inline constexpr std::array<std::string_view, {prefix_count}> internal_prefixes = {{{prefixes}}};

struct Former {{
  std::string_view name, now;
}};
/// Former settings: what holds now, after the name.
inline constexpr std::array<Former, {former_count}> former = {{{{{former}}}}};

/// Settings that can't stand in a file, for they belong to one run.
inline constexpr std::array<std::string_view, {one_run_count}> of_one_run = {{{of_one_run}}};

{names}

}}  // namespace palmette::settings
"""


def quoted(text: str) -> str:
    """Return `text` as a C++ string literal."""
    return json.dumps(text, ensure_ascii=True)


def constant(variable: str) -> str:
    """Return the C++ name of a setting: PALMETTE_TOPOLOGY becomes topology."""
    return variable.removeprefix("PALMETTE_").lower()


def header(declared: dict[str, Any]) -> str:
    """Return the text of the header."""
    settings, prefixes, former = declared["settings"], declared["internal_prefixes"], declared["former"]
    of_one_run = declared["of_one_run"]
    functions = declared["functions"]
    rows = [
        f"    Setting{{{quoted(s['name'])}, {quoted(s['kind'])},\n"
        f"            {quoted(' '.join(functions if s['kind'] == 'force' else s.get('choices', ())))},\n"
        f"            Agree::{s.get('agree', 'value')}, {quoted(s['default'])},\n"
        f"            {quoted(s['help'])}}},"
        for s in settings
    ]
    former |= {f"PALMETTE_{name.upper()}": f"is PALMETTE_FORCE={name}=ALGORITHM now" for name in functions}
    names = [
        f"inline constexpr const Setting& {constant(s['name'])} = all[{index}];" for index, s in enumerate(settings)
    ]
    return TEMPLATE.format(
        count=len(settings), rows="\n".join(rows), names="\n".join(names),
        prefix_count=len(prefixes), prefixes=", ".join(map(quoted, prefixes)), former_count=len(former),
        former=", ".join(f"{{{quoted(old)}, {quoted(new)}}}" for old, new in former.items()),
        one_run_count=len(of_one_run), of_one_run=", ".join(map(quoted, of_one_run)),
    )  # fmt: skip


def main(arguments: list[str]) -> int:
    """Read the declarations and write the header; touch it only when it changed."""
    source, target = Path(arguments[0]), Path(arguments[1])
    declared = json.loads(source.read_text(encoding="utf-8"))
    text = header(declared)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
