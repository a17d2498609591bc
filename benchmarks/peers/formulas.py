"""The operators in slices and sums, for frameworks that have no better of their own: what is added where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..check import Array
from ..operators.replication_pad2d import sides
from ..operators.upsample_nearest_exact1d import sources_of
from ..problem import Problem
from ..windows import count
from .base import attributes, require


@dataclass(frozen=True)
class Shift:
    """Where the windows see one kernel position: ``image = zeros(before) + windows, strided, + zeros(after)``.

    A negative number of zeros cuts windows off.
    """

    kernel: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]
    places: npt.NDArray[np.int32]  # of each window (oh, ow): ih*W + iw, or -1 outside the image

    def part(self, columns: Any) -> Any:
        """Give what columns (N, C, kH, kW, Ho, Wo) hold for this position."""
        return columns[:, :, self.kernel[0], self.kernel[1]]


def shifts(problem: Problem) -> Iterator[Shift]:
    """Give the shift of each kernel position, in row-major order."""
    a = attributes(problem)
    h, w = problem.case.shape[2:]
    rows, columns = ([_along(size, k, a) for k in range(a["kernel_size"])] for size in (h, w))
    for kh, (row, ih) in enumerate(rows):
        for kw, (column, iw) in enumerate(columns):
            # A place beside the image must not look like one in the next row.
            inside = ((ih >= 0) & (ih < h))[:, None] & ((iw >= 0) & (iw < w))
            places = np.where(inside, ih[:, None] * w + iw, -1)
            yield Shift((kh, kw), row, column, places.astype(np.int32))


def _along(size: int, k: int, a: dict[str, Any]) -> tuple[tuple[int, int], npt.NDArray[np.int64]]:
    s = a["stride"]
    before = k * a.get("dilation", 1) - a["padding"]
    places = np.arange(count(size, a)) * s + before
    return (before, size - 1 - int(places[-1])), places


def tiles(problem: Problem) -> bool:
    """Whether the windows lie edge to edge and fill the image: each place then belongs to one window."""
    a = attributes(problem)
    apart = a["kernel_size"] == a["stride"] and a["padding"] == 0 and a.get("dilation", 1) == 1
    return apart and all(size % a["stride"] == 0 for size in problem.case.shape[2:])


def require_plain_average(problem: Problem) -> float:
    """Give what each gradient is multiplied by; NotOffered if that is not the same for all windows."""
    a = attributes(problem)
    require(not a["ceil_mode"] and (a["count_include_pad"] or a["padding"] == 0))
    divisor: int = a["divisor_override"] or a["kernel_size"] ** 2
    return 1 / divisor


def upsample_sources(problem: Problem) -> npt.NDArray[np.int64]:
    """For each output of the forward, the input that it copies."""
    return sources_of(problem.case)


def upsample_factor(problem: Problem) -> int | None:
    """How many outputs copy each input, if it is the same for all."""
    outputs, inputs = len(upsample_sources(problem)), problem.case.shape[2]
    factor = outputs // inputs
    same = np.array_equal(upsample_sources(problem), np.arange(outputs) // max(factor, 1))
    return factor if factor * inputs == outputs and same else None


def upsample_gather(problem: Problem) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]]:
    """For the first, second ... output that copies each input: which it is, and whether there is one."""
    sources, size = upsample_sources(problem), problem.case.shape[2]
    first, counts = np.searchsorted(sources, np.arange(size)), np.bincount(sources, minlength=size)
    return [
        (np.where(counts > rank, first + rank, 0).astype(np.int32), counts > rank) for rank in range(int(counts.max()))
    ]


def pad_sides(problem: Problem) -> list[int]:
    """Left, right, top, bottom."""
    return sides(problem.case)


def fold_borders(problem: Problem) -> Callable[..., Any]:
    """Give the pad's backward: of each axis, the first and the last place with what was copied from them, and the rest.

    It is called as ``fold(array, total, join)``: the sum along an axis that keeps it, and the concatenation.
    """
    left, right, top, bottom = pad_sides(problem)
    # A single row is first and last at once.
    require(min(left, right, top, bottom) >= 0 and min(problem.case.shape[2:]) > 1)

    def fold(array: Any, total: Callable[[Any, int], Any], join: Callable[[list[Any], int], Any]) -> Any:
        for axis, before, after in ((2, top, bottom), (3, left, right)):
            ends = before + 1, array.shape[axis] - after - 1
            first, middle, last = (
                array[(slice(None),) * axis + (part,)]
                for part in (slice(0, ends[0]), slice(*ends), slice(ends[1], None))
            )
            array = join([total(first, axis), middle, total(last, axis)], axis)
        return array

    return fold


def ordered_image(image: Array, dtype: np.dtype[Any]) -> Array:
    """Give planes of ``dtype`` whose elements are in the same order as the image's: the maxima stay where they are.

    16-bit types have too few values to round to, but enough to number the elements of a plane. Subnormals, which some
    frameworks flush to zero, are no numbers here.
    """
    if dtype.itemsize > 2:
        return image.astype(dtype)
    bits: npt.NDArray[np.uint16] = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    with np.errstate(invalid="ignore"):  # some are NaN
        values = bits.view(dtype).astype(np.float64)
    smallest = 2.0**-126 if dtype.name == "bfloat16" else 2.0**-14
    normal = np.sort(values[np.isfinite(values) & (np.abs(values) >= smallest)])
    planes = image.reshape(*image.shape[:2], -1)
    require(planes.shape[2] <= normal.size)
    ranks = planes.argsort(axis=2).argsort(axis=2)
    middle = (normal.size - planes.shape[2]) // 2
    numbers: Array = normal[middle + ranks].astype(dtype)
    return numbers.reshape(image.shape)
