"""Making exports: the file formats, and what each needs."""

from __future__ import annotations

from collections.abc import Sequence

from palmette import _core
from palmette.export import mpich_match, openmpi_han, openmpi_match, ucc_tune
from palmette.export.coordinates import coordinates_text
from palmette.export.decisions import decide, place_of
from palmette.export.match import Export, match_all
from palmette.export.mpich_coordinates import export_coordinates
from palmette.export.mpich_defaults import read_defaults
from palmette.export.mpich_tuning import tuning
from palmette.export.openmpi_tuned import tuned
from palmette.mpi import install as mpi_install

FORMS = ("mpich-coordinates", "mpich-tuning", "openmpi-tuned", "openmpi-han", "ucc-tune")


def make_exports(
    forms: Sequence[str], table: _core.Table, job: _core.Job, *, commutative: bool = False
) -> list[Export]:
    """Return one export for each form, for jobs placed like `job`.

    `commutative`: all operations of the program commute, so that algorithms may be exported that are wrong for others
    and that the library would use for any. Raises MpiNotFoundError and NoDefaultsError where MPICH's own tuning is
    needed and can't be read, and _core.Error.
    """
    exports = [_make(form, table, job, commutative) for form in forms]
    if place_of(job).scattered:
        for export in exports:
            if any("order of ranks" in line.match.remark for line in export.mapped):
                export.notes.append(_SCATTERED)
    return exports


_SCATTERED = (
    "Ranks are not numbered in the order of hosts, and these libraries use rank order: a rank order from `palmette map`"
    " gains more than the choice of algorithms."
)


def _make(form: str, table: _core.Table, job: _core.Job, commutative: bool) -> Export:
    place = place_of(job)
    if form == "mpich-coordinates":
        return export_coordinates(job, commutative=commutative)
    if form == "mpich-tuning":
        defaults = read_defaults(mpi_install.find("mpich"))
        # Requirements on the operation are written into the file as conditions.
        lines = match_all(decide(table, job, "mpich"), mpich_match.match, place, commutative=True)
        return tuning(lines, place, defaults, coordinates_text(job), commutative=commutative)
    decisions = decide(table, job, "openmpi")
    flat = match_all(decisions, openmpi_match.match, place, commutative=commutative)
    if form == "openmpi-tuned":
        return tuned(flat, place)
    if form == "openmpi-han":
        lines = match_all(decisions, openmpi_han.match, place, commutative=True)
        return openmpi_han.han(lines, place, tuned(flat, place, without_han=False))
    # UCC serves predefined operations only, which commute.
    return ucc_tune.tune(match_all(decisions, ucc_tune.match, place, commutative=True), place)
