"""The benchmark: it lists, runs and reports, times in turn, and never times a wrong result."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import reference
from operators import avg_pool2d_backward as avg_twin
from operators import im2col_backward as im2col_twin
from operators import max_pool
from operators import replication_pad2d_backward as pad_twin
from operators import upsample_nearest_exact1d_backward as upsample_twin

import aclnn_bw
from benchmarks import __main__ as program
from benchmarks import against, cases, machine, peers, report, results, timing, windows
from benchmarks.check import Reference, WrongResult, check
from benchmarks.operators import OPERATORS
from benchmarks.problem import DTYPES, REAL, Case, Contestant, Form, Gradient, check_contestant

ROOT = Path(__file__).resolve().parent.parent
TINY = "1x16x4x4 k4"

# A small case of every operator.
SMALL = {name: operator.small()[0] for name, operator in OPERATORS.items()}
GRADIENTS = [name for name, operator in OPERATORS.items() if isinstance(operator, Gradient)]
EVERY_DTYPE = [(name, dtype) for name, case in SMALL.items() for dtype in case.dtypes]


def command(*arguments):
    """`python -m benchmarks` as its reader starts it: in the root of the repository."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("ACLNN_BW_")}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def small(dtype="float32", form=Form.CALL, shape=None, operator="avg_pool2d_backward", **attributes):
    """A small problem of an operator."""
    usual = SMALL[operator]
    case = Case(operator, shape or usual.shape, attributes or usual.attributes, form)
    return OPERATORS[operator].problem(case, DTYPES[dtype], np.random.default_rng(1))


# ---- the command ----------------------------------------------------------------------------------------------------


def test_list_shows_every_case_in_every_dtype():
    done = command("--list")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == sum(len(case.dtypes) for case in cases.CASES)
    assert {
        "avg_pool2d_backward  32x256x35x35 k3 s1 p1  bfloat16",
        "max_pool2d_with_mask_backward  8x192x28x28 k3 s1 p1 argmax  float64",
        "upsample_nearest_exact1d_backward  8x256x4096 -> 5000  float32",
        "replication_pad2d_backward  1x3x1080x1920 p(10,20,30,40)  complex128",
    } <= set(done.stdout.splitlines())


def test_filters(capsys):
    arguments = ["--list", "--operator", "avg_pool2d_backward", "--case", "k2 s2", "--case", "k7", "--dtype", "float16"]
    assert program.main(arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        "avg_pool2d_backward  32x64x112x112 k2 s2  float16",
        "avg_pool2d_backward  32x2048x7x7 k7  float16",
    ]


@pytest.mark.parametrize("operator", SMALL)
def test_the_operator_can_be_chosen(capsys, operator):
    assert program.main(["--list", "--operator", operator]) == 0
    listed = {line.split("  ")[0] for line in capsys.readouterr().out.splitlines()}
    assert listed == {operator}


def test_a_quick_run_prints_a_table_and_writes_the_figures(tmp_path):
    file = tmp_path / "figures.json"
    done = command("--quick", "--no-peers", "--threads", "1", "--case", TINY, "--json", str(file), "--progress")
    assert done.returncode == 0, done.stderr
    selected = [case for case in cases.CASES if TINY in case.title]
    assert len(selected) == len(Form)

    lines = done.stdout.splitlines()
    assert aclnn_bw.__version__ in lines[0]
    assert "1 thread for everybody" in lines[1]
    heading = next(i for i, line in enumerate(lines) if line.startswith("case"))
    table = lines[heading + 2 :]
    assert [line.split("  ")[0] for line in table] == [case.title for case in selected]
    # A column's cells end (dtype: begin) where its heading does.
    assert len({line.index("float32") for line in table} | {lines[heading].index("dtype")}) == 1
    ends = {line[: lines[heading].index("ours out=") + len("ours out=")].split()[-1] for line in table}
    assert ends <= {"ns", "us"}

    figures = json.loads(file.read_text())
    assert figures["environment"]["threads"] == 1
    assert figures["environment"]["peers"] == {}
    assert figures["wrong"] == []
    assert [row["case"] for row in figures["rows"]] == [case.title for case in selected]
    for row in figures["rows"]:
        into = row["ours"]["into"]
        assert 0 < into["low"] <= into["median"] <= into["high"]
        assert row["rounds"] >= 5
        assert (row["nbytes"], row["copies"], row["peers"]) == (4 * (16 + 256), None, {})

    assert f"[1/{len(selected)}] avg_pool2d_backward {TINY} float32" in done.stderr


def test_a_run_that_is_stopped_leaves_its_figures(monkeypatch, tmp_path):
    right, file = report.run, tmp_path / "figures.json"

    def stopped_at_phase_2(case, *arguments, **options):
        if case.form is Form.PHASE_2:
            raise KeyboardInterrupt
        return right(case, *arguments, **options)

    monkeypatch.setattr(report, "run", stopped_at_phase_2)
    with pytest.raises(KeyboardInterrupt):
        program.main(["--seconds", "0.001", "--no-peers", "--case", TINY, "--json", str(file)])
    assert len(json.loads(file.read_text())["rows"]) == len(Form) - 1


def test_no_progress_line_without_a_terminal(capsys):
    assert program.main(["--seconds", "0.01", "--no-peers", "--case", f"{TINY}, phase 2"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--case", "no such case"], "no case matches"),
        (["--dtype", "int8"], "int8"),
        (["--threads", "0", "--case", TINY], "0"),
        (["--seconds", "0"], "must be > 0"),
        (["--seconds", "nan"], "must be > 0"),
        (["--case", TINY, "--json", "/no/such/folder/file"], "/no/such/folder/file"),
    ],
)
def test_bad_arguments(capsys, arguments, part):
    with pytest.raises(SystemExit) as end:
        program.main(arguments)
    assert end.value.code == 2
    assert part in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_figures_are_not_written_into_a_pipe(capsys):
    reader, writer = os.pipe()
    try:
        with pytest.raises(SystemExit):
            program.main(["--case", TINY, "--json", f"/dev/fd/{writer}"])
    finally:
        os.close(reader)
        os.close(writer)
    assert "must be a file" in capsys.readouterr().err.splitlines()[-1]


# ---- a wrong result is not timed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("operator", "dtype"), EVERY_DTYPE)
@pytest.mark.parametrize("form", Form)
def test_our_results_pass_the_check(operator, dtype, form):
    row = report.run(small(dtype, form, operator=operator).case, dtype, [], budget=0.001)
    assert row.ours.into.median > 0
    assert (row.ours.fresh is not None) == (form is Form.CALL)


@pytest.mark.parametrize("operator", ["max_pool2d_with_mask", "max_pool2d_with_mask_backward"])
@pytest.mark.parametrize("form", Form)
def test_both_mask_layouts(operator, form):
    case = small(form=form, operator=operator, kernel_size=3, stride=1, padding=1, mask_layout="argmax").case
    row = report.run(case, "float32", [], budget=0.001)
    # The two-phase calls get the layout from the context.
    assert ("mask_layout='argmax'" in row.statement) == (form is Form.CALL)


def test_wrong_results_of_ours_are_reported_and_not_timed(monkeypatch, capsys, tmp_path):
    right = aclnn_bw.avg_pool2d_backward

    def wrong_in_one_element(*arguments, out=None):
        result = right(*arguments, out=out)
        result[0, 3, 2, 1] *= np.float32(1.0001)
        return result

    monkeypatch.setattr(aclnn_bw, "avg_pool2d_backward", wrong_in_one_element)
    # Both phases that compute nothing: what lay in the output before must not pass for a result.
    monkeypatch.setattr(aclnn_bw, "aclnnAvgPool2dBackward", lambda *arguments: None)
    file = tmp_path / "figures.json"
    assert program.main(["--quick", "--no-peers", "--case", TINY, "--json", str(file)]) == 1
    printed = capsys.readouterr().out
    assert printed.count("WRONG RESULT, not timed") == len(Form)
    figures = json.loads(file.read_text())
    assert figures["rows"] == []
    assert len(figures["wrong"]) == len(Form)
    assert "element (0, 3, 2, 1)" in figures["wrong"][0]
    assert "1 of 256 elements are wrong" in figures["wrong"][0]


def test_fresh_results_are_checked_as_well(monkeypatch):
    right = aclnn_bw.avg_pool2d_backward

    def wrong_when_it_allocates(*arguments, out=None):
        return np.zeros(arguments[1].shape, np.float32) if out is None else right(*arguments, out=out)

    monkeypatch.setattr(aclnn_bw, "avg_pool2d_backward", wrong_when_it_allocates)
    with pytest.raises(WrongResult, match="fresh output"):
        report.run(small().case, "float32", [], budget=0.001)


def test_a_wrong_mask_is_caught(monkeypatch):
    right = aclnn_bw.max_pool2d_with_mask
    problem = small(operator="max_pool2d_with_mask")
    contestant = OPERATORS["max_pool2d_with_mask"].ours(problem)
    references = OPERATORS["max_pool2d_with_mask"].references(problem)
    check_contestant(contestant, problem, references, accumulated_in=problem.dtype)

    def without_the_last_bit(*arguments, **results):
        out, mask = right(*arguments, **results)
        words = mask.reshape(-1).view("<u2")
        words[np.flatnonzero(words)[-1]] = 0
        return out, mask

    contestant.into.names["max_pool2d_with_mask"] = without_the_last_bit
    with pytest.raises(WrongResult, match=r"= -1\.0, must be"):
        check_contestant(contestant, problem, references, accumulated_in=problem.dtype)


class WrongPeer:
    """A framework that computes zeros."""

    name, version = "wrong", "1"

    def __init__(self, threads=1):
        """Nothing to set."""

    def contestant(self, problem):
        out = np.empty(problem.case.shape, problem.dtype)
        return Contestant(self.name, timing.Statement("out.fill(0)", {"out": out}), (out,), None)


@pytest.mark.parametrize("operator", GRADIENTS)
def test_wrong_results_of_a_peer_are_caught(operator):
    case = small(operator=operator).case
    row = report.run(case, "float32", [WrongPeer()], budget=0.001)
    assert row.peers == {}
    expected = f"WRONG RESULT, not timed: wrong, {operator} {case.title} float32: element"
    assert row.left_out["wrong"].startswith(expected)


def test_titles():
    titles = {name: small(operator=name).case.title for name in SMALL}
    assert titles["avg_pool2d_backward"] == "2x3x9x10 k3 s2 p1"
    assert titles["upsample_nearest_exact1d_backward"] == "2x3x26 -> 11"
    assert titles["im2col_backward"] == "2x3x9x10 k3 d2 p1 s2"
    assert titles["replication_pad2d_backward"] == "2x3x5x6 p(1,2,3,0)"


def test_a_peer_that_does_not_offer_the_case_is_left_out():
    peer = WrongPeer()
    peer.contestant = lambda problem: None
    assert report.run(small().case, "float32", [peer], budget=0.001).peers == {}


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_check_is_sharp(dtype):
    dtype = DTYPES[dtype]
    sums = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    exact = np.array([1.0, -2.0, 0.0, 100.0], np.complex128 if dtype.kind == "c" else np.float64)
    expected = Reference(exact, np.abs(exact), terms=4)
    result = exact.astype(dtype)
    check(result, expected, dtype, accumulated_in=sums, who="x")
    # 16-bit results may be one unit off, sums in full precision a few.
    eps = float(np.finfo(sums).eps) * 64 if sums == dtype else 2.0**-6
    for place, wrong in (0, 1 + eps), (3, 100 - 100 * eps), (2, 1e-3), (1, math.nan), (1, math.inf), (1, 2.0):
        bad = result.copy()
        bad[place] = wrong
        with pytest.raises(WrongResult, match=rf"x: element \({place},\) = .*; 1 of 4 elements are wrong"):
            check(bad, expected, dtype, accumulated_in=sums, who="x")
    for bad in result[:3], result.real.astype(np.int64):
        with pytest.raises(WrongResult, match="must be"):
            check(bad, expected, dtype, accumulated_in=sums, who="x")


def test_the_check_sees_both_parts_of_a_complex_number():
    exact = np.array([1 + 2j])
    expected = Reference(exact, np.array([3.0]), terms=1)
    result = exact.astype(np.complex64)
    check(result, expected, result.dtype, accumulated_in=result.dtype, who="x")
    for wrong in 1 + 2.0001j, 1.0001 + 2j, complex(1, math.nan):
        with pytest.raises(WrongResult, match=r"must be \(1\+2j\)"):
            check(np.array([wrong], np.complex64), expected, result.dtype, accumulated_in=result.dtype, who="x")


@pytest.mark.parametrize("values", [np.array([5, -1]), np.array([1.5, 2], np.float16)])
def test_chosen_values_must_be_met_exactly(values):
    float32 = DTYPES["float32"]
    check(values, Reference(values), float32, accumulated_in=float32, who="x")
    with pytest.raises(WrongResult, match=r"x: element \(1,\) .* within 0; 1 of 2 elements are wrong"):
        check(np.array([values[0], values[1] + 1]), Reference(values), float32, accumulated_in=float32, who="x")
    with pytest.raises(WrongResult, match="must be"):
        check(values.astype(np.float32), Reference(values), float32, accumulated_in=float32, who="x")


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        {"kernel_size": 4, "stride": 3, "padding": 2, "ceil_mode": True, "divisor_override": -5},
        {"kernel_size": 5},
    ],
)
def test_the_average_formula_is_the_tests_formula(attributes):
    problem = small("float64", **attributes)
    grad_output = problem.inputs["grad_output"]
    (seen,) = OPERATORS["avg_pool2d_backward"].references(problem)
    exact = avg_twin.avg_pool2d_backward(grad_output, problem.case.shape, **attributes)
    magnitude, terms = avg_twin.sum_abs_and_terms(grad_output, problem.case.shape, **attributes)
    np.testing.assert_allclose(seen.exact, exact, rtol=0, atol=1e-14)
    np.testing.assert_allclose(seen.magnitude, magnitude, rtol=0, atol=1e-14)
    assert seen.terms >= terms.max()
    report.run(problem.case, "float64", [], budget=0.001)


def max_pool2d_backward(grad_output, problem):
    geometry = (problem.case.shape, *(problem.case.attributes[name] for name in ("kernel_size", "stride", "padding")))
    hits = max_pool.hits_of_indices(problem.inputs["indices"], *geometry)
    return max_pool.max_pool2d_backward(grad_output, hits, *geometry, dtype=grad_output.dtype)


def upsample_nearest_exact1d_backward(grad_output, problem):
    scales = problem.case.attributes.get("scales", 0)
    return upsample_twin.upsample_nearest_exact1d_backward(grad_output, problem.case.shape, scales, grad_output.dtype)


def im2col_backward(grad_output, problem):
    size, attributes = problem.case.shape[2:], problem.case.attributes
    return im2col_twin.im2col_backward(grad_output, size, **attributes, dtype=grad_output.dtype)


def replication_pad2d_backward(grad_output, problem):
    sides = problem.case.attributes["padding"]
    sides = (sides,) * 4 if isinstance(sides, int) else sides
    return pad_twin.replication_pad2d_backward(grad_output, problem.case.shape, sides, grad_output.dtype)


@pytest.mark.parametrize(
    ("twin", "attributes"),
    [
        (max_pool2d_backward, {"kernel_size": 3, "stride": 2, "padding": 1}),
        (max_pool2d_backward, {"kernel_size": 2, "stride": 3, "padding": 0, "mask_layout": "argmax"}),
        (upsample_nearest_exact1d_backward, {"output_size": 11}),
        (upsample_nearest_exact1d_backward, {"output_size": 60}),
        (upsample_nearest_exact1d_backward, {"output_size": 31, "scales": 1.7}),
        (im2col_backward, {"kernel_size": 3, "dilation": 2, "padding": 1, "stride": 2}),
        (im2col_backward, {"kernel_size": 2, "stride": 3}),
        (im2col_backward, {"kernel_size": 4, "padding": 5}),  # positions that no window has inside the image
        (replication_pad2d_backward, {"padding": 2}),
        (replication_pad2d_backward, {"padding": (7, 0, 1, 9)}),
        (replication_pad2d_backward, {"padding": (-1, 2, 3, -2)}),
    ],
)
def test_the_formulas_are_the_tests_formulas(twin, attributes):
    operator = twin.__name__.replace("max_pool2d_", "max_pool2d_with_mask_")
    problem = small("float64", operator=operator, **attributes)
    grad_output = problem.inputs["grad_output"]
    (seen,) = OPERATORS[operator].references(problem)
    np.testing.assert_allclose(seen.exact, twin(grad_output, problem), rtol=0, atol=1e-14)
    np.testing.assert_allclose(seen.magnitude, twin(np.abs(grad_output), problem), rtol=0, atol=1e-14)
    terms = twin(np.ones_like(grad_output), problem)
    assert np.all(seen.terms >= terms)
    if twin is not max_pool2d_backward:  # how many windows share a maximum is the data's to say
        assert np.max(seen.terms) == terms.max()
    report.run(problem.case, "float64", [], budget=0.001)


def test_complex_sums_are_bounded_by_their_parts():
    problem = small("complex128", operator="replication_pad2d_backward")
    grad_output = problem.inputs["grad_output"]
    assert np.std(grad_output.real) > 0.5
    assert np.std(grad_output.imag) > 0.5
    (seen,) = OPERATORS["replication_pad2d_backward"].references(problem)
    np.testing.assert_allclose(seen.exact, replication_pad2d_backward(grad_output, problem), rtol=0, atol=1e-14)
    parts = np.abs(grad_output.real) + np.abs(grad_output.imag)
    np.testing.assert_allclose(seen.magnitude, replication_pad2d_backward(parts, problem), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", REAL)
def test_the_maxima_are_the_tests_maxima(dtype):
    problem = small(dtype, operator="max_pool2d_with_mask")
    values, indices = OPERATORS["max_pool2d_with_mask"].references(problem)
    x = problem.inputs["x"].astype(np.float64)
    expected = max_pool.max_pool2d(x, 3, 2, 1)
    assert np.array_equal(values.exact.astype(np.float64), expected[0])
    assert np.array_equal(indices.exact, expected[1])
    assert values.exact.dtype == problem.dtype


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("k", "s", "p", "d"), [(3, 2, 1, 1), (2, 3, 1, 1), (1, 1, 0, 1), (3, 2, 4, 2), (2, 1, 0, 5)])
def test_windows(k, s, p, d, ceil_mode):
    a = {"kernel_size": k, "stride": s, "padding": p, "dilation": d, "ceil_mode": ceil_mode}
    h, w = 7, 10
    shape = [windows.count(size, a) for size in (h, w)]
    assert shape == [reference.pooled_size(size, k, s, p, ceil_mode, d) for size in (h, w)]
    place = np.arange(h * w).reshape(h, w)
    seen = {}
    for position, (_, oh, ow), (_, ih, iw) in windows.positions(h, w, a):
        numbers = np.arange(np.prod(shape)).reshape(shape)[oh, ow]
        seen |= {(position, number): at for number, at in zip(numbers.flat, place[ih, iw].flat, strict=True)}
    expected = {}
    for oh, ow, kh, kw in np.ndindex(*shape, k, k):
        ih, iw = oh * s - p + kh * d, ow * s - p + kw * d
        if 0 <= ih < h and 0 <= iw < w:
            expected[kh * k + kw, oh * shape[1] + ow] = ih * w + iw
    assert seen == expected


# ---- the rows -------------------------------------------------------------------------------------------------------


def test_the_rows_are_distinct_and_possible():
    assert len({(case.operator, case.title) for case in cases.CASES}) == len(cases.CASES)
    for case in cases.CASES:
        assert case.operator in OPERATORS
        assert set(case.dtypes) <= set(DTYPES)
        # Two planes of the row's own size are enough to see that it runs.
        report.run(replace(case, shape=(1, 2, *case.shape[2:])), "float32", [], budget=0.001)


def test_every_operator_has_rows_and_a_tiny_one_in_one_call():
    assert set(SMALL) == set(OPERATORS)
    for operator in GRADIENTS:
        rows = [case for case in cases.CASES if case.operator == operator]
        assert set(rows[0].dtypes) == {dtype for name, dtype in EVERY_DTYPE if name == operator}
        assert any(math.prod(case.shape) <= 256 and case.form is Form.CALL for case in rows)


def test_the_bytes_of_a_problem_are_those_it_must_read_and_write():
    def of(operator, dtype="float16", **attributes):
        return small(dtype, operator=operator, **attributes).nbytes

    assert of("avg_pool2d_backward", kernel_size=2, stride=2, shape=(1, 1, 4, 6)) == 2 * (6 + 24)
    assert of("im2col_backward", kernel_size=2, stride=2, shape=(1, 1, 4, 6)) == 2 * (24 + 24)
    assert of("replication_pad2d_backward", "complex64", padding=1, shape=(1, 1, 4, 6)) == 8 * (48 + 24)
    assert of("upsample_nearest_exact1d_backward", output_size=7, shape=(1, 1, 5)) == 2 * (7 + 5)
    # 17 channels are two groups, whose words are of 2 bytes each; an argmax is of 4 bytes.
    pool = {"kernel_size": 2, "stride": 2, "shape": (1, 17, 4, 6)}
    assert of("max_pool2d_with_mask_backward", **pool) == 17 * 2 * (6 + 24) + 2 * 4 * 6 * 2
    assert of("max_pool2d_with_mask_backward", **pool, mask_layout="argmax") == 17 * (2 * (6 + 24) + 4 * 6)
    # The forward writes its mask to the end: 4 positions of one row of 16 words and one more.
    assert of("max_pool2d_with_mask", **pool) == 17 * (2 * (6 + 24) + 4 * 64)


# ---- timing ---------------------------------------------------------------------------------------------------------


def test_the_yardstick_is_measured_where_bytes_count():
    larger = small(shape=(2, 16, 64, 64)).case  # 512 KiB of gradInput
    assert report.run(larger, "float32", [], budget=0.001).copies.median > 0
    assert report.run(small().case, "float32", [], budget=0.001).copies is None
    assert report.run(small().case, "float32", [], budget=0.001, copies_from=0).copies.median > 0
    # A figure of the two-phase forms is about the calls.
    assert report.run(replace(larger, form=Form.PHASE_2), "float32", [], budget=0.001).copies is None


def test_statements_take_turns_and_the_order_turns_round():
    log = []
    statements = {
        name: timing.Statement(f"log.append({name!r}); sleep(0.002)", {"log": log, "sleep": timing.time.sleep})
        for name in "abc"
    }
    samples = timing.measure(statements, budget=0.001, nbytes=1 << 40, min_rounds=4)
    assert {name: len(times) for name, times in samples.items()} == dict.fromkeys("abc", 4)
    assert "".join(log[-12:]) == "abccbaabccba"
    assert all(2e6 < time < 2e9 for times in samples.values() for time in times)


def test_small_arrays_are_touched_before_each_sample():
    runs = {}
    for nbytes in 0, 1 << 40:
        log = []
        statement = timing.Statement("log.append(1); sleep(0.002)", {"log": log, "sleep": timing.time.sleep})
        timing.measure({"a": statement}, budget=0.001, nbytes=nbytes, min_rounds=3)
        runs[nbytes] = len(log)
    assert runs[0] == runs[1 << 40] + 3


def test_short_statements_are_repeated_within_a_sample():
    samples = timing.measure({"a": timing.Statement("pass", {})}, budget=0.001, nbytes=0, min_rounds=2)
    assert all(time < 1e4 for time in samples["a"])


def test_spread_and_ratio_are_quartiles():
    assert timing.Spread.of([5.0, 1.0, 2.0, 4.0, 3.0]) == timing.Spread(2, 3, 4)
    # Round by round, not of the medians: 2, 3, 4, 0.5, 1.
    assert timing.ratio([2.0, 6, 4, 5, 7], [1.0, 2, 1, 10, 7]) == timing.Spread(1, 2, 3)


def test_the_yardstick_moves_the_bytes():
    statement = timing.plain_copy(1000)
    names = statement.names
    assert names["source"].nbytes + names["target"].nbytes == 1000
    statement.run()
    assert np.array_equal(names["source"], names["target"])


def test_units():
    spread = [timing.Spread(0, value, 0) for value in (0.4, 999.4, 1234, 123456, 1234567, 123456789, 5e9)]
    shown = ["0 ns", "999 ns", "1.23 us", "123.5 us", "1.23 ms", "123.5 ms", "5000.0 ms"]
    assert [report.duration(value) for value in spread] == shown


@pytest.mark.parametrize(("load", "busy"), [(None, False), (0.1, False), (1.1, True)])
def test_the_header_tells_what_the_figures_depend_on(load, busy):
    environment = {**machine.environment([WrongPeer()], 2), "load": load, "cores": 2, "cpu": "Some CPU 9000"}
    text = report.header(environment)
    for part in aclnn_bw.__version__, np.__version__, "Some CPU 9000", "2 threads", "wrong 1", environment["isa"]:
        assert part in text
    assert ("BUSY" in text) == busy


def test_a_table_with_two_peers_takes_two_lines():
    times = report.Times(timing.Spread(1, 2, 3), None)
    comparison = report.Comparison(times, timing.Spread(1, 2, 3), None)
    copies = timing.Spread(1.2, 1.25, 1.3)
    rivals = {"p": comparison, "q": comparison}
    row = report.Row("op", "a case", "float32", 10, 5, "", times, times.into, copies, rivals, streams=times.into)
    first, second = report.Table(["a case"]).lines(row)
    assert " ".join(first.split()) == "a case float32 2 ns - p 2 ns - 2.00 (1.00-3.00) - 1.25 80 % 2.00"
    assert " ".join(second.split()) == "q 2 ns - 2.00 (1.00-3.00) -"
    assert second.index("q") == first.index(" p ") + 1


# ---- the peers ------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch_on_one_thread():
    """Small arrays need no more, and on a busy machine a second thread is waited for."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(before)


@pytest.mark.torch
@pytest.mark.parametrize(("operator", "dtype"), EVERY_DTYPE)
def test_torch_is_right_and_compared(operator, dtype, torch_on_one_thread):
    row = report.run(small(dtype, operator=operator).case, dtype, [peers.KNOWN["torch"](1)], budget=0.001)
    comparison = row.peers["torch"]
    assert comparison.into_ratio.median > 0
    assert comparison.fresh_ratio.median > 0


@pytest.mark.torch
def test_torch_must_write_into_the_memory_it_is_given(torch_on_one_thread):
    class Copies:
        """Operators that put a copy of x into no memory of ours."""

        default = out = staticmethod(lambda x, out=None: x.clone())

    torch = peers.KNOWN["torch"](1)
    torch.torch = SimpleNamespace(
        from_numpy=torch.torch.from_numpy, ops=SimpleNamespace(aten=SimpleNamespace(copies=Copies))
    )
    with pytest.raises(RuntimeError, match="memory it was given"):
        torch._overloads(small(), "copies", "x", "out")


@pytest.mark.torch
def test_a_dtype_that_torch_lacks_is_left_out(torch_on_one_thread):
    assert peers.KNOWN["torch"](1).contestant(small("complex64", operator="upsample_nearest_exact1d_backward")) is None


# ---- the file of each CPU -------------------------------------------------------------------------------------------

ISAS = aclnn_bw.show_config(mode="dict")["isa_available"]


def test_results_of_every_instruction_set(capsys, tmp_path):
    file, figures = tmp_path / "new" / "cpu.md", tmp_path / "figures.json"
    chosen = ["--case", TINY, "--case", "64x3x32x32", "--dtype", "float32"]
    assert results.main(["--quick", *chosen, "--output", str(file), "--json", str(figures)]) == 0
    rows = json.loads(figures.read_text())["rows"]
    assert len(rows) == len(Form) + 2
    assert all(list(row["times"]) == ISAS for row in rows)
    assert all(list(row["ratios"]) == ISAS[1:] for row in rows)
    # The copy is measured where bytes count.
    assert [list(row["copies"]) for row in rows] == [[]] * len(Form) + [ISAS] * 2

    text = file.read_text()
    lines = text.splitlines()
    assert lines[0] == f"# {machine.cpu_model()}"
    for part in f", aclnn_bw {aclnn_bw.__version__}, ", "1 thread, 0.02 s a case", f"NumPy {np.__version__}":
        assert part in text
    assert [line[3:] for line in lines if line.startswith("## ")] == [
        "avg_pool2d_backward",
        "replication_pad2d_backward",
        "replication_pad2d",
    ]
    tables = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    ratios, copies = [f"{isa} / {ISAS[0]}" for isa in ISAS[1:]], [f"{isa} copies" for isa in ISAS]
    heading = ["case", "dtype", "MiB", *ISAS, *ratios, *copies]
    assert tables[0] == heading
    assert {len(cells) for cells in tables} == {len(heading)}
    assert [cells[0] for cells in tables if cells[1] == "float32"] == [row["case"] for row in rows]
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == str(file)
    assert [" ".join(cells) for cells in tables if cells[1] == "float32"] == [
        " ".join(line.split()) for line in printed if "  float32  " in line
    ]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ([], True),
        (["--seconds", "0.5"], True),
        (["--quick"], False),
        (["--threads", "2"], False),
        (["--dtype", "float32"], False),
        (["--operator", "im2col_backward"], False),
        (["--case", TINY], False),
    ],
)
def test_only_a_full_run_replaces_the_file(arguments, written):
    file = results._file(results._parser().parse_args(arguments), "AMD EPYC, family 26, model 2")
    assert file == (ROOT / "benchmarks" / "results" / "amd-epyc-family-26-model-2.md" if written else None)


def test_other_bytes_on_an_instruction_set_are_not_timed(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(results, "digest_of", lambda arrays: "another")
    file = tmp_path / "cpu.md"
    assert results.main(["--quick", "--case", "1x2x4x4", "--output", str(file)]) == 1
    expected = f"replication_pad2d_backward 1x2x4x4 p1 float32: the result on {ISAS[0]} has other bytes"
    assert expected in capsys.readouterr().out
    assert not file.exists()


def test_results_of_several_threads(capsys):
    assert results.main(["--quick", "--threads", "2", "--case", "1x2x4x4"]) == 0
    assert "2 threads for everybody" in capsys.readouterr().out


def test_the_yardstick_is_timed_as_a_worker_is():
    copy = results._Copy(1 << 16, 1)
    samples = {"copy": []}
    against.take_turns([copy], samples, budget=0.001, settle=0.0)
    assert len(samples["copy"]) >= 4
    assert min(samples["copy"]) > 0


@pytest.mark.parametrize(
    ("cpuinfo", "name", "slug"),
    [
        ("model name\t: AMD EPYC\ncpu family\t: 26\nmodel\t\t: 2\n", "AMD EPYC, family 26, model 2",
         "amd-epyc-family-26-model-2"),
        ("cpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\n",
         "Intel(R) Xeon(R) CPU @ 2.20GHz, family 6, model 85", "intel-xeon-cpu-family-6-model-85"),
        ("model name\t: AMD EPYC 9B14 96-Core\ncpu family\t: 25\nmodel\t: 17\n\nmodel name\t: another\n",
         "AMD EPYC 9B14 96-Core", "amd-epyc-9b14-96-core"),
        (None, None, None),
    ],
)  # fmt: skip
def test_a_processor_is_named(tmp_path, cpuinfo, name, slug):
    file = tmp_path / "cpuinfo"
    if cpuinfo:
        file.write_text(cpuinfo)
    assert machine.cpu_model(file) == (name or machine.platform.processor() or machine.platform.machine())
    assert results.slug(machine.cpu_model(file)) == (slug or results.slug(machine.cpu_model(file)))
