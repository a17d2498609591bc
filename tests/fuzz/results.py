"""What an accepted call must compute, from the arguments as they were understood, by the operator's twin."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.calls import DTYPES, Drawn
from fuzz.rules import INVALID, Refusal, View

# What an average may be off: of the largest term, for each dtype.
_TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 1.5e-3, "bfloat16": 1e-2}
MOST_POSITIONS = 10_000  # of a kernel, beyond which a twin would take too long


class BadIndex(Exception):
    """A tensor of indices holds one outside its window: phase 2 refuses it."""

    def __init__(self, argument: str) -> None:
        super().__init__(argument)
        self.refusal = Refusal("index outside its window", INVALID, argument)


def expected(drawn: Drawn) -> list[np.ndarray[Any, Any]] | None:
    """The outputs in argument order; None where the twin would take too long. Raises BadIndex."""
    name, argument = next(iter(drawn.arguments.items()))
    view, array = argument.meaning, argument.array
    assert drawn.role(name) == "read"
    assert isinstance(view, View)
    assert array is not None
    # A copy, before anything is written.
    if drawn.operator.copies:
        return drawn.operator.expected(drawn, array.copy(), {n: one.meaning for n, one in drawn.arguments.items()})
    values = array.astype(np.complex128 if view.dtype.startswith("complex") else np.float64)
    found = drawn.operator.expected(drawn, values, {name: one.meaning for name, one in drawn.arguments.items()})
    if found is None or not drawn.operator.exact:
        return found
    return [result.astype(DTYPES[view.dtype] if result.dtype == values.dtype else result.dtype) for result in found]


def agrees(drawn: Drawn, result: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Whether a result is the expected one: bit for bit but for the averages, whose terms are fractions."""
    if result.shape != wanted.shape:
        return False
    if drawn.operator.copies:
        return result.tobytes() == wanted.tobytes()
    if drawn.operator.exact:
        return bool((result == wanted).all())
    dtype = next(iter(drawn.arguments.values())).meaning.dtype
    reduced = drawn.face == "two-phase" and drawn.product != "Host" and dtype == "float32"
    tolerance = _TOLERANCE["float16" if reduced else dtype]
    return bool((np.abs(result.astype(np.float64) - wanted) <= tolerance * (np.abs(wanted) + 1)).all())
