"""The peers of the benchmark: each one installed is right wherever it takes part, and one that fails does no harm."""

import importlib
import importlib.util
import math
import os
import sys
import warnings

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import cases, peers, report, timing
from benchmarks.operators import OPERATORS
from benchmarks.peers import base, formulas, onednn, torch_compile
from benchmarks.problem import DTYPES, REAL, Case, Contestant, check_contestant

# The pools of some frameworks have the size they were started with: one number for all tests.
THREADS = 2
POOL = "max_pool2d_with_mask_backward"
MEAN = "avg_pool2d_backward"
COLUMNS = "im2col_backward"
SIGNAL = "upsample_nearest_exact1d_backward"
PAD = "replication_pad2d_backward"

# Operator, shape, attributes: each reaches another formula, or a border of one.
PROBLEMS = [
    (POOL, (2, 19, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
    (POOL, (2, 3, 8, 10), {"kernel_size": 2, "stride": 2}),
    (POOL, (2, 3, 8, 10), {"kernel_size": 3, "stride": 1, "padding": 1, "mask_layout": "argmax"}),
    (SIGNAL, (2, 3, 26), {"output_size": 11}),
    (SIGNAL, (2, 3, 26), {"output_size": 52}),
    (SIGNAL, (2, 3, 26), {"output_size": 39}),
    (SIGNAL, (2, 3, 26), {"output_size": 31, "scales": 1.7}),
    (MEAN, (2, 3, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
    (MEAN, (2, 3, 8, 10), {"kernel_size": 2, "stride": 2}),
    (MEAN, (2, 3, 7, 7), {"kernel_size": 7}),
    (MEAN, (2, 3, 8, 10), {"kernel_size": 3, "stride": 1, "padding": 1, "count_include_pad": False}),
    (MEAN, (2, 3, 8, 10), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    (MEAN, (2, 3, 8, 10), {"kernel_size": 3, "stride": 1, "padding": 1, "divisor_override": -5}),
    (COLUMNS, (2, 3, 9, 10), {"kernel_size": 3, "dilation": 2, "padding": 1, "stride": 2}),
    (COLUMNS, (2, 3, 9, 10), {"kernel_size": 3, "dilation": 2, "padding": 2}),
    (COLUMNS, (2, 3, 9, 10), {"kernel_size": 2, "padding": 3}),
    (COLUMNS, (2, 3, 8, 10), {"kernel_size": 2, "stride": 2}),
    (COLUMNS, (2, 3, 9, 10), {"kernel_size": 2, "stride": 3}),
    (PAD, (2, 3, 5, 6), {"padding": (1, 2, 3, 0)}),
    (PAD, (2, 3, 5, 6), {"padding": (7, 8, 9, 6)}),
    (PAD, (2, 3, 2, 2), {"padding": 1}),
    (PAD, (2, 3, 1, 4), {"padding": 2}),
    (PAD, (2, 3, 5, 6), {"padding": (-1, 2, 1, 0)}),
    (POOL.replace("mask", "indices"), (2, 19, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
    (POOL.replace("mask", "indices"), (2, 3, 8, 10), {"kernel_size": 2, "stride": 3, "index": "int32"}),
]
# The forwards: of the same, but for the gradient's own.
PROBLEMS += [
    (forward, *rest)
    for operator, *rest in PROBLEMS
    if (forward := operator.removesuffix("_backward")) in OPERATORS and math.prod(rest[0]) > 8
]
MODULES = {"torch": "torch", "torch-nhwc": "torch", "torch-compile": "torch", "jax": "jax", "tensorflow": "tensorflow"}
MODULES |= {"paddle": "paddle", "mindspore": "mindspore"}


def posed(operator, shape, attributes, dtype="float32"):
    """A problem, and what the formula gives."""
    return cases.posed(Case(operator, shape, attributes), dtype)


def is_installed(name):
    return bool(onednn.find() if name.startswith("onednn") else importlib.util.find_spec(MODULES[name]))


# gcc takes seconds a case.
COMPILED = "torch-compile"
INSTALLED = [
    pytest.param(
        name,
        marks=[pytest.mark.torch] * (MODULES.get(name) == "torch") + [pytest.mark.thorough] * (name == COMPILED),
    )
    for name in peers.KNOWN
    if is_installed(name)
]
LOADED = []


@pytest.fixture(scope="module", params=INSTALLED)
def peer(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the framework's own parts
        torch = importlib.import_module("torch") if MODULES.get(request.param) == "torch" else None
        threads = torch and torch.get_num_threads()
        found, left_out = peers.load([request.param], THREADS)
    # Some frameworks do not load beside others; the first one must.
    if left_out and LOADED:
        pytest.skip(left_out[0])
    assert left_out == []
    LOADED.append(request.param)
    yield found[0]
    if torch:
        torch.set_num_threads(threads)


def dtypes_of(operator):
    return tuple(DTYPES) if operator == PAD else REAL


# gcc takes seconds a case: of the compiled ones, float32 and one type that is widened.
@pytest.mark.parametrize(("operator", "shape", "attributes"), PROBLEMS)
def test_every_installed_peer_is_right_or_declines(peer, operator, shape, attributes):
    offered = []
    for dtype in ("float32", "bfloat16") if isinstance(peer, torch_compile.TorchCompile) else dtypes_of(operator):
        problem, references = posed(operator, shape, attributes, dtype)
        contestant = peer.contestant(problem)
        if contestant:
            assert contestant.name == peer.name
            assert contestant.into or contestant.fresh
            assert bool(contestant.outs) == bool(contestant.into)
            check_contestant(contestant, problem, references, accumulated_in=problem.dtype)
            offered.append(dtype)
    # float32 is offered wherever anything is.
    assert not offered or "float32" in offered


EVERY = {operator for operator, _, _ in PROBLEMS}
GRADIENTS = {POOL, SIGNAL, MEAN, COLUMNS, PAD}
POOLS = {operator for operator in EVERY if "pool" in operator}
OFFERS = {
    "torch": EVERY,
    "torch-nhwc": POOLS | {PAD, "replication_pad2d"},
    "torch-compile": {SIGNAL, MEAN, COLUMNS},
    "jax": EVERY,
    "tensorflow": GRADIENTS,
    "paddle": EVERY,
    "mindspore": {POOL, SIGNAL, MEAN, COLUMNS},
    "onednn": POOLS,
    "onednn-nhwc": POOLS,
    "onednn-blocked": POOLS,
}


def test_a_peer_offers_what_it_has(peer):
    """A formula that declined everything would pass every other test."""
    seen = set()
    for operator, shape, attributes in PROBLEMS:
        if operator not in seen and peer.contestant(posed(operator, shape, attributes)[0]):
            seen.add(operator)
    assert seen == OFFERS[peer.name]


def test_a_peer_has_a_version_and_is_told_its_threads(peer):
    assert peer.version[0].isdigit()
    if peer.name.startswith("torch"):
        assert peer.torch.get_num_threads() == THREADS
    if peer.name == "jax":
        assert base.own_threads("tf_XLAEigen") in (THREADS, None)


def test_the_table_shows_a_peer_that_only_returns(peer):
    case = Case(MEAN, (2, 3, 8, 10), {"kernel_size": 2, "stride": 2})
    row = report.run(case, "float32", [peer], budget=0.001)
    assert row.left_out == {}
    comparison = row.peers[peer.name]
    assert [bool(comparison.into_ratio), bool(comparison.fresh_ratio)] == [
        bool(comparison.times.into), bool(comparison.times.fresh),
    ]  # fmt: skip
    (line,) = report.Table([case.title]).lines(row)
    assert f" {peer.name} " in line
    assert row == report.Row.from_json(row.as_json())


# ---- the protocol, with peers made up -------------------------------------------------------------------------------


class Made(base.Peer):
    """Offers the average pooling by the formula."""

    name, version = "made", "1.0"

    def __init__(self, threads=1):
        self.threads = threads

    def avg_pool2d_backward(self, problem):
        base.require(problem.dtype == np.float32)
        exact = OPERATORS[MEAN].references(problem)[0].exact.astype(problem.dtype)
        return self.returning("copy()", {"copy": exact.copy}, np.asarray, "NHWC")


class Wrong(Made):
    name = "wrong"

    def avg_pool2d_backward(self, problem):
        zeros = np.zeros(problem.case.shape, problem.dtype)
        return Contestant(self.name, timing.Statement("out.fill(0)", {"out": zeros}), (zeros,), None)


class Failing(Made):
    name = "failing"

    def avg_pool2d_backward(self, problem):
        raise TypeError("no kernel\n   for you")


class Missing(Made):
    name = "missing"

    def __init__(self, threads):
        raise ModuleNotFoundError("No module named 'missing'", name="missing")


class Broken(Made):
    name = "broken"

    def __init__(self, threads):
        raise ImportError("numpy.core.multiarray failed to import")


class Refusing(Made):
    name = "refusing"

    def __init__(self, threads):
        raise RuntimeError(f"must be told before: {threads} threads")


@pytest.fixture
def made(monkeypatch):
    """These are the known ones."""
    known = {peer.name: peer for peer in (Made, Wrong, Failing, Missing, Broken, Refusing)}
    monkeypatch.setattr(peers, "KNOWN", known)
    return known


def test_what_is_not_installed_is_left_out_in_silence_and_what_is_broken_is_not(made):
    found, left_out = peers.load([], 3)
    assert [type(peer) for peer in found] == [Made, Wrong, Failing]
    assert [peer.threads for peer in found] == [3, 3, 3]
    assert left_out == [
        "broken is left out: ImportError: numpy.core.multiarray failed to import",
        "refusing is left out: RuntimeError: must be told before: 3 threads",
    ]


def test_a_peer_that_was_asked_for_is_missed(made):
    assert peers.load(["missing", "made"], 1)[1] == [
        "missing is left out: ModuleNotFoundError: No module named 'missing'"
    ]


CASE = Case(MEAN, (2, 3, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1})


def test_a_wrong_or_failing_peer_costs_its_own_figures_alone():
    row = report.run(CASE, "float32", [Wrong(), Made(), Failing()], budget=0.001)
    assert list(row.peers) == ["made"]
    assert row.left_out["wrong"].startswith(f"WRONG RESULT, not timed: wrong, {MEAN} {CASE.title} float32: element")
    assert row.left_out["failing"] == "failed, not timed: TypeError: no kernel for you"
    made, wrong, failing = report.Table([CASE.title]).lines(row)
    assert "made NHWC" in made
    assert "wrong: WRONG RESULT" in wrong
    assert "failing: failed" in failing


def test_a_peer_without_given_memory_is_compared_in_fresh_memory():
    row = report.run(CASE, "float32", [Made()], budget=0.001)
    comparison = row.peers["made"]
    assert comparison.times.into is comparison.into_ratio is None
    assert comparison.fresh_ratio.median > 0
    assert comparison.note == "NHWC"
    assert row == report.Row.from_json(row.as_json())


@pytest.mark.parametrize(("operator", "dtype"), [(MEAN, "float64"), (COLUMNS, "float32")])
def test_what_a_peer_does_not_offer_has_no_line(operator, dtype):
    case = Case(operator, (1, 1, 4, 4), {"kernel_size": 2})
    row = report.run(case, dtype, [Made()], budget=0.001)
    assert (row.peers, row.left_out) == ({}, {})
    assert len(report.Table([case.title]).lines(row)) == 1


def test_the_peers_are_chosen_on_the_command_line(capsys):
    with pytest.raises(SystemExit):
        program.main(["--peer", "nobody"])
    assert "nobody" in capsys.readouterr().err


def test_the_environment_and_stderr_are_restored(monkeypatch, capfd):
    monkeypatch.setenv("BENCHMARK_A", "before")
    monkeypatch.delenv("BENCHMARK_B", raising=False)

    def start():
        with base.starting(BENCHMARK_A="1", BENCHMARK_B="2"):
            assert (os.environ["BENCHMARK_A"], os.environ["BENCHMARK_B"]) == ("1", "2")
            os.write(2, b"greetings from C++")
            print("greetings from Python", file=sys.stderr)
            raise ImportError("inside")

    with pytest.raises(ImportError, match="inside"):
        start()
    os.write(2, b"after")
    assert os.environ["BENCHMARK_A"] == "before"
    assert "BENCHMARK_B" not in os.environ
    assert capfd.readouterr().err == "after"


def test_an_error_takes_one_line():
    assert base.in_one_line(ValueError("a\n b")) == "ValueError: a b"
    assert len(base.in_one_line(ValueError("word " * 1000))) <= 200


def test_the_statement_settles_before_its_sample():
    log = []
    statement = timing.Statement("log.append(1); sleep(0.002)", {"log": log, "sleep": timing.time.sleep})
    samples = timing.measure({"a": statement}, budget=0.001, nbytes=1 << 40, min_rounds=3, settle=0.02)
    assert len(samples["a"]) == 3
    assert len(log) >= 3 * 5


# ---- what the formulas are made of ----------------------------------------------------------------------------------


@pytest.mark.parametrize("attributes", [attributes for operator, _, attributes in PROBLEMS if operator == COLUMNS])
def test_shifts_place_every_window(attributes):
    """Summing the places that are in the image is what the operator does."""
    problem, references = posed(COLUMNS, (2, 3, 9, 10), attributes, "float64")
    n, c, h, w = problem.case.shape
    k, s = attributes["kernel_size"], attributes.get("stride", 1)
    pieces = list(formulas.shifts(problem))
    columns = problem.inputs["grad_output"].reshape(n, c, k, k, *pieces[0].places.shape)
    by_place, by_zeros = np.zeros((n, c, h * w)), np.zeros((n, c, h, w))
    for piece in pieces:
        part = piece.part(columns)
        inside = piece.places >= 0
        by_place[..., piece.places[inside]] += part[..., inside]
        # The same with zeros before, between and after, cut where their number is negative.
        wide = np.zeros((n, c, *((size - 1) * s + 1 for size in part.shape[2:])))
        wide[..., ::s, ::s] = part
        for axis, (before, after) in (2, piece.rows), (3, piece.columns):
            around = [(0, 0)] * 4
            around[axis] = max(before, 0), max(after, 0)
            wide = np.pad(wide, around)
            kept = slice(max(-before, 0), wide.shape[axis] - max(-after, 0))
            wide = wide[(slice(None),) * axis + (kept,)]
        by_zeros += wide
    for result in by_place.reshape(by_zeros.shape), by_zeros:
        np.testing.assert_allclose(result, references[0].exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", REAL)
def test_the_maxima_of_an_ordered_image_stay(dtype):
    problem, _ = posed(POOL, (1, 2, 224, 224), {"kernel_size": 2, "stride": 2}, dtype)
    image = formulas.ordered_image(problem.inputs["image"], problem.dtype)
    assert image.dtype == problem.dtype
    operator = OPERATORS[POOL]
    _, indices = operator.maxima(image, problem.case)
    assert np.array_equal(indices, problem.inputs["indices"])
    tiny = float(np.finfo(np.float16).tiny) if dtype == "float16" else 2.0**-126
    assert np.all(np.isfinite(image.astype(np.float64)))
    if problem.dtype.itemsize == 2:
        assert np.abs(image.astype(np.float64)).min() >= tiny


def test_a_plane_of_more_elements_than_values_cannot_be_ordered():
    with pytest.raises(base.NotOffered):
        formulas.ordered_image(np.zeros((1, 1, 300, 300), np.float32), DTYPES["float16"])


@pytest.mark.parametrize(
    ("length", "attributes", "factor"),
    [
        (26, {"output_size": 52}, 2),
        (26, {"output_size": 78}, 3),
        (26, {"output_size": 39}, None),
        (26, {"output_size": 13}, None),
        (26, {"output_size": 52, "scales": 1.7}, None),
    ],
)
def test_whole_factors_are_found(length, attributes, factor):
    problem, _ = posed(SIGNAL, (1, 1, length), attributes)
    assert formulas.upsample_factor(problem) == factor


def test_windows_that_tile_the_image_are_found():
    def tiles(**attributes):
        return formulas.tiles(posed(COLUMNS, (1, 1, 8, 12), attributes)[0])

    assert tiles(kernel_size=2, stride=2)
    assert tiles(kernel_size=4, stride=4)
    assert not tiles(kernel_size=3, stride=3)  # does not fill it
    assert not tiles(kernel_size=2)
    assert not tiles(kernel_size=2, stride=2, padding=1)
    assert not tiles(kernel_size=2, stride=2, dilation=3)
