"""Where `palmette bench` runs: a new or an existing lab, or local ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from palmette.bench.sets import LAB, BenchSet
from palmette.cli.common import CliError, errors
from palmette.cli.lab_here import be_root, check_lab
from palmette.lab import Lab, LabError
from palmette.measure.places import LabPlace, LocalPlace, Place, free_lab_name

DEFAULT_LAB = LAB
DEFAULT_LOCAL_RANKS = 4


@dataclass(frozen=True)
class Where:
    """What the command line says of the place."""

    lab_spec: str | None
    lab_name: str | None
    spine_delay_s: float | None
    local_ranks: int | None

    def completed(self, named_set: BenchSet | None) -> Where:
        """Return the place of a set where none is named. Raises CliError when more than one is."""
        named = [
            name
            for name, value in (("--lab", self.lab_spec), ("--lab-name", self.lab_name), ("--local", self.local_ranks))
            if value is not None
        ]
        if len(named) > 1:
            raise CliError(f"{' and '.join(named)} name different places to run; give one of them")
        if named or named_set is None:
            return self
        return Where(
            named_set.lab, None, named_set.spine_delay_s if self.spine_delay_s is None else self.spine_delay_s,
            named_set.local_ranks,
        )  # fmt: skip

    def is_local(self) -> bool:
        """Whether to run local ranks: asked for, or because no lab can be made and none is asked for."""
        if self.lab_spec is not None or self.lab_name is not None or self.local_ranks is not None:
            return self.local_ranks is not None
        try:
            check_lab()
        except LabError as error:
            errors.print(f"palmette bench: no lab ({error}); {DEFAULT_LOCAL_RANKS} local ranks", markup=False)
            return True
        return False

    @contextmanager
    def place(self, *, local: bool) -> Iterator[Place]:
        """Make the place, for as long as the context lasts. Raises LabError, CliError."""
        if local:
            with tempfile.TemporaryDirectory(prefix="palmette-bench-") as folder:
                yield LocalPlace(self.local_ranks or DEFAULT_LOCAL_RANKS, Path(folder))
        elif self.lab_name is not None:
            if self.spine_delay_s is not None:
                raise CliError("--spine-delay is set when a lab is made; leave it out with --lab-name")
            yield LabPlace(Lab.attach(self.lab_name))
        else:
            be_root()
            # A unique name: a lab of the default name may be up.
            name = free_lab_name("bench")
            with Lab.up(self.lab_spec or DEFAULT_LAB, name=name, spine_delay_s=self.spine_delay_s) as lab:
                yield LabPlace(lab)
