"""`palmette settings`: every PALMETTE_ variable, its value and what it does."""

from __future__ import annotations

import click

from palmette import settings
from palmette.cli.common import CliError, emit_json, errors, json_option
from palmette.units import text_width


def _text(rows: tuple[settings.Value, ...]) -> str:
    """Return one setting per paragraph: name and value, then the sentence, indented."""
    lines = []
    for row in rows:
        origin = "" if row.origin == "default" else "  (from the environment)"
        lines.append(f"{row.setting.name}={row.text}{origin}")
        lines.append(
            click.wrap_text(row.setting.help, width=text_width(), initial_indent="    ", subsequent_indent="    ")
        )
    return "\n".join(lines)


@click.command(epilog="Example: PALMETTE_VERBOSE=1 palmette settings")
@json_option
def command(as_json: bool) -> None:
    """List the PALMETTE_ variables, their values here and what they do."""
    try:
        rows = settings.values()
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
                        "help": row.setting.help,
                    }
                    for row in rows
                ],
                "unknown": misspelt,
            }
        )
        return
    click.echo(_text(rows))
    for name in misspelt:
        now = settings.renamed().get(name)
        what = f"is called {now} now; set that" if now else "is set, but no setting has that name; correct or unset it"
        errors.print(f"palmette settings: {name} {what}")
