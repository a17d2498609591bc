"""AvgPool2dBackward over all small geometries: size <= 8, kernel <= 5, stride <= 5, every padding.

One axis has a few hundred settings; the two axes share the rounding mode of the size. Each axis is swept against four
fixed settings of the other, 50 000 pairs are drawn at random, and the slow test takes all pairs:

    pytest -m slow tests/test_avg_pool2d_sweep.py
    ACLNN_BW_SHARD=0/4 pytest -m slow tests/test_avg_pool2d_sweep.py     # the first of four parts
"""

import os
from functools import cache
from itertools import product

import numpy as np
import pytest
import reference
from helpers import DTYPES
from operators import avg_pool2d_backward as avg_twin
from operators.avg_pool2d_backward import Mode, Pool
from operators.avg_pool2d_backward import avg_pool2d_backward_two_phase as two_phase

import aclnn_bw

one_call = aclnn_bw.avg_pool2d_backward

DIVISORS = [(True, None), (False, None), (True, 3), (False, -7)]
# (rows, columns) settings as (size, kernel, stride, padding): what one axis is fixed to while the other is swept.
FIXED = [(1, 1, 1, 0), (8, 3, 1, 1), (7, 2, 2, 0), (8, 5, 3, 2)]


def axis_settings(ceil_mode):
    """All (size, kernel, stride, padding) that have an output."""
    for size, kernel, stride in product(range(1, 9), range(1, 6), range(1, 6)):
        for padding in range(kernel // 2 + 1):
            if reference.pooled_size(size, kernel, stride, padding, ceil_mode) >= 1:
                yield size, kernel, stride, padding


@cache
def membership(axis, ceil_mode):
    """Along one axis: 1 where an output's window holds an input (outputs x inputs), and the two kinds of lengths."""
    windows = list(avg_twin._windows(*axis, ceil_mode))
    matrix = np.zeros((len(windows), axis[0]))
    for o, (start, end, _) in enumerate(windows):
        matrix[o, start:end] = 1
    return matrix, np.array([length for *_, length in windows]), matrix.sum(axis=1)


# Whole numbers that every dtype holds; positive, so that sum|terms| is |sum|, and distinct enough to be told apart.
POOL_OF_GRADIENTS = np.random.default_rng(2).integers(1, 256, 4096).astype(np.float64)


def expected_sums(grad, rows, columns, ceil_mode):
    """Per divisor the exact gradient of the input, and the number of terms: the definition as a product of matrices."""
    (by_rows, heights, inner_heights), (by_columns, widths, inner_widths) = (
        membership(axis, ceil_mode) for axis in (rows, columns)
    )
    spread = by_rows.T @ grad @ by_columns
    kinds = {True: np.multiply.outer(heights, widths), False: np.multiply.outer(inner_heights, inner_widths)}
    sums = [
        spread / override if override else by_rows.T @ (grad / kinds[include]) @ by_columns
        for include, override in DIVISORS
    ]
    return sums, np.multiply.outer(by_rows.sum(axis=0), by_columns.sum(axis=0))


def tolerances(terms):
    """Per dtype the allowed error relative to the exact sum; for float64 the twin's own error comes on top."""
    single = (terms + 3) * 2.0**-23
    return {
        "float32": single,
        "float64": 2 * (terms + 3) * 2.0**-52,
        "float16": single + 2.0**-11 * (1 + single),
        "bfloat16": single + 2.0**-8 * (1 + single),
    }


class Sweep:
    """Calls every dtype with every divisor for a pair of axes and keeps what is wrong."""

    def __init__(self, dtypes=tuple(DTYPES)):
        self.gradients = {dtype: POOL_OF_GRADIENTS.astype(DTYPES[dtype]) for dtype in dtypes}
        self.calls = 0
        self.wrong = []

    def check(self, rows, columns, ceil_mode, call):
        size, kernel, stride, padding = zip(rows, columns, strict=True)
        outputs = len(membership(rows, ceil_mode)[0]), len(membership(columns, ceil_mode)[0])
        planes = 1 + self.calls % 3
        start = self.calls % 1000
        window = slice(start, start + planes * outputs[0] * outputs[1])
        leading = (planes,) if self.calls % 2 else (1, planes)
        exact = POOL_OF_GRADIENTS[window].reshape(*leading, *outputs)
        sums, terms = expected_sums(exact, rows, columns, ceil_mode)
        allowed = tolerances(terms)
        for dtype, gradients in self.gradients.items():
            grad = gradients[window].reshape(exact.shape)
            for (include, override), wanted in zip(DIVISORS, sums, strict=True):
                pool = Pool((*leading, *size), kernel, stride, padding, ceil_mode, include, override)
                result = call(pool, grad, dtype)
                self.calls += 1
                if not np.all(abs(result.astype(np.float64) - wanted) <= allowed[dtype] * abs(wanted)):
                    self.wrong.append(f"{pool} {dtype}")

    def assert_none_wrong(self):
        assert not self.wrong, f"{len(self.wrong)} of {self.calls} calls are wrong: {', '.join(self.wrong[:8])} ..."


def in_one_call(pool, grad, dtype):
    return one_call(grad, *pool)


def in_two_phases(pool, grad, dtype):
    return two_phase(pool, grad, Mode("Host", dtype))


def test_settings_are_all_there():
    # 8 sizes x 5 strides x 11 pairs of kernel and padding, less the kernels that do not fit.
    every = {(s, k, t, p) for s, k, t in product(range(1, 9), range(1, 6), range(1, 6)) for p in range(k // 2 + 1)}
    assert len(every) == 440
    missing = every - set(axis_settings(False))
    assert missing == {axis for axis in every if axis[0] + 2 * axis[3] < axis[1]}


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_quick_oracle_is_the_twin(ceil_mode):
    rng = np.random.default_rng(3)
    settings = list(axis_settings(ceil_mode))
    for _ in range(500):
        rows, columns = (settings[i] for i in rng.integers(len(settings), size=2))
        size, kernel, stride, padding = zip(rows, columns, strict=True)
        grad = rng.integers(1, 256, reference.pooled_shape((2, *size), kernel, stride, padding, ceil_mode))
        sums, terms = expected_sums(grad.astype(np.float64), rows, columns, ceil_mode)
        for (include, override), wanted in zip(DIVISORS, sums, strict=True):
            literal = avg_twin.avg_pool2d_backward(
                grad, (2, *size), kernel, stride, padding, ceil_mode, include, override
            )
            np.testing.assert_allclose(wanted, literal, rtol=1e-14)
        ones = avg_twin.avg_pool2d_backward(np.ones(grad.shape[1:]), size, kernel, stride, padding, ceil_mode, True, 1)
        assert np.array_equal(terms, ones)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("fixed", FIXED, ids=str)
def test_each_axis_against_fixed_settings(fixed, ceil_mode):
    sweep = Sweep()
    for axis in axis_settings(ceil_mode):
        sweep.check(axis, fixed, ceil_mode, in_one_call)
        sweep.check(fixed, axis, ceil_mode, in_one_call)
    assert sweep.calls > 2 * 300 * len(DIVISORS) * len(DTYPES)
    sweep.assert_none_wrong()


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_random_pairs(ceil_mode, thorough):
    rng = np.random.default_rng(4)
    settings = list(axis_settings(ceil_mode))
    sweep = Sweep()
    for number, (i, j) in enumerate(rng.integers(len(settings), size=(25_000 if thorough else 2_500, 2))):
        sweep.check(settings[i], settings[j], ceil_mode, in_two_phases if number % 8 == 0 else in_one_call)
    sweep.assert_none_wrong()


def shard():
    """ACLNN_BW_SHARD=i/n takes the settings of the rows that are i modulo n."""
    index, count = map(int, os.environ.get("ACLNN_BW_SHARD", "0/1").split("/"))
    if not 0 <= index < count:
        raise ValueError(f"ACLNN_BW_SHARD = {index}/{count}: must be i/n with 0 <= i < n")
    return slice(index, None, count)


@pytest.mark.slow
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_full_product(ceil_mode):
    settings = list(axis_settings(ceil_mode))
    sweep = Sweep()
    for rows in settings[shard()]:
        for columns in settings:
            sweep.check(rows, columns, ceil_mode, in_one_call)
        assert len(sweep.wrong) < 1000, sweep.wrong[:8]
    sweep.assert_none_wrong()
