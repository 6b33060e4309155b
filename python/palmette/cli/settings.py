"""`palmette settings`: every PALMETTE_ variable, its value and what it does."""

from __future__ import annotations

import click

from palmette import settings, settings_files
from palmette.cli.common import CliError, emit_json, errors, json_option
from palmette.cli.meant import close, suggestion
from palmette.present.words import wrapped
from palmette.units import text_width


def origin_text(row: settings_files.Value) -> str:
    """Return where a value comes from, for people; nothing for a default."""
    if row.origin == "default":
        return ""
    if row.where == row.text:
        return "the site's, by being there"
    return f"from {row.where}" if row.where else "from the environment"


def _text(rows: tuple[settings_files.Value, ...]) -> str:
    """Return one setting per paragraph: name and value, where that is from, then the sentence, indented."""
    lines = []
    for row in rows:
        line, origin = f"{row.setting.name}={row.text}", origin_text(row)
        if origin and len(line) + len(origin) + 4 <= text_width():
            lines.append(f"{line}  ({origin})")
        else:
            lines += [line, *([f"    ({origin})"] if origin else [])]
        lines += wrapped(row.setting.help, "    ", "    ")
    return "\n".join(lines)


def _named(names: tuple[str, ...], rows: tuple[settings_files.Value, ...]) -> tuple[settings_files.Value, ...]:
    """Return the rows of these settings, all where none is named. Raises CliError for a name that isn't known."""
    by_name = {row.setting.name: row for row in rows}
    for name in names:
        full = _full(name)
        if full in settings.former():
            raise CliError(f"{name} {settings.former()[full]}")
        if full not in by_name:
            raise CliError(f"{name} is no setting{_suggestion(full)}; `palmette settings` lists them all")
    return tuple(by_name[_full(name)] for name in names) if names else rows


def _full(name: str) -> str:
    """Return a setting's whole name for `topology`, `device-path` or `PALMETTE_TOPOLOGY`."""
    return "PALMETTE_" + name.replace("-", "_").upper().removeprefix("PALMETTE_")


def _suggestion(name: str) -> str:
    """Return ` (did you mean PALMETTE_TABLE?)` for PALMETTE_TABEL, by what stands behind the common prefix."""
    meant = close(_full(name).removeprefix("PALMETTE_"), (setting.key for setting in settings.declared()))
    return suggestion(settings.find(meant).name if meant is not None else None)


@click.command(epilog="Example: PALMETTE_VERBOSE=1 palmette settings", context_settings={"max_content_width": 80})
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the PALMETTE_ variables, or those called NAME: values here, what they do.

    A value comes from the environment, from your file, ~/.config/palmette/settings,
    from the site's, /etc/palmette/settings, or is the default. PALMETTE_SITE=0 reads
    no files. `palmette run` has options for some of them, which count first.
    """
    try:
        files = settings_files.read_files()
        rows = _named(names, settings_files.values(files=files))
    except settings.SettingError as error:
        raise CliError(f"{error}; correct or unset the variable") from error
    misspelt = settings.unknown()
    if as_json:
        emit_json(
            {
                "settings": [
                    {
                        "name": row.setting.name,
                        "kind": row.setting.kind,
                        "default": row.setting.default,
                        "value": row.text,
                        "origin": row.origin,
                        "where": row.where,
                        "help": row.setting.help,
                    }
                    for row in rows
                ],
                "unknown": misspelt,
                "files": list(files.files),
                "mistakes": list(files.mistakes),
            }
        )
        return
    click.echo(_text(rows))
    for name in misspelt:
        now = settings.former().get(name)
        what = f"{now}; unset it" if now else f"is no setting{_suggestion(name)}; correct or unset it"
        errors.print(f"palmette settings: {name} {what}", soft_wrap=True)
    for mistake in files.mistakes:
        errors.print(f"palmette settings: {mistake}", markup=False, soft_wrap=True)
