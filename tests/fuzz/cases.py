"""What a case of guard_pages.py is made of: memory between guard pages, layouts, and the drawing of shapes."""

import ctypes
import math
import mmap
import os
from typing import ClassVar

import ml_dtypes
import numpy as np

REAL = [np.dtype(dtype) for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)]
COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]
BYTE = np.dtype(np.int8)
PAGE = mmap.PAGESIZE
ARENA = 2**26  # bytes of one tensor, at most
MARGIN = 512  # bytes that are watched on the side without a guard
READ_FILL, WRITE_FILL = 0xFF, 0xA5  # NaN in every dtype; ordinary numbers
LARGEST_CASE = 600_000  # elements of a tensor, but for the few large cases


# ---- memory ---------------------------------------------------------------------------------------------------------

class Arena:
    """Memory between two guard pages."""

    def __init__(self, size=ARENA):
        self.size = size
        self.region = mmap.mmap(-1, size + 2 * PAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.region)) + PAGE
        self.bytes = np.frombuffer(self.region, np.uint8)[PAGE : PAGE + size]
        self.protect(-PAGE, PAGE, 0)
        self.protect(size, PAGE, 0)

    def protect(self, offset, size, protection):
        libc = ctypes.CDLL(None, use_errno=True)
        done = libc.mprotect(ctypes.c_void_p(self.address + offset), ctypes.c_size_t(size), protection)
        assert done == 0, os.strerror(ctypes.get_errno())

    def read_only(self, wanted):
        self.protect(0, self.size, mmap.PROT_READ | (0 if wanted else mmap.PROT_WRITE))

    def place(self, size, at_end, fill, offset=0):
        """`size` bytes at one end, or `offset` bytes away from it; they and those beside them are filled."""
        begin = self.size - size - offset if at_end else offset
        self.watched = max(begin - MARGIN, 0), min(begin + size + MARGIN, self.size)
        self.bytes[slice(*self.watched)] = fill
        self.fill = fill
        return begin

    def changed(self, inside):
        """Whether a watched byte changed that is not `inside`: a mask of the bytes from the first watched one on."""
        watched = self.bytes[slice(*self.watched)]
        return bool(np.any((watched != self.fill) & ~inside))


class Layout:
    """Strides of a tensor, in elements, and the elements from its first to its last address."""

    def __init__(self, rng, shape, written, channel_axis, order):
        axes = list(range(len(shape)))
        if order == "last" or (order == "any" and rng.random() < 0.3):
            axes.append(axes.pop(channel_axis))
        elif order == "any" and rng.random() < 0.1:
            axes.insert(0, axes.pop(channel_axis))
        elif order == "any" and rng.random() < 0.15:
            rng.shuffle(axes)
        gaps = rng.random() < 0.35
        reach = int(rng.choice([1, 1, 1, 1, 2, 3])) if gaps else 1
        strides = [0] * len(shape)
        for axis in reversed(axes):
            strides[axis] = reach
            if not written and shape[axis] > 1 and rng.random() < 0.02:
                strides[axis] = 0
            else:
                reach *= shape[axis]
            if gaps and rng.random() < 0.4:
                reach += int(rng.integers(1, 6))
        if rng.random() < 0.25:
            strides = [-stride if rng.random() < 0.5 else stride for stride in strides]
        # The stride of an axis of one says nothing.
        self.strides = [
            int(rng.choice([stride, 0, -1, 2**40])) if n == 1 and rng.random() < 0.2 else stride
            for n, stride in zip(shape, strides, strict=True)
        ]
        self.shape = shape
        ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
        self.first = -sum(end for end in ends if end < 0)
        self.extent = sum(abs(end) for end in ends) + 1

    def make_dense(self):
        self.strides = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        self.first, self.extent = 0, math.prod(self.shape)

    def __str__(self):
        return f"{'x'.join(map(str, self.shape))}@{','.join(map(str, self.strides))}"


class Placed:
    """A tensor of some layout at one end of an arena."""

    def __init__(self, arena, layout, dtype, at_end, written, offset=0):
        size = layout.extent * dtype.itemsize
        begin = arena.place(size, at_end, WRITE_FILL if written else READ_FILL, offset)
        self.arena, self.layout, self.dtype, self.begin = arena, layout, dtype, begin
        self.array = self.view(arena.bytes, begin)

    def view(self, memory, begin):
        size = self.dtype.itemsize
        strides = [stride * size for stride in self.layout.strides]
        return np.ndarray(self.layout.shape, self.dtype, memory, begin + self.layout.first * size, strides)

    def written_outside(self):
        begin, end = self.arena.watched
        inside = np.zeros(end - begin, bool)
        size = self.dtype.itemsize
        strides = [stride * size for stride in self.layout.strides]
        first = self.begin - begin + self.layout.first * size
        for i in range(size):
            np.ndarray(self.layout.shape, bool, inside, first + i, strides)[...] = True
        return self.arena.changed(inside)


# ---- drawing --------------------------------------------------------------------------------------------------------

EDGES = (15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 255, 256, 257)


def one_of(rng, *values):
    return values[rng.integers(len(values))]


def length(rng, most=130):
    """Mostly short; often next to a multiple of a vector."""
    draw = rng.random()
    if draw < 0.45:
        value = rng.integers(1, 10)
    elif draw < 0.65:
        value = one_of(rng, *EDGES)
    elif draw < 0.9:
        value = rng.integers(10, 50)
    else:
        value = rng.integers(50, 200)
    return int(min(value, most))


def channels(rng):
    return int(one_of(rng, 1, 1, 2, 3, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 31, 32, 33, 40, 64, 65))


def image(rng):
    """N, C, H, W, or C, H, W."""
    shape = [int(one_of(rng, 1, 1, 2, 3)), channels(rng), length(rng), length(rng, 300)]
    if rng.random() < 0.15:  # enough for several threads
        shape[0], shape[1] = int(rng.integers(2, 7)), int(rng.integers(8, 70))
    if rng.random() < 0.2:
        shape[2] = shape[3]
    most = int(one_of(rng, *[LARGEST_CASE // 40] * 15, *[LARGEST_CASE // 4] * 4, LARGEST_CASE))
    while math.prod(shape) > most:
        axis = int(np.argmax(shape))
        shape[axis] = max(1, shape[axis] // 2)
    return tuple(shape[1:] if rng.random() < 0.15 else shape)


def wide_image(rng):
    """The same with a row of about as many elements as 16 bits count, or more."""
    return 1, int(rng.integers(1, 3)), int(rng.integers(1, 12)), int(rng.integers(2**14, 2**17))


def integers(rng, shape, dtype):
    values = rng.integers(-8, 9, shape).astype(np.float64)
    if dtype.kind == "c":
        values = values + 1j * rng.integers(-8, 9, shape)
    return values.astype(dtype)


class Case:
    """What one call is made of. A subclass draws its geometry, and knows its twin and its arguments."""

    large = False
    product = "Host"
    mask_layout = "bitmask"
    dtypes = REAL
    channel_axes: ClassVar[dict] = {}  # of tensors that have them elsewhere than at -3

    def __init__(self, operator, rng):
        self.operator, self.rng = operator, rng
        self.dtype = one_of(rng, *self.dtypes)
        self.threads = int(rng.integers(1, 4))
        self.draw(rng)
        self.way = one_of(rng, "two-phase", "two-phase", "two-phase", "stream", "one-call", "one-call")
        if self.product != "Host" and self.way == "one-call":
            self.way = "two-phase"
        self.layouts, self.at_end = {}, {}
        order = one_of(rng, "rows", "rows", "any", "any", "any", "last")
        for name, (shape, dtype, role) in self.tensors().items():
            apart = role == "written" or name == "indices"  # each has a value of its own
            layout = Layout(rng, tuple(map(int, shape)), apart, self.channel_axes.get(name, -3), order)
            if dtype == BYTE or layout.extent * dtype.itemsize > ARENA - 16 or (self.large and rng.random() < 0.6):
                layout.make_dense()
            self.layouts[name] = layout
            self.at_end[name] = bool(rng.random() < 0.7)
        self.workspace_at_end = bool(rng.random() < 0.7)
        self.offset = int(rng.integers(1, 4)) if rng.random() < 0.3 else 0  # bytes, of a mask and the workspace

    def __str__(self):
        layouts = " ".join(
            f"{name}={layout}{'|' if self.at_end[name] else ''}" for name, layout in self.layouts.items()
        )
        numbers = " ".join(f"{name}={value}" for name, value in self.numbers().items())
        return (
            f"{self.operator} {self.dtype} {self.product} {self.mask_layout} {self.way} threads={self.threads}"
            f" {numbers} {layouts}{f' offset={self.offset}' * bool(self.offset)}"
        )

    def numbers(self):
        """The attributes, by name."""
        raise NotImplementedError

    def tensors(self):
        """{name: (shape, dtype, role)} for the tensors with data, inputs first; role is "read" or "written"."""
        raise NotImplementedError

    def values(self, name, shape, dtype):
        return integers(self.rng, shape, dtype)

    def refused(self):
        """Whether phase 2 must refuse a value of the mask."""
        return False


# ---- judging ---------------------------------------------------------------------------------------------------------


def assert_same(result, wanted):
    """Bit for bit; NaN is NaN."""
    parts = [a.reshape(a.shape) for a in (np.ascontiguousarray(result), np.ascontiguousarray(wanted))]
    words = [a.view(f"u{min(a.itemsize, 8)}") for a in parts]
    differ = words[0] != words[1]
    if parts[0].dtype.kind in "fV" and differ.any():
        differ &= ~(np.isnan(parts[0]) & np.isnan(parts[1]))
    if differ.any():
        place = tuple(map(int, np.argwhere(differ)[0]))
        raise AssertionError(f"{int(differ.sum())} words differ, first at {place}: {result.dtype} "
                             f"{words[0][place]:#x}, not {words[1][place]:#x}")


FORBIDDEN = []


def unreadable(shape, dtype):
    """An array whose values no one may read."""
    if not FORBIDDEN:
        FORBIDDEN.append(Arena(PAGE))
        FORBIDDEN[0].protect(0, PAGE, 0)
    return np.ndarray(shape, dtype, FORBIDDEN[0].bytes, 0, (0,) * len(shape))
