"""Helpers of the engine's tests: small calls and their known results, refusals, and fresh interpreters.

The functions call the average pool of 8x8 planes with kernel 2, stride 2 and no padding. Its gradient is a quarter of
each output gradient copied to a 2x2 block, which is exact in every floating dtype. `OPERATORS` has a small call of each
operator, on integers so small that every sum is exact.
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
from functools import cached_property
from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest
import reference

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

# The dtypes that each operator takes on each of PRODUCTS; none where the product lacks the operator.
BASIC = (a.ACL_FLOAT, a.ACL_FLOAT16)
WITH_BF16 = (*BASIC, a.ACL_BF16)
ALL_REAL = (*WITH_BF16, a.ACL_DOUBLE)
PAD = (*BASIC, a.ACL_DOUBLE, a.ACL_COMPLEX64, a.ACL_COMPLEX128)
TAKEN = {
    "MaxPool2dWithMaskBackward": (BASIC, (), WITH_BF16, ALL_REAL),
    "MaxPool2dWithMask": (BASIC, (a.ACL_FLOAT,), WITH_BF16, ALL_REAL),
    "UpsampleNearestExact1dBackward": ((), (), WITH_BF16, ALL_REAL),
    "AvgPool2dBackward": (BASIC, BASIC, WITH_BF16, ALL_REAL),
    "Im2colBackward": (BASIC, (), WITH_BF16, ALL_REAL),
    "ReplicationPad2dBackward": (PAD, PAD, (*PAD, a.ACL_BF16), (*PAD, a.ACL_BF16)),
}
TAKEN = {operator: dict(zip(PRODUCTS, dtypes, strict=True)) for operator, dtypes in TAKEN.items()}
SUPPORTED = TAKEN["AvgPool2dBackward"]

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


# a small call of each operator


def handle_of(array, dtype=None, *, bound=True):
    """An aclTensor over the memory of a C-contiguous array, or unbound; of another dtype if one is given."""
    if dtype is None:
        dtype = next(number for number, known in NUMPY_DTYPE.items() if known == array.dtype)
    form = Spec(array.shape).acl_format
    return a.aclCreateTensor(array.shape, dtype, None, 0, form, array.shape, array if bound else None)


class Call:
    """A legal call of one operator: its arguments in the order of the C call, and what its outputs shall hold.

    `shape` is that of the image, with or without N; geometry is that of the operator's `make`. `layout` is that of a
    max pool's mask: phase 1 must run under it.
    """

    # Of each tensor argument, in order: "read", "shape" (its values are not), or "written".
    roles: ClassVar[dict] = {}

    def __init__(self, shape=(2, 3, 8, 8), dtype=np.float32, seed=0, layout="bitmask", **geometry):
        self.shape, self.dtype, self.layout = shape, np.dtype(dtype), layout
        self.rng = np.random.default_rng(seed)
        self.arguments = self.make(**geometry)

    def __getitem__(self, name):
        return self.arguments[name]

    @classmethod
    def named(cls, *roles):
        """The names of the tensor arguments that have one of these roles."""
        return tuple(name for name, role in cls.roles.items() if role in roles)

    def integers(self, *shape):
        values = self.rng.integers(-15, 16, shape)
        return (values + 1j * values[::-1] if self.dtype.kind == "c" else values).astype(self.dtype)

    def phase1(self, /, **changes):
        """(workspaceSize, executor), with some arguments replaced."""
        arguments = {**self.arguments, **changes}
        assert len(arguments) == len(self.arguments)
        return getattr(a, f"aclnn{type(self).__name__}GetWorkspaceSize")(*arguments.values())

    @classmethod
    def phase2(cls, size, executor, stream=None):
        """Run with a workspace of exactly `size` bytes."""
        getattr(a, f"aclnn{cls.__name__}")(bytearray(size) if size else None, size, executor, stream)

    def run(self, /, **changes):
        self.phase2(*self.phase1(**changes))

    def repeatable(self):
        size, executor = self.phase1()
        a.aclSetAclOpExecutorRepeatable(executor)
        return size, executor

    @property
    def outputs(self):
        return {name: self[name] for name in self.named("written")}

    @cached_property
    def wanted(self):
        """What the outputs shall hold, by another way than the package's."""
        return {name: value.astype(self[name].dtype) for name, value in self.twin().items()}

    def check(self, wanted=None):
        """The outputs hold what this call, or another one over the same arrays, wants."""
        for name, value in (wanted or self.wanted).items():
            assert self[name].tobytes() == value.tobytes(), f"{name} of {type(self).__name__}"

    def untouched(self):
        return all(untouched(array) for array in self.outputs.values())

    def clear(self):
        for array in self.outputs.values():
            array.view(np.uint8)[...] = SENTINEL


class MaxPool(Call):
    def geometry(self, kernel=(3, 3), stride=(2, 2), padding=(1, 1), ceil=False):
        self.pool = kernel, stride, padding, ceil
        return {"kernelSize": kernel, "stride": stride, "padding": padding, "dilation": (1, 1), "ceilMode": ceil}

    def mask(self, x):
        """(maxima, their mask in the layout of this call, which positions are marked)"""
        maxima, indices = reference.max_pool2d(x.astype(np.float64), *self.pool)
        hits = reference.hits_of_indices(indices, x.shape, *self.pool)
        if self.layout == "argmax" and self.pool[0] != (1, 1):  # there the indices do not fit: the layouts are one
            return maxima, reference.argmax_mask(indices, self.pool[0]), hits
        return maxima, reference.bitmask(hits), hits


class MaxPool2dWithMaskBackward(MaxPool):
    roles: ClassVar[dict] = {"gradOutput": "read", "self": "shape", "indices": "read", "gradInput": "written"}

    def make(self, **geometry):
        attributes = self.geometry(**geometry)
        x = self.integers(*self.shape)
        maxima, mask, self.hits = self.mask(x)
        grad = self.integers(*maxima.shape)
        return {
            "gradOutput": grad, "self": x, "indices": mask, **attributes,
            "gradInput": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        return {"gradInput": reference.max_pool2d_backward(self["gradOutput"], self.hits, self.shape, *self.pool)}

    def one_call(self):
        return (
            a.max_pool2d_with_mask_backward(
                self["gradOutput"], self.shape, self["indices"], *self.pool[:3], 1, self.pool[3],
                mask_layout=self.layout,
            ),
        )  # fmt: skip


class MaxPool2dWithMask(MaxPool):
    roles: ClassVar[dict] = {"self": "read", "out": "written", "indices": "written"}

    def make(self, **geometry):
        attributes = self.geometry(**geometry)
        out = reference.pooled_shape(self.shape, *self.pool)
        mask = reference.mask_shape(self.shape, *self.pool)
        return {
            "self": self.integers(*self.shape), **attributes,
            "out": sentinel_array(out, self.dtype), "indices": sentinel_array(mask, np.int8),
        }  # fmt: skip

    def twin(self):
        return dict(zip(("out", "indices"), self.mask(self["self"]), strict=False))

    def one_call(self):
        return a.max_pool2d_with_mask(self["self"], *self.pool[:3], 1, self.pool[3], mask_layout=self.layout)


class UpsampleNearestExact1dBackward(Call):
    roles: ClassVar[dict] = {"gradOutput": "read", "out": "written"}

    def make(self, factor=2.0, scales=0.0):
        """Rows of H*W become `factor` times as long."""
        planes = (1, *self.shape[:-2])[-2:]
        shape = *planes, self.shape[-2] * self.shape[-1]
        length = int(shape[2] * factor)
        return {
            "gradOutput": self.integers(*planes, length), "outputSize": (length,), "inputSize": shape, "scales": scales,
            "out": sentinel_array(shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        (length,), shape, scales = (self[name] for name in ("outputSize", "inputSize", "scales"))
        step = np.float32(1 / scales) if scales else np.float32(shape[2]) / np.float32(length)
        source = np.floor(((np.arange(length) + 0.5) * np.float64(step)).astype(np.float32)).astype(int)
        out = np.zeros(shape, np.float64)
        np.add.at(out, (..., np.minimum(source, shape[2] - 1)), self["gradOutput"].astype(np.float64))
        return {"out": out}

    def one_call(self):
        scales = self["scales"] or None
        return (a.upsample_nearest_exact1d_backward(self["gradOutput"], self["outputSize"], self["inputSize"], scales),)


class AvgPool2dBackward(Call):
    roles: ClassVar[dict] = {"gradOutput": "read", "self": "shape", "gradInput": "written"}

    def make(self, kernel=(2, 2), stride=(2, 2), padding=(0, 0), ceil=False, include=True, divisor=0):
        self.pool = kernel, stride, padding, ceil
        out = reference.pooled_shape(self.shape, *self.pool)
        return {
            "gradOutput": self.integers(*out), "self": self.integers(*self.shape), "kernelSize": kernel,
            "stride": stride, "padding": padding, "ceilMode": ceil, "countIncludePad": include,
            "divisorOverride": divisor,
            # The Ascend910 and Ascend310P have no full float32; down-precision exists everywhere.
            "cubeMathType": int(a.ALLOW_FP32_DOWN_PRECISION), "gradInput": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        rest = self["countIncludePad"], self["divisorOverride"] or None
        return {"gradInput": reference.avg_pool2d_backward(self["gradOutput"], self.shape, *self.pool, *rest)}

    def one_call(self):
        rest = self["countIncludePad"], self["divisorOverride"] or None
        return (a.avg_pool2d_backward(self["gradOutput"], self.shape, *self.pool, *rest),)


class Im2colBackward(Call):
    roles: ClassVar[dict] = {"gradOutput": "read", "out": "written"}

    def make(self, kernel=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(1, 1)):
        self.columns = kernel, dilation, padding, stride
        windows = reference.pooled_shape(self.shape[-2:], kernel, stride, padding, False, dilation)
        *batch, channels, height, width = self.shape
        return {
            "gradOutput": self.integers(*batch, channels * math.prod(kernel), math.prod(windows)),
            "inputSize": (height, width), "kernelSize": kernel, "dilation": dilation, "padding": padding,
            "stride": stride, "out": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        return {"out": reference.im2col_backward(self["gradOutput"], self["inputSize"], *self.columns)}

    def one_call(self):
        return (a.im2col_backward(self["gradOutput"], self["inputSize"], *self.columns),)


class ReplicationPad2dBackward(Call):
    roles: ClassVar[dict] = {"gradOutput": "read", "self": "shape", "gradInput": "written"}

    def make(self, padding=(1, 2, 1, 0)):
        left, right, top, bottom = padding
        *planes, height, width = self.shape
        return {
            "gradOutput": self.integers(*planes, height + top + bottom, width + left + right),
            "self": self.integers(*self.shape), "padding": padding, "gradInput": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        grad = self["gradOutput"].astype(np.complex128 if self.dtype.kind == "c" else np.float64)
        left, _, top, _ = self["padding"]
        places = zip(grad.shape[-2:], (top, left), self.shape[-2:], strict=True)
        rows, columns = (np.clip(np.arange(padded) - before, 0, size - 1) for padded, before, size in places)
        grad_input = np.zeros(self.shape, grad.dtype)
        np.add.at(grad_input, (..., *np.ix_(rows, columns)), grad)
        return {"gradInput": grad_input}

    def one_call(self):
        return (a.replication_pad2d_backward(self["gradOutput"], self.shape, self["padding"]),)


# In the order of the package's own enumeration.
OPERATORS = {
    operator.__name__: operator
    for operator in (
        MaxPool2dWithMaskBackward, MaxPool2dWithMask, UpsampleNearestExact1dBackward, AvgPool2dBackward, Im2colBackward,
        ReplicationPad2dBackward,
    )
}  # fmt: skip
each_operator = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


# What reaches every branch that a program outside of Python may take; those of the pad need Host.
POOLS = [
    {},
    {"shape": (2, 9, 13), "stride": (1, 1)},
    {"shape": (2, 18, 9, 13), "kernel": (2, 2), "padding": (0, 0)},
    {"shape": (1, 3, 57, 58), "padding": (1, 1), "ceil": True},
    {"shape": (1, 3, 57, 58), "kernel": (5, 4), "stride": (3, 2), "padding": (2, 1), "ceil": True},
    {"shape": (3, 2, 7, 7), "kernel": (7, 7), "stride": (7, 7), "padding": (0, 0)},
    {"shape": (2, 3, 6, 7), "kernel": (1, 1), "stride": (1, 1), "padding": (0, 0)},
    {"shape": (1, 2, 200, 90), "kernel": (5, 5), "stride": (1, 1), "padding": (2, 2)},
    {"shape": (0, 2, 9, 9)},
]
GEOMETRIES = {
    "MaxPool2dWithMaskBackward": POOLS + [{**pool, "layout": "argmax"} for pool in POOLS],
    "MaxPool2dWithMask": POOLS + [{**pool, "layout": "argmax"} for pool in POOLS],
    "UpsampleNearestExact1dBackward": [
        {},
        {"shape": (2, 3, 1, 26), "factor": 11 / 26},
        {"shape": (3, 5, 100, 40), "factor": 1.5},
        {"shape": (1, 2, 3, 43), "factor": 7.3, "scales": 7.1},
        {"shape": (4, 16, 64, 32), "factor": 0.25, "scales": 0.3},
    ],
    "AvgPool2dBackward": [
        *POOLS,
        {"shape": (3, 2, 9, 13), "kernel": (3, 3), "stride": (1, 1), "padding": (1, 1), "include": False},
        {"shape": (3, 2, 200, 90), "kernel": (5, 5), "stride": (1, 1), "padding": (2, 2), "divisor": -3},
        {"shape": (3, 2, 12, 12), "kernel": (2, 3), "stride": (5, 4), "padding": (1, 0), "ceil": True, "divisor": 7},
    ],
    "Im2colBackward": [
        {},
        {"shape": (3, 9, 13), "kernel": (3, 3), "padding": (1, 1)},
        {"shape": (2, 3, 57, 58), "kernel": (3, 2), "dilation": (2, 3), "padding": (2, 1), "stride": (1, 2)},
        {"shape": (2, 3, 28, 28), "stride": (2, 2)},
        {"shape": (1, 2, 20, 20), "kernel": (2, 2), "stride": (5, 4)},
        {"shape": (1, 2, 200, 90), "kernel": (3, 3), "padding": (1, 1)},
        {"shape": (0, 2, 9, 9)},
    ],
    "ReplicationPad2dBackward": [
        {},
        {"shape": (3, 9, 13), "padding": (4, 0, 0, 5)},
        {"shape": (2, 3, 5, 6), "padding": (9, 8, 7, 6)},
        {"shape": (2, 3, 15, 16), "padding": (-2, 3, 1, -4)},
        {"shape": (1, 2, 200, 300), "padding": (10, 20, 30, 40)},
        {"shape": (0, 2, 9, 9)},
    ],
}


def bad_index(value, place, name="indices"):
    """A pattern of the message that refuses an index in a mask of the layout "argmax"."""
    n, c, oh, ow = place
    return rf"^{name}\b.* {value}\b.*\(n, c, oh, ow\) = \({n}, {c}, {oh}, {ow}\)"


def argmax_indices(call):
    """The indices in the mask of a call in the layout "argmax": a view (N, C, Ho, Wo), or without N."""
    shape = call["gradOutput"].shape
    return call["indices"].reshape(-1)[: 4 * math.prod(shape)].view("<i4").reshape(shape)
