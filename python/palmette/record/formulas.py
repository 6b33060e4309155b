"""Derived metrics: formulas over the numbers of calling contexts, such as `most_s / mean_s`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from palmette.record.reading import RecordError

Column = NDArray[np.float64]

_BINARY: dict[type[ast.operator], Callable[..., Column]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: np.power,
}  # fmt: skip
_FUNCTIONS: dict[str, tuple[int, Callable[..., Column]]] = {
    "abs": (1, np.abs), "sqrt": (1, np.sqrt), "log2": (1, np.log2), "min": (2, np.minimum), "max": (2, np.maximum),
}  # fmt: skip
MAX_CHARACTERS = 1000
"""Characters of a formula."""


def evaluate(formula: str, columns: Mapping[str, Column]) -> Column:
    """Return a formula's value for each row of the columns: numbers, names of columns, + - * / **, parentheses, and
    abs, sqrt, log2, min and max. What isn't a number (0 / 0) is NaN. Raises RecordError. Cost: O(operators x rows).
    """
    if len(formula) > MAX_CHARACTERS:
        raise RecordError(f"a formula of {len(formula):,} characters; at most {MAX_CHARACTERS:,} are read")
    try:
        parsed = ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise RecordError(f"{formula!r} is no formula; write one such as most_s / mean_s") from None

    rows = len(next(iter(columns.values()))) if columns else 0

    def value(node: ast.expr) -> Column:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            try:
                return np.full(rows, float(node.value))
            except OverflowError:
                raise RecordError(f"{formula!r}: its number at character {node.col_offset + 1} is too large") from None
        if isinstance(node, ast.Name):
            if node.id not in columns:
                raise RecordError(f"{formula!r}: there is no {node.id}; take {', '.join(columns)}")
            return columns[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return -value(node.operand) if isinstance(node.op, ast.USub) else value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return _BINARY[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            count, function = _FUNCTIONS.get(node.func.id, (0, None))
            if function is None:
                raise RecordError(f"{formula!r}: there is no {node.func.id}(); take {', '.join(_FUNCTIONS)}")
            if len(node.args) != count:
                raise RecordError(f"{formula!r}: {node.func.id}() takes {count} values, not {len(node.args)}")
            return function(*(value(one) for one in node.args))
        raise RecordError(
            f"{formula!r}: what stands at character {node.col_offset + 1} is none of numbers, names, + - * / ** and "
            f"{', '.join(_FUNCTIONS)}"
        )

    with np.errstate(all="ignore"):
        try:
            found = np.array(value(parsed), np.float64)
        except RecursionError:
            raise RecordError(f"{formula[:40]!r}... is nested too deeply") from None
    found[~np.isfinite(found)] = np.nan
    return found
