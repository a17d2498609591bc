"""What every call must refuse: the rules of the operators, written down a second time, from their documentation alone.

A call is judged in stages: conversions in argument order, null pointers, whether the product has the operator, dtypes,
ranks and formats, lengths of attributes, values of attributes, shapes, memory. The first stage that objects speaks; of
several objections in one stage any may. Nothing here imports the package.
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


# ---- the products ---------------------------------------------------------------------------------------------------

POOLS = ("max", "max forward", "avg", "im2col")


def taken(operator: str, product: str) -> frozenset[str]:
    """The dtypes that an operator takes on a product."""
    newest = product in ("Ascend910B", "Host")
    if operator == "pad":
        return frozenset(["float32", "float16", "float64", "complex64", "complex128"] + ["bfloat16"] * newest)
    floats = frozenset(["float32", "float16"] + ["bfloat16"] * newest + ["float64"] * (product == "Host"))
    if product == "Ascend910":
        return frozenset() if operator == "upsample" else floats
    if product == "Ascend310P":
        return {"avg": floats, "max forward": frozenset(["float32"])}.get(operator, frozenset())
    return floats


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
        KNOWN.add((self.call.operator, rule))
        if condition:
            self.found.append(Refusal(rule, error, argument))

    def stage(self) -> None:
        if self.found:
            raise _Judged


@dataclass
class Call:
    """A call as the judge sees it: what was understood of each argument, under its own name, None for a null."""

    operator: str
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
            _OPERATORS[self.operator](judge, self, self.arguments)
            judge.stage()
        except _Judged:
            pass
        return judge.found


def _nulls(j: Judge, a: dict[str, Any], *names: str) -> None:
    for name in names:
        j.refuse(a[name] is None, "null", name, NULLPTR)
    j.stage()


def _dtypes(j: Judge, c: Call, a: dict[str, Any], like: str | None, *names: str) -> None:
    dtypes = taken(c.operator, c.product)
    if not dtypes:
        j.refuse(True, "the product lacks the operator", f"{c.product} does not have")
        j.stage()
    for name in names:
        j.refuse(a[name].swapped, "foreign byte order", name)
        j.refuse(a[name].dtype not in dtypes, "dtype", name)
        if like:
            j.refuse(a[name].dtype != a[like].dtype, "dtypes differ", name)


def _ranks(j: Judge, a: dict[str, Any], ranks: tuple[int, ...], *names: str) -> None:
    for name in names:
        j.refuse(a[name].rank not in ranks or a[name].rank != a[names[0]].rank, "rank", name)


def _lengths(j: Judge, a: dict[str, Any], **wanted: range | tuple[int, ...]) -> None:
    for name, lengths in wanted.items():
        if a[name] is not None:
            j.refuse(len(a[name]) not in lengths, "length", name)


def _pair(values: Ints) -> tuple[int, int]:
    return (values[0], values[-1])


def _at_least(j: Judge, least: int, name: str, values: Any) -> None:
    j.refuse(any(value < least for value in values), f"must be >= {least}", name)


def _shape_is(j: Judge, a: dict[str, Any], name: str, shape: tuple[int, ...]) -> None:
    j.refuse(a[name].shape != tuple(shape), "shape", name)


def _not_too_large(j: Judge, a: dict[str, Any], *names: str, fresh: tuple[int, ...] | None = None) -> None:
    """No tensor is larger than a machine addresses; `fresh` is the shape of a result that is still to be made."""
    for name in names:
        size = math.prod(a[name].shape)
        j.refuse(size * SIZES[a[name].dtype] > 2**48, "more bytes than a machine addresses", name)
    if fresh is not None:
        j.fresh = math.prod(fresh)
        bytes_made = j.fresh * SIZES[a["grad_output"].dtype]
        j.refuse(bytes_made > 2**48, "more bytes than a machine addresses", "out|self|input_size")
    j.stage()


def _memory(
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
            large = unbound and a.get("out") is None and (j.fresh or math.prod(a[name].shape)) > 2**28
            j.refuse(large, "too large", name, MemoryError)


def pooled(size: int, kernel: int, stride: int, pad: int, ceil: bool, dilation: int = 1) -> int:
    out = (size + 2 * pad - ((kernel - 1) * dilation + 1) + (stride - 1 if ceil else 0)) // stride + 1
    return out - 1 if ceil and (out - 1) * stride >= size + pad else out


# ---- the operators --------------------------------------------------------------------------------------------------


def _pool_values(j: Judge, a: dict[str, Any], kernel: str, dilation: str | None) -> tuple[tuple[int, int], ...]:
    kernels = _pair(a[kernel])
    strides = _pair(a["stride"]) if a["stride"] else kernels
    pads = _pair(a["padding"])
    _at_least(j, 1, kernel, kernels)
    _at_least(j, 1, "stride" if a["stride"] else kernel, strides)
    _at_least(j, 0, "padding", pads)
    for pad, size in zip(pads, kernels, strict=True):
        j.refuse(pad > size // 2, "padding beyond half the kernel", "padding")
    if dilation:
        j.refuse(_pair(a[dilation]) != (1, 1), "dilation", dilation)
    return kernels, strides, pads


def _avg(j: Judge, c: Call, a: dict[str, Any]) -> None:
    two = c.face == "two-phase"
    grad, kernel, divisor, ceil, out = (
        ("gradOutput", "kernelSize", "divisorOverride", "ceilMode", "gradInput") if two
        else ("grad_output", "kernel_size", "divisor_override", "ceil_mode", "out")
    )  # fmt: skip
    _nulls(j, a, grad, "self", kernel, "padding", *[out] * two)
    written = [out] * (a[out] is not None)
    _dtypes(j, c, a, grad, grad, "self", *written)
    j.stage()
    _ranks(j, a, (3, 4), grad, "self", *written)
    for name in (grad, "self", *written):
        formats = (NCHW, NCL) if a[name].rank == 3 else (NCHW,)
        j.refuse(a[name].format not in formats, "format", name)
    j.refuse(written and a["self"].format != a[out].format, "formats differ", "self")
    j.stage()
    _lengths(j, a, **{kernel: (1, 2), "stride": (0, 1, 2), "padding": (1, 2)})
    j.stage()
    kernels, strides, pads = _pool_values(j, a, kernel, None)
    j.refuse(not two and a[divisor] == 0, "divisor 0", divisor)
    if c.product != "Host":
        j.refuse(not -255 <= a[divisor] <= 255, "divisor limit", divisor)
    if two:
        mode = a["cubeMathType"]
        j.refuse(mode not in (0, 1, 2, 3), "cubeMathType", "cubeMathType")
        old = c.product in ("Ascend910", "Ascend310P")
        j.refuse(old and a[grad].dtype == "float32" and mode in (0, 3), "cubeMathType of the product", "cubeMathType")
    j.stage()
    shape = a["self"].shape
    j.refuse(0 in shape[-3:], "no elements", "self")
    j.refuse(c.product != "Host" and shape[-3] > 65535, "channel limit", "self")
    if written:
        _shape_is(j, a, out, shape)
    windows = [pooled(*axis, a[ceil]) for axis in zip(shape[-2:], kernels, strides, pads, strict=True)]
    j.refuse(min(windows) < 1, "no window", "self")
    j.stage()
    _shape_is(j, a, grad, (*shape[:-2], *windows))
    j.stage()
    _not_too_large(j, a, *written, fresh=None if written else shape)
    _memory(j, a, (grad,), ("self",), (out,))


def _max(j: Judge, c: Call, a: dict[str, Any]) -> None:
    two = c.face == "two-phase"
    grad, kernel, ceil, mask, out = (
        ("gradOutput", "kernelSize", "ceilMode", "indices", "gradInput") if two
        else ("grad_output", "kernel_size", "ceil_mode", "mask", "out")
    )  # fmt: skip
    _nulls(j, a, grad, "self", mask, kernel, *["stride"] * two, "padding", "dilation", *[out] * two)
    written = [out] * (a[out] is not None)
    _dtypes(j, c, a, grad, grad, "self", *written)
    j.refuse(a[mask].dtype != "int8", "dtype", mask)
    j.stage()
    _ranks(j, a, (3, 4), grad, "self", mask, *written)
    for name in (grad, "self", *written):
        j.refuse(a[name].format not in (NCHW, NCL, ND), "format", name)
        j.refuse(a[name].format != a[grad].format, "formats differ", name)
    j.refuse(a[mask].format in PRIVATE, "format", mask)
    j.stage()
    _lengths(j, a, **{kernel: (1, 2), "stride": (0, 1, 2), "padding": (1, 2), "dilation": (1, 2)})
    j.stage()
    shape = a["self"].shape
    container, windows = _container(j, a, shape, kernel, ceil)
    if written:
        _shape_is(j, a, out, shape)
    _shape_is(j, a, grad, (*shape[:-2], *windows))
    _mask(j, c, a, mask, shape, container)
    j.stage()
    _not_too_large(j, a, *written, mask, fresh=None if written else shape)
    _memory(j, a, (grad, mask), ("self",), (out,))


def _container(j: Judge, a: dict[str, Any], shape: tuple[int, ...], kernel: str, ceil: str) -> Any:
    """The shape of the mask, and of the output's planes."""
    kernels, strides, pads = _pool_values(j, a, kernel, "dilation")
    j.stage()
    j.refuse(0 in shape[-3:], "no elements", "self")
    j.stage()
    windows = [pooled(*axis, a[ceil]) for axis in zip(shape[-2:], kernels, strides, pads, strict=True)]
    j.refuse(min(windows) < 1, "no window", "self")
    j.stage()
    positions, row = math.prod(kernels), (-(-math.prod(windows) // 16) + 1) * 32
    j.refuse(positions not in INT64, "shape", kernel)
    j.refuse(row not in INT64, "shape", "self")
    j.stage()
    return (*shape[:-2], positions, row), windows


def _beyond_int32(c: Call, shape: tuple[int, ...], container: tuple[int, ...]) -> bool:
    return c.layout == "argmax" and container[-2] > 1 and math.prod(shape[-2:]) > 2**31 - 1


def _mask(j: Judge, c: Call, a: dict[str, Any], mask: str, shape: tuple[int, ...], container: tuple[int, ...]) -> None:
    _shape_is(j, a, mask, container)
    j.refuse(_beyond_int32(c, shape, container), "plane beyond int32", "self")
    j.stage()
    step, dense = 1, True
    for size, stride in zip(a[mask].shape[::-1], a[mask].strides[::-1], strict=True):
        dense = dense and (size == 1 or stride == step)
        step *= size
    j.refuse(not dense and not a[mask].empty, "not C-contiguous", mask)


def _max_forward(j: Judge, c: Call, a: dict[str, Any]) -> None:
    two = c.face == "two-phase"
    kernel, ceil = ("kernelSize", "ceilMode") if two else ("kernel_size", "ceil_mode")
    _nulls(j, a, "self", kernel, *["stride"] * two, "padding", "dilation", *["out", "indices"] * two)
    if c.operator == "max forward":  # not mask_shape, which is given a shape alone
        _dtypes(j, c, a, "self", "self", *["out"] * two)
    if two:
        j.refuse(a["indices"].dtype != "int8", "dtype", "indices")
    j.stage()
    _ranks(j, a, (3, 4), "self", *["out", "indices"] * two)
    for name in ("self", *["out"] * two) if c.operator == "max forward" else ():
        j.refuse(a[name].format not in (NCHW, NCL, ND), "format", name)
        if name != "self":
            j.refuse(a[name].format != a["self"].format, "formats differ", name)
    if two:
        j.refuse(a["indices"].format in PRIVATE, "format", "indices")
    j.stage()
    _lengths(j, a, **{kernel: (1, 2), "stride": (0, 1, 2), "padding": (1, 2), "dilation": (1, 2)})
    j.stage()
    shape = a["self"].shape
    container, windows = _container(j, a, shape, kernel, ceil)
    if not two:
        j.refuse(math.prod(filter(None, container)) > 2**48, "shape", kernel)
        if c.operator == "max forward":
            j.refuse(_beyond_int32(c, shape, container), "plane beyond int32", "self")
        _not_too_large(j, a, "self")
        if c.operator == "max forward":
            _memory(j, a, ("self",), (), ())
        return
    _shape_is(j, a, "out", (*shape[:-2], *windows))
    _mask(j, c, a, "indices", shape, container)
    j.stage()
    _not_too_large(j, a, "self", "indices")
    j.refuse(container[-2] > 2**31 - 1, "more positions than an int32 counts", kernel)
    j.stage()
    _memory(j, a, ("self",), (), ("out", "indices"))


def _upsample(j: Judge, c: Call, a: dict[str, Any]) -> None:
    two = c.face == "two-phase"
    grad, lo, li = ("gradOutput", "outputSize", "inputSize") if two else ("grad_output", "output_size", "input_size")
    _nulls(j, a, grad, lo, li, *["out"] * two)
    written = ["out"] * (a["out"] is not None)
    _dtypes(j, c, a, grad, grad, *written)
    j.stage()
    _ranks(j, a, (3,), grad, *written)
    for name in (grad, *written):
        j.refuse(a[name].format not in (NCL, ND), "format", name)
        j.refuse(a[name].format != a[grad].format, "formats differ", name)
    j.stage()
    _lengths(j, a, **{lo: (1,), li: (3,)})
    j.stage()
    scales = a["scales"] or 0.0
    _at_least(j, 1, lo, a[lo])
    _at_least(j, 1, li, a[li])
    j.refuse(not math.isfinite(scales) or scales < 0, "scales", "scales")
    j.refuse(c.product != "Host" and scales != 0 and not 1 / 50 <= scales <= 50, "scales limit", "scales")
    j.stage()
    if written:
        _shape_is(j, a, "out", tuple(a[li]))
    _shape_is(j, a, grad, (*a[li][:2], *a[lo]))
    if c.product != "Host":
        j.refuse(a[li][2] > 50 * a[lo][0], "growth limit", li)
        j.refuse(a[lo][0] > 50 * a[li][2], "growth limit", lo)
    j.stage()
    _not_too_large(j, a, grad, *written, fresh=None if written else tuple(a[li]))
    _memory(j, a, (grad,), (), ("out",))


def _im2col(j: Judge, c: Call, a: dict[str, Any]) -> None:
    two = c.face == "two-phase"
    grad, size, kernel = (
        ("gradOutput", "inputSize", "kernelSize") if two else ("grad_output", "input_size", "kernel_size")
    )
    arrays = (size, kernel, "dilation", "padding", "stride")
    _nulls(j, a, grad, *arrays, *["out"] * two)
    written = ["out"] * (a["out"] is not None)
    _dtypes(j, c, a, None, grad, *written)
    j.stage()
    _ranks(j, a, (2, 3), grad)
    if written:
        j.refuse(a[grad].rank in (2, 3) and a["out"].rank != a[grad].rank + 1, "rank", "out")
    for name in (grad, *written):
        j.refuse(a[name].format in PRIVATE, "format", name)
    j.stage()
    _lengths(j, a, **dict.fromkeys(arrays, (2,) if two else (1, 2)))
    j.stage()
    for name in arrays:
        _at_least(j, 0 if name == "padding" else 1, name, a[name])
    j.stage()
    axes = list(zip(*(_pair(a[name]) for name in arrays), strict=True))
    columns, length = a[grad].shape[-2:]
    positions = math.prod(_pair(a[kernel]))
    windows = [pooled(h, k, s, p, False, d) for h, k, d, p, s in axes]
    j.refuse(0 in (columns, length) or columns % positions, "shape", grad)
    j.refuse(min(windows) < 1, "no window", size)
    j.refuse(min(windows) >= 1 and math.prod(windows) != length, "shape", grad)
    if written:
        shape = a["out"].shape
        j.refuse(shape[-2:] != _pair(a[size]), "shape", size)
        j.refuse(shape[-3] * positions != columns, "shape", "out")
        j.refuse(shape[-3] * positions != columns, "shape", grad)
        j.refuse(len(shape) == 4 and shape[0] != a[grad].shape[0], "shape", "out")
        j.refuse(0 in shape[-3:], "shape", "out")
    j.stage()
    fresh = (*a[grad].shape[:-2], columns // positions, *_pair(a[size]))
    _not_too_large(j, a, grad, *written, fresh=None if written else fresh)
    _memory(j, a, (grad,), (), ("out",))


def _pad(j: Judge, c: Call, a: dict[str, Any]) -> None:
    two = c.face == "two-phase"
    grad, out = ("gradOutput", "gradInput") if two else ("grad_output", "out")
    _nulls(j, a, grad, "self", "padding", *[out] * two)
    written = [out] * (a[out] is not None)
    _dtypes(j, c, a, grad, grad, "self", *written)
    j.stage()
    _ranks(j, a, (3, 4), grad, "self", *written)
    for name in (grad, "self", *written):
        j.refuse(a[name].format in PRIVATE or a[name].format == UNDEFINED, "format", name)
        j.refuse(a[name].format != a[grad].format, "formats differ", name)
    j.stage()
    pads = a["padding"] * 4 if a["padding"].bare else a["padding"]
    j.refuse(len(pads) != 4, "length", "padding")
    j.stage()
    left, right, top, bottom = pads
    if c.product != "Host":
        _at_least(j, 0, "padding", pads)
        limited = a[grad].dtype == "bfloat16" and (top or bottom)
        j.refuse(limited and max(pads) > 7, "bfloat16 limit", "padding")
    j.stage()
    shape = a["self"].shape
    height, width = shape[-2:]
    j.refuse(0 in shape[-3:], "no elements", "self")
    if c.product != "Host":
        j.refuse(max(left, right) >= width or max(top, bottom) >= height, "as large as the image", "padding")
    padded = (height + top + bottom, width + left + right)
    j.refuse(min(padded) < 1 or max(padded) not in INT64, "nothing left", "padding")
    if written:
        _shape_is(j, a, out, shape)
    _shape_is(j, a, grad, (*shape[:-2], *padded))
    j.stage()
    _not_too_large(j, a, grad, *written, fresh=None if written else shape)
    _memory(j, a, (grad,), ("self",), (out,))


_OPERATORS = {
    "avg": _avg, "max": _max, "max forward": _max_forward, "upsample": _upsample, "im2col": _im2col, "pad": _pad,
}  # fmt: skip
OPERATORS = tuple(_OPERATORS)
_OPERATORS["mask_shape"] = _max_forward  # the forward's rules for a shape alone
