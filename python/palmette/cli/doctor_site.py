"""Text of `palmette doctor --site`, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from palmette.cli.printable import printable
from palmette.doctor.site import Difference, Problem, SiteFindings
from palmette.present.words import wrapped
from palmette.topology.found import some_names
from palmette.units import plural


def site_lines(findings: SiteFindings) -> list[str]:
    """Return the lines: hosts, what keeps jobs from being served, what else differs, a verdict."""
    hosts = findings.hosts
    lines = [*_wrapped(f"{plural(len(hosts), 'host')}: {some_names(hosts)}; palmette {findings.palmette}")]
    topology = findings.topology or "none: levels come from the MPI and the kernel"
    lines += _wrapped(f"topology: {topology}")
    for serious, title in ((True, "To mend"), (False, "Differs, or is slower")):
        shown = [*_problems(findings.problems, serious), *_differences(findings.differences, serious)]
        if shown:
            lines += ["", title, *shown]
    lines.append("")
    if not findings.ok:
        lines += _wrapped("not ready: mend what is listed first, then ask again")
    elif len(hosts) == 1:
        lines += _wrapped("one host alone: nothing was compared; ask for several, as in -n 4 -ppn 1")
    else:
        lines += _wrapped(f"ready: nothing keeps jobs on these {len(hosts)} hosts from being served")
    return lines


def _problems(problems: list[Problem], serious: bool) -> Iterator[str]:
    for one in problems:
        if one.serious == serious:
            yield from _wrapped(f"{one.what} (on {some_names(one.hosts)})", "  ")
            yield from _wrapped(f"-> {one.mend}", "     ")


def _differences(differences: list[Difference], serious: bool) -> Iterator[str]:
    for one in differences:
        if one.serious != serious:
            continue
        yield from _wrapped(one.what, "  ")
        for held in one.held:
            yield from _wrapped(f"{held.value or '(empty)'}: {some_names(held.hosts)}", "     ")
        yield from _wrapped(f"-> {one.mend}", "     ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrapped(printable(text), indent, f"{indent}   ", whole_words=False)
