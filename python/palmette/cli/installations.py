"""Which MPIs an option `--mpi` means."""

from __future__ import annotations

from palmette.bench.settings import split
from palmette.cli.common import CliError
from palmette.measure.places import Place
from palmette.mpi import install as mpi_install


def chosen(text: str | None) -> list[mpi_install.Installation]:
    """Return those named in `text`, with commas between; all that are installed for `all`; the first of them for None.

    Raises CliError where none is installed, and MpiNotFoundError.
    """
    if text is not None and text != "all":
        return [mpi_install.find(name) for name in split(text)]
    found = mpi_install.find_all()
    if not found:
        raise CliError("no MPI is found; `pip install mpich` brings one, or set PALMETTE_MPI_MPICH to a prefix")
    return found if text == "all" else found[:1]


def on(place: Place, text: str | None) -> list[mpi_install.Installation]:
    """Return the MPIs to measure at a place: that of a launcher's line, else those that `--mpi` names, as `chosen`."""
    return [place.mpi] if place.mpi is not None else chosen(text)
