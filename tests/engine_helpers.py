"""Helpers of the engine's tests: small calls and their known results, refusals, and fresh interpreters.

The functions call the average pool of 8x8 planes with kernel 2, stride 2 and no padding. Its gradient is a quarter of
each output gradient copied to a 2x2 block, which is exact in every floating dtype. Small calls of every operator are in
operators/.
"""

import contextlib
import inspect
import math
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest

import aclnn_bw as a

PRODUCTS = ("Ascend910", "Ascend310P", "Ascend910B", "Host")

NUMPY_DTYPE = {
    a.ACL_FLOAT: np.dtype(np.float32),
    a.ACL_FLOAT16: np.dtype(np.float16),
    a.ACL_INT8: np.dtype(np.int8),
    a.ACL_INT32: np.dtype(np.int32),
    a.ACL_UINT8: np.dtype(np.uint8),
    a.ACL_INT16: np.dtype(np.int16),
    a.ACL_UINT16: np.dtype(np.uint16),
    a.ACL_UINT32: np.dtype(np.uint32),
    a.ACL_INT64: np.dtype(np.int64),
    a.ACL_UINT64: np.dtype(np.uint64),
    a.ACL_DOUBLE: np.dtype(np.float64),
    a.ACL_BOOL: np.dtype(np.bool_),
    a.ACL_COMPLEX64: np.dtype(np.complex64),
    a.ACL_COMPLEX128: np.dtype(np.complex128),
    a.ACL_BF16: np.dtype(ml_dtypes.bfloat16),
}

PRIVATE_FORMATS = (
    a.aclFormat.ACL_FORMAT_NC1HWC0,
    a.aclFormat.ACL_FORMAT_FRACTAL_Z,
    a.aclFormat.ACL_FORMAT_NC1HWC0_C04,
    a.aclFormat.ACL_FORMAT_FRACTAL_NZ,
    a.aclFormat.ACL_FORMAT_NDC1HWC0,
    a.aclFormat.ACL_FRACTAL_Z_3D,
)

ORDER = (
    "gradOutput",
    "self",
    "kernelSize",
    "stride",
    "padding",
    "ceilMode",
    "countIncludePad",
    "divisorOverride",
    "cubeMathType",
    "gradInput",
)

SENTINEL = 0xA5
UNBOUND = "unbound"


@dataclass(frozen=True)
class Spec:
    """A tensor argument before it is built, so that tests can change one property of it."""

    shape: tuple = (2, 3, 8, 8)
    dtype: a.aclDataType = a.ACL_FLOAT
    format: "a.aclFormat | None" = None
    strides: "tuple | None" = None
    offset: int = 0
    storage: "tuple | None" = None
    writable: bool = True
    aligned: bool = True
    bound: bool = True

    def build(self):
        storage = self.shape if self.storage is None else self.storage
        data = None
        if self.bound:
            nbytes = max(math.prod(storage), 0) * NUMPY_DTYPE[self.dtype].itemsize
            data = sentinels(nbytes, misaligned=not self.aligned)
            data.flags.writeable = self.writable
        return a.aclCreateTensor(self.shape, self.dtype, self.strides, self.offset, self.acl_format, storage, data)

    @property
    def acl_format(self):
        if self.format is not None:
            return self.format
        return {3: a.ACL_FORMAT_NCL, 4: a.ACL_FORMAT_NCHW}.get(len(self.shape), a.ACL_FORMAT_ND)

    def but(self, **changes):
        return replace(self, **changes)


def label(value):
    """A test id that is short and the same in every run."""
    return re.sub(r"<([\w.]*\.)?(\w+) (object|Array)? ?at 0x\w+>", r"\2", repr(value))[:60]


def sentinels(nbytes, *, misaligned=False, alignment=64):
    """A uint8 array of `nbytes` sentinel bytes at a multiple of `alignment`, or one byte past one."""
    raw = np.full(nbytes + 2 * alignment, SENTINEL, np.uint8)
    skip = -raw.ctypes.data % alignment + bool(misaligned)
    return raw[skip : skip + nbytes]


def sentinel_array(shape, dtype=np.float32):
    """An aligned C-contiguous array whose bytes are all SENTINEL."""
    dtype = np.dtype(dtype)
    return sentinels(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def counted(shape, begin=0):
    """begin, begin + 1, ... in float32."""
    return np.arange(begin, begin + math.prod(shape), dtype=np.float32).reshape(shape)


def untouched(array):
    """Whether every byte of the C-contiguous `array` still is SENTINEL."""
    return bool(np.all(np.frombuffer(array.tobytes(), np.uint8) == SENTINEL))


def gradient(shape=(2, 3, 4, 4), dtype=np.float32, seed=0):
    """Small integers in the given dtype: every sum and quarter of them is exact."""
    return np.random.default_rng(seed).integers(-15, 16, shape).astype(dtype)


def expected(grad_output):
    """The gradient of kernel 2, stride 2, no padding: exact in every floating dtype."""
    blocks = np.repeat(np.repeat(grad_output, 2, axis=-2), 2, axis=-1)
    return (blocks.astype(np.float64) / 4).astype(grad_output.dtype)


def specs(product="Ascend910B", **changes):
    """The arguments of a legal call on every product, tensors as Spec."""
    arguments = {
        "gradOutput": Spec((2, 3, 4, 4)),
        "self": Spec(),
        "kernelSize": (2, 2),
        "stride": (2, 2),
        "padding": (0, 0),
        "ceilMode": False,
        "countIncludePad": True,
        "divisorOverride": 0,
        # The Ascend910 and Ascend310P have no full float32; down-precision exists everywhere.
        "cubeMathType": int(a.ALLOW_FP32_DOWN_PRECISION),
        "gradInput": Spec(),
    }
    if product in ("Ascend910B", "Host"):
        arguments["cubeMathType"] = int(a.KEEP_DTYPE)
    assert set(changes) <= set(arguments)
    arguments.update(changes)
    return arguments


def build(arguments):
    """Tensors out of the Specs among the arguments."""
    return {name: value.build() if isinstance(value, Spec) else value for name, value in arguments.items()}


def phase1(arguments):
    built = build(arguments)
    return a.aclnnAvgPool2dBackwardGetWorkspaceSize(*(built[name] for name in ORDER))


def phase2(size, executor, stream=None):
    """Phase 2 with a workspace of exactly `size` bytes, which is returned."""
    workspace = bytearray(size) if size else None
    a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
    return workspace


def plan(grad_output, grad_input, kernel=2, stride=2, padding=0, *, self=None):
    """Phase 1 over arrays; full precision, no divisor override."""
    return a.aclnnAvgPool2dBackwardGetWorkspaceSize(
        grad_output,
        grad_input if self is None else self,
        (kernel, kernel),
        (stride, stride),
        (padding, padding),
        False,
        True,
        0,
        int(a.KEEP_DTYPE),
        grad_input,
    )


def plan_with_workspace(seed=0, shape=(2, 3, 40, 40)):
    """(size, executor, gradOutput, gradInput) of a float16 call whose float32 sums need a workspace."""
    grad_output = gradient(shape, np.float16, seed)
    grad_input = sentinel_array(shape, np.float16)
    size, executor = plan(grad_output, grad_input, 3, 1, 1)
    assert size > 0
    return size, executor, grad_output, grad_input


def pool_k3s1p1(grad_output):
    """The gradient of kernel 3, stride 1, padding 1, the padding counted; sums exact for small integers."""
    g = np.pad(grad_output.astype(np.float64), [(0, 0)] * (grad_output.ndim - 2) + [(1, 1), (1, 1)])
    h, w = grad_output.shape[-2:]
    total = sum(g[..., i : i + h, j : j + w] for i in range(3) for j in range(3))
    return total / 9


def check_k3s1p1(grad_output, grad_input):
    """`grad_input` is the kernel 3 gradient of `grad_output` within two roundings of its dtype."""
    eps = ml_dtypes.finfo(grad_input.dtype).eps
    want = pool_k3s1p1(grad_output)
    np.testing.assert_allclose(grad_input.astype(np.float64), want, rtol=2 * float(eps), atol=16 * float(eps))


@contextlib.contextmanager
def refusal(status, *patterns):
    """Expect an AclnnError of this status whose message matches every pattern, with its remedy or without."""
    with pytest.raises(a.AclnnError) as info:
        yield info
    message = str(info.value)
    rule = message.partition("; ")[0]
    assert info.value.status == status, message
    assert info.value.argument in ARGUMENTS or re.match("Ascend|aclInit|aclFinalize", message), message
    for pattern in patterns:
        assert re.search(pattern, message) or re.search(pattern, rule), f"{pattern!r} is not in {message!r}"


# What a refusal can be about.
ARGUMENTS = {
    parameter
    for function in map(a.__dict__.get, a.__all__)
    if inspect.isroutine(function)
    for parameter in inspect.signature(function).parameters
} | {"name"}  # of soc


def run_python(code, *arguments, environment=None, check=True, warnings="error", timeout=240, prelude=()):
    """Run `code` in a fresh interpreter whose environment sets nothing of this package's; give the process."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ACLNN_BW_", "OMP_", "GOMP_"))}
    # NumPy's BLAS would start threads of its own, which tests that count threads must not see.
    env["OPENBLAS_NUM_THREADS"] = "1"
    env.update(environment or {})
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*prelude, sys.executable, "-W", warnings, "-c", textwrap.dedent(code), *map(str, arguments)],
            env=env,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    if check:
        assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


class Gate:
    """A stream job that holds the stream until it is opened."""

    def __init__(self):
        import threading

        self.entered = threading.Event()
        self.opened = threading.Event()

    def execute(self):
        self.entered.set()
        assert self.opened.wait(60), "nobody opened the gate"

    def open(self):
        self.opened.set()


class Failure:
    """A stream job that raises."""

    def __init__(self, error):
        self.error = error

    def execute(self):
        raise self.error


class Note:
    """A stream job that appends a value to a list."""

    def __init__(self, notes, value):
        self.notes, self.value = notes, value

    def execute(self):
        self.notes.append(self.value)


def handle_of(array, dtype=None, *, bound=True):
    """An aclTensor over the memory of a C-contiguous array, or unbound; of another dtype if one is given."""
    if dtype is None:
        dtype = next(number for number, known in NUMPY_DTYPE.items() if known == array.dtype)
    form = Spec(array.shape).acl_format
    return a.aclCreateTensor(array.shape, dtype, None, 0, form, array.shape, array if bound else None)


def bad_index(value, place, name="indices"):
    """A pattern of the message that refuses an index in a mask of the layout "argmax"."""
    n, c, oh, ow = place
    return rf"^{name}\b.* {value}\b.*\(n, c, oh, ow\) = \({n}, {c}, {oh}, {ow}\)"


def argmax_indices(call):
    """The indices in the mask of a call in the layout "argmax": a view (N, C, Ho, Wo), or without N."""
    shape = call["gradOutput"].shape
    return call["indices"].reshape(-1)[: 4 * math.prod(shape)].view("<i4").reshape(shape)
