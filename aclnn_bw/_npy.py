"""Arrays of the command line: read from .npy files, written there, and described in a line."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class CommandError(Exception):
    """What the person who typed the command did wrong, in one line."""


def load(option: str, path: str, dtype: str | None = None) -> Array:
    """Read a .npy file; its elements are converted to native byte order, nothing else."""
    try:
        with open(path, "rb") as file:
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror or error}") from None
    except MemoryError as error:
        raise CommandError(f"{option} {path}: not enough memory: {error}") from None
    except Exception as error:
        # A file that is no .npy, or a damaged one, can raise nearly anything.
        raise CommandError(f"{option} {path}: not a readable .npy file: {error}") from None
    if dtype == "bfloat16":
        # NumPy writes a bfloat16 array as raw two-byte records.
        if array.dtype.newbyteorder("=") != np.uint16 and array.dtype != np.dtype("V2"):
            raise CommandError(f"{option} {path}: holds {array.dtype}: with --dtype bfloat16 it must hold uint16")
        return _native_order(array).view(BFLOAT16)
    if array.dtype.kind not in "fciub":
        raise CommandError(f"{option} {path}: holds {array.dtype}: must hold numbers")
    return _native_order(array)


def _native_order(array: Array) -> Array:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def save(option: str, path: str, array: Array) -> None:
    """Write a .npy file under exactly this name; bfloat16 as uint16 bits."""
    bits = array.view(np.uint16) if array.dtype == BFLOAT16 else array
    try:
        # An open file, because np.save appends .npy to a bare name that lacks it.
        with open(path, "wb") as file:
            np.save(file, bits, allow_pickle=False)
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror or error}") from None


def describe(array: Array) -> str:
    """Tell the dtype and the shape."""
    return f"{array.dtype} {' x '.join(map(str, array.shape)) or 'scalar'}"
