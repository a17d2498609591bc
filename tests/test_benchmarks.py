"""The benchmark: it lists, runs and reports, times in turn, and never times a wrong result."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference
from helpers import DTYPES

import aclnn_bw
from benchmarks import __main__ as program
from benchmarks import cases, peers, report, timing
from benchmarks.check import Reference, WrongResult, check

ROOT = Path(__file__).resolve().parent.parent
TINY = "1x16x4x4 k4"
AVG = cases.OPERATORS["avg_pool2d_backward"]


def command(*arguments):
    """`python -m benchmarks` as its reader starts it: in the root of the repository."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("ACLNN_BW_")}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def small(dtype="float32", form=cases.Form.CALL, shape=(2, 3, 9, 10), **attributes):
    """A small problem of the average pool."""
    case = cases.Case("avg_pool2d_backward", shape, attributes or {"kernel_size": 3, "stride": 2, "padding": 1}, form)
    return AVG.problem(case, DTYPES[dtype], np.random.default_rng(1))


# ---- the command ----------------------------------------------------------------------------------------------------


def test_list_shows_every_case_in_every_dtype():
    done = command("--list")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == sum(len(case.dtypes) for case in cases.CASES)
    assert "avg_pool2d_backward  32x256x35x35 k3 s1 p1  bfloat16" in done.stdout.splitlines()


def test_filters(capsys):
    arguments = ["--list", "--operator", "avg_pool2d_backward", "--case", "k2 s2", "--case", "k7", "--dtype", "float16"]
    assert program.main(arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        "avg_pool2d_backward  32x64x112x112 k2 s2  float16",
        "avg_pool2d_backward  32x2048x7x7 k7  float16",
    ]


def test_a_quick_run_prints_a_table_and_writes_the_figures(tmp_path):
    file = tmp_path / "figures.json"
    done = command("--quick", "--no-peers", "--threads", "1", "--case", TINY, "--json", str(file), "--progress")
    assert done.returncode == 0, done.stderr
    selected = [case for case in cases.CASES if TINY in case.title]
    assert len(selected) == len(cases.Form)

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


# ---- a wrong result is not timed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", cases.Form)
def test_our_results_pass_the_check(dtype, form):
    row = report.run(replace(small(dtype).case, form=form), dtype, [], budget=0.001)
    assert row.ours.into.median > 0
    assert (row.ours.fresh is not None) == (form is cases.Form.CALL)


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
    assert printed.count("WRONG RESULT, not timed") == len(cases.Form)
    figures = json.loads(file.read_text())
    assert figures["rows"] == []
    assert len(figures["wrong"]) == len(cases.Form)
    assert "element (0, 3, 2, 1)" in figures["wrong"][0]
    assert "1 of 256 elements are wrong" in figures["wrong"][0]


def test_fresh_results_are_checked_as_well(monkeypatch):
    right = aclnn_bw.avg_pool2d_backward

    def wrong_when_it_allocates(*arguments, out=None):
        return np.zeros(arguments[1].shape, np.float32) if out is None else right(*arguments, out=out)

    monkeypatch.setattr(aclnn_bw, "avg_pool2d_backward", wrong_when_it_allocates)
    with pytest.raises(WrongResult, match="fresh output"):
        report.run(small().case, "float32", [], budget=0.001)


class WrongPeer:
    """A framework that computes zeros."""

    name, version = "wrong", "1"

    def set_threads(self, count):
        """Nothing to set."""

    def contestant(self, problem):
        out = np.empty_like(problem.inputs["x"])
        return cases.Contestant(self.name, timing.Statement("out.fill(0)", {"out": out}), out, None)


def test_wrong_results_of_a_peer_are_caught():
    with pytest.raises(WrongResult, match=r"^wrong, avg_pool2d_backward 2x3x9x10 k3 s2 p1 float32: element"):
        report.run(small().case, "float32", [WrongPeer()], budget=0.001)


def test_a_peer_that_does_not_offer_the_case_is_left_out():
    peer = WrongPeer()
    peer.contestant = lambda problem: None
    assert report.run(small().case, "float32", [peer], budget=0.001).peers == {}


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_check_is_sharp(dtype):
    dtype = DTYPES[dtype]
    sums = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
    exact = np.array([1.0, -2.0, 0.0, 100.0])
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
    for bad in result[:3], result.astype(np.int64):
        with pytest.raises(WrongResult, match="must be"):
            check(bad, expected, dtype, accumulated_in=sums, who="x")


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
def test_the_formula_is_the_tests_formula(attributes):
    problem = small("float64", **attributes)
    grad_output = problem.inputs["grad_output"]
    seen = AVG.reference(problem)
    exact = reference.avg_pool2d_backward(grad_output, problem.case.shape, **attributes)
    magnitude, terms = reference.sum_abs_and_terms(grad_output, problem.case.shape, **attributes)
    np.testing.assert_allclose(seen.exact, exact, rtol=0, atol=1e-14)
    np.testing.assert_allclose(seen.magnitude, magnitude, rtol=0, atol=1e-14)
    assert seen.terms >= terms.max()
    report.run(problem.case, "float64", [], budget=0.001)


# ---- the rows -------------------------------------------------------------------------------------------------------


def test_the_rows_are_distinct_and_possible():
    assert len({(case.operator, case.title) for case in cases.CASES}) == len(cases.CASES)
    for case in cases.CASES:
        assert case.operator in cases.OPERATORS
        assert set(case.dtypes) <= set(cases.DTYPES)
        # Two planes of the row's own size are enough to see that it runs.
        report.run(replace(case, shape=(1, 2, *case.shape[2:])), "float32", [], budget=0.001)


def test_the_bytes_of_a_problem_are_those_it_must_read_and_write():
    assert small("float16", kernel_size=2, stride=2, shape=(1, 1, 4, 6)).nbytes == 2 * (6 + 24)


# ---- timing ---------------------------------------------------------------------------------------------------------


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
    assert [report._duration(value) for value in spread] == shown


@pytest.mark.parametrize(("load", "busy"), [(None, False), (0.1, False), (1.1, True)])
def test_the_header_tells_what_the_figures_depend_on(load, busy):
    environment = {**report.environment([WrongPeer()], 2), "load": load, "cores": 2, "cpu": "Some CPU 9000"}
    text = report.header(environment)
    for part in aclnn_bw.__version__, np.__version__, "Some CPU 9000", "2 threads", "wrong 1", environment["isa"]:
        assert part in text
    assert ("BUSY" in text) == busy


def test_a_table_with_two_peers_takes_two_lines():
    times = report.Times(timing.Spread(1, 2, 3), None)
    comparison = report.Comparison(times, timing.Spread(1, 2, 3), None)
    copies = timing.Spread(1.2, 1.25, 1.3)
    rivals = {"p": comparison, "q": comparison}
    row = report.Row("op", "a case", "float32", 10, 5, "", times, times.into, copies, rivals)
    first, second = report.Table(["a case"]).lines(row)
    assert " ".join(first.split()) == "a case float32 2 ns - p 2 ns - 2.00 (1.00-3.00) - 1.25 80 %"
    assert " ".join(second.split()) == "q 2 ns - 2.00 (1.00-3.00) -"
    assert second.index("q") == first.index(" p ") + 1


# ---- the peers ------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_is_right_and_compared(dtype):
    pytest.importorskip("torch")
    row = report.run(small(dtype).case, dtype, [peers.Torch()], budget=0.001)
    comparison = row.peers["torch"]
    assert comparison.into_ratio.median > 0
    assert comparison.fresh_ratio.median > 0


@pytest.mark.torch
def test_torch_must_write_into_the_memory_it_is_given():
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="memory it was given"):
        peers.Torch()._contestant(small(), fresh="x", into="x.clone()")


@pytest.mark.torch
def test_torch_is_told_its_threads():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    try:
        peers.Torch().set_threads(1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_peers_that_are_not_installed_are_left_out(monkeypatch):
    class Missing(WrongPeer):
        def __init__(self):
            raise ImportError("not here")

    monkeypatch.setattr(peers, "KNOWN", (Missing, WrongPeer))
    assert [type(peer) for peer in peers.installed()] == [WrongPeer]
