"""How many values each option of a launcher takes, by its help, our list, or a trial call.

The sources are placeholders in the launcher's help and our own list of options. Where both lack the option, or they
disagree, the launcher is called with the option alone: its error reports either a missing value or a missing program,
and nothing is started. The answers are cached on disk as long as the launcher doesn't change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from palmette.mpi.errors import RunError
from palmette.mpi.launch import LauncherKind
from palmette.mpi.launch.identify import launcher_key
from palmette.mpi.launch.kept import keep, recall
from palmette.run.options import FLAGS, VALUES

TIMEOUT_S = 10.0
_NO_PROGRAM = "/dev/null/none"
_MISSES_PROGRAM = re.compile(r"no executable (?:provided|specified)|missing executable", re.IGNORECASE)

_HELP: dict[LauncherKind, tuple[tuple[str, ...], ...]] = {
    "hydra": (("-help",),),
    "intel_hydra": (("-help",),),
    # Open MPI 4 prints all with `full`; Open MPI 5 knows no such topic.
    "prrte": (("--help",), ("--help", "full")),
    "srun": (("--help",),),
    # Their manuals tell; flux shows a page for people.
    "flux": (),
    "aprun": (),
    "pals": (("--help",),),
}
# Nothing should be started; if something were, then only on this host.
_BEFORE: dict[LauncherKind, tuple[str, ...]] = {
    "hydra": ("-launcher", "fork", "-hosts", "localhost"),
    "intel_hydra": ("-launcher", "fork", "-hosts", "localhost"),
    "prrte": (),
    "srun": (),
    "flux": (),
    "aprun": (),
    "pals": (),
}
# Open MPI's launchers refuse root whatever they are asked.
_ALLOWED = {f"{name}_ALLOW_RUN_AS_ROOT{end}": "1" for name in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}


class MisplacedError(RunError):
    """An option of palmette stands among the launcher's."""


class LauncherOptions:
    """The options of the launcher at `program`; of any launcher of that kind where it is None.

    `own` are palmette's, which stand before the launcher, with what is written for their values: `{"--trace": "DIR"}`.
    """

    def __init__(
        self,
        kind: LauncherKind,
        program: Path | None = None,
        environment: Mapping[str, str] | None = None,
        own: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.kind = kind
        self._own = own
        self._program = program
        self._environment = os.environ if environment is None else environment
        self._help: dict[str, int] | None = None

    def count(self, word: str, name: str) -> int:
        """Return how many words the option takes that is written `word` and called `name`, without dashes.

        Raises MisplacedError for one of palmette's that the launcher doesn't know.
        """
        helped = self._from_help().get(name)
        listed = VALUES[self.kind].get(name, 0 if name in FLAGS[self.kind] else None)
        if helped == listed or helped is None or listed is None:
            known = listed if helped is None else helped
            asked = self._asked(word) if known is None else known
            if asked is None and word in self._own:
                launcher = self._program.name if self._program is not None else "the launcher"
                example = " ".join(filter(None, ("palmette run", word, self._own[word], launcher, "...")))
                raise MisplacedError(f"{word} is an option of palmette's and stands before {launcher}: {example}")
        else:
            # Help isn't always right: srun's shows `--bcast=<dest_path>`, which takes a value only behind `=`.
            asked = self._asked(word)
            asked = helped if asked is None else asked
        return asked or 0

    def check_own(self, word: str, name: str) -> None:
        """Raise MisplacedError for one of palmette's that the launcher doesn't know."""
        if word in self._own:
            self.count(word, name)

    def _key(self) -> list[object]:
        return [self.kind, *launcher_key(self._program, self._environment)]

    def _from_help(self) -> dict[str, int]:
        if self._help is None:
            self._help = self._read_help() if self._program is not None else {}
        return self._help

    def _read_help(self) -> dict[str, int]:
        key = self._key()
        known = recall("help", key)
        if isinstance(known, dict) and all(isinstance(count, int) for count in known.values()):
            return known
        from palmette.run.help_text import values_in_help  # not needed where the answers are known

        found: dict[str, int] = {}
        ends_well = False
        for words in _HELP[self.kind]:
            answer = self._run(words)
            if answer is not None:
                ends_well |= answer[0] == 0
                found |= values_in_help(self.kind, answer[1])
        if ends_well:
            keep("help", key, found)
        return found

    def _asked(self, word: str) -> int | None:
        """Return the count from a trial call with the option alone; None where the answer is inconclusive."""
        if self._program is None or self.kind in ("flux", "aprun", "pals"):
            return None  # what these answer isn't known
        key = [*self._key(), word]
        known = recall("option", key)
        if isinstance(known, int):
            return known
        answer = self._run((*_BEFORE[self.kind], word))
        found = missing_values(self.kind, *answer) if answer is not None else None
        if found == 0 and self.kind == "intel_hydra":
            # It accepts some options without a value at the end (`-tune`). With another word it reports a missing
            # program only if it takes that word as the value; else it reports that the word is no program.
            answer = self._run((*_BEFORE[self.kind], word, _NO_PROGRAM))
            found = 1 if answer is not None and _MISSES_PROGRAM.search(answer[1]) else 0
        if found is not None:
            keep("option", key, found)
        return found

    def _run(self, words: Sequence[str]) -> tuple[int, str] | None:
        """Return exit status and output of the launcher with these words; None where it can't be run or doesn't end."""
        import subprocess  # not needed where the answers are known

        assert self._program is not None
        environment = {name: value for name, value in self._environment.items() if name != "LD_PRELOAD"}
        try:
            done = subprocess.run(
                [self._program, *words],
                env={**environment, **_ALLOWED},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.returncode, done.stdout


def missing_values(kind: LauncherKind, status: int, answer: str) -> int | None:
    """Return how many values an option lacks, by the output of a launcher called with it alone; None: inconclusive.

    0 is an option without values: then the program is what the launcher misses.
    """
    if kind == "prrte":
        # Open MPI 4 prints the number; 5 has a page for each kind of error, or its topic where the page is missing.
        number = re.search(r"did not have enough parameters \((\d+)\)", answer)
        if number:
            return int(number[1])
        if re.search(r"requires passing two\s+values", answer):
            return 2
        if re.search(r"requires\s+an argument|missing-argument", answer):
            return 1
        return 0 if re.search(r"No executable was specified|executable-not-specified", answer) else None
    if kind == "srun":
        if "requires an argument" in answer:
            return 1
        return 0 if re.search(r"No command given", answer) else None
    if _MISSES_PROGRAM.search(answer):
        return 0
    # hydra's errors for a missing value vary, or it crashes.
    complains = status < 0 or status > 128 or "[mpiexec@" in answer
    return 1 if complains and "unrecognized argument" not in answer else None
