"""The yardstick "streams": the fastest copy of as many bytes by as many threads as an operator has.

One thread's plain copy, the yardstick "copies", is not what a machine can do: several threads, and stores that pass the
caches by, are faster.
"""

from __future__ import annotations

import atexit
import ctypes
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from .check import Array
from .timing import Statement

_SOURCE = Path(__file__).with_suffix(".c")
# gcc would make a call of memcpy of a loop that copies.
_FLAGS = ("-O3", "-march=native", "-fno-tree-loop-distribute-patterns", "-fopenmp", "-shared", "-fPIC")
_LINE = 64


@cache
def _library() -> ctypes.CDLL | None:
    """Compile the copies once a process; None without a gcc that can."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    library = Path(folder.name, "streams.so")
    try:
        subprocess.run(["gcc", *_FLAGS, str(_SOURCE), "-o", str(library)], check=True, capture_output=True)
        return ctypes.CDLL(str(library))
    except (OSError, subprocess.CalledProcessError):
        return None


def copies(nbytes: int, threads: int) -> dict[str, Statement]:
    """Copy ``nbytes / 2`` bytes, so that ``nbytes`` are moved in all, in either way; nothing where that cannot be."""
    library = _library()
    if not library:
        return {}
    lines = max(nbytes // 2 // _LINE, 1)
    source, target = (_aligned(lines * _LINE) for _ in range(2))
    arguments = (
        ctypes.c_void_p(target.ctypes.data), ctypes.c_void_p(source.ctypes.data), ctypes.c_ssize_t(lines),
        ctypes.c_int(threads),
    )  # fmt: skip
    return {
        name: Statement("copy(*arguments)", {"copy": copy, "arguments": arguments, "kept": (source, target)})
        for name, copy in (("stream", library.copy_lines), ("stream past caches", library.copy_lines_past_caches))
    }


def _aligned(nbytes: int) -> Array:
    """Make memory that begins with a cache line, written so that it is there."""
    memory = np.ones(nbytes + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return memory[begin : begin + nbytes]
