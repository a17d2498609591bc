"""Whether a result is right: compared with the operator's formula in float64 before anything is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# NumPy's finfo does not know bfloat16; this one has no annotations.
_finfo: Callable[[np.dtype[Any]], Any] = ml_dtypes.finfo


class WrongResult(Exception):
    """A contestant's result does not hold the formula; the message names the first wrong element."""


@dataclass(frozen=True)
class Reference:
    """The formula's values, and what bounds the rounding error of a sum: sum|terms| and the number of terms."""

    exact: npt.NDArray[np.float64]
    magnitude: npt.NDArray[np.float64]
    terms: int


def check(
    result: Array, reference: Reference, dtype: np.dtype[Any], *, accumulated_in: np.dtype[Any], who: str
) -> None:
    """Raise WrongResult unless |result - exact| stays within the rounding error of a sum in ``accumulated_in``."""
    if result.dtype != dtype or result.shape != reference.exact.shape:
        raise WrongResult(f"{who} gave {result.dtype} {result.shape}: must be {dtype} {reference.exact.shape}")
    # The reference is a float64 sum with an error of its own.
    sums = _finfo(accumulated_in)
    unit = float(sums.eps) + float(np.finfo(np.float64).eps)
    tolerance = (reference.terms + 3) * (reference.magnitude * unit + float(sums.smallest_subnormal))
    if accumulated_in != dtype:
        # One rounding to the result's type: at most one unit in its last place, or of its smallest subnormal.
        stored = _finfo(dtype)
        tolerance += np.abs(reference.exact) * float(stored.eps) + float(stored.smallest_subnormal)
    difference = np.abs(result.astype(np.float64) - reference.exact)
    # Written so that a NaN counts as wrong.
    wrong = ~(difference <= tolerance)
    if wrong.any():
        place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        raise WrongResult(
            f"{who}: element {place} = {float(result[place])!r}, must be {float(reference.exact[place])!r} "
            f"within {float(tolerance[place]):.3g}; {int(wrong.sum())} of {wrong.size} elements are wrong"
        )
