"""Factorings: hierarchy, methods, stripes and pipeline depth of a composition; bound and traffic of its plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from palmette import _core
from palmette.compose.composition import Composition
from palmette.compose.errors import ComposeError


@dataclass(frozen=True)
class Factoring:
    """The parameters of `Composition.factor`."""

    hierarchy: str | None = None
    """Groups of positions that replace the machine's levels."""
    methods: tuple[str, ...] = ("direct",)
    stripes: int = 1
    pipeline: int = 1
    landings: int = 4

    def plan(self, composition: Composition, job: _core.Job) -> _core.Plan:
        """Return the plan of all ranks. Raises `_core.Error`."""
        return composition.factor(
            job,
            hierarchy=self.hierarchy,
            methods=self.methods,
            stripes=self.stripes,
            pipeline=self.pipeline,
            landings=self.landings,
        )

    def text(self) -> str:
        """Return the command-line options of this factoring: `--method ring,tree.2 --stripes 4`."""
        parts = [f"--hierarchy {self.hierarchy}"] if self.hierarchy else []
        parts.append(f"--method {','.join(self.methods)}")
        parts += [f"--stripes {self.stripes}"] if self.stripes > 1 else []
        parts += [f"--pipeline {self.pipeline}"] if self.pipeline > 1 else []
        return " ".join(parts)

    def runtime_text(self) -> str:
        """Return the form that `palmette_plan_make` of palmette.h parses: `method=ring,tree.2 stripes=4`."""
        parts = [f"hierarchy={self.hierarchy}"] if self.hierarchy else []
        parts += [f"method={','.join(self.methods)}", f"stripes={self.stripes}"]
        return " ".join([*parts, f"pipeline={self.pipeline}", f"landings={self.landings}"])

    @classmethod
    def parse(cls, text: str) -> Factoring:
        """Parse `hierarchy=3:8 method=ring,tree.2 stripes=4 pipeline=16 landings=2`, all optional. Raises
        ComposeError.
        """
        values: dict[str, Any] = {}
        for word in text.split():
            key, _, value = word.partition("=")
            if key == "hierarchy" and value:
                values["hierarchy"] = value
            elif key == "method" and value:
                values["methods"] = tuple(value.split(","))
            elif key in ("stripes", "pipeline", "landings") and value.isdecimal() and int(value) > 0:
                values[key] = int(value)
            else:
                raise ComposeError(
                    f"factoring '{text}': '{word}' is none of hierarchy=, method=, stripes=, pipeline= and landings="
                )
        return cls(**values)

    def with_(self, **changes: Any) -> Factoring:
        """Return the same with some parameters changed."""
        return replace(self, **changes)


def bound_s(composition: Composition, job: _core.Job) -> float | None:
    """Lower bound on the time of any plan for this composition: bytes over capacity of the worst edge; None: unknown.

    It holds for the composition as written: another one for the same collective may need less.
    """
    worst = 0.0
    for level, groups in zip(job.levels, composition.core.crossing(job), strict=True):
        for capacity, (out, into) in zip(level.up_bytes_per_s, groups, strict=True):
            if capacity > 0:
                worst = max(worst, max(out, into) / capacity)
    return worst or None


def outer_traffic(plan: _core.Plan) -> tuple[str, int, int]:
    """Return name, messages and bytes of the outermost level that has more than one group."""
    counted = plan.count()
    for level, counts in zip(plan.job.levels, counted.levels, strict=True):
        if level.count > 1:
            return level.name, counts.messages, counts.bytes
    return "rank", counted.messages, counted.bytes
