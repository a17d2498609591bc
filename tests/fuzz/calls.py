"""Random calls: a right one of tiny shapes first, of which then some arguments are replaced by hostile ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

import aclnn_bw
from fuzz import capsules, rules
from fuzz.rules import INVALID, ND, SIZES, Bad, Ints, View

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in SIZES if name != "undefined"
}
NUMBERS = {
    "float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "uint16": 7, "uint32": 8, "int64": 9,
    "uint64": 10, "float64": 11, "bool": 12, "complex64": 16, "complex128": 17, "bfloat16": 27,
}  # fmt: skip
FORMATS = [int(format) for format in aclnn_bw.aclFormat]
PRODUCTS = ("Host", "Ascend910B", "Ascend910", "Ascend310P")
HOSTILE_INTS = (
    0, -1, 1, 2, 7, 51, 256, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, -(2**31), -(2**63), -(2**63) - 1,
)  # fmt: skip
NO_INTS = (math.nan, math.inf, 1.0, True, None, "1", np.float32(1), np.True_, 1j, [1])
CANARY = 0xA5
_MARGIN = 64

# Small whole numbers, whose sums are exact in every dtype; bytes for masks; positions within windows.
_pool = np.random.default_rng(20261121)
_VALUES = {
    name: _pool.integers(0 if name == "bool" else -4, 2 if name == "bool" else 5, 8192).astype(dtype).view(np.uint8)
    for name, dtype in DTYPES.items()
}
BYTES = _pool.integers(0, 256, 1 << 16, np.uint8)
UNIFORM = _pool.random(1 << 14)


class Dice(Random):
    """Random numbers: not quite even ones, in a third of the time."""

    def choice(self, values: Any) -> Any:
        return values[int(self.random() * len(values))]

    def randrange(self, start: int, stop: int | None = None) -> int:  # type: ignore[override]
        return int(self.random() * start) if stop is None else start + int(self.random() * (stop - start))

    def randint(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))


class Arena:
    """The memory of a call's tensors, a canary between them: one comparison shows whatever was written."""

    def __init__(self, size: int) -> None:
        room = np.full(size + 64, CANARY, np.uint8)
        self.memory = room[-room.ctypes.data % 64 :][:size]
        self.address = self.memory.ctypes.data
        self.used = 0
        self.before = b""

    def clear(self) -> None:
        self.memory[: self.used] = CANARY
        self.used, self.before = 0, b""

    def take(self, size: int, alignment: int) -> int:
        """Where `size` bytes begin, at a multiple of the alignment."""
        start = -(-(self.used + _MARGIN) // alignment) * alignment
        self.used = start + size + 1 + _MARGIN  # 1 for what shall be misaligned
        if self.used > self.memory.size:
            self.used = self.memory.size
            raise ValueError("too large for the arena")
        return start

    def remember(self) -> None:
        self.before = self.memory[: self.used].tobytes()

    def untouched(self) -> bool:
        return self.memory[: self.used].tobytes() == self.before


ARENA = Arena(1 << 24)


@dataclass(slots=True)
class Argument:
    """What is passed, what it means (rules.Call), and where it lies if it is a tensor."""

    value: Any
    meaning: Any
    array: np.ndarray[Any, Any] | None = None  # over the tensor's memory, also where the argument is something else
    start: int = 0  # of the storage in the arena
    end: int = 0

    def restore(self) -> None:
        """Undo what was written to the view, and to nothing else."""
        array = self.array
        if array is not None and array.size:
            at = array.ctypes.data - ARENA.address
            array[...] = np.ndarray(array.shape, array.dtype, ARENA.before, at, array.strides)


@dataclass
class Drawn:
    """A random call."""

    operator: Any  # of tests/operators, or the name of a function around them
    face: str
    product: str
    layout: str
    arguments: dict[str, Argument]
    outputs: tuple[str, ...]
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.operator if isinstance(self.operator, str) else self.operator.__name__

    def role(self, name: str) -> str:
        """Tell whether an argument is "read", "written", or a "shape" alone."""
        parameter = self.operator.parameter(name)
        return self.operator.roles.get(parameter.name, "") if parameter else ""

    def judge(self) -> list[rules.Refusal]:
        meanings = {name: argument.meaning for name, argument in self.arguments.items()}
        return rules.Call(self.operator, self.face, self.product, self.layout, meanings).judge()


# ---- tensors --------------------------------------------------------------------------------------------------------


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _strides(random: Random, shape: tuple[int, ...], how: str) -> tuple[int, ...]:
    """Strides in elements: row-major, or the axes in any order with gaps and in either direction."""
    if how == "row-major":
        return row_major(tuple(size or 1 for size in shape))
    order = list(range(len(shape)))
    if how == "channels":  # innermost, as in channels_last
        order.reverse()
        if len(shape) > 1:
            order.insert(0, order.pop(2 if len(shape) == 4 else random.randrange(1, len(shape))))
    else:
        random.shuffle(order)
    strides, span = [0] * len(shape), 1
    for axis in order:
        gap = random.choice((0, 0, 1, 3)) if how != "channels" else 0
        strides[axis] = span + gap
        span += (shape[axis] - 1) * strides[axis] + gap if shape[axis] else 0
        if random.random() < 0.3 and how != "channels":
            strides[axis] = -strides[axis]
    if how == "overlapping" and shape:
        long = [axis for axis, size in enumerate(shape) if size > 1]
        strides[random.choice(long or order)] = random.choice((0, 0, 1, 2))
    return tuple(strides)


def format_of(rank: int) -> int:
    return {3: rules.NCL, 4: rules.NCHW}.get(rank, rules.ND)


class Exporter:
    """An array known through DLPack alone."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Interface:
    """An array known through __array_interface__ alone."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Liar:
    """A DLPack exporter that does not keep its word."""

    def __init__(self, device: Any, capsule: Any) -> None:
        self.device, self.capsule = device, capsule

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **_: Any) -> Any:
        if isinstance(self.capsule, Exception):
            # A new one each time: its traceback keeps the frames, and so the arguments, of the calls it went through.
            raise type(self.capsule)(*self.capsule.args)
        return self.capsule


_LAID = (("row-major", "row-major", "any", "overlapping"), ("row-major", "row-major", "any"))  # read, written
_WRAPS = ("array",) * 6 + ("tensor",) * 3 + ("exporter", "interface")


def tensor(
    random: Random, shape: tuple[int, ...], dtype: str, *, written: bool = False, how: str | None = None,
    wrap: str | None = None, fill: np.ndarray[Any, Any] | None = None, misaligned: bool = False,
    format: int | None = None, within: tuple[int, int] | None = None, hide: str = "",
) -> Argument:  # fmt: skip
    """Make a tensor argument; `within` puts it between two places of the arena, `hide` says what is wrong."""
    size = SIZES[dtype]
    strides = _strides(random, shape, how or random.choice(_LAID[written]))
    low = high = 0
    for n, stride in zip(shape, strides, strict=True):
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    if 0 in shape:
        low, high = 0, -1
    storage = high - low + 1
    wanted = storage * size
    if within is None:
        start = ARENA.take(wanted, size) + misaligned
        if not written and wanted:
            source, at = fill, 0
            if source is None:
                source = _VALUES[dtype]
                at = random.randrange(max(source.size // size - storage, 1)) * size
            piece = source[at : at + wanted]
            ARENA.memory[start : start + wanted] = piece if piece.size == wanted else np.resize(source, wanted)
    else:
        start, end = within
        if wanted > end - start:
            raise ValueError("does not fit")
    array: np.ndarray[Any, Any] = np.ndarray(
        shape, DTYPES[dtype], ARENA.memory, start - low * size, tuple([stride * size for stride in strides])
    )
    address = ARENA.address + start
    alignment = size // 2 if dtype.startswith("complex") else size
    view = View(
        dtype, shape, strides, -low, storage, format_of(len(shape)), address, misaligned=address % alignment != 0
    )
    if wrap is None:
        wrap = random.choice(_WRAPS)
    if dtype == "bfloat16" and wrap in ("exporter", "interface"):
        wrap = "array"
    value: Any = array
    if hide == "read-only":
        array.flags.writeable = False
        view = view._replace(writable=False)
    if hide == "swapped" and size > 1:
        value, wrap = array.view(array.dtype.newbyteorder()), "array"
        view = view._replace(swapped=True)
    if hide == "broken" and size > 1 and storage and len(shape):
        steps = [stride * size for stride in strides]
        axis = max(range(len(shape)), key=lambda axis: abs(steps[axis]) * (shape[axis] > 1))
        # Shorter, so that it stays inside; half a complex number is aligned all the same.
        step = size // 2 if dtype.startswith("complex") else 1
        steps[axis] -= step * ((steps[axis] > 0) - (steps[axis] < 0))
        value, wrap = np.ndarray(shape, DTYPES[dtype], ARENA.memory, start - low * size, tuple(steps)), "array"
        if shape[axis] > 1 and steps[axis]:
            view = view._replace(broken_stride=True)
            # NumPy's own flag says so too where the steps leave the alignment.
            view = view._replace(misaligned=not value.flags.aligned)
    if wrap == "tensor" and len(shape) <= rules.MOST_RANK:
        view = view._replace(format=view.format if format is None else format)
        dims, steps, offset = list(shape), list(strides), -low
        data: Any = ARENA.memory[start : start + wanted]
        if not view.writable:
            data.flags.writeable = False
        if hide == "leaves":
            axis = random.randrange(len(shape))
            steps[axis] = random.choice((2**62, 2**63 - 1, -(2**63), steps[axis] + storage, -storage - 1, 2**40))
            view = view._replace(strides=tuple(steps))
        if hide == "offset":
            offset = random.choice((-1, storage, 2**62, -(2**63), 2**63 - 1, offset + 1, offset - 1))
            view = view._replace(offset=offset)
        if hide == "unbound":
            data, view = None, view._replace(address=None, misaligned=False)
        value = aclnn_bw.aclCreateTensor(
            dims, NUMBERS[dtype], steps, offset, view.format, [storage] if random.random() < 0.8 else [1, storage], data
        )
        if hide == "destroyed":
            aclnn_bw.aclDestroyTensor(value)
            return Argument(value, Bad(INVALID, "destroyed"), array, start, start + wanted)
    elif wrap == "exporter" and view.writable and not view.misaligned:
        value = Exporter(array)
    elif wrap == "interface":
        value = Interface(array)
    return Argument(value, view, array, start, start + wanted)


# Of each kind of refusal some.
NO_TENSORS: tuple[tuple[tuple[Any, Any], ...], ...] = (
    tuple((value, Bad(TypeError, "no tensor")) for value in (0, "tensor", [1.0], (1.0, 2.0), np.float32(1), Exporter)),
    ((Liar((1, 0), RuntimeError("lost")), Bad(RuntimeError, "raises")),),
    ((Liar((1, 0), 42), Bad(INVALID, "no capsule")), (Liar((1, 0), None), Bad(INVALID, "no capsule"))),
    ((Liar((2, 0), 42), Bad(INVALID, "another device")),),
    tuple((Liar(device, 42), Bad(INVALID, "no device")) for device in (None, ("cpu", 0), ())),
    tuple((forged, Bad(INVALID, "a forged capsule")) for forged in capsules.INVALID),
    (*((forged, Bad(INVALID, "no capsule")) for forged in capsules.NO_CAPSULE),
     (capsules.ENDLESS, View("float32", (1,) * 9, (1,) * 9, 0, 1, ND, 1 << 40))),
)  # fmt: skip
_TENSOR_WOES = (
    "null", "type", "dtype", "other dtype", "swapped", "rank", "dims", "empty", "huge", "misaligned", "broken",
    "read-only", "overlapping", "aliased", "format", "leaves", "offset", "unbound", "destroyed",
    # more often, as other arguments hide them
    "type", "type", "empty", "read-only", "overlapping", "aliased", "aliased", "aliased", "unbound", "huge", "broken",
)  # fmt: skip


def spoil_tensor(random: Random, drawn: Drawn, name: str) -> Argument:
    """Put something wrong, or merely strange, in the place of a tensor."""
    old, written = drawn.arguments[name], name in drawn.outputs
    view = old.meaning
    woe = random.choice(_TENSOR_WOES)
    drawn.notes.append(f"{name}: {woe}")
    if woe == "null" or not isinstance(view, View) or view.dtype not in DTYPES:
        return Argument(None, None)
    if math.prod(view.shape) > 1 << 16:
        return old
    if woe == "type":
        return Argument(*random.choice(random.choice(NO_TENSORS)))
    shape, dtype = view.shape, view.dtype
    if woe in ("dtype", "other dtype"):
        dtype = (
            random.choice(tuple(DTYPES))
            if woe == "dtype"
            else random.choice(("float16", "float32", "float64", "bfloat16"))
        )
    if woe == "rank":
        twice = shape * 2 if len(shape) < 3 else shape[2:]
        others = (1, *shape), (*shape, 1), (1,) * 5 + shape, twice, ()
        shape = random.choice((shape[1:], shape[:-1], shape[:-1], shape[:1], *others))
    if woe == "dims" and shape:
        axis = random.randrange(len(shape))
        shape = (*shape[:axis], max(shape[axis] + random.choice((-1, 1, 1, 15)), 0), *shape[axis + 1 :])
    if woe == "empty" and shape:
        axis = random.randrange(len(shape))
        shape = (*shape[:axis], 0, *shape[axis + 1 :])
    if woe == "huge" and shape:
        return _huge(random, shape, dtype)
    if woe == "aliased":
        others = [a for n, a in drawn.arguments.items() if a.array is not None and n != name]
        other = random.choice(others) if others else old
        alike = written or getattr(other.meaning, "dtype", "") == dtype  # other bytes are no whole numbers
        if other is not old and alike:
            step = random.choice((0, 0, SIZES[dtype], -SIZES[dtype], 1, math.prod(shape) * SIZES[dtype])) * written
            within = max(other.start + step, 0), other.end + _MARGIN * written
            if not written and any(drawn.arguments[output] is other for output in drawn.outputs):
                # Canaries are no whole numbers, and another output may yet be drawn: then this input is read.
                ARENA.memory[other.start : other.end] = np.resize(_VALUES[dtype], other.end - other.start)
            try:
                return tensor(random, shape, dtype, written=written, within=within, wrap="array")
            except ValueError:
                pass
    format = random.choice(FORMATS) if woe == "format" else None
    if woe == "rank" and random.random() < 0.5:
        format = view.format
    wrap = "tensor" if format is not None or woe in ("leaves", "offset", "unbound", "destroyed") else None
    how = "overlapping" if woe == "overlapping" else None
    hide = woe if woe in ("swapped", "broken", "read-only", "leaves", "offset", "unbound", "destroyed") else ""
    if not shape and hide in ("leaves", "broken"):
        hide = ""
    off = woe == "misaligned"
    return tensor(
        random, shape, dtype, written=written, how=how, wrap=wrap, misaligned=off, format=format, hide=hide
    )  # fmt: skip


def _huge(random: Random, shape: tuple[int, ...], dtype: str) -> Argument:
    """A view without strides whose sizes are those of no memory."""
    shape = tuple(random.choice((size, 2**31, 2**33, 2**20)) for size in shape)
    if math.prod(filter(None, shape)) * SIZES[dtype] >= 2**63:
        shape = (2**40, *(1 for _ in shape[1:]))
    one = tensor(random, (1,), dtype, how="row-major", wrap="array")
    value: Any = np.ndarray(shape, DTYPES[dtype], ARENA.memory, one.start, (0,) * len(shape))
    view = one.meaning._replace(shape=shape, strides=(0,) * len(shape), format=format_of(len(shape)))
    return Argument(value, view, value, one.start, one.end)


# ---- the other arguments --------------------------------------------------------------------------------------------


def spoil_ints(random: Random, old: Any, bare_allowed: bool, null: bool = True) -> Argument:
    """An array of ints, most likely a wrong one."""
    values: list[Any] = list(old) if isinstance(old, tuple | list) else [1]
    woe = random.randrange(8)
    if woe == 0:
        value: Any = random.choice(
            (None, None, "33", b"33", 1.5, object(), {1: 2}, {1, 2}, np.ones((2, 2), int), np.array(3.0))
        )
        if value is None and not null:
            value = 2.5
    elif woe == 1:
        value = random.choice(HOSTILE_INTS)
    elif woe in (2, 3, 4) and values:
        values[random.randrange(len(values))] = random.choice(HOSTILE_INTS)
        value = random.choice((list, tuple))(values)
    elif woe == 5 and values:
        values[random.randrange(len(values))] = random.choice(NO_INTS)
        value = values
    elif woe == 6:
        value = [random.choice((0, 1, 2, -1)) for _ in range(random.choice((0, 0, 1, 2, 3, 4, 5, 9, 100)))]
    elif all(type(v) is int and v in rules.INT64 for v in values):
        value = aclnn_bw.aclCreateIntArray(values)
        if random.random() < 0.5:
            return Argument(value, Ints(values))
        aclnn_bw.aclDestroyIntArray(value)
        return Argument(value, Bad(INVALID, "destroyed"))
    else:
        value = values
    return Argument(value, None if value is None else rules.read_ints(value, bare_allowed))


def strange(random: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with a size of 0, a negative or a huge one, or of another rank."""
    if random.random() < 0.2:
        return tuple(random.randint(1, 3) for _ in range(random.choice((0, 1, 2, 5, 8, 9, 12))))
    axis = random.randrange(len(shape)) if shape else 0
    return (*shape[:axis], random.choice((0, 0, -1, -(2**63), 2**40, 2**62)), *shape[axis + 1 :])


_NO_BOOLS = (None, 2, -1, "x", 1.0, [], 2**70)
_FLOATS = (
    math.nan, math.inf, -math.inf, -1.0, -5e-324, 5e-324, 1e-40, 1e300, 0.02, 0.0199, 50.0, 50.01, 2, 0, np.float32(2),
    np.float64(0.5), "x", None, True, 2**2000, 1j, np.int32(2), [1.0],
)  # fmt: skip


def spoil_bool(random: Random) -> Argument:
    value = random.choice((*_NO_BOOLS, 0, 1, np.True_, np.int8(1)))
    return Argument(value, rules.read_bool(value))


def spoil_int(random: Random, null: bool) -> Argument:
    value = random.choice((*HOSTILE_INTS, *NO_INTS, -255, 255, -256))
    return Argument(value, None if value is None and null else rules.read_int(value))


def spoil_float(random: Random, null: bool) -> Argument:
    value = random.choice(_FLOATS)
    return Argument(value, None if value is None and null else rules.read_float(value))


def layout(random: Random, spoil: bool) -> Argument:
    value = random.choice((None, 3, b"argmax", "other", "") if spoil else ("bitmask", "argmax"))
    if not isinstance(value, str):
        return Argument(value, Bad(TypeError, "no layout"))
    return Argument(value, value if value in ("bitmask", "argmax") else Bad(INVALID, "unknown layout"))


# ---- right calls ----------------------------------------------------------------------------------------------------


def ints(random: Random, values: tuple[int, ...], bare_allowed: bool) -> Argument:
    """These values, as some caller writes them."""
    if len(set(values)) == 1 and bare_allowed and random.random() < 0.4:
        return Argument(values[0], rules.read_ints(values[0], True))
    if len(values) == 2 and values[0] == values[1] and random.random() < 0.2:
        values = values[:1]
    return Argument(random.choice((list, tuple, np.array))(values), Ints(values))


class Drawing:
    """One call being drawn."""

    def __init__(self, random: Random, operator: Any, face: str) -> None:
        self.random, self.operator, self.two = random, operator, face == "two-phase"
        product = random.choice(PRODUCTS) if self.two else "Host"
        if not operator.dtypes[product] and random.random() < 0.9:
            product = "Ascend910B"
        self.dtype = random.choice(operator.dtypes[product] or ("float32",))
        self.how = "channels" if random.random() < 0.2 else None
        self.drawn = Drawn(operator, face, product, random.choice(("bitmask", "bitmask", "argmax")), {}, ())

    def add(self, name: str, argument: Argument) -> None:
        """Give the next argument; `name` is that of the two-phase call."""
        self.drawn.arguments[name if self.two else self.operator.parameter(name).one_call] = argument

    def ints(self, values: tuple[int, ...], exact: bool = False) -> Argument:
        return ints(self.random, values, not self.two) if not exact else Argument(list(values), Ints(values))

    def leading(self, least: int = 0) -> tuple[int, ...]:
        """Give the sizes in front of the planes: C, or N and C."""
        channels = self.random.choice((1, 1, 2, 3, 17))
        if self.random.random() < 0.3:
            return (channels,)
        return (max(self.random.choice((0, 1, 1, 1, 2, 2, 3)), least), channels)

    def shape_of(self, argument: Argument) -> Argument:
        """The argument, or in a one-call function perhaps its shape alone."""
        if self.two or self.random.random() < 0.5:
            return argument
        shape, dtype, format = argument.meaning.shape, argument.meaning.dtype, argument.meaning.format
        return Argument(shape, View(dtype, shape, row_major(shape), 0, math.prod(shape), format, None))

    def out(self, name: str, shape: tuple[int, ...], dtype: str, how: str | None = None) -> Argument:
        if self.two or self.random.random() < 0.6:
            name = name if self.two else self.operator.parameter(name).one_call
            self.drawn.outputs = (*self.drawn.outputs, name)
            return tensor(self.random, shape, dtype, written=True, how=how or self.how)
        return Argument(None, None)

    def pool(self) -> tuple[Any, ...]:
        random = self.random
        while True:
            size = (random.randint(1, 9), random.randint(1, 9))
            kernel = (random.randint(1, 4), random.randint(1, 4))
            stride = (random.randint(1, 4), random.randint(1, 4)) if random.random() < 0.7 else kernel
            pad = tuple(random.randint(0, k // 2) for k in kernel)
            if random.random() < 0.02:
                pad = (kernel[0] // 2 + 1, pad[1])
            ceil = random.random() < 0.3
            windows = (
                rules.pooled(size[0], kernel[0], stride[0], pad[0], ceil),
                rules.pooled(size[1], kernel[1], stride[1], pad[1], ceil),
            )
            if min(windows) >= 1:
                return size, kernel, stride, pad, ceil, windows

    def stride(self, kernel: tuple[int, int], stride: tuple[int, int], nullable: bool = False) -> Argument:
        if stride == kernel and self.random.random() < 0.5:
            if not self.two or (nullable and self.random.random() < 0.5):
                return Argument(None, None)
            return Argument([], Ints())
        return self.ints(stride)


def draw(random: Random, operators: Any) -> Drawn:
    """Draw a call: one in three is right, the others have up to three arguments replaced."""
    ARENA.clear()
    operator = random.choice(operators)
    drawing = Drawing(random, operator, random.choice(("two-phase", "two-phase", "one-call")))
    operator.draw(drawing)
    drawn = drawing.drawn
    kind = random.random() - 0.03
    if kind < 0:
        _enlarge(random, drawn)
    elif kind < 0.01:
        _alike(random, drawn)
    for _ in range(random.choice((0, 0, 0, 1, 1, 1, 1, 2, 3))):
        name = random.choice(list(drawn.arguments))
        drawn.arguments[name] = _spoiled(random, drawn, name)
    _read_shape(drawn)
    ARENA.remember()
    return drawn


def _enlarge(random: Random, drawn: Drawn) -> None:
    """Give every tensor a batch that no machine has memory for, or addresses for."""
    batch = 2 ** random.choice((34, 34, 34, *range(38, 48)))
    if any(isinstance(a.meaning, View) and math.prod(a.meaning.shape) > 1 << 20 for a in drawn.arguments.values()):
        return
    for name, argument in drawn.arguments.items():
        if isinstance(argument.meaning, View):
            shape = (batch, *argument.meaning.shape[1:])
            value = aclnn_bw.aclCreateTensor(shape, NUMBERS[argument.meaning.dtype], format=format_of(len(shape)))
            view = View(
                argument.meaning.dtype, shape, row_major(shape), 0, math.prod(shape), format_of(len(shape)), None
            )
            drawn.arguments[name] = Argument(value, view)
        elif name in ("inputSize", "input_size") and len(argument.meaning) == 3:  # N, C and a length
            sizes = (batch, *argument.meaning[1:])
            drawn.arguments[name] = Argument(sizes, Ints(sizes))
    drawn.outputs = tuple(name for name in drawn.outputs if drawn.arguments[name].array is not None)


def _alike(random: Random, drawn: Drawn) -> None:
    """Give all tensors another format, or the same sizes more or less: wrong together, they still fit each other."""
    ranks, format = random.choice((0, 0, -2, -1, 1)), random.choice(FORMATS)
    for name, argument in drawn.arguments.items():
        view = argument.meaning
        if isinstance(view, View) and argument.array is not None and math.prod(view.shape) < 1 << 12:
            shape = view.shape[-ranks:] if ranks < 0 else (1,) * ranks + view.shape
            how = "row-major" if drawn.operator.parameter(name).is_mask else None
            drawn.arguments[name] = tensor(
                random, shape, view.dtype, written=name in drawn.outputs, how=how, wrap="tensor", format=format
            )


def _spoiled(random: Random, drawn: Drawn, name: str) -> Argument:
    old = drawn.arguments[name]
    one_call = drawn.face == "one-call"
    if isinstance(old.meaning, Bad):
        return old
    parameter = drawn.operator.parameter(name)
    if parameter.kind == "bool":
        return spoil_bool(random)
    if parameter.kind == "int":
        return spoil_int(random, null=one_call)
    if parameter.kind == "real":
        return spoil_float(random, null=one_call)
    if parameter.kind == "layout":
        return layout(random, spoil=True)
    if isinstance(old.meaning, View) and not isinstance(old.value, tuple):
        return spoil_tensor(random, drawn, name)
    if parameter.kind == "shape" and isinstance(old.value, tuple):
        if random.random() < 0.3:
            shape = strange(random, old.value)
            return Argument(shape, Ints(shape))
        argument = spoil_ints(random, old.value, False)
        return argument if isinstance(argument.value, tuple | list) or argument.value is None else Argument(None, None)
    if parameter.kind == "written" and one_call:
        return Argument(*random.choice(random.choice(NO_TENSORS))) if random.random() < 0.5 else old
    if parameter.kind != "ints":
        return old
    # What stands for "not given" in a one-call function is a null pointer in the C call.
    return spoil_ints(random, old.meaning, one_call and parameter.repeats > 0)


def _read_shape(drawn: Drawn) -> None:
    """In a one-call function: what a shape in the place of a tensor means, and what must be allocated."""
    if drawn.face != "one-call" or "out" not in drawn.arguments:
        return
    arguments = drawn.arguments
    first = next(iter(arguments.values())).meaning
    like = first if isinstance(first, View) else None
    dtype = like.dtype if like else "float32"
    shape = arguments["self"].value if drawn.role("self") == "shape" else None
    if isinstance(shape, tuple | list):
        sizes = rules.read_ints(shape)
        meaning: Any = sizes
        if not isinstance(sizes, Bad):
            rank = len(sizes)
            if any(size < 0 for size in sizes[: rules.MOST_RANK]):
                meaning = Bad(INVALID, "negative size")
            elif rank <= rules.MOST_RANK and math.prod(sizes) * SIZES[dtype] not in rules.INT64:
                meaning = Bad(MemoryError, "too large")
            else:
                format = like.format if like and like.rank == rank else format_of(rank)
                meaning = View(dtype, tuple(sizes), row_major(tuple(sizes)), 0, math.prod(sizes), format, None)
        arguments["self"] = Argument(shape, meaning)
    if arguments["out"].value is None and like:
        made = drawn.operator.fresh({name: argument.meaning for name, argument in arguments.items()})
        if made is not None and math.prod(made) * SIZES[dtype] not in rules.INT64:
            arguments["out"] = Argument(None, Bad(MemoryError, "too large"))
