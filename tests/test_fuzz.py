"""The fuzzers of tests/fuzz for as long as a test may take; CI runs them for minutes, see there."""

import math

import numpy as np
import pytest
import reference
from operators import OPERATORS, max_pool
from operators import avg_pool2d_backward as avg_twin
from operators import im2col_backward as im2col_twin
from operators import replication_pad2d_backward as pad_twin
from operators import upsample_nearest_exact1d_backward as upsample_twin

fuzz = pytest.importorskip("fuzz.hostile", reason="the fuzzers need a POSIX system")


def test_hostile_calls_end_as_the_rules_say():
    counts, made, finding = fuzz.run(seed=1, total=6000, seconds=120, jobs=2)
    assert finding is None, finding
    assert made > 1000
    assert counts["compared"] > made / 4
    assert counts["refused"] > made / 4


def test_a_call_is_drawn_again_from_its_number():
    """What is told of a finding repeats it: the same arguments, and the same answer of the rules."""
    for number in range(200):
        first, second = (fuzz.calls.draw(fuzz.calls.Dice(5 << 40 | number), (*OPERATORS.values(),)) for _ in range(2))
        assert first.notes == second.notes
        assert first.arguments.keys() == second.arguments.keys()
        assert [o[:2] for o in first.judge()] == [o[:2] for o in second.judge()]


def test_the_fuzzer_notices_what_the_rules_forbid(monkeypatch):
    """A rule that the package does not have is found missing, and one that it has beyond the rules as well."""
    operator = OPERATORS["AvgPool2dBackward"]
    wanted = operator.rules

    def stricter(judge, call, arguments):
        wanted(judge, call, arguments)
        judge.refuse(True, "nothing is allowed", "padding")

    monkeypatch.setattr(operator, "rules", staticmethod(stricter))
    assert "was accepted, but" in first_finding()
    monkeypatch.undo()
    monkeypatch.setattr(fuzz.rules, "at_least", lambda *arguments: None)
    text = first_finding()
    assert "raised AclnnError" in text
    assert "must be >" in text


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (7, 4)])
@pytest.mark.parametrize("kernel", [(1, 1), (2, 1), (3, 4)])
@pytest.mark.parametrize("stride", [(1, 2), (3, 1)])
@pytest.mark.parametrize("ceil", [False, True])
def test_the_twin_for_tiny_planes_is_the_reference(size, kernel, stride, ceil):
    """The quick oracle of the fuzzer against the literal one of the other tests."""
    random = np.random.default_rng(1)
    shape = (2, 17, *size)
    for pad in {(0, 0), (kernel[0] // 2, kernel[1] // 2)}:
        geometry = kernel, stride, pad, ceil
        pooled = reference.pooled_shape(shape, *geometry)
        if min(pooled) < 1:
            continue
        grad = random.integers(-4, 5, pooled).astype(np.float64)
        for include, divisor in ((True, None), (False, None), (True, -3)):
            right = avg_twin.avg_pool2d_backward(grad, shape, *geometry, include, divisor)
            result = avg_twin.avg_pool2d_backward_tiny(grad, shape, kernel, stride, pad, include, divisor)
            np.testing.assert_allclose(result, right, rtol=1e-12, atol=1e-12)
        x = random.integers(-4, 5, shape).astype(np.float64)
        out, indices = max_pool.max_pool2d(x, *geometry)
        quick, positions = max_pool.max_pool2d_tiny(x, *geometry)
        np.testing.assert_array_equal(quick, out)
        hits = max_pool.hits_of_indices(indices, shape, *geometry)
        np.testing.assert_array_equal(max_pool.bitmask_tiny(positions, kernel), max_pool.bitmask(hits))
        mask = max_pool.argmax_mask_tiny(positions, shape, kernel, stride, pad)
        np.testing.assert_array_equal(mask, max_pool.argmax_mask(indices, kernel))
        right = max_pool.max_pool2d_backward(grad, hits, shape, *geometry)
        np.testing.assert_array_equal(max_pool.from_indices(grad, indices, size, kernel, stride, pad), right)
        hits = random.random(hits.shape) < 0.3
        sums = im2col_twin.from_columns(hits * grad[..., None, :, :], size, kernel, stride, pad)
        np.testing.assert_array_equal(sums, max_pool.max_pool2d_backward(grad, hits, shape, *geometry))
        for index in (-1, math.prod(size), 2**31 - 1, -(2**31)):
            indices[1, 3, -1, -1] = index
            assert max_pool.from_indices(grad, indices, size, kernel, stride, pad) is None


@pytest.mark.parametrize("shape", [(2, 3, 1, 4), (3, 5, 2)])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 3, 2, 0), (-1, 2, 4, 1)])
def test_the_twin_of_padding_is_the_reference(shape, pads):
    left, right, top, bottom = pads
    grad = np.arange(math.prod(shape[:-2]) * (shape[-2] + top + bottom) * (shape[-1] + left + right))
    grad = (grad % 7 - 3.0j).reshape(*shape[:-2], shape[-2] + top + bottom, -1)
    wanted = pad_twin.replication_pad2d_backward(grad, shape, pads, np.complex128)
    np.testing.assert_array_equal(pad_twin.replication_pad2d_backward_tiny(grad, shape, pads), wanted)


@pytest.mark.parametrize("lengths", [(1, 1), (3, 7), (20, 5)])
@pytest.mark.parametrize("scales", [0.0, 0.5, 1.7])
def test_the_twin_of_upsampling_is_the_reference(lengths, scales):
    grad = (np.arange(6 * lengths[1]) % 5 - 2.0).reshape(2, 3, -1)
    wanted = upsample_twin.upsample_nearest_exact1d_backward(grad, (2, 3, lengths[0]), scales)
    result = upsample_twin.upsample_nearest_exact1d_backward_tiny(grad, (2, 3, lengths[0]), scales)
    np.testing.assert_array_equal(result, wanted)


def test_the_twin_of_im2col_is_the_reference():
    size, kernel, dilation, pad, stride = (7, 6), (3, 2), (2, 1), (1, 2), (2, 3)
    windows = reference.pooled_shape(size, kernel, stride, pad, False, dilation)
    grad = (np.arange(2 * 3 * 6 * math.prod(windows)) % 7 - 3.0).reshape(2, 18, -1)
    wanted = im2col_twin.im2col_backward(grad, size, kernel, dilation, pad, stride)
    columns = grad.reshape(2, 3, 6, *windows)
    result = im2col_twin.from_columns(columns, size, kernel, stride, pad, dilation)
    np.testing.assert_array_equal(result, wanted)


def test_the_fuzzer_notices_a_stray_write(monkeypatch):
    """A byte beside an output, or in an input, that a call has changed."""
    original = fuzz.results.agrees

    def agrees(*arguments):
        fuzz.calls.ARENA.memory[70] ^= 1
        return original(*arguments)

    monkeypatch.setattr(fuzz.results, "agrees", agrees)
    assert "beside the outputs" in first_finding()


def test_the_fuzzer_notices_a_wrong_result(monkeypatch):
    monkeypatch.setattr(fuzz.results, "expected", lambda drawn: [0 * r + 12345 for r in right(drawn) or []])
    right = ORIGINAL
    assert "wrong result" in first_finding()


ORIGINAL = fuzz.results.expected


def first_finding():
    fuzzer = fuzz.Fuzzer()
    for number in range(500):
        try:
            fuzzer.one(3, number)
        except fuzz.Finding as finding:
            return str(finding)
    return "nothing was found"
