"""``aclnn-bw compare DUMP.npz``: an operator's arguments and results, dumped on an NPU, against our results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import aclnn_bw
from aclnn_bw._npy import BFLOAT16, Array, CommandError
from aclnn_bw._records import OPERATORS

_BFLOAT16 = "bfloat16"  # an entry of this name lists the arrays that hold its bits as uint16
_SHAPE = "_shape"  # self_shape may stand for self where its values are not read


@dataclass(frozen=True)
class Difference:
    """How one output of the dump differs from ours; `first` is a place, with the values there."""

    name: str
    dtype: str
    elements: int
    different: int
    ulp: int
    first: tuple[tuple[int, ...], Any, Any] | None

    def __str__(self) -> str:
        """Tell it in a line or two."""
        line = f"{self.name:<12} {self.dtype}, {self.elements} elements: "
        if self.first is None:
            return line + "the same"
        place, theirs, ours = self.first
        return (f"{line}{self.different} differ, by {self.ulp} ulp at most\n"
                f"{'':<12} first at [{', '.join(map(str, place))}]: {theirs} in the dump, {ours} here")  # fmt: skip


def _ordered(array: Array) -> Any:
    """Integers in the order of the floating-point values, neighbours one apart: Python's, since they may not fit."""
    size = array.dtype.itemsize
    bits = array.view(f"i{size}").astype(object if size == 8 else np.int64)
    return np.where(bits < 0, -(bits + 2 ** (8 * size - 1)), bits)


def ulps(theirs: Array, ours: Array) -> npt.NDArray[Any]:
    """How many representable values lie between each two elements; 0 for two NaNs and for 0 and -0."""
    if theirs.dtype.kind == "c":
        parts = theirs.dtype.type(0).real.dtype
        both = [[np.ascontiguousarray(part, parts) for part in (array.real, array.imag)] for array in (theirs, ours)]
        return np.asarray(np.maximum(ulps(both[0][0], both[1][0]), ulps(both[0][1], both[1][1])))
    if theirs.dtype.kind in "iub":
        return np.asarray(np.abs(theirs.astype(np.int64) - ours.astype(np.int64)))
    apart = np.abs(_ordered(theirs) - _ordered(ours))
    nan = np.isnan(theirs), np.isnan(ours)
    # A NaN against a number is further than any two numbers are.
    return np.where(nan[0] & nan[1], 0, np.where(nan[0] | nan[1], 2 ** (8 * theirs.dtype.itemsize - 1), apart))


def _difference(name: str, theirs: Array, ours: Array) -> Difference:
    apart = ulps(np.ascontiguousarray(theirs), np.ascontiguousarray(ours))
    places = np.argwhere(apart != 0)
    first = None
    if len(places):
        place = tuple(int(i) for i in places[0])
        first = place, theirs[place], ours[place]
    return Difference(name, str(ours.dtype), ours.size, len(places), int(apart.max(initial=0)), first)


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file, np.lib.npyio.NpzFile(file, allow_pickle=False) as dump:
            found = {name: dump[name] for name in dump.files}
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    except MemoryError as error:
        raise CommandError(f"{path}: not enough memory: {error}") from None
    except Exception as error:
        # A file that is no .npz, or a damaged one, can raise nearly anything.
        raise CommandError(f"{path}: not a readable .npz file: {error}") from None
    for name in np.atleast_1d(found.pop(_BFLOAT16, np.array([], str))).tolist():
        if name not in found or found[name].dtype != np.uint16:
            raise CommandError(f"{path}: {name}: listed as bfloat16, must be an array of uint16")
        found[name] = found[name].view(BFLOAT16)
    return found


def _argument(value: Array) -> Any:
    """A scalar or a list of ints as Python has them; every array of a higher rank is a tensor."""
    return value if value.ndim > 1 else value.tolist()


def compare(path: str) -> tuple[str, list[Difference]]:
    """Run the operator of a dump on its inputs; return its name and how each output differs."""
    dump = _load(path)
    name = str(dump.pop("operator", "")).removeprefix("aclnn")
    if name not in OPERATORS:
        raise CommandError(f"{path}: operator = {name!r}: must be one of {', '.join(map(repr, OPERATORS))}")
    product: Any = str(dump.pop("soc", "Ascend910B"))  # checked by soc, as the layout
    layout: Any = str(dump.pop("mask_layout", "bitmask"))
    phase_1 = getattr(aclnn_bw, f"aclnn{name}GetWorkspaceSize")
    arguments: dict[str, Any] = {}
    results: dict[str, tuple[Array, Array]] = {}
    for parameter in OPERATORS[name].two_phase:
        argument = parameter.name
        value = dump.pop(argument, None)
        if parameter.kind == "written" and value is not None:
            ours = np.empty(value.shape, value.dtype)
            results[argument] = value, ours
            arguments[argument] = ours
        elif value is not None:
            arguments[argument] = _argument(value)
        elif argument + _SHAPE in dump:
            # Its values are not read: one element stands for all of them.
            arguments[argument] = dump.pop(argument + _SHAPE).tolist()
        elif parameter.nullable:
            arguments[argument] = None
        else:
            raise CommandError(f"{path}: {argument} is missing")
    if dump:
        raise CommandError(f"{path}: {', '.join(dump)}: no argument of aclnn{name}")
    for argument, value in arguments.items():
        if argument == "self" and isinstance(value, list):
            dtype = arguments["gradOutput"].dtype if "gradOutput" in arguments else np.float32
            arguments[argument] = np.broadcast_to(np.zeros((), dtype), value)
    with aclnn_bw.soc(product, mask_layout=layout):
        size, executor = phase_1(**arguments)
    getattr(aclnn_bw, f"aclnn{name}")(bytearray(size), size, executor)
    return name, [_difference(argument, *pair) for argument, pair in results.items()]
