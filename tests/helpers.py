"""Shared by the operators' tests: the error bound, guarded arrays in any layout, one runner for both phases."""

import contextlib
import ctypes
import hashlib
import itertools
import mmap
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import reference

import aclnn_bw
from aclnn_bw import _native

TESTS = Path(__file__).resolve().parent

DTYPES = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
HALF_TYPES = ("float16", "bfloat16")


def oracle_type(dtype):
    """The type in which the twin computes: float64's own results need a wider one (where the platform has it)."""
    return np.dtype(np.longdouble if dtype == np.float64 else np.float64)


# ---- values ---------------------------------------------------------------------------------------------------------


def normal(rng, shape, dtype):
    """Normal numbers of both signs, rounded to the dtype."""
    return rng.standard_normal(shape).astype(dtype)


def numpy_of(array):
    """A tensor of PyTorch as a NumPy array on its memory; an array as it is."""
    if isinstance(array, np.ndarray):
        return array
    if array.element_size() == 2 and "bfloat16" in str(array.dtype):    # Tensor.numpy knows no such array
        return array.view(sys.modules["torch"].int16).numpy().view(ml_dtypes.bfloat16)
    return array.numpy()


def bits(array):
    """The array's values as unsigned integers, with every NaN as the same one: NaN payloads are free."""
    array = np.ascontiguousarray(array)
    words = array.view(f"u{array.itemsize}").copy()
    with np.errstate(invalid="ignore"):  # of signalling NaN
        words[np.isnan(array)] = np.iinfo(words.dtype).max
    return words


def assert_same_bytes(result, expected):
    result, expected = numpy_of(result), numpy_of(expected)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    differ = np.argwhere(bits(result) != bits(expected))
    if len(differ):
        place = tuple(map(int, differ[0]))
        message = f"{len(differ)} of {result.size} elements differ, first at {place}: "
        raise AssertionError(message + f"{result[place]!r}, not {expected[place]!r}")


def assert_no_negative_zero(result):
    assert not np.any((result == 0) & np.signbit(result))


# ---- the error bound ------------------------------------------------------------------------------------------------


def assert_is_sum(result, exact, sum_abs, terms, rounding=None):
    """`result` is a sum of `terms` terms that is `exact`, within (terms + 3) * eps * sum|terms|.

    eps and, for each term, one smallest subnormal are those of the type in which the sum runs: float64 for float64,
    float32 for all others. `rounding` is the one more rounding that the sum undergoes; that of the 16-bit types is
    implied. Rounding is monotone, so the result lies between the roundings of the interval's ends: where no
    cancellation widens the interval that is within one ulp of the exact sum rounded. A NaN or inf must be met exactly.
    """
    wide = np.asarray(exact).dtype
    info = np.finfo(np.float64 if result.dtype == np.float64 else np.float32)
    implied = {DTYPES["float16"]: reference.round_float16, DTYPES["bfloat16"]: reference.round_bfloat16}
    rounding = rounding or implied.get(result.dtype)

    assert result.shape == exact.shape
    seen = result.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        bound = wide.type(info.eps) * (terms + 3) * sum_abs + wide.type(info.smallest_subnormal) * terms
        if wide == np.float64 == result.dtype:
            bound = 2 * bound  # no wider type on this platform: the twin has an error of its own
        low, high = exact - bound, exact + bound
        if rounding:
            low, high = rounding(low), rounding(high)
        largest = wide.type(info.max)
        low, high = np.where(low < -largest, -np.inf, low), np.where(high > largest, np.inf, high)
        good = (low <= seen) & (seen <= high)
    good = np.where(np.isfinite(exact), good, (seen == exact) | (np.isnan(seen) & np.isnan(exact)))
    if not good.all():
        places = np.argwhere(~good)
        place = tuple(map(int, places[0]))
        raise AssertionError(
            f"{len(places)} of {result.size} elements are wrong, first at {place}: {result[place]!r}, not "
            f"{exact[place]!r} within [{low[place]!r}, {high[place]!r}]"
        )


# ---- guarded arrays in many layouts ---------------------------------------------------------------------------------

# Each layout makes, for a shape of rank 3 or more, the shape of the array that holds the view, and the view.
LAYOUTS = {
    "contiguous": lambda *s: (s, lambda a: a),
    "channels_last": lambda *s: ((*s[:-3], s[-2], s[-1], s[-3]), lambda a: np.moveaxis(a, -1, -3)),
    "channels_last_reversed": lambda *s: ((*s[:-3], s[-2], s[-1], s[-3]), lambda a: np.moveaxis(a, -1, -3)[..., ::-1]),
    "planes_transposed": lambda *s: ((*s[:-2], s[-1], s[-2]), lambda a: a.swapaxes(-1, -2)),
    "channels_outermost": lambda *s: ((s[-3], *s[:-3], *s[-2:]), lambda a: np.moveaxis(a, 0, -3)),
    "columns_reversed": lambda *s: (s, lambda a: a[..., ::-1]),
    "rows_reversed": lambda *s: (s, lambda a: a[..., ::-1, :]),
    "planes_reversed": lambda *s: (s, lambda a: a[..., ::-1, :, :]),
    "all_reversed": lambda *s: (s, lambda a: a[tuple(slice(None, None, -1) for _ in s)]),
    "every_second_column": lambda *s: ((*s[:-1], 2 * s[-1]), lambda a: a[..., ::2]),
    "every_third_column_reversed": lambda *s: ((*s[:-1], 3 * s[-1]), lambda a: a[..., ::-3]),
    "every_second_row": lambda *s: ((*s[:-2], 2 * s[-2], s[-1]), lambda a: a[..., 1::2, :]),
    "columns_cropped": lambda *s: ((*s[:-1], s[-1] + 3), lambda a: a[..., 1:-2]),
    "rows_cropped": lambda *s: ((*s[:-2], s[-2] + 3, s[-1]), lambda a: a[..., 2:-1, :]),
    "channels_cropped": lambda *s: ((*s[:-3], s[-3] + 2, *s[-2:]), lambda a: a[..., 1:-1, :, :]),
}

# What stands around an input is NaN in every dtype, so that a read outside shows; an output is filled with ordinary
# numbers, so that an element that is not written shows as well.
NAN_BYTE, CANARY_BYTE = 0xFF, 0xA5


class Guarded:
    """A view in some layout inside a buffer of known bytes; `offset` shifts its address by single elements."""

    def __init__(self, shape, dtype, layout="contiguous", offset=0, fill=CANARY_BYTE):
        base_shape, view = LAYOUTS[layout](*shape)
        start, size = 32 + offset, int(np.prod(base_shape))
        self._fill = fill
        self.buffer = np.full((start + size + 32) * dtype.itemsize, fill, np.uint8).view(dtype)
        inside = np.zeros(self.buffer.shape, bool)
        self.view, marks = (view(b[start : start + size].reshape(base_shape)) for b in (self.buffer, inside))
        marks[...] = True
        self._outside = ~inside
        assert self.view.shape == tuple(shape)

    def assert_outside_untouched(self):
        words = self.buffer.view(np.uint8).reshape(self.buffer.size, -1)
        assert np.all(words[self._outside] == self._fill), "something outside the array was written"


def turned_last(array):
    """The values of `array` with channels side by side between others, rows and columns in descending order; and its
    memory."""
    *batch, channels, height, width = array.shape
    memory = np.full((*batch, height, width, channels + 5), 7, array.dtype)
    view = np.moveaxis(memory[..., ::-1, ::-1, 2:-3], -1, -3)
    view[...] = array
    return view, memory


def guarded_copy(array, layout="contiguous", offset=0):
    """The values of `array` in another layout, with NaN all around."""
    guarded = Guarded(array.shape, array.dtype, layout, offset, NAN_BYTE)
    guarded.view[...] = array
    return guarded


SIDES = (
    ("channels_last", "contiguous"), ("contiguous", "channels_last"), ("channels_last", "channels_last"),
    ("columns_cropped", "channels_last"), ("channels_last", "every_second_column"),
)  # fmt: skip


def assert_sides_alike(call, array, result, same=assert_same_bytes):
    """Channels side by side on one side or both: `call(array, out)` makes the bytes of `result` and writes no others,
    by one thread or several, in the caches or past them."""

    def layout_of(name, x):
        return "planes_transposed" if name == "channels_last" and x.ndim == 3 else name

    for number, ((layout, out_layout), past) in enumerate(itertools.product(SIDES, (False, True))):
        given = guarded_copy(array, layout_of(layout, array), 1)
        out = Guarded(result.shape, result.dtype, layout_of(out_layout, result), 1)
        caches = past_the_caches() if past else contextlib.nullcontext()
        with caches, aclnn_bw.num_threads(1 + 2 * (number // 2 % 2)):
            call(given.view, out.view)
        out.assert_outside_untouched()
        same(np.ascontiguousarray(out.view), result)


# ---- both phases ----------------------------------------------------------------------------------------------------


def run_two_phase(name, *arguments, stream=None):
    """`aclnn<name>GetWorkspaceSize` and `aclnn<name>` with exactly the workspace that the first asks for.

    The workspace lies at an odd address, holds NaN (nothing in it may be taken for a result) and is guarded.
    Returns the workspace's size.
    """
    size, executor = getattr(aclnn_bw, f"aclnn{name}GetWorkspaceSize")(*arguments)
    around = np.full(size + 128, NAN_BYTE, np.uint8)
    workspace = around[65 : 65 + size] if size else None
    getattr(aclnn_bw, f"aclnn{name}")(workspace, size, executor, stream)
    if stream is not None:
        aclnn_bw.aclrtSynchronizeStream(stream)
    guards = around[:65], around[65 + size :]
    assert all(np.all(guard == NAN_BYTE) for guard in guards), "something outside the workspace was written"
    return size


# ---- other processes ------------------------------------------------------------------------------------------------


def run_python(code, cwd, **environment):
    """The standard output of a new interpreter that runs `code` with the tests importable, settings given by name.

    `cwd` is a folder without the package's sources: `python -c` looks there first.
    """
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "ACLNN_BW_ISA")}
    code = f"import sys; sys.path.insert(0, {str(TESTS)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env={**inherited, **environment}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def require_isa(isa):
    available = aclnn_bw.show_config(mode="dict")["isa_available"]
    if not any(isa in name for name in available):
        pytest.skip(f"this machine has {', '.join(available) or 'none of these'} only")


def digest(*arrays):
    """A hash of the values, all NaN as one."""
    together = hashlib.sha256()
    for array in arrays:
        together.update(bits(array).tobytes() if array.dtype.kind in "fV" else array.tobytes())
    return together.hexdigest()


# ---- hostile values and places --------------------------------------------------------------------------------------

# The smallest subnormal of each dtype.
SMALLEST = {"float32": 2.0**-149, "float64": 2.0**-1074, "float16": 2.0**-24, "bfloat16": 2.0**-133}


def sprinkled(values, rng, share=0.05):
    """The values with some NaN, inf, zeros of either sign, subnormals and large numbers among them."""
    smallest = SMALLEST[values.dtype.name]
    specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, smallest, -3 * smallest, 6e4, -6e4]).astype(values.dtype)
    values = values.copy()
    places = rng.random(values.shape) < share
    values[places] = specials[rng.integers(len(specials), size=int(places.sum()))]
    return values


def fenced(size):
    """Memory between two pages that end the process when they are read or written."""
    page = mmap.PAGESIZE
    size = -(-size // page) * page
    region = mmap.mmap(-1, size + 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(region))
    for fence in (address, address + page + size):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(page), 0) == 0
    return np.frombuffer(region, np.uint8)[page : page + size]


def at_fence(memory, shape, dtype, layout="contiguous", gap=1, at_end=True):
    """An array of some layout, whose elements lie `gap` apart, at one end of the memory; the rows of `rows_apart` have
    three elements between them."""
    if layout == "rows_apart":
        strides = np.cumprod([1, shape[-1] + 3, *shape[-2:0:-1]])[: len(shape)][::-1] * dtype.itemsize
        size = int(np.dot(np.array(shape) - 1, strides)) + dtype.itemsize
        flat = (memory[-size:] if at_end else memory[:size]).view(dtype)
        return np.lib.stride_tricks.as_strided(flat, shape, strides)
    base_shape, view = LAYOUTS[layout](*shape)
    size = ((int(np.prod(shape)) - 1) * gap + 1) * dtype.itemsize
    flat = (memory[-size:] if at_end else memory[:size]).view(dtype)
    return view(flat[::gap].reshape(base_shape))


# For past_the_caches: results of any size, or of none.
EITHER_WAY = 0, 2**62


@contextlib.contextmanager
def past_the_caches(least=0):
    """Results of more than so many bytes go past the caches, as those do that no cache holds."""
    before = _native.stream_from(least, least)
    try:
        yield
    finally:
        _native.stream_from(*before)


def made_at_fences(call, values, arguments, wanted, memories, at_end):
    """What call(x, *arguments, out=out) makes of these values in an array like `wanted`, both at fences."""
    x = at_fence(memories[0], values.shape, values.dtype, at_end=at_end)
    out = at_fence(memories[1], wanted.shape, wanted.dtype, at_end=at_end)
    x[...] = values
    call(x, *arguments, out=out)
    return out


def run_its_fences(module, isa, folder):
    """Run run_at_fences() of a module of tests in a process of its own, with an instruction set."""
    require_isa(isa)
    code = f"from {module} import run_at_fences; run_at_fences()"
    assert run_python(code, folder, ACLNN_BW_ISA=isa).endswith("\ndone\n")


def far_apart(folder, shapes, dtype, far_axis):
    """Zeroed arrays whose `far_axis` steps by more than 2**31 elements, in a sparse file that holds little else."""
    size = max(shape[far_axis] for shape in shapes), 2**31 + 8
    file = np.memmap(folder / "sparse", dtype, "w+", shape=size).view(np.ndarray)
    (folder / "sparse").unlink()  # the mapping keeps it while it is needed
    arrays, first = [], 0
    for shape in shapes:
        near = [n for axis, n in enumerate(shape) if axis != far_axis]
        last = first + int(np.prod(near))
        blocks = file[: shape[far_axis], first:last].reshape(shape[far_axis], *near)
        assert np.may_share_memory(blocks, file)
        arrays.append(np.moveaxis(blocks, 0, far_axis))
        first = last
    return arrays
