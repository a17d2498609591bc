"""What every call must refuse: how it is judged, and the rules that operators share, from their documentation alone.

A call is judged in stages: conversions in argument order, null pointers, whether the product has the operator, dtypes,
ranks and formats, lengths of attributes, values of attributes, shapes, memory. The first stage that objects speaks; of
several objections in one stage any may. Nothing here imports the package. An operator's own rules are in its module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product as every
from typing import Any, NamedTuple

import numpy as np

NULLPTR, INVALID = 161001, 161002
SIZES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "complex64": 8, "complex128": 16, "int8": 1, "uint8": 1,
    "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "bool": 1, "undefined": 0,
}  # fmt: skip
NCHW, NHWC, ND, NCL, UNDEFINED = 0, 1, 2, 47, -1
PRIVATE = (3, 4, 12, 29, 32, 33)
MOST_RANK = 8
INT64 = range(-(2**63), 2**63)


class View(NamedTuple):
    """A tensor argument that could be read: strides, offset and storage in elements, the address in bytes."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: int
    format: int
    address: int | None  # of the storage; None: unbound
    writable: bool = True
    swapped: bool = False
    misaligned: bool = False
    broken_stride: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def empty(self) -> bool:
        return 0 in self.shape

    def reach(self) -> tuple[int, int]:
        """The lowest and the highest element of the storage that the view has."""
        low = high = self.offset
        for size, stride in zip(self.shape, self.strides, strict=True):
            if stride < 0:
                low += (size - 1) * stride
            else:
                high += (size - 1) * stride
        return low, high

    def leaves_storage(self) -> bool:
        if self.empty:
            return False
        low, high = self.reach()
        return low < 0 or high >= self.storage

    def overlaps_itself(self) -> bool:
        """Sorted by length, each stride must exceed the span of the shorter ones."""
        span = 0
        for stride, size in sorted((abs(stride), size) for stride, size in zip(self.strides, self.shape, strict=True)):
            if size > 1:
                if stride <= span:
                    return True
                span += stride * (size - 1)
        return False

    def bytes(self) -> set[int]:
        """The addresses of all bytes; for small views."""
        assert self.address is not None
        size = SIZES[self.dtype]
        starts = (
            self.address + size * (self.offset + sum(i * stride for i, stride in zip(index, self.strides, strict=True)))
            for index in every(*map(range, self.shape))
        )
        return {start + i for start in starts for i in range(size)}

    def shares_bytes_with(self, other: View) -> bool:
        if self.address is None or other.address is None or self.empty or other.empty:
            return False
        begin, end = self.address, self.address + self.storage * SIZES[self.dtype]
        if other.address >= end or begin >= other.address + other.storage * SIZES[other.dtype]:
            return False
        return not self.bytes().isdisjoint(other.bytes())


class Bad(NamedTuple):
    """An argument that cannot be read."""

    error: type[BaseException] | int  # or the status of a refusal
    rule: str


class Refusal(NamedTuple):
    rule: str
    error: type[BaseException] | int
    argument: str


class Ints(tuple):
    """An array of ints that could be read; `bare` where it was one int."""

    bare = False


def read_int(value: Any) -> int | Bad:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return Bad(TypeError, "not an int")
    return int(value) if int(value) in INT64 else Bad(OverflowError, "an int beyond 64 bits")


def read_ints(value: Any, bare_allowed: bool = False) -> Ints | Bad:
    if bare_allowed and isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_):
        one = read_int(value)
        if isinstance(one, Bad):
            return one
        result = Ints((one,))
        result.bare = True
        return result
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, list | tuple | range):
        return Bad(TypeError, "not a sequence of ints")
    items = [read_int(item) for item in value]
    return next((item for item in items if isinstance(item, Bad)), None) or Ints(items)


def read_bool(value: Any) -> bool | Bad:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    return Bad(TypeError, "not a bool")


def read_float(value: Any) -> float | Bad:
    if isinstance(value, bool | np.bool_) or not isinstance(value, float | int | np.floating | np.integer):
        return Bad(TypeError, "not a float")
    try:
        return float(value)
    except OverflowError:
        return Bad(OverflowError, "an int beyond a double")


# ---- judging --------------------------------------------------------------------------------------------------------


# Every rule that was asked of an operator, whether it objected or not.
KNOWN: set[tuple[str, str]] = set()


class _Judged(Exception):
    """A stage has objected."""


class Judge:
    """Collects what a stage objects to."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.found: list[Refusal] = []
        self.fresh = 0  # the elements of a result that is still to be made

    def refuse(self, condition: Any, rule: str, argument: str, error: type[BaseException] | int = INVALID) -> None:
        KNOWN.add((self.call.operator.__name__, rule))
        if condition:
            self.found.append(Refusal(rule, error, argument))

    def stage(self) -> None:
        if self.found:
            raise _Judged


@dataclass
class Call:
    """A call as the judge sees it: what was understood of each argument, under its own name, None for a null."""

    operator: Any  # of tests/operators
    face: str  # "two-phase" or "one-call"
    product: str
    layout: str
    arguments: dict[str, Any]

    def judge(self) -> list[Refusal]:
        """Give the objections of the first stage that has any."""
        judge = Judge(self)
        try:
            for name, value in self.arguments.items():
                if isinstance(value, Bad):
                    judge.refuse(True, value.rule, name, value.error)
                    judge.stage()  # these speak in the order of the arguments
            self.operator.rules(judge, self, self.arguments)
            judge.stage()
        except _Judged:
            pass
        return judge.found


def nulls(j: Judge, a: dict[str, Any], *names: str) -> None:
    for name in names:
        j.refuse(a[name] is None, "null", name, NULLPTR)
    j.stage()


def dtypes(j: Judge, c: Call, a: dict[str, Any], like: str | None, *names: str) -> None:
    taken = c.operator.dtypes[c.product]
    if not taken:
        j.refuse(True, "the product lacks the operator", f"{c.product} does not have")
        j.stage()
    for name in names:
        j.refuse(a[name].swapped, "foreign byte order", name)
        j.refuse(a[name].dtype not in taken, "dtype", name)
        if like:
            j.refuse(a[name].dtype != a[like].dtype, "dtypes differ", name)


def ranks(j: Judge, a: dict[str, Any], ranks: tuple[int, ...], *names: str) -> None:
    for name in names:
        j.refuse(a[name].rank not in ranks or a[name].rank != a[names[0]].rank, "rank", name)


def dtype_of_indices(j: Judge, a: dict[str, Any], name: str, wide: bool = True) -> None:
    j.refuse(a[name].swapped, "foreign byte order", name)
    j.refuse(a[name].dtype not in (("int32", "int64") if wide else ("int32",)), "dtype", name)


def formats_of_images(j: Judge, a: dict[str, Any], first: str, *others: str) -> None:
    """All plain ones of images, and equal."""
    for name in (first, *others):
        j.refuse(a[name].format not in (NCHW, NCL, ND), "format", name)
        if name != first:
            j.refuse(a[name].format != a[first].format, "formats differ", name)


def lengths(j: Judge, a: dict[str, Any], **wanted: range | tuple[int, ...]) -> None:
    for name, lengths in wanted.items():
        if a[name] is not None:
            j.refuse(len(a[name]) not in lengths, "length", name)


def pair(values: Ints) -> tuple[int, int]:
    return (values[0], values[-1])


def at_least(j: Judge, least: int, name: str, values: Any) -> None:
    j.refuse(any(value < least for value in values), f"must be >= {least}", name)


def shape_is(j: Judge, a: dict[str, Any], name: str, shape: tuple[int, ...]) -> None:
    j.refuse(a[name].shape != tuple(shape), "shape", name)


def not_too_large(j: Judge, a: dict[str, Any], *names: str, fresh: tuple[int, ...] | None = None) -> None:
    """No tensor is larger than a machine addresses; `fresh` is the shape of a result that is still to be made."""
    for name in names:
        size = math.prod(a[name].shape)
        j.refuse(size * SIZES[a[name].dtype] > 2**48, "more bytes than a machine addresses", name)
    if fresh is not None:
        j.fresh = math.prod(fresh)
        bytes_made = j.fresh * SIZES[next(iter(a.values())).dtype]
        j.refuse(bytes_made > 2**48, "more bytes than a machine addresses", "out|self|input_size")
    j.stage()


def memory(
    j: Judge, a: dict[str, Any], read: tuple[str, ...], shape: tuple[str, ...], written: tuple[str, ...]
) -> None:
    for name in (*read, *shape, *written):
        view = a[name]
        if view is None:
            continue
        j.refuse(name in written and view.address is not None and not view.writable, "read-only", name)
        j.refuse(view.misaligned and not view.empty, "misaligned", name)
        j.refuse(view.broken_stride and not view.empty, "broken stride", name)
        j.refuse(view.leaves_storage(), "leaves its storage", name)
    j.stage()
    for name in written:
        if a[name] is None:
            continue
        j.refuse(not a[name].empty and a[name].overlaps_itself(), "overlaps itself", name)
    j.stage()
    for i, name in enumerate(written):
        for other in (*read, *written[:i]):
            if a[name] is not None and a[other] is not None:
                j.refuse(a[name].shares_bytes_with(a[other]), "overlaps", name)
    j.stage()
    if j.call.face == "one-call":  # of the others phase 2 speaks
        for name in (*read, *written):
            unbound = a[name] is not None and a[name].address is None and not a[name].empty
            j.refuse(unbound, "unbound", name, NULLPTR)
            # The result is made before the kernel looks for its inputs.
            made = any(result in a and a[result] is None for result in ("out", "mask_out", "indices"))
            large = unbound and made and (j.fresh or math.prod(a[name].shape)) > 2**28
            j.refuse(large, "too large", name, MemoryError)


def pooled(size: int, kernel: int, stride: int, pad: int, ceil: bool, dilation: int = 1) -> int:
    out = (size + 2 * pad - ((kernel - 1) * dilation + 1) + (stride - 1 if ceil else 0)) // stride + 1
    return out - 1 if ceil and (out - 1) * stride >= size + pad else out


def pool_values(j: Judge, a: dict[str, Any], kernel: str, dilation: str | None) -> tuple[tuple[int, int], ...]:
    kernels = pair(a[kernel])
    strides = pair(a["stride"]) if a["stride"] else kernels
    pads = pair(a["padding"])
    at_least(j, 1, kernel, kernels)
    at_least(j, 1, "stride" if a["stride"] else kernel, strides)
    at_least(j, 0, "padding", pads)
    for pad, size in zip(pads, kernels, strict=True):
        j.refuse(pad > size // 2, "padding beyond half the kernel", "padding")
    if dilation:
        j.refuse(pair(a[dilation]) != (1, 1), "dilation", dilation)
    return kernels, strides, pads
