"""Arrays of the command line: mapped from .npy files, written there batch by batch, and described in a line."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import stat
from collections.abc import Callable
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class CommandError(Exception):
    """What the person who typed the command did wrong, in one line."""


class Stored:
    """An array in a .npy file; what is not asked for is not read."""

    def __init__(self, raw: Array, dtype: np.dtype[Any]) -> None:
        """Take the array as the file has it; `dtype` is what it stands for."""
        self._raw = raw
        self.dtype = dtype
        self.shape: tuple[int, ...] = raw.shape
        self._plain = raw.dtype.isnative and raw.flags.aligned

    def part(self, begin: int = 0, end: int | None = None) -> Array:
        """Read what lies in this range of the first axis, in native byte order."""
        array = self._raw[begin:end] if self.shape else self._raw
        if not self._plain:
            array = array.astype(array.dtype.newbyteorder("="))
        elif array.flags.c_contiguous:
            # A byte of each page: what is timed later does not wait for the disk.
            array.reshape(-1).view(np.uint8)[:: mmap.PAGESIZE].max(initial=0)
        return array.view(self.dtype)

    def flat(self, begin: int, end: int) -> Array:
        """Read a range of the elements of a C-contiguous array."""
        return self._raw.reshape(-1)[begin:end].view(self.dtype)

    def unread(self) -> Array:
        """What has the shape, dtype and strides, for whoever reads no values."""
        if self._plain:
            return self._raw.view(self.dtype)
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)


def load(option: str, path: str, dtype: str | None = None, *, values: bool = True) -> Stored:
    """Map a .npy file, or read it where it cannot be mapped; without `values` its header alone is read."""
    try:
        with open(path, "rb") as file:
            raw = _load(file, lambda stored: _meaning(option, path, stored, dtype), values)
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror or error}") from None
    except MemoryError as error:
        raise CommandError(f"{option} {path}: not enough memory: {error}") from None
    except CommandError:
        raise
    except Exception as error:
        # A file that is no .npy, or a damaged one, can raise nearly anything.
        raise CommandError(f"{option} {path}: not a readable .npy file: {error}") from None
    return Stored(raw, _meaning(option, path, raw.dtype, dtype))


def _meaning(option: str, path: str, stored: np.dtype[Any], dtype: str | None) -> np.dtype[Any]:
    """What elements of a file's dtype stand for; refuses one that they must not have."""
    if stored.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    if dtype == "bfloat16":
        # NumPy writes a bfloat16 array as raw two-byte records.
        if stored.newbyteorder("=") != np.uint16 and stored != np.dtype("V2"):
            raise CommandError(f"{option} {path}: holds {stored}: with --dtype bfloat16 it must hold uint16")
        bfloat16: np.dtype[Any] = BFLOAT16
        return bfloat16
    if stored.kind not in "fciub":
        raise CommandError(f"{option} {path}: holds {stored}: must hold numbers")
    native: np.dtype[Any] = stored.newbyteorder("=")
    return native


def _load(file: BinaryIO, check: Callable[[np.dtype[Any]], object], values: bool) -> Array:
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode):
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
        return array
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"its version is {version[0]}.{version[1]}")
    # Version 3 differs from 2 in the names of fields only, which arrays of numbers have not.
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    check(dtype)
    if min(shape, default=0) < 0:
        raise ValueError(f"its shape is {shape}")
    if not values:
        return np.broadcast_to(np.zeros((), dtype), shape)
    if file.tell() + math.prod(shape) * dtype.itemsize > about.st_size:
        raise ValueError(f"it has fewer bytes than a {dtype} array of shape {shape}")
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran else "C"))


def _is_special(path: str) -> bool:
    """Whether it is a device or a pipe: what is there already, but can be neither lost nor replaced."""
    return os.path.exists(path) and not os.path.isfile(path)


def _same_file(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def check_output(option: str, path: str, others: dict[str, str], force: bool) -> None:
    """Refuse to write where another option's file lies, where a file lies already, and where none can be."""
    folder = os.path.dirname(os.path.realpath(path))
    taken = [other for other, given in others.items() if _same_file(path, given)]
    problem = None
    if os.path.isdir(path):
        problem = "Is a directory"
    elif not os.path.isdir(folder):
        problem = "No such file or directory"
    elif not os.access(path if _is_special(path) else folder, os.W_OK):
        problem = "Permission denied"
    elif taken and not _is_special(path):
        problem = f"is the file of {taken[0]}; write to another one"
    elif os.path.isfile(path) and not force:
        problem = "exists already; --force overwrites it"
    if problem is not None:
        raise CommandError(f"{option} {path}: {problem}")


class Output:
    """A .npy file that is written from its beginning to its end, under exactly this name; bfloat16 as uint16 bits.

    It takes its name when it is complete: what has had it before stays whole until then.
    """

    def __init__(self, option: str, path: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Write the header."""
        self.option, self.path = option, path
        self._name = os.path.realpath(path)
        self._part = self._name if _is_special(path) else f"{self._name}.{os.getpid()}.part"
        self._left = math.prod(shape) * dtype.itemsize
        stored = np.dtype(np.uint16) if dtype == BFLOAT16 else dtype
        header = {"descr": np.lib.format.dtype_to_descr(stored), "fortran_order": False, "shape": shape}
        try:
            self._file = open(self._part, "wb")  # noqa: SIM115  closed by `complete` or `abandon`
            np.lib.format.write_array_header_1_0(self._file, header)
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> CommandError:
        return CommandError(f"{self.option} {self.path}: {error.strerror or error}")

    def write(self, array: Array) -> None:
        """Append the elements of a C-contiguous array."""
        self._left -= array.nbytes
        try:
            self._file.write(array.reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise self._refusal(error) from None

    def complete(self) -> None:
        """Fill the rest with zeros, and give the file its name."""
        zeros = bytes(min(self._left, 1 << 20))
        try:
            while self._left:
                self._left -= self._file.write(zeros[: self._left])
            self._file.close()
            if self._part != self._name:
                os.replace(self._part, self._name)
        except OSError as error:
            raise self._refusal(error) from None

    def abandon(self) -> None:
        """Remove what has been written, unless it is complete."""
        with contextlib.suppress(OSError):
            self._file.close()
        if self._part != self._name:
            with contextlib.suppress(OSError):
                os.unlink(self._part)


def describe(array: Array | Stored) -> str:
    """Tell the dtype and the shape."""
    return f"{array.dtype} {' x '.join(map(str, array.shape)) or 'scalar'}"
