"""oneDNN, through its C interface: the primitives of pooling on plain NCHW memory, or in a layout of its own.

Of our operators it has no other. The backward of max pooling gets the workspace that its own forward made. What ctypes
takes to make the two calls of a run, some microseconds, is in its times: it counts on tiny arrays alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import numpy as np

from ..check import Array
from ..problem import Contestant, Problem, channels_last
from ..timing import Statement
from ..windows import count
from .base import NotOffered, Peer, attributes, require, starting
from .formulas import ordered_image

# Numbers of dnnl_types.h, the same in all of version 3.
_CPU, _IN_ORDER, _FORWARD_TRAINING, _WORKSPACE_DESCRIPTOR = 1, 1, 64, 135
_BLOCKED_TAG, _BLOCK = 78, 16
_MAX, _AVERAGE_WITH_PADDING, _AVERAGE_WITHOUT = 0x1FF, 0x2FF, 0x3FF
_TYPES = {"float16": 1, "bfloat16": 2, "float32": 3}
_SRC, _DST, _WORKSPACE, _DIFF_SRC, _DIFF_DST = 1, 17, 64, 129, 145
_SUCCESS, _UNIMPLEMENTED = 0, 3
_OPENMP, _TBB, _SYCL = 2, 4, 512

_LIBRARIES = Path(sys.prefix, "lib")
_Handle = ctypes.c_void_p


class _Version(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int), ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint), ("gpu_runtime", ctypes.c_uint),
    )  # fmt: skip


class _Argument(ctypes.Structure):
    _fields_ = (("index", ctypes.c_int), ("memory", _Handle))


class OneDNN(Peer):
    """Both poolings in the floating types that this processor has kernels for."""

    name = "onednn"

    def __init__(self, threads: int) -> None:
        # A build on SYCL runs through OpenCL, which is told its threads and where its driver is by the environment.
        driver = {"OCL_ICD_FILENAMES": str(_LIBRARIES / "libintelocl.so")}
        with starting(DPCPP_CPU_NUM_CUS=str(threads), **(driver if Path(*driver.values()).exists() else {})):
            self._library = _load()
            self._library.dnnl_version.restype = ctypes.POINTER(_Version)
            version = self._library.dnnl_version().contents
            if version.major != 3:
                raise ImportError(f"oneDNN {version.major} is not known here, only 3")
            # Handles are never freed: they live as long as the benchmark.
            self._engine = self._make("engine_create", _CPU, ctypes.c_size_t(0))
            self._stream = self._make("stream_create", self._engine, _IN_ORDER)
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        self._set_threads(version.cpu_runtime, threads)

    def _set_threads(self, runtime: int, threads: int) -> None:
        if runtime == _OPENMP:
            self._library.omp_set_num_threads(threads)
        elif runtime == _TBB:
            # It counts the cores it may use once, when it is first asked; its threads are made later.
            cores = os.sched_getaffinity(0)
            os.sched_setaffinity(0, sorted(cores)[:threads])
            seen = self._library._ZN3tbb6detail2r115max_concurrencyEPKNS0_2d115task_arena_baseE(None)
            os.sched_setaffinity(0, cores)
            if seen != min(threads, len(cores)):
                raise RuntimeError(f"TBB has {seen} threads instead of {threads}")
        elif runtime != _SYCL:
            raise RuntimeError("it has no threads of its own")

    def avg_pool2d_backward(self, problem: Problem) -> Contestant:
        a = attributes(problem)
        require(not a["divisor_override"])
        return self._contestant(problem, _AVERAGE_WITH_PADDING if a["count_include_pad"] else _AVERAGE_WITHOUT)

    def max_pool2d_with_mask_backward(self, problem: Problem) -> Contestant:
        return self._contestant(problem, _MAX)

    def max_pool2d_with_indices_backward(self, problem: Problem) -> Contestant:
        return self._contestant(problem, _MAX)

    def avg_pool2d(self, problem: Problem) -> Contestant:
        return self.avg_pool2d_backward(problem)

    def max_pool2d_with_mask(self, problem: Problem) -> Contestant:
        return self._contestant(problem, _MAX)

    def max_pool2d_with_indices(self, problem: Problem) -> Contestant:
        return self._contestant(problem, _MAX)

    # What a layout of its own replaces.

    def _lay(self, array: Array) -> Array:
        """Give the same values as this layout has them."""
        return array

    def _plain(self, array: Array, channels: int) -> Array:
        """Give values in this layout as NCHW, maybe a view."""
        return array

    def _described(self, array: Array, channels: int) -> _Handle:
        strides = _dims([stride // array.itemsize for stride in array.strides])
        return self._make(
            "memory_desc_create_with_strides", array.ndim, _dims(array.shape), _TYPES[array.dtype.name], strides
        )

    def _contestant(self, problem: Problem, algorithm: int) -> Contestant:
        a, (n, c, h, w) = attributes(problem), problem.case.shape
        require(problem.dtype.name in _TYPES and not a["ceil_mode"] and a.get("dilation", 1) == 1)
        pooled = (n, c, count(h, a), count(w, a))
        gradient = "grad_output" in problem.inputs
        x = self._lay(np.zeros((n, c, h, w), problem.dtype) if gradient else problem.inputs["x"])
        y = self._lay(problem.inputs["grad_output"] if gradient else np.zeros(pooled, problem.dtype))
        src, dst = self._described(x, c), self._described(y, c)
        window = [_dims([a[name]] * 2) for name in ("stride", "kernel_size")]
        window += [_dims([0, 0]), _dims([a["padding"]] * 2), _dims([a["padding"]] * 2)]
        forward = self._make(
            "pooling_forward_primitive_desc_create",
            self._engine, _FORWARD_TRAINING, algorithm, src, dst, *window, None,
        )  # fmt: skip
        kept: list[Array] = [x, y]
        if not gradient:
            arguments = {_SRC: self._memory(src, x), _DST: self._memory(dst, y)}
            if algorithm != _MAX:
                return self._statement(forward, arguments, (y,), kept, lambda outs: (self._plain(outs[0], c),))
            arguments[_WORKSPACE], recorded = self._workspace(forward)
            dtype = np.dtype(np.uint8 if recorded.size == y.size else np.int32)
            strides = [stride // y.itemsize * dtype.itemsize for stride in y.strides]
            places: Array = np.ndarray(y.shape, dtype, recorded.data, strides=strides)

            def results(outs: tuple[Array, ...]) -> tuple[Array, ...]:
                return self._plain(outs[0], c), _indices(self._plain(places, c), a, w)

            return self._statement(forward, arguments, (y,), [*kept, recorded], results)
        backward = self._make(
            "pooling_backward_primitive_desc_create",
            self._engine, algorithm, src, dst, *window, forward, None,
        )  # fmt: skip
        arguments = {_DIFF_SRC: self._memory(src, x), _DIFF_DST: self._memory(dst, y)}
        if algorithm == _MAX:
            # Its forward sees an image with these maxima.
            image = self._lay(np.resize(ordered_image(problem.inputs["image"], problem.dtype), problem.case.shape))
            arguments[_WORKSPACE], recorded = self._workspace(forward)
            maxima = np.empty_like(y)
            made = {_SRC: self._memory(src, image), _DST: self._memory(dst, maxima)}
            self._runner(forward, {**made, _WORKSPACE: arguments[_WORKSPACE]})()
            kept.append(recorded)
        return self._statement(backward, arguments, (x,), kept, lambda outs: (self._plain(outs[0], c),))

    def _statement(
        self, primitive: _Handle, arguments: Mapping[int, _Handle], outs: tuple[Array, ...], kept: list[Array],
        results: Callable[[tuple[Array, ...]], tuple[Array, ...]],
    ) -> Contestant:  # fmt: skip
        names = {"run": self._runner(primitive, arguments), "kept": kept}
        return Contestant(self.name, Statement("run()", names), outs, None, results)

    def _workspace(self, forward: _Handle) -> tuple[_Handle, Array]:
        """Make memory for what the forward records of the maxima; the array is to be kept."""
        query, size = self._library.dnnl_primitive_desc_query_md, self._library.dnnl_memory_desc_get_size
        query.restype, size.restype = _Handle, ctypes.c_size_t
        descriptor = _Handle(query(forward, _WORKSPACE_DESCRIPTOR, 0))
        workspace = np.zeros(size(descriptor), np.uint8)
        return self._memory(descriptor, workspace), workspace

    def _runner(self, description: _Handle, arguments: Mapping[int, _Handle]) -> Callable[[], None]:
        primitive = self._make("primitive_create", description)
        array = (_Argument * len(arguments))(*(_Argument(index, memory) for index, memory in arguments.items()))
        execute, wait, stream, count = (
            self._library.dnnl_primitive_execute, self._library.dnnl_stream_wait, self._stream, len(arguments)
        )  # fmt: skip

        def run() -> None:
            if execute(primitive, stream, count, array) or wait(stream):
                raise RuntimeError("the primitive failed")

        return run

    def _memory(self, descriptor: _Handle, array: Array) -> _Handle:
        return self._make("memory_create", descriptor, self._engine, _Handle(array.ctypes.data))

    def _make(self, name: str, *arguments: Any) -> _Handle:
        handle = _Handle()
        self._call(name, ctypes.byref(handle), *arguments)
        return handle

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, f"dnnl_{name}")(*arguments)
        if status == _UNIMPLEMENTED:
            raise NotOffered
        if status != _SUCCESS:
            raise RuntimeError(f"dnnl_{name}: status {status}")


class OneDNNLast(OneDNN):
    """On NHWC memory."""

    name = "onednn-nhwc"

    def _lay(self, array: Array) -> Array:
        return channels_last(array)


class OneDNNBlocked(OneDNN):
    """On memory whose channels lie side by side in groups of 16, as its own kernels are written for."""

    name = "onednn-blocked"

    def _lay(self, array: Array) -> Array:
        n, c, h, w = array.shape
        blocks = np.zeros((n, -(-c // _BLOCK), h, w, _BLOCK), array.dtype)
        for first in range(0, c, _BLOCK):
            group = array[:, first : first + _BLOCK]
            blocks[:, first // _BLOCK, :, :, : group.shape[1]] = np.moveaxis(group, 1, -1)
        return blocks

    def _plain(self, array: Array, channels: int) -> Array:
        n, _, h, w, _ = array.shape
        return np.moveaxis(array, -1, 2).reshape(n, -1, h, w)[:, :channels]

    def _described(self, array: Array, channels: int) -> _Handle:
        n, _, h, w, _ = array.shape
        dims = _dims([n, channels, h, w])
        return self._make("memory_desc_create_with_tag", 4, dims, _TYPES[array.dtype.name], _BLOCKED_TAG)


def _indices(places: Array, a: Mapping[str, Any], width: int) -> Array:
    """Give ih*W + iw of each window's place in the kernel, kh*kW + kw."""
    (rows, columns), (kh, kw) = np.indices(places.shape[2:]), np.divmod(places.astype(np.int64), a["kernel_size"])
    s, p = a["stride"], a["padding"]
    indices: Array = (rows * s - p + kh) * width + columns * s - p + kw
    return indices


def _dims(values: Any) -> Any:
    """Make an array of dnnl_dim_t."""
    return (ctypes.c_int64 * len(values))(*values)


def find() -> str | None:
    """Find the library of a package, which lies in the folder of the environment, or else the system's."""
    beside = _LIBRARIES / "libdnnl.so.3"
    return str(beside) if beside.exists() else find_library("dnnl")


def _load() -> ctypes.CDLL:
    name = find()
    if not name:
        raise ModuleNotFoundError("libdnnl is not installed")
    try:
        return _load_with_neighbours(name)
    except OSError as error:
        raise ImportError(str(error)) from error


def _load_with_neighbours(name: str) -> ctypes.CDLL:
    """Load a library, and first those it needs that lie beside it, where the loader does not look."""
    while True:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            missing = Path(name).with_name(str(error).partition(":")[0])
            if missing == Path(name) or not missing.exists():
                raise
            _load_with_neighbours(str(missing))
