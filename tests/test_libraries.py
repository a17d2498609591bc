"""One-call functions answer with an array of the kind that they are given first: NumPy's, PyTorch's, JAX's."""

import functools
import gc
import sys
import types
import weakref

import ml_dtypes
import numpy as np
import pytest
from engine_helpers import refusal, run_python
from operators import OPERATORS

import aclnn_bw as a
from aclnn_bw import _native

INVALID = a.ACLNN_ERR_PARAM_INVALID
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64}


def calls(make):
    """Every one-call function, with its first argument, or all arrays, made by `make`; and the results it must have."""
    for operator in OPERATORS.values():
        call = operator((1, 2, 4, 4))
        function, keywords, wanted = getattr(a, operator.record().one_call), call.keywords(), call.one_call()
        made = {name: make(value) for name, value in keywords.items() if isinstance(value, np.ndarray)}
        first = next(iter(made))
        wanted = wanted if len(wanted) > 1 else wanted[0]
        yield functools.partial(function, **{**keywords, first: made[first]}), wanted
        yield functools.partial(function, **{**keywords, **made}), wanted


def check(result, wanted, kind):
    for found, right in zip(result, wanted, strict=True) if isinstance(wanted, tuple) else [(result, wanted)]:
        assert isinstance(found, kind)
        assert np.array_equal(np.asarray(found), right)


def test_torch():
    torch = pytest.importorskip("torch")
    for function, wanted in calls(torch.from_numpy):
        check(function(), wanted, torch.Tensor)
    # The first argument decides, no other.
    y, x = np.ones((1, 2, 2, 2), np.float32), torch.zeros(1, 2, 4, 4)
    assert type(a.avg_pool2d_backward(y, x, 2)) is np.ndarray
    assert type(a.avg_pool2d_backward(torch.from_numpy(y), x, 2)) is torch.Tensor
    out = np.empty((1, 2, 4, 4), np.float32)
    assert a.avg_pool2d_backward(torch.from_numpy(y), x, 2, out=out) is out
    assert a.avg_pool2d_backward(y, x, 2, out=x) is x
    parameter = torch.nn.Parameter(torch.ones(1, 2, 2, 2), requires_grad=False)
    assert type(a.avg_pool2d_backward(parameter, x.shape, 2)) is torch.Tensor


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
def test_torch_dtypes(dtype):
    torch = pytest.importorskip("torch")
    grad_output = torch.ones((0 if dtype == "float64" else 1, 2, 4, 4), dtype=getattr(torch, dtype))
    result = a.replication_pad2d_backward(grad_output, (len(grad_output), 2, 2, 2), 1)
    assert result.dtype == grad_output.dtype
    assert torch.equal(result, torch.full((len(grad_output), 2, 2, 2), 4, dtype=result.dtype))
    result += 1     # its own memory, and writable


def test_torch_masks():
    torch = pytest.importorskip("torch")
    x = torch.rand(2, 3, 6, 6)
    _, mask = a.max_pool2d_with_mask(x, 2)
    _, indices = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    assert torch.equal(a.mask_to_indices(mask, tuple(x.shape), 2), indices)
    assert torch.equal(a.indices_to_mask(indices, tuple(x.shape), 2), mask)


def test_memory_is_shared_and_let_go():
    torch = pytest.importorskip("torch")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor, gone = _native.in_library_of(torch.zeros(1), array), weakref.ref(array)
    assert tensor.data_ptr() == array.ctypes.data
    assert _native.in_library_of(np.zeros(1), array) is array
    del array
    gc.collect()
    assert gone() is not None
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    del tensor
    assert gone() is None


def test_a_capsule_that_nobody_takes_lets_go(monkeypatch):
    fake = types.SimpleNamespace(Tensor=list, from_dlpack=lambda loan: (loan, loan.__dlpack__()))
    monkeypatch.setitem(sys.modules, "torch", fake)
    array = np.ones(3, np.float32)
    gone = weakref.ref(array)
    made = _native.in_library_of([], array)
    assert made[0].__dlpack_device__() == (1, 0)
    del array, made
    assert gone() is None
    with pytest.raises(BufferError):
        _native.DLPackLoan().__dlpack__()


def test_jax():
    jax = pytest.importorskip("jax")
    for function, wanted in calls(jax.numpy.asarray):
        check(function(), wanted, jax.Array)
    for name in ("float32", "float16", "bfloat16"):
        grad_output = jax.numpy.ones((1, 2, 4, 4), name)
        result = a.replication_pad2d_backward(grad_output, (1, 2, 2, 2), 1)
        assert result.dtype == grad_output.dtype
        assert result.unsafe_buffer_pointer() % 64 == 0
        assert np.all(np.asarray(result, np.float32) == 4)
    out = jax.numpy.zeros((1, 2, 4, 4))
    with refusal(INVALID, "^out is read-only"):
        a.avg_pool2d_backward(np.ones((1, 2, 2, 2), np.float32), out, 2, out=out)
    assert not out.any()


class Array:
    """What stands for a JAX array where JAX is absent."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype)


def test_as_with_jax(monkeypatch):
    """Memory begins a cache line, so that JAX takes it over; no JAX array is written."""
    numpy = types.SimpleNamespace(from_dlpack=lambda loan: Array(np.from_dlpack(loan)))
    fake = types.SimpleNamespace(Array=Array, numpy=numpy)
    monkeypatch.setitem(sys.modules, "jax", fake)
    for function, wanted in calls(Array):
        result = function()
        check(result, wanted, Array)
        for found in result if isinstance(result, tuple) else [result]:
            assert found.array.ctypes.data % 64 == 0
    with refusal(INVALID, "^out is read-only"):
        a.avg_pool2d_backward(np.ones((1, 2, 2), np.float32), (1, 4, 4), 2, out=Array(np.zeros((1, 4, 4), np.float32)))


def test_other_exporters_get_numpy():
    grad_output = Array(np.ones((1, 2, 2), np.float32))
    assert type(a.avg_pool2d_backward(grad_output, (1, 4, 4), 2)) is np.ndarray


def test_no_library_is_imported():
    run_python("""
        import sys
        import numpy as np
        import aclnn_bw as a
        a.avg_pool2d_backward(np.ones((1, 2, 2), np.float32), (1, 4, 4), 2)
        class Array:
            __dlpack__ = np.ones((1, 2, 2), np.float32).__dlpack__
            __dlpack_device__ = np.ones(1).__dlpack_device__
        a.avg_pool2d_backward(Array(), (1, 4, 4), 2)
        assert not {"torch", "jax"} & set(sys.modules)
    """)
