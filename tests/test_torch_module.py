"""aclnn_bw.torch beside PyTorch, and underneath its operators: values, strides and errors; gradients, torch.compile,
torch.export, vmap, autocast; networks that are trained with and without."""

import copy
import doctest
import os
import pickle
import re
import subprocess
import sys
import threading
import types
import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest
from engine_helpers import run_python

import aclnn_bw

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

import aclnn_bw.torch as module  # noqa: E402
from aclnn_bw.torch import _accelerate, _kernels  # noqa: E402

pytestmark = pytest.mark.torch

ops, aten = torch.ops.aclnn_bw, torch.ops.aten
REAL = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
# PyTorch's own tolerances (torch.testing), for sums of 16-bit types ours are the closer ones.
TOLERANCES = {torch.float16: {"rtol": 1e-2, "atol": 1e-2}, torch.bfloat16: {"rtol": 5e-2, "atol": 5e-2}}


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_torch():
    """Its pool of threads would take the cores from ours, and the other way round."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def their_pad(x, padding):
    return F.pad(x, (padding,) * 4 if isinstance(padding, int) else padding, mode="replicate")


OURS = {
    "avg_pool2d": module.avg_pool2d,
    "max_pool2d": module.max_pool2d,
    "unfold": module.unfold,
    "fold": module.fold,
    "replication_pad2d": module.replication_pad2d,
    "upsample_nearest_exact1d": module.upsample_nearest_exact1d,
}
THEIRS = {
    "avg_pool2d": F.avg_pool2d,
    "max_pool2d": F.max_pool2d,
    "unfold": F.unfold,
    "fold": F.fold,
    "replication_pad2d": their_pad,
    "upsample_nearest_exact1d": lambda x, size, scales=None: aten._upsample_nearest_exact1d(
        x, [size] if isinstance(size, int) else size, scales
    ),
}
each_operator = pytest.mark.parametrize("name", OURS)


def samples(name):
    """(shape, arguments, keywords): the geometries of torch.testing._internal.common_methods_invocations, and ours."""
    if name == "avg_pool2d":
        yield from [
            ((1, 3, 9, 9), (3, 1, 1, True, False, 2), {}),
            ((1, 3, 9, 9), ((4, 4), (2, 3), 1, True, False, 2), {}),
            ((1, 3, 9, 9), ((6, 6), (3, 3), (2, 3), True, True, 2), {}),
            ((2, 3, 9, 9), ((3, 3), (1, 1), (1,), True, False, 2), {}),
            ((1, 1, 4, 4), ((2, 2), (), (0,), False, True, -2), {}),
            ((1, 2, 6, 6), ((4, 4), (2, 2), (2,), True, True, None), {}),
            ((1, 3, 9, 9), ((3, 3),), {}),
            ((3, 7, 8), ((2, 3), [1], 1), {"ceil_mode": True, "count_include_pad": False}),
            ((0, 3, 9, 9), (3,), {}),
        ]
    elif name == "max_pool2d":
        for shape, kernel, stride, ceil_mode, padding, dilation in product(
            [(2, 3, 8, 6), (3, 7, 9)], [2, (3, 2)], [None, (2, 1)], [True, False], [0, 1], [1, (1, 2)]
        ):
            keywords = {"stride": stride, "ceil_mode": ceil_mode, "padding": padding, "dilation": dilation}
            yield shape, (kernel,), keywords
        yield (0, 3, 8, 8), (2,), {}
    elif name == "unfold":
        yield from (
            (shape, arguments, {})
            for shape, *arguments in product(
                [(0, 1, 5, 5), (2, 3, 5, 5)], [2, (2, 2), (2, 3)], [1, 2, (1, 2)], [0, 1, (1, 2)], [1, 2, (1, 2)]
            )
        )
        yield (1, 1, 5, 5), ((3, 3),), {}
        yield (3, 5, 6), (2,), {"padding": 1}
    elif name == "fold":
        yield from [
            ((2, 12, 30), ((7, 6), 2), {}),
            ((12, 30), ((7, 6), 2), {}),
            ((1, 27, 12), ((5, 6), (3, 3), 1, 0, 1), {}),
            ((2, 8, 12), ([6, 8], 2, 1, 0, 2), {}),
            ((2, 12, 15), ((4, 5), (2, 2), (1, 2), (0, 1), (1, 1)), {}),
            ((0, 12, 30), ((7, 6), 2), {}),
        ]
    elif name == "replication_pad2d":
        yield from [
            ((1, 3, 3), ((0, 2, 0, 1),), {}),
            ((0, 3, 3, 3), ((0, 2, 0, 1),), {}),
            ((3, 3, 5, 5), ((0, 2, 0, 1),), {}),
            ((1, 3, 4, 4), ((-1, 1, -2, 1),), {}),
            ((5, 3, 4, 4), ((-4, 5, 0, 0),), {}),
            ((6, 2, 4, 4), ((0, 0, 2, -4),), {}),
            ((5, 6, 4, 4), ((5, -4, -4, 3),), {}),
            ((4, 2, 5, 5), ((-2, -1, 4, 6),), {}),
            ((2, 6, 5, 5), ((8, -1, -1, -3),), {}),
            ((8, 1, 5, 5), ((-2, -1, -1, -3),), {}),
            ((2, 3, 4, 5), (2,), {}),
            ((2, 3, 6, 6), ((-3, -3, 0, 0),), {}),
        ]
    else:
        lengths = [1, 2, 3, 5, 41, 50]
        yield from (((2, 3, length), (size,), {}) for length, size in product(lengths, lengths))
        yield from (((2, 3, 5), ([12], scales), {}) for scales in (2.4, 2.5, 0.0, 0.3))


LAYOUTS = {
    "contiguous": lambda x: x,
    "channels_last": lambda x: x.to(memory_format=torch.channels_last) if x.dim() == 4 else x,
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "sliced": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "broadcast": lambda x: x[:1].expand(x.shape) if x.dim() > 2 and len(x) else x,
}


def tensor(shape, dtype=torch.float32, layout="contiguous", seed=0):
    """Values of which no two in a plane are equal, also in 16 bits, so that maxima are where they are."""
    generator = torch.Generator().manual_seed(seed)
    planes = [torch.randperm(shape[-2] * shape[-1], generator=generator) for _ in range(int(np.prod(shape[:-2])))]
    values = torch.stack(planes).reshape(shape) if planes else torch.empty(shape)
    return LAYOUTS[layout]((values / 8 - 2).to(dtype))


def outcome(function, x, *arguments, **keywords):
    """The results, and the gradient by x of what is as uneven as they are; or the error."""
    x = x.detach().requires_grad_(x.is_floating_point() or x.is_complex())
    try:
        results = function(x, *arguments, **keywords)
    except Exception as error:  # whatever it is, both must raise it
        return error
    results = results if isinstance(results, tuple) else (results,)
    if x.requires_grad:
        (results[0] * tensor(results[0].shape, results[0].dtype, seed=1)).sum().real.backward()
        results = (*results, x.grad)
    return results


def steps(x):
    """The strides that mean something."""
    return [step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1]


def assert_same(ours, theirs, dtype):
    if isinstance(theirs, Exception):
        assert type(ours) is type(theirs), (ours, theirs)
        assert str(ours).partition("\nException raised")[0] == str(theirs).partition("\nException raised")[0]
        return
    assert not isinstance(ours, Exception), ours
    for a, b in zip(ours, theirs, strict=True):
        assert steps(a) == steps(b)
        torch.testing.assert_close(a.detach(), b.detach(), equal_nan=True, **TOLERANCES.get(dtype, {}))


def accelerated(function):
    def run(*arguments, **keywords):
        with module.accelerate():
            return outcome(function, *arguments, **keywords)

    return run


@each_operator
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_parity(name, dtype, layout):
    for shape, arguments, keywords in samples(name):
        x = tensor(shape, dtype, layout)
        theirs = outcome(THEIRS[name], x, *arguments, **keywords)
        assert not isinstance(theirs, Exception), (shape, arguments, keywords)
        assert_same(outcome(OURS[name], x, *arguments, **keywords), theirs, dtype)
        assert_same(accelerated(THEIRS[name])(x, *arguments, **keywords), theirs, dtype)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize(
    ("shape", "ours"), [((2, 64, 91, 91), 4), ((2, 64, 46, 46), 3), ((4, 64, 8, 8), 0), ((8, 15, 94, 94), 0)]
)
def test_large_pools_in_channels_last_are_ours(shape, ours, dtype, monkeypatch):
    """Results lie as PyTorch's do, whoever computes them."""
    taken = []
    run = _kernels.run
    monkeypatch.setattr(_kernels, "run", lambda *given, **outs: taken.append(run(*given, **outs)) or taken[-1])
    x, geometry = tensor(shape, dtype, "channels_last"), ([3, 3], [2, 2], [1, 1])
    y = aten.avg_pool2d(x, *geometry)
    indices = aten.max_pool2d_with_indices(x, *geometry)[1]
    of_window = ([1, 1], False, indices)
    for function, arguments in (
        (aten.avg_pool2d, (x, *geometry)),
        (aten.avg_pool2d_backward, (y, x, *geometry, False, True, None)),
        (aten.max_pool2d_with_indices, (x, *geometry)),
        (aten.max_pool2d_with_indices_backward, (y, x, *geometry, *of_window)),
        # A gradient that lies otherwise is PyTorch's to read.
        (aten.avg_pool2d_backward, (y.contiguous(), x, *geometry, False, True, None)),
        (aten.max_pool2d_with_indices_backward, (y.contiguous(), x, *geometry, *of_window)),
    ):
        theirs = function(*arguments)
        with module.accelerate():
            found = function(*arguments)
        alone = (found,), (theirs,)
        assert_same(*(alone if isinstance(found, torch.Tensor) else (found, theirs)), dtype)
    assert taken == [True] * ours


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_indices(layout, ceil_mode):
    x = tensor((2, 3, 9, 8), layout=layout)
    x[0, 0, 2:4, 3] = np.nan if layout != "broadcast" else 0
    given = {"stride": (2, 1), "padding": 1, "ceil_mode": ceil_mode, "return_indices": True}
    theirs = outcome(F.max_pool2d, x, 3, **given)
    assert theirs[1].dtype == torch.int64
    assert_same(outcome(module.max_pool2d, x, 3, **given), theirs, x.dtype)
    assert_same(accelerated(F.max_pool2d)(x, 3, **given), theirs, x.dtype)


@each_operator
@pytest.mark.parametrize(
    "dtype",
    [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.bool, torch.complex64,
     torch.complex128],
    ids=str,
)  # fmt: skip
def test_other_dtypes_are_as_in_pytorch(name, dtype):
    for shape, arguments, keywords in list(samples(name))[:3]:
        x = tensor(shape).to(dtype)
        theirs = outcome(THEIRS[name], x, *arguments, **keywords)
        assert_same(outcome(OURS[name], x, *arguments, **keywords), theirs, dtype)
        assert_same(accelerated(THEIRS[name])(x, *arguments, **keywords), theirs, dtype)


image = partial(tensor, (2, 3, 6, 6))
WRONG = {
    "pad of a pool": ("avg_pool2d", image(), (2, 5, -1)),
    "large pad": ("avg_pool2d", image(), ((3, 2), 5, 4)),
    "large pad of the max pool": ("max_pool2d", image(), (2, 5, 4)),
    "divisor": ("avg_pool2d", image(), (2, None, 0, False, True, 0)),
    "stride": ("avg_pool2d", image(), (2, 0)),
    "kernel": ("max_pool2d", image(), (0,)),
    "kernel of a word": ("max_pool2d", image(), ("2",)),
    "kernel of a float": ("avg_pool2d", image(), (2.0,)),
    "three kernels": ("avg_pool2d", image(), ((2, 2, 2),)),
    "rank": ("avg_pool2d", image()[0, 0], (2,)),
    "small image": ("max_pool2d", image(), (9,)),
    "no rows": ("max_pool2d", image()[:, :, :0], (2,)),
    "no channels": ("avg_pool2d", image()[:, :0], (2,)),
    "dilation": ("unfold", image(), (2, 0)),
    "window": ("unfold", image(), (7,)),
    "huge": ("unfold", image(), (2, 1, 1 << 70)),
    "rank of unfold": ("unfold", image()[0, 0], (2,)),
    "columns": ("fold", image()[0], (5, 2)),
    "rows": ("fold", image()[0], (5, (5, 4))),
    "output": ("fold", image()[0], ((5, 5, 5), 2)),
    "less than nothing left": ("replication_pad2d", image(), ((-4, -3, 0, 0),)),
    "three pads": ("replication_pad2d", image(), ((1, 1, 1),)),
    "rank of a pad": ("replication_pad2d", image()[0, 0], ((1, 1, 1, 1),)),
    "pad of a word": ("replication_pad2d", image(), ("12",)),
    "length": ("upsample_nearest_exact1d", image()[0], (0,)),
    "lengths": ("upsample_nearest_exact1d", image()[0], ([3, 3],)),
    "rank of upsampling": ("upsample_nearest_exact1d", image(), (3,)),
    "sparse": ("avg_pool2d", image().to_sparse(), (2,)),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_pytorchs(case):
    name, x, arguments = WRONG[case]
    found = []
    for function in (THEIRS[name], OURS[name], accelerated(THEIRS[name])):
        try:
            found.append(function(x, *arguments))
        except Exception as error:
            found.append(error)
    theirs, ours, below = found
    below = below[0] if isinstance(below, tuple) else below
    assert isinstance(theirs, Exception), theirs
    assert type(ours) is type(below) is type(theirs)
    # Behind the first line PyTorch tells which kernels there are, or its own stack.
    said = [str(error).partition("\n")[0] for error in (ours, below, theirs)]
    assert said == [said[0]] * 3


@each_operator
def test_arrays_are_refused_by_pytorch(name):
    shape, arguments, keywords = next(iter(samples(name)))
    found = []
    for function in (OURS[name], THEIRS[name]):
        with pytest.raises((TypeError, RuntimeError)) as error:
            function(np.ones(shape, np.float32), *arguments, **keywords)
        found.append((error.type, str(error.value)))
    assert found[0] == found[1]


def test_nothing_is_copied(monkeypatch):
    seen = []

    def im2col(x, *given, out):
        seen.append((x, out))
        return aclnn_bw.im2col(x, *given, out=out)

    monkeypatch.setattr(_kernels, "_native", types.SimpleNamespace(im2col=im2col))
    for dtype, layout in product(REAL, LAYOUTS):
        x = tensor((2, 3, 5, 6), dtype, layout)
        y = module.unfold(x, 2)
        array, out = seen.pop()
        size = x.element_size()
        assert array.ctypes.data == x.data_ptr()
        assert array.strides == tuple(size * step for step in x.stride())
        assert out.ctypes.data == y.data_ptr()


@pytest.mark.parametrize("padding", [(1, 2, 0, 3), (-1, 1, -2, 1)])
def test_complex_gradients(padding):
    x = torch.randn(2, 3, 5, 6, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(module.replication_pad2d, (x, padding))
    y, z = (function(x.conj(), padding) for function in (module.replication_pad2d, their_pad))
    assert torch.equal(y, z)
    assert torch.equal(module.replication_pad2d(torch._neg_view(x.real), padding), their_pad(-x.real, padding))


# ---- automatic differentiation ---------------------------------------------------------------------------------------

double = partial(tensor, dtype=torch.float64)
DIFFERENTIATED = {
    "avg_pool2d": (lambda x: module.avg_pool2d(x, 3, 2, 1, False, False), (2, 2, 5, 6)),
    "avg_pool2d ceil": (partial(module.avg_pool2d, kernel_size=2, stride=3, ceil_mode=True), (2, 5, 6)),
    "max_pool2d": (partial(module.max_pool2d, kernel_size=3, stride=2, padding=1), (2, 2, 5, 6)),
    "max_pool2d overlapping": (partial(module.max_pool2d, kernel_size=3, stride=1), (2, 5, 6)),
    "unfold": (partial(module.unfold, kernel_size=(2, 3), padding=1, stride=2), (2, 2, 5, 6)),
    "fold": (partial(module.fold, output_size=(5, 6), kernel_size=2), (2, 8, 20)),
    "replication_pad2d": (partial(module.replication_pad2d, padding=(1, 2, 0, 3)), (2, 2, 4, 5)),
    # Its map of float64 is PyTorch's: the operator itself falls back.
    "upsample": (lambda x: ops.upsample_nearest_exact1d(x, [12], None), (2, 3, 5)),
}


@pytest.mark.parametrize("case", DIFFERENTIATED)
def test_gradients_by_finite_differences(case):
    function, shape = DIFFERENTIATED[case]
    x = double(shape).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))
    if x.dim() == 4:
        x = double(shape, layout="channels_last").requires_grad_()
        assert torch.autograd.gradcheck(function, (x,))


@each_operator
def test_second_gradients_are_pytorchs(name):
    for shape, arguments, keywords in list(samples(name))[:8]:
        second = []
        for function in (OURS[name], THEIRS[name]):
            x = tensor(shape).requires_grad_()
            y = function(x, *arguments, **keywords)
            (first,) = torch.autograd.grad((y**2).sum(), x, create_graph=True)
            second += torch.autograd.grad((first**3).sum(), x)
        torch.testing.assert_close(*second)


def test_the_input_is_not_kept():
    x = torch.rand(1, 1, 4, 4, requires_grad=True)
    for name, kept in (("avg_pool2d", 0), ("max_pool2d", 1)):
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, saved=saved: saved.append(t) or t, lambda t: t):
            OURS[name](x, 2)
        assert [t.dtype for t in saved] == [torch.int64] * kept


# ---- what PyTorch does with operators --------------------------------------------------------------------------------

POOL = ([3, 2], [2, 2], [1, 1], True)
INDICES = ops.max_pool2d_with_indices(double((2, 3, 7, 6)), *POOL)[1]
CALLS = {
    "avg_pool2d": ((2, 3, 7, 6), (*POOL, True, None)),
    "avg_pool2d_backward": (INDICES.shape, ([2, 3, 7, 6], *POOL, False, 3)),
    "max_pool2d_with_indices": ((2, 3, 7, 6), POOL),
    "max_pool2d_with_indices_backward": (INDICES.shape, ([2, 3, 7, 6], *POOL, INDICES)),
    "im2col": ((2, 3, 7, 6), ([2, 2], [1, 1], [0, 0], [1, 1])),
    "col2im": ((2, 12, 30), ([7, 6], [2, 2], [1, 1], [0, 0], [1, 1])),
    "replication_pad2d": ((2, 3, 7, 6), ([1, 2, 0, 3],)),
    "replication_pad2d_backward": ((2, 3, 10, 9), ([2, 3, 7, 6], [1, 2, 0, 3])),
    "upsample_nearest_exact1d": ((2, 3, 5), ([12], None)),
    "upsample_nearest_exact1d_backward": ((2, 3, 12), ([12], [2, 3, 5], None)),
}


@pytest.mark.each_value
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "transposed"])
@pytest.mark.parametrize("name", CALLS)
def test_opcheck(name, layout):
    shape, arguments = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(getattr(ops, name).default, (tensor(shape, layout=layout).requires_grad_(), *arguments))


def test_every_operator_is_checked():
    assert set(CALLS) == set(module._operators.KERNELS)


def everything(x):
    """A number of which each operator is a part."""
    pooled, indices = module.max_pool2d(x, 2, return_indices=True)
    columns = module.unfold(x, 2)
    results = [
        module.avg_pool2d(x, 3, 2, 1), pooled, columns, module.fold(columns, x.shape[-2:], 2),
        module.replication_pad2d(x, (1, 2, 0, 1)), module.upsample_nearest_exact1d(x.flatten(1, 2), 13),
    ]  # fmt: skip
    return sum(result.square().sum() for result in results) + 0 * indices.sum()


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_whole(dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(everything, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for shape, layout in (((2, 3, 8, 8), "contiguous"), ((2, 3, 8, 8), "channels_last"), ((3, 3, 10, 6), "contiguous")):
        x, y = (tensor(shape, layout=layout).requires_grad_() for _ in range(2))
        compiled(x).backward()
        everything(y).backward()
        assert x.grad.stride() == y.grad.stride()
        torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.filterwarnings("ignore")
def test_compiled_gradients_of_func():
    torch._dynamo.reset()
    x = tensor((2, 3, 8, 8))
    found = torch.compile(torch.func.grad(everything), fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(found, torch.func.grad(everything)(x))


@pytest.mark.filterwarnings("ignore")
def test_exported():
    network = torch.nn.Sequential(module.ReplicationPad2d(1), module.AvgPool2d(3, 1), module.MaxPool2d(2))
    batch = torch.export.Dim("batch", min=2, max=64)
    for dynamic in (None, {"input": {0: batch}}):
        program = torch.export.export(network, (tensor((4, 3, 8, 8)),), dynamic_shapes=dynamic)
        called = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
        assert sum(name.startswith("aclnn_bw.") for name in called) == 3
        x = tensor((4 if dynamic is None else 7, 3, 8, 8))
        assert torch.equal(program.module()(x), network(x))


@each_operator
def test_batched(name):
    for shape, arguments, keywords in list(samples(name))[:6]:
        x = torch.stack([tensor(shape, seed=seed) for seed in range(3)])
        ours, theirs = (partial(one, **keywords) for one in (OURS[name], THEIRS[name]))
        given = (None,) * len(arguments)
        expected = torch.stack([theirs(one, *arguments) for one in x])
        for axis in range(x.dim() - 1):
            found = torch.vmap(ours, in_dims=(axis, *given))(x.movedim(0, axis), *arguments)
            torch.testing.assert_close(found, expected)


def test_batched_backwards():
    """By vmap over the operators themselves, of which one argument alone may have a batch."""
    for name, (shape, arguments) in CALLS.items():
        x = torch.stack([tensor(shape, seed=seed) for seed in range(3)])
        operator = getattr(ops, name)
        found = torch.vmap(lambda one, operator=operator, arguments=arguments: operator(one, *arguments))(x)
        expected = [operator(one, *arguments) for one in x]
        if isinstance(found, tuple):
            expected = tuple(torch.stack(one) for one in zip(*expected, strict=True))
            assert all(map(torch.equal, found, expected))
        else:
            assert torch.equal(found, torch.stack(expected))


@pytest.mark.filterwarnings("ignore")
def test_transforms_of_func():
    x = torch.stack([tensor((2, 3, 8, 8), seed=seed) for seed in range(2)])
    expected = []
    for one in x:
        one.requires_grad_()
        expected += torch.autograd.grad(everything(one), one)
        one.requires_grad_(False)
    torch.testing.assert_close(torch.vmap(torch.func.grad(everything))(x), torch.stack(expected))
    _, tangent = torch.func.jvp(partial(module.avg_pool2d, kernel_size=2), (x[0],), (x[1],))
    torch.testing.assert_close(tangent, F.avg_pool2d(x[1], 2))
    hessian = torch.func.hessian(lambda x: (module.avg_pool2d(x, 2) ** 2).sum())(x[0, :1, :1, :2, :2])
    torch.testing.assert_close(hessian.reshape(4, 4), torch.full((4, 4), 0.125))


@each_operator
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_autocast(name, dtype):
    shape, arguments, keywords = next(iter(samples(name)))
    x = tensor(shape, dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        theirs = outcome(THEIRS[name], x, *arguments, **keywords)
        assert_same(outcome(OURS[name], x, *arguments, **keywords), theirs, dtype)
        assert_same(accelerated(THEIRS[name])(x, *arguments, **keywords), theirs, dtype)


def test_other_devices_are_pytorchs():
    for name in OURS:
        shape, arguments, keywords = next(iter(samples(name)))
        x = tensor(shape).to("meta")
        found = OURS[name](x, *arguments, **keywords)
        assert found.device.type == "meta"
        assert found.shape == THEIRS[name](x, *arguments, **keywords).shape
    x = image()
    _kernels.maps_agree.cache_clear()
    with torch.device("meta"):  # where new tensors go to by default
        assert module.avg_pool2d(x, 2).device.type == "cpu"
        assert module.upsample_nearest_exact1d(x[0], 9).device.type == "cpu"


@pytest.mark.filterwarnings("ignore")
def test_nested_tensors_are_pytorchs():
    nested = torch.nested.nested_tensor([image()[0], image()[1]])
    with pytest.raises(Exception, match="avg_pool2d") as theirs:
        F.avg_pool2d(nested, 2)
    with pytest.raises(type(theirs.value), match=r"aten::avg_pool2d"):
        module.avg_pool2d(nested, 2)


def test_subclasses():
    class Loud(torch.Tensor):
        pass

    x = image().as_subclass(Loud)
    assert torch.equal(module.avg_pool2d(x, 2), F.avg_pool2d(image(), 2))
    parameter = torch.nn.Parameter(image())
    module.max_pool2d(parameter, 2).sum().backward()
    assert parameter.grad.sum() == 2 * 3 * 9
    with torch.inference_mode():
        assert torch.equal(module.avg_pool2d(image(), 2), F.avg_pool2d(image(), 2))


def test_indices_that_are_not_its_own():
    """PyTorch adds wherever an index points and skips -1; ours refuses, so that PyTorch's kernel does it."""
    x, grad = tensor((1, 2, 4, 4)), tensor((1, 2, 2, 2))
    _, indices = F.max_pool2d(x, 2, return_indices=True)
    for index in (0, 15):
        indices[0, 1, 0, 1] = index
        given = [2, 2], [2, 2], [0, 0], [1, 1], False, indices
        theirs = aten.max_pool2d_with_indices_backward(grad, x, *given)
        with module.accelerate():
            assert torch.equal(aten.max_pool2d_with_indices_backward(grad, x, *given), theirs)
        assert torch.equal(ops.max_pool2d_with_indices_backward(grad, x.shape, *given[:3], False, indices), theirs)


def test_maps_that_differ_are_pytorchs():
    """2 to 41 in float64 is where PyTorch's map, found in double, is another one first."""
    rows = tensor((2, 3, 2), torch.float64)
    theirs = outcome(THEIRS["upsample_nearest_exact1d"], rows, 41)
    assert not np.array_equal(theirs[0].detach(), aclnn_bw.upsample_nearest_exact1d(rows.numpy(), 41))
    assert_same(outcome(module.upsample_nearest_exact1d, rows, 41), theirs, rows.dtype)
    assert_same(accelerated(THEIRS["upsample_nearest_exact1d"])(rows, 41), theirs, rows.dtype)
    assert _kernels.maps_agree(2, 4, None)
    assert not _kernels.maps_agree((1 << 24) + 1, 1, None)


def test_threads_are_at_most_pytorchs():
    seen = []
    with aclnn_bw.num_threads(4):
        assert _kernels.run(lambda: seen.append(aclnn_bw.get_num_threads()))
    assert seen == [1]
    assert not _kernels.run(aclnn_bw.avg_pool2d, np.ones((1, 2, 2), np.float32), 3)
    with pytest.raises(KeyError):
        _kernels.run({}.__getitem__, 1)


# ---- modules ---------------------------------------------------------------------------------------------------------

MODULES = {
    "AvgPool2d": ((3, 2, 1), {"count_include_pad": False}),
    "MaxPool2d": ((2,), {"return_indices": True}),
    "Unfold": ((2,), {"stride": 2}),
    "Fold": (((4, 4), 2), {"stride": 2}),
    "ReplicationPad2d": (((1, 2, 3, 0),), {}),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    arguments, keywords = MODULES[name]
    ours, theirs = (getattr(where, name)(*arguments, **keywords) for where in (module, torch.nn))
    assert isinstance(ours, type(theirs))
    assert repr(ours) == repr(theirs)
    x = tensor((2, 12, 4)) if name == "Fold" else tensor((2, 3, 6, 6))
    for one in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert_same(outcome(one, x), outcome(theirs, x), x.dtype)
    with module.accelerate():
        assert_same(outcome(ours, x), outcome(theirs, x), x.dtype)


# ---- under PyTorch's own operators -----------------------------------------------------------------------------------


def tables():
    return [torch._C._dispatch_dump_table(f"aten::{name}") for name in _accelerate.OVERRIDES]


def is_ours():
    """Whether aten's average pool reaches ours, seen from outside."""
    with torch.profiler.profile() as profile:
        aten.avg_pool2d(image(), [2, 2])
    return any(event.key == "aten::detach" for event in profile.key_averages())


def test_nothing_is_left_behind():
    before = tables()
    with module.accelerate():
        assert tables() != before
        assert module.is_enabled()
        assert is_ours()
    assert tables() == before
    assert not is_ours()
    with pytest.raises(ZeroDivisionError), module.accelerate():
        _ = 1 // 0
    assert tables() == before
    module.enable()
    module.enable()
    with module.accelerate(), module.accelerate():
        module.disable()
        module.disable()
        assert module.is_enabled()
        assert tables() != before
    assert not module.is_enabled()
    assert tables() == before


def test_a_failure_to_begin_leaves_nothing(monkeypatch):
    before = tables()
    monkeypatch.setitem(_accelerate.OVERRIDES, "col2im", None)
    with pytest.raises(TypeError), module.accelerate():
        pass
    monkeypatch.undo()
    assert not module.is_enabled()
    assert tables() == before


def test_threads_enter_and_leave():
    before, failures = tables(), []
    barrier = threading.Barrier(4)

    def work():
        try:
            barrier.wait()
            for _ in range(50):
                with module.accelerate():
                    assert module.is_enabled()
                module.enable()
                module.disable()
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    assert tables() == before


@pytest.mark.skipif(not hasattr(torch.library, "get_kernel"), reason="nothing can hold a kernel in this version")
def test_others_may_call_meanwhile():
    """A thread that had looked a kernel up and waited for the interpreter found another one's memory in its place."""
    before, failures, done = tables(), [], threading.Event()
    x = image()
    expected = F.avg_pool2d(x, 2)

    def work():
        try:
            while not done.is_set():
                assert torch.equal(F.avg_pool2d(x, 2), expected)
                F.max_pool2d(x, 2)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(2000):
        with module.accelerate():
            pass
    done.set()
    for worker in workers:
        worker.join()
    assert failures == []
    assert tables() == before


def test_kernels_are_let_go(monkeypatch):
    monkeypatch.setattr(_accelerate, "GRACE", 0.0)
    for _ in range(3):
        with module.accelerate():
            pass
    assert len(_accelerate._switch.retired) <= 1


def test_no_warning_reaches_the_caller(recwarn, capfd):
    with module.accelerate():
        F.avg_pool2d(image(), 2)
    assert list(recwarn) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.each_value)])
def test_compiled_models_under_accelerate(backend):
    def model(x):
        if layout == "contiguous":  # PyTorch alone fails to compile its gradient in channels_last
            x = F.pad(x, (1, 2, 0, 1), mode="replicate")
        x = F.avg_pool2d(F.max_pool2d(x, 3, 2, 1), 2, 1, ceil_mode=True)
        return F.fold(F.unfold(x, 2), x.shape[-2:], 2).square().sum()

    for layout in ("contiguous", "channels_last"):
        torch._dynamo.reset()
        x, y = (tensor((2, 3, 8, 8), layout=layout).requires_grad_() for _ in range(2))
        model(y).backward()
        with module.accelerate():
            torch.compile(model, fullgraph=True, backend=backend)(x).backward()
        torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
@pytest.mark.parametrize("task", [0, 1], ids=["VGG-like", "U-Net"])
def test_networks_learn_the_same(task, layout):
    from benchmarks.training import TASKS, Training

    shape = ((8, 3, 32, 32), (2, 3, 32, 32))[task]
    plain, fast = (Training(TASKS[task], shape, getattr(torch, layout)) for _ in range(2))
    losses = []
    for training, context in ((plain, warnings.catch_warnings), (fast, module.accelerate)):
        with context():
            losses.append([training.step() for _ in range(6)])
    assert losses[0][-1] < losses[0][0]
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-4)


def test_networks_of_our_modules_learn_the_same():
    def network(where):
        torch.manual_seed(0)
        return torch.nn.Sequential(
            where.ReplicationPad2d(1), torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), where.MaxPool2d(2),
            torch.nn.Conv2d(8, 8, 3), where.AvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(72, 4),
        )  # fmt: skip

    losses = []
    for where in (torch.nn, module):
        model = network(where)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        x, y = torch.rand(8, 3, 16, 16), torch.arange(8) % 4
        for _ in range(6):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    np.testing.assert_allclose(losses[6:], losses[:6], rtol=1e-4)


# ---- the module ------------------------------------------------------------------------------------------------------


def test_public_names():
    assert {name for name in vars(module) if name in module.__all__} == set(module.__all__)
    assert all(getattr(module, name).__doc__ for name in module.__all__)


@pytest.mark.parametrize("where", [module, _accelerate], ids=lambda where: where.__name__)
def test_doctests(where):
    failed, tried = doctest.testmod(where)
    assert failed == 0
    assert tried > 10


def test_it_is_imported_on_use():
    run_python(
        """
        import sys
        import aclnn_bw
        assert "torch" not in sys.modules
        assert aclnn_bw.torch.__name__ == "aclnn_bw.torch"
        assert "torch" in sys.modules
        assert not hasattr(aclnn_bw, "numpy")
        """
    )


def test_without_pytorch():
    done = run_python("import sys; sys.modules['torch'] = None; import aclnn_bw; aclnn_bw.torch", check=False)
    assert done.returncode == 1
    assert re.search(r"ImportError: aclnn_bw\.torch needs PyTorch: pip install \"aclnn_bw\[torch\]\"", done.stderr)


@pytest.mark.thorough
def test_the_benchmark_runs():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.training", "--threads", "1", "--seconds", "0.01", "--small"],
        capture_output=True, text=True, check=False, timeout=300, env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| VGG-like", "| U-Net"))]
    assert len(rows) == 4
    assert all(line.count("|") == 8 for line in rows)
