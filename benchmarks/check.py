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
    """What the formula gives.

    Without a magnitude the values are chosen, not computed: a result must equal them, and be of their dtype. Else they
    are sums in float64 or complex128, and these bound the rounding error: sum|terms| and the number of terms.
    """

    exact: Array
    magnitude: npt.NDArray[np.float64] | None = None
    terms: int | Array = 0


def check(
    result: Array, reference: Reference, dtype: np.dtype[Any], *, accumulated_in: np.dtype[Any], who: str
) -> None:
    """Raise WrongResult unless |result - exact| stays within the rounding error of a sum in ``accumulated_in``."""
    exact = reference.exact
    if reference.magnitude is None:
        dtype = exact.dtype
    if result.dtype != dtype or result.shape != exact.shape:
        raise WrongResult(f"{who} gave {result.dtype} {result.shape}: must be {dtype} {exact.shape}")
    tolerance: Array
    if reference.magnitude is None:
        tolerance = np.zeros(exact.shape)
        wrong = result != exact
    else:
        # The reference is a float64 sum with an error of its own.
        sums = _finfo(_part(accumulated_in))
        unit = float(sums.eps) + float(np.finfo(np.float64).eps)
        tolerance = (reference.terms + 3) * (reference.magnitude * unit + float(sums.smallest_subnormal))
        if accumulated_in != dtype:
            # One rounding to the result's type: at most one unit in its last place, or of its smallest subnormal.
            stored = _finfo(dtype)
            tolerance += np.abs(exact) * float(stored.eps) + float(stored.smallest_subnormal)
        # Written so that a NaN counts as wrong.
        wrong = ~(np.abs(result.astype(exact.dtype) - exact) <= tolerance)
    if wrong.any():
        place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        raise WrongResult(
            f"{who}: element {place} = {_text(result[place])}, must be {_text(exact[place])} "
            f"within {float(tolerance[place]):.3g}; {int(wrong.sum())} of {wrong.size} elements are wrong"
        )


def _part(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of a complex number's parts; a real type is its own."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _text(value: Any) -> str:
    return repr(complex(value) if np.iscomplexobj(value) else float(value))
