"""Each primitive of simd.h, on each instruction set, against its definition for single lanes.

primitives.c calls each for every width of vector, at any alignment and beside pages that must not be touched. AVX-512
also runs in plain C, as tests/emulation/run compiles the kernels, and NEON under emulation where there are a cross
compiler and QEMU. Where there is no compiler the tests are skipped, unless
ACLNN_BW_REQUIRE_OBJECTS=1, as in CI; without emulation, unless ACLNN_BW_REQUIRE_AARCH64=1.
"""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from helpers import require_isa

HERE = Path(__file__).parent
KERNELS = HERE.parent.parent / "aclnn_bw" / "_kernels"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
FLOATS = ("vector", "half", "16")
BLOCKS = ("vector", "32", "16")
PAGE = 4096

# The bytes of a vector, and what compiles and runs a program.
X86 = {isa: (size, ["gcc", f"-march=x86-64-{isa}"], []) for isa, size in {"v2": 16, "v3": 32, "v4": 64}.items()}
PLAIN = ["gcc", "-march=x86-64-v3", "-include", str(HERE.parent / "emulation" / "avx512.h")]
X86["v4 in plain C"] = (64, PLAIN, [])
NATIVE = platform.machine()
NEON = (16, ["gcc"], []) if NATIVE == "aarch64" else (16, ["aarch64-linux-gnu-gcc", "-static"], ["qemu-aarch64-static"])
BACKENDS = {**(X86 if NATIVE in ("x86_64", "AMD64") else {}), "neon": NEON}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs mprotect")


def zipped(size, upper):
    """Of each 16 bytes the lower or upper half of both, cell by cell."""

    def scalar(a, b):
        made = []
        for x, y in zip(a.reshape(-1, 16), b.reshape(-1, 16), strict=True):
            cells = [part.reshape(-1, size)[8 // size * upper :][: 8 // size] for part in (x, y)]
            made.append(np.stack(cells, 1).reshape(-1))
        return np.concatenate(made)

    return scalar


def split(size):
    def scalar(a, b):
        return a.reshape(-1, 3, size).transpose(1, 0, 2).reshape(-1)

    return scalar


def parted(size):
    return lambda a, b: np.append(a, b).reshape(-1, 2, size).transpose(1, 0, 2).reshape(-1)


def joined(size):
    return lambda a, b: a.reshape(3, -1, size).transpose(1, 0, 2).reshape(-1)


def filled(size):
    return lambda a, b: np.tile(b[:size], len(a) // size)


def slid(size):
    return lambda a, b: np.concatenate([a, b])[2 * size :][: len(a)]


def tripled(size):
    return lambda a, b: np.repeat(a.reshape(-1, size), 3, axis=0).reshape(-1)


def plus_zero(x):
    return np.where(x == 0, 0, x).astype(x.dtype)


def cleared(bits):
    return np.where(bits == 0x8000, 0, bits).astype(np.uint16)


def bfloats(bits):
    return bits.view(BF16).astype(np.float32)


def to_bfloat(x):
    """A NaN is cut off, and quiet."""
    return np.where(np.isnan(x), x.view(np.uint32) >> 16 | 0x40, x.astype(BF16).view(np.uint16)).astype(np.uint16)


def in_turn(size):
    def scalar(a, b):
        return np.stack([a.reshape(-1, size), b.reshape(-1, size)], 1).reshape(-1)

    return scalar


def some_lanes(dtype):
    """Of the lanes that the first two bytes of b choose."""

    def scalar(a, b):
        begin = int(b[0]) % (len(a) + 1)
        end = begin + int(b[1]) % (len(a) + 1 - begin)
        lane = np.arange(len(a))
        return np.where((lane >= begin) & (lane < end), a.view(dtype).astype(WIDE[dtype]), 0)

    return scalar


def alone(dtype):
    """The upper lanes of a vector that begins before a, and the lower ones of one that ends behind it."""

    def scalar(a, b):
        begin = int(b[0]) % (len(a) + 1)
        wide = a.view(dtype).astype(WIDE[dtype])
        other = np.zeros_like(wide)
        return np.concatenate([other[:begin], wide[: len(a) - begin], wide[len(a) - begin :], other[begin:]])

    return scalar


def odd_lanes(dtype):
    return lambda a, b: np.where(b[: len(a)] & 1, a.view(dtype).astype(WIDE[dtype]), 0)


def chosen(a, keep):
    """The numbers that are chosen, and twice those."""
    some = np.where(keep, a, 0).astype(a.dtype)
    return np.concatenate([some, some + some])


def by_bit(dtype):
    """The first byte of b is the bit for which the words behind are loaded, the second how far below the one lies that
    is asked for."""

    def scalar(a, b):
        bit, words = int(b[0]) % 16, b[2:].view(np.uint16)[: len(a)]
        below = int(b[1]) % 4 % (bit + 1)
        return chosen(a.view(dtype).astype(WIDE[dtype]), words >> (bit - below) & 1)

    return scalar


def by_lower_bit(a, b):
    """One bit, then the next lower one, in the lanes from the second byte's on."""
    bit, begin, words = int(b[0]) % 15 + 1, int(b[1]) % (len(a) + 1), b[2:].view(np.uint16)[: len(a)]
    words = np.where(np.arange(len(a)) >= begin, words, 0)
    return np.concatenate([np.where(words >> n & 1, a, 0).astype(a.dtype) for n in (bit, bit - 1)])


def by_index(dtype):
    """In lane i where the index is the first int32 of b + i; then where it is four more."""

    def scalar(a, b):
        seen = b.view(np.int32)[1:][: len(a)]
        wanted = b.view(np.int32)[0] + np.arange(len(a), dtype=np.int32)
        wide = a.view(dtype).astype(WIDE[dtype])
        return np.concatenate([chosen(wide, seen == wanted), np.where(seen == wanted + np.int32(4), wide, 0) + 0])

    return scalar


def some_by_index(a, b):
    """Zeros are wanted, in the upper lanes of vectors that begin before a and b."""
    begin = int(b.view(np.uint8)[0]) % (len(a) + 1)
    seen = b.view(np.int32)[1:][: len(a) - begin]
    return np.concatenate([np.zeros_like(a[:begin]), np.where(seen == 0, a[: len(a) - begin], 0).astype(a.dtype)])


def lanes_of_bits(a, b):
    return np.where(b.view(np.uint16)[0] >> np.arange(len(a)) & 1, a, 0).astype(a.dtype) + 0


def shifted_in(size):
    return lambda a, b: np.concatenate([b[len(b) - size :], a[: len(a) - size]])


def stored_lanes(narrow, dtype):
    """The lanes that the first two bytes of b choose, into what it holds behind them."""

    def scalar(a, b):
        begin = int(b[0]) % (len(a) + 1)
        end = begin + int(b[1]) % (len(a) + 1 - begin)
        to = b[2:].view(dtype)[: len(a)].copy()
        to[begin:end] = narrow(a)[begin:end]
        return to

    return scalar


def first_bytes(a, b):
    return np.where(np.arange(len(a)) < (int(b[0]) % len(a) & ~1), a, 0x5A)


def looked_up(share, most, term, base):
    """The terms from `term` on of as many results as are that share of the lanes."""

    def scalar(a, b):
        lanes = len(b) // a.dtype.itemsize
        results = max(1, int(lanes * share))
        first = np.cumsum([0, *(b[1 : results + 1] % (most + 1))])
        made = np.zeros(lanes, a.dtype)
        for lane in range(lanes):
            result, place = lane % results, term + lane // results
            if first[result] + place < first[result + 1]:
                made[lane] = a[first[result] + place - first[0] - base]
        return made

    return scalar


def picked(a, b):
    """By a table that ascends by 0 or 1."""
    return a[np.cumsum([0, *(b[1 : len(a)] & 1)])]


def greater(dtype):
    """The second numbers and their places, where they are greater or no numbers."""

    def scalar(a, b):
        (most, where), (value, place) = (x.view(f"u{dtype.itemsize}").reshape(2, -1) for x in (a, b))
        takes = (value.view(dtype) > most.view(dtype)) | np.isnan(value.view(dtype))
        return np.concatenate([np.where(takes, value, most), np.where(takes, place, where)])

    return scalar


def halves(a, b):
    return np.stack([a.reshape(2, -1), b.reshape(2, -1)], 1).reshape(-1)


def halves_of(size):
    """Cells at even places, then those at odd ones."""
    return lambda a, b: a.reshape(-1, 2, size).transpose(1, 0, 2).reshape(-1)


F16, BF16 = np.float16, ml_dtypes.bfloat16
WIDE = {F16: np.float32, BF16: np.float32, np.float32: np.float32, np.float64: np.float64}

# Name: widths, dtypes of a, b and what comes out, bytes of each for 16 bytes of the vector (a pair: some before those),
# and the definition.
PRIMITIVES = {
    "copy": (FLOATS, "u1 u1 u1", (16, 0, 16), lambda a, b: a),
    "stream": (FLOATS, "u1 u1 u1", (16, 0, 16), lambda a, b: a),
    "add_f32": (FLOATS, "f4 f4 f4", (16, 16, 16), lambda a, b: a + b),
    "add_f64": (FLOATS, "f8 f8 f8", (16, 16, 16), lambda a, b: a + b),
    "plus_zero_f32": (FLOATS, "f4 f4 f4", (16, 0, 16), lambda a, b: plus_zero(a)),
    "plus_zero_f64": (FLOATS, "f8 f8 f8", (16, 0, 16), lambda a, b: plus_zero(a)),
    "plus_zero_bits": (FLOATS, "u2 u2 u2", (16, 0, 16), lambda a, b: cleared(a)),
    "load_half": (FLOATS, "u2 u2 f4", (8, 0, 16), lambda a, b: a.view(F16).astype(np.float32)),
    "load_bfloat": (FLOATS, "u2 u2 f4", (8, 0, 16), lambda a, b: bfloats(a)),
    "load_as_half": (FLOATS, "u2 u2 f4", (8, 0, 16), lambda a, b: a.view(F16).astype(np.float32)),
    "load_as_bfloat": (FLOATS, "u2 u2 f4", (8, 0, 16), lambda a, b: bfloats(a)),
    "store_as_half": (FLOATS, "f4 u1 f2", (16, 0, 8), lambda a, b: a.astype(F16)),
    "store_as_f32": (FLOATS, "f4 u1 f4", (16, 0, 16), lambda a, b: a),
    "load_as_f32": (FLOATS, "f4 u1 f4", (16, 0, 16), lambda a, b: a),
    "zero": (FLOATS, "u1 u1 u1", (16, 0, 16), lambda a, b: np.zeros_like(a)),
    "and": (FLOATS, "u1 u1 u1", (16, 16, 16), lambda a, b: a & b),
    "store_half": (FLOATS, "f4 u1 f2", (16, 0, 8), lambda a, b: a.astype(F16)),
    "scale_f32": (FLOATS, "f4 u1 f4", (16, 0, 16), lambda a, b: a * np.float32(0.3)),
    "least_4": (FLOATS, "u4 u4 u4", (16, 16, 16), np.minimum),
    "count_4": (FLOATS, "u4 u1 u4", (16, 0, 16), lambda a, b: a - np.uint32(5)),
    "count_8": (FLOATS, "u8 u1 u8", (16, 0, 16), lambda a, b: a - np.uint64(5)),
    "take_greater_f32": (FLOATS, "f4 f4 u4", (32, 32, 32), greater(np.dtype(np.float32))),
    "take_greater_f64": (FLOATS, "f8 f8 u8", (32, 32, 32), greater(np.dtype(np.float64))),
    "mark_equal_2": (FLOATS, "u2 u2 u2", (16, 16, 16), lambda a, b: np.where(a == 0x8001, b | np.uint16(16), b)),
    "cut_4_to_2": (FLOATS, "u4 u1 u2", (16, 0, 8), lambda a, b: a.astype(np.uint16)),
    "cut_8_to_2": (FLOATS, "u8 u1 u2", (16, 0, 4), lambda a, b: a.astype(np.uint16)),
    "cut_8_to_4": (FLOATS, "u8 u1 u4", (16, 0, 8), lambda a, b: a.astype(np.uint32)),
    "load_in_turn_4": (FLOATS, "u1 u1 u1", (32, 0, 32), halves_of(4)),
    "load_in_turn_8": (FLOATS, "u1 u1 u1", (32, 0, 32), halves_of(8)),
    "load_halves_in_turn": (
        FLOATS, "u2 u1 f4", (16, 0, 32), lambda a, b: a.reshape(-1, 2).T.reshape(-1).view(F16).astype(np.float32)
    ),
    "scale_f64": (FLOATS, "f8 u1 f8", (16, 0, 16), lambda a, b: a * 0.3),
    "divide_f32": (FLOATS, "f4 u1 f4", (16, 0, 16), lambda a, b: a / np.float32(0.3)),
    "divide_f64": (FLOATS, "f8 u1 f8", (16, 0, 16), lambda a, b: a / 0.3),
    "multiply_f32": (FLOATS, "f4 f4 f4", (16, 16, 16), lambda a, b: a * b),
    "multiply_f64": (FLOATS, "f8 f8 f8", (16, 16, 16), lambda a, b: a * b),
    **{f"fill_{size}": (FLOATS, "u1 u1 u1", (16, 8, 16), filled(size)) for size in (2, 4, 8)},
    **{f"slide_{size}": (FLOATS, "u1 u1 u1", (16, 16, 16), slid(size)) for size in (4, 8)},
    **{f"triple_{size}": (FLOATS, "u1 u1 u1", (16, 0, 48), tripled(size)) for size in (4, 8)},
    "store_bfloat": (FLOATS, "f4 u1 u2", (16, 0, 8), lambda a, b: to_bfloat(a)),
    "store_halves_in_turn": (FLOATS, "f4 f4 f2", (16, 16, 16), lambda a, b: np.stack([a, b], 1).ravel().astype(F16)),
    "widen_bfloats": (FLOATS, "u2 u1 f4", (16, 0, 32), lambda a, b: bfloats(a.reshape(-1, 2).T.reshape(-1))),
    "narrow_bfloats": (FLOATS, "f4 f4 u2", (16, 16, 16), lambda a, b: to_bfloat(np.stack([a, b], 1).ravel())),
    "load_lanes_f32": (FLOATS, "f4 u1 f4", (16, 2, 16), some_lanes(np.float32)),
    "load_lanes_f64": (FLOATS, "f8 u1 f8", (16, 2, 16), some_lanes(np.float64)),
    "load_lanes_half": (FLOATS, "u2 u1 f4", (8, 2, 16), some_lanes(F16)),
    "load_lanes_bfloat": (FLOATS, "u2 u1 f4", (8, 2, 16), some_lanes(BF16)),
    "alone_f32": (FLOATS, "f4 u1 f4", (16, 1, 32), alone(np.float32)),
    "alone_f64": (FLOATS, "f8 u1 f8", (16, 1, 32), alone(np.float64)),
    "alone_half": (FLOATS, "u2 u1 f4", (8, 1, 32), alone(F16)),
    "alone_bfloat": (FLOATS, "u2 u1 f4", (8, 1, 32), alone(BF16)),
    "lanes_at_2": (("vector",), "u2 u1 f4", (8, 16, 16), odd_lanes(F16)),
    "lanes_at_4": (("vector",), "f4 u1 f4", (16, 16, 16), odd_lanes(np.float32)),
    "lanes_at_8": (("vector",), "f8 u1 f8", (16, 16, 16), odd_lanes(np.float64)),
    "copy_first": (FLOATS, "u1 u1 u1", (16, 1, 16), first_bytes),
    **{f"interleave_{size}": (FLOATS, "u1 u1 u1", (16, 16, 32), in_turn(size)) for size in (2, 4, 8)},
    "store_apart": (BLOCKS, "u1 u1 u1", (16, 16, 32), in_turn(16)),
    "load_apart": (BLOCKS, "u1 u1 u1", (48, 0, 16), lambda a, b: a.reshape(-1, 48)[:, :16].reshape(-1)),
    **{
        f"zip_{'high' if upper else 'low'}_{size}": (BLOCKS, "u1 u1 u1", (16, 16, 16), zipped(size, upper))
        for size in (2, 4, 8)
        for upper in (False, True)
    },
    **{f"part_{size}": (BLOCKS, "u1 u1 u1", (16, 16, 32), parted(size)) for size in (2, 4, 8)},
    **{f"unzip_three_{size}": (BLOCKS, "u1 u1 u1", (48, 0, 48), split(size)) for size in (2, 4, 8)},
    **{
        f"{some}bit_{kind}": (("vector",), f"{number} u1 {wide}", (size, (2, words), 32), by_bit(dtype))
        for some in ("", "some_")
        for kind, number, wide, size, words, dtype in (
            ("f32", "f4", "f4", 16, 8, np.float32),
            ("f64", "f8", "f8", 16, 4, np.float64),
            ("half", "u2", "f4", 8, 8, F16),
            ("bfloat", "u2", "f4", 8, 8, BF16),
        )
    },
    "store_lanes_f32": (("vector",), "f4 u1 f4", (16, (2, 16), 16), stored_lanes(np.copy, np.float32)),
    "store_lanes_f64": (("vector",), "f8 u1 f8", (16, (2, 16), 16), stored_lanes(np.copy, np.float64)),
    "store_lanes_half": (("vector",), "f4 u1 f2", (16, (2, 8), 8), stored_lanes(lambda a: a.astype(F16), F16)),
    "store_lanes_bfloat": (("vector",), "f4 u1 u2", (16, (2, 8), 8), stored_lanes(to_bfloat, np.uint16)),
    "lower_f32": (("vector",), "f4 u1 f4", (16, (2, 8), 32), by_lower_bit),
    "lower_f64": (("vector",), "f8 u1 f8", (16, (2, 4), 32), by_lower_bit),
    "equal_f32": (("vector",), "f4 i4 f4", (16, (4, 16), 48), by_index(np.float32)),
    "equal_f64": (("vector",), "f8 i4 f8", (16, (4, 8), 48), by_index(np.float64)),
    "equal_half": (("vector",), "u2 i4 f4", (8, (4, 16), 48), by_index(F16)),
    "equal_bfloat": (("vector",), "u2 i4 f4", (8, (4, 16), 48), by_index(BF16)),
    "some_equal_f32": (("vector",), "f4 i4 f4", (16, (4, 16), 16), some_by_index),
    "some_equal_f64": (("vector",), "f8 i4 f8", (16, (4, 8), 16), some_by_index),
    **{f"shift_in_{size}": (("vector",), "u1 u1 u1", (16, 16, 16), shifted_in(size)) for size in (4, 8, 16)},
    "add_lanes_f32": (("vector",), "f4 u1 f4", (16, 2, 16), lanes_of_bits),
    "add_lanes_f64": (("vector",), "f8 u1 f8", (16, 2, 16), lanes_of_bits),
    **{f"zip_three_{size}": (BLOCKS, "u1 u1 u1", (48, 0, 48), joined(size)) for size in (2, 4, 8)},
    **{
        f"{name}_{size}": (("vector",), f"u{size} u1 u{size}", (read, 16, 16), scalar)
        for name, read, scalar in (
            ("lookup", 16, looked_up(1 / 2, 2, 0, 0)),
            ("lookup_late", 16, looked_up(0, 20, 4, 4)),
            ("lookup_two", 32, looked_up(1, 2, 1, 0)),
        )
        for size in (4, 8)
    },
    **{f"pick_{size}": (("vector",), f"u{size} u1 u{size}", (16, 16, 16), picked) for size in (2, 4, 8)},
    "lookup_bfloats": (("vector",), "u2 u1 f4", (16, 16, 16), lambda a, b: looked_up(1, 2, 1, 0)(bfloats(a), b)),
    "block": (("vector",), "u1 u1 u1", (16, 0, 16), lambda a, b: a),
    "add_pairs_4": (("vector",), "f4 f4 f4", (16, 16, 16), lambda a, b: np.append(a, b)[::2] + np.append(a, b)[1::2]),
    "add_pairs_8": (("vector",), "f8 f8 f8", (16, 16, 16), lambda a, b: np.append(a, b)[::2] + np.append(a, b)[1::2]),
    "join": (("vector",), "u1 u1 u1", (16, 16, 32), halves),
}


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request, tmp_path_factory):
    """The bytes of its vector, and a function that makes calls."""
    size, compiler, runner = BACKENDS[request.param]
    missing = [tool for tool in (*compiler[:1], *runner) if not shutil.which(tool)]
    if missing or not KERNELS.exists():
        why = f"no {missing[0]}" if missing else "no sources"
        if os.environ.get(f"ACLNN_BW_REQUIRE_{'AARCH64' if runner else 'OBJECTS'}") == "1":
            pytest.fail(why)
        pytest.skip(why)
    if request.param in X86:
        require_isa("v3" if compiler is PLAIN else request.param)
    program = tmp_path_factory.mktemp("simd") / f"primitives_{request.param.replace(' ', '_')}"
    done = subprocess.run(
        [*compiler, *FLAGS, f"-I{KERNELS}", "-o", program, HERE / "primitives.c"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    def run(cases):
        """Of each case (name, sources, bytes that come out, places) the page around what comes out."""
        asked = []
        for name, sources, out, places in cases:
            sizes = [out, *(source.nbytes for source in sources)]
            asked += [name.encode().ljust(32, b"\0"), np.array([sizes, places], np.int32).tobytes()]
            asked += [source.tobytes() for source in sources]
        done = subprocess.run([*runner, program], input=b"".join(asked), capture_output=True, check=False)
        width, *pages = np.split(np.frombuffer(done.stdout, np.uint8), np.arange(4, len(done.stdout), PAGE))
        assert done.returncode == 0, f"ended with {done.returncode} in {cases[len(pages)][0]}: {done.stderr.decode()}"
        assert width.view(np.int32)[0] == size
        return pages

    return size, run


def width_in_bytes(width, widest):
    return {"vector": widest, "half": max(widest // 2, 16), "16": 16, "32": min(widest, 32)}[width]


def examples(rng, dtype, count):
    """Random bits, and values of every special kind."""
    bits = rng.integers(0, 256, (40, count, dtype.itemsize), np.uint8)
    some = bits.reshape(40, -1).view(f"u{dtype.itemsize}")
    sign, ones = 1 << (8 * dtype.itemsize - 1), (1 << 8 * dtype.itemsize) - 1
    special = [0, sign, 1, sign | 1, ones, ones ^ sign]
    if dtype.itemsize > 1:
        fraction = {2: 10, 4: 23, 8: 52}[dtype.itemsize]
        infinity = (sign - 1) >> fraction << fraction
        special += [infinity, infinity | sign, infinity - 1, infinity | 1, 1 << fraction, (1 << fraction) - 1]
        special += [0x7F80, 0xFF80, 0x7F81, 0x80] if dtype.itemsize == 2 else []  # of bfloat16
    chosen = rng.random(some.shape) < 0.4
    some[chosen] = rng.choice(np.array(special, some.dtype), chosen.sum())
    return some.view(dtype)


def bits_of(array):
    """All NaN as one."""
    if array.dtype.kind != "f":
        return array.view(np.uint8)
    return np.where(np.isnan(array), np.array(np.nan, array.dtype), array).view(np.uint8)


def calls(name, widest, rng):
    """Width, arrays that go in, bytes and dtype of what comes out, and what should come out."""
    widths, dtypes, sizes, scalar = PRIMITIVES[name]
    first, second, out = (np.dtype(dtype) for dtype in dtypes.split())
    for width in widths:
        heads, each = zip(*(size if isinstance(size, tuple) else (0, size) for size in sizes), strict=True)
        read = [head + size * width_in_bytes(width, widest) // 16 for head, size in zip(heads, each, strict=True)]
        read[1] = sizes[1] if sizes[1] in range(8) else read[1]     # bytes that tell what to do
        inputs = zip((first, second), read[:2], strict=True)
        for a, b in zip(*(examples(rng, dtype, size // dtype.itemsize) for dtype, size in inputs), strict=True):
            if "equal" in name:     # else hardly an index would be a wanted one, or no int32
                b[0] = rng.integers(-9, 2**20)
                b[1:] = rng.choice([0, 1, 4], len(b) - 1) + (0 if "some" in name else b[0] + np.arange(len(b) - 1))
            with np.errstate(all="ignore"):
                wanted = scalar(a, b)[: read[2] // out.itemsize]
            yield width, (a, b), out, wanted


@pytest.mark.parametrize("where", ["anywhere", "begin", "end"])
def test_lanes(where, backend, rng):
    """At every alignment that a lane can have, or all beside a page that must not be touched."""
    widest, run = backend
    cases, results = [], []
    for name in PRIMITIVES:
        for number, (width, sources, out, wanted) in enumerate(calls(name, widest, rng)):
            sizes = [wanted.nbytes, *(source.nbytes for source in sources)]
            steps = [array.dtype.itemsize * step for array, step in zip((wanted, *sources), (1, 3, 5), strict=True)]
            places = {
                "anywhere": [64 + number * step % 64 for step in steps],
                "begin": [0, 0, 0],
                "end": [PAGE - size for size in sizes],
            }[where]
            if name == "stream" and where == "anywhere":
                places[0] = 64
            cases.append((f"{name}_{width}", sources, sizes[0], places))
            results.append(wanted.astype(out))
    for page, (name, sources, size, places), wanted in zip(run(cases), cases, results, strict=True):
        seen = page[places[0] :][:size].view(wanted.dtype)
        assert np.array_equal(bits_of(seen), bits_of(wanted)), (name, *sources)
        assert np.all(np.delete(page, np.s_[places[0] : places[0] + size]) == 0x5A), name


def test_every_primitive_is_here():
    """All that simd.h offers: what is not told the size of a vector, or what is chosen, by another."""
    header = "".join(path.read_text() for path in KERNELS.glob("simd*.h"))
    told = r"size_t bytes|int part,|\*chosen"
    offer = rf"^#define (simd_\w+)\(|^SIMD_INLINE void (simd_\w+)\((?![^)]*(?:{told}))"
    names = {"".join(pair) for pair in re.findall(offer, header, re.MULTILINE)}
    offered = {name for name in names if not name.startswith("simd_prefetch")}
    calls = (HERE / "primitives.c").read_text()
    families = tuple(re.findall(r"\b(simd_\w+)##", calls))
    tested = set(re.findall(r"\b(simd_\w+)\(", calls))
    assert {name for name in offered if not name.startswith(families)} == {
        name for name in tested if not name.startswith(families)
    }


def test_every_intrinsic_of_avx512_is_there_in_plain_c():
    """Those of 64 bytes, and those that make masks or take one."""
    text = "".join(path.read_text() for path in KERNELS.iterdir() if path.suffix in (".h", ".pxd", ".pyx"))
    used = set(re.findall(r"\b(_mm512_\w+|_mm\w*_maskz?_\w+|_mm\w+_mask)\b", text))
    header = (HERE.parent / "emulation" / "avx512.h").read_text()
    there = set(re.findall(r"^#define (_mm\w+) ", header, re.MULTILINE))
    assert used
    assert used <= there
    assert {name for name in there if not re.search(rf"\b{name}\b", text)} == set()
