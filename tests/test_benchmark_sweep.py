"""The sweep: what it draws is possible, spread evenly and drawn again by its number, and its verdict adds up."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import aclnn_bw
from benchmarks import cases, sweep
from benchmarks.check import WrongResult
from benchmarks.operators import OPERATORS
from benchmarks.problem import Case, check_contestant
from benchmarks.report import Comparison, Row, Times
from benchmarks.timing import Spread, Statement

DRAWN = [sweep.drawn(3, number) for number in range(400)]
# One of each operator that takes no time.
SMALL = {case.operator: (case, dtype) for case, dtype in DRAWN if case.nbytes < 64 << 10}


def test_a_number_is_one_case():
    assert sweep.drawn(3, 7) == DRAWN[7]
    assert DRAWN[7][0].title.endswith(" #7")
    assert sweep.drawn(4, 7) != DRAWN[7]


def test_everything_is_drawn():
    counts = Counter((case.operator, dtype) for case, dtype in DRAWN)
    assert {operator for operator, _ in counts} == set(OPERATORS)
    for operator, of_it in OPERATORS.items():
        assert {dtype for name, dtype in counts if name == operator} == set(of_it.small()[0].dtypes)
    attributes = [case.attributes for case, _ in DRAWN]
    for name, values in {
        "kernel_size": set(range(1, 14)), "stride": set(range(1, 9)), "dilation": {2, 3, 4}, "ceil_mode": {True},
        "count_include_pad": {False}, "mask_layout": {"bitmask", "argmax"}, "index": {"int64", "int32"},
    }.items():  # fmt: skip
        assert values <= {each[name] for each in attributes if name in each}


def test_sizes_are_spread_evenly():
    sizes = [case.nbytes for case, _ in DRAWN]
    assert min(sizes) > 2 << 10
    assert max(sizes) < 512 << 20
    octaves = Counter(min(max(round(math.log2(size / (4 << 10))), 1), 15) for size in sizes)
    assert all(10 < octaves[octave] < 50 for octave in range(1, 16))


def test_small_planes_are_drawn():
    small = [sweep.drawn(3, number, small=True)[0] for number in range(200)]
    assert sweep.drawn(3, 7, small=True)[0] == small[7]
    assert all(4 <= side < 36 for case in small for side in case.shape[2:] if len(case.shape) == 4)
    assert {side for case in small for side in case.shape[2:]} >= set(range(4, 36))
    assert 128 << 10 < min(case.nbytes for case in small) < 1 << 20 < max(case.nbytes for case in small) < 16 << 20


@pytest.mark.parametrize(("case", "dtype"), SMALL.values(), ids=SMALL)
def test_a_case_is_checked_and_timed(case, dtype):
    row = sweep.run(case, dtype, [], budget=0.001)
    assert row.ours.into.median > 0
    assert row.ours.fresh is row.copy is None
    assert row.case == case.title
    assert row.nbytes == case.nbytes


def test_every_operator_has_a_small_case():
    assert set(SMALL) == set(OPERATORS)


PLACES = [
    (f"max_pool2d_with_{kind}{suffix}", attributes)
    for kind, attributes in (("mask", {"mask_layout": "argmax"}), ("indices", {"index": "int32"}))
    for suffix in ("", "_backward")
]


@pytest.mark.parametrize(("operator", "attributes"), [(name, {}) for name in OPERATORS] + PLACES)
def test_planes_that_repeat_others_are_the_problem_of_all(operator, attributes):
    case = OPERATORS[operator].small()[0]
    whole = Case(operator, (3, 36, *case.shape[2:]), {**case.attributes, **attributes})
    with cases.rules(whole):
        posed, references = cases.posed_by_planes(whole, "float32", planes=17)
        assert posed.pieces == 3  # of 12 channels
        assert posed.nbytes == OPERATORS[operator].problem(whole, posed.dtype, np.random.default_rng(0)).nbytes
        ours = OPERATORS[operator].ours(posed)
        check_contestant(ours, posed, references, accumulated_in=posed.dtype)

        def with_a_wrong_last_element():
            ours.into.run()
            ours.outs[0].reshape(-1)[-1] += 1

        wrong = replace(ours, into=Statement("run()", {"run": with_a_wrong_last_element}))
        with pytest.raises(WrongResult, match="from image 8 on"):
            check_contestant(wrong, posed, references, accumulated_in=posed.dtype)


def test_the_options_choose(capsys):
    arguments = ["--list", "--seed", "3", "--cases", "4", "--operator", "im2col", "--dtype", "float16"]
    assert sweep.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("im2col  ") and line.endswith("  float16") for line in lines)
    assert sweep.main(["--list", "--seed", "3", "--only", "7"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line == f"{DRAWN[7][0].operator}  {DRAWN[7][0].title}  {DRAWN[7][1]}"
    assert sweep.main(["--list", "--small", "--seed", "3", "--only", "7"]) == 0
    case, dtype = sweep.drawn(3, 7, small=True)
    assert capsys.readouterr().out == f"{case.operator}  {case.title}  {dtype}\n"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--peers", "torch,nobody"], "nobody: must be one of torch"),
        (["--cases", "0"], "no case matches"),
        (["--only", "-1"], "-1: must be >= 0"),
        (["--isa", "v5"], "v5"),
    ],
)
def test_bad_arguments(capsys, arguments, part):
    with pytest.raises(SystemExit) as end:
        sweep.main(arguments)
    assert end.value.code == 2
    assert part in capsys.readouterr().err.splitlines()[-1]


def test_a_run_prints_a_table_and_writes_the_figures(capsys, tmp_path):
    file, (case, _) = tmp_path / "figures.json", SMALL["avg_pool2d"]
    arguments = ["--quick", "--no-peers", "--threads", "1", "--seed", "3", "--only", str(case.number)]
    assert sweep.main([*arguments, "--json", str(file)]) == 0
    assert f"\navg_pool2d {case.title} " in capsys.readouterr().out
    figures = json.loads(file.read_text())
    assert (figures["seed"], figures["wrong"]) == (3, [])
    assert [row["case"] for row in figures["rows"]] == [case.title]


def test_another_instruction_set_is_another_process(monkeypatch):
    current = aclnn_bw.show_config(mode="dict")["isa"]
    monkeypatch.delenv("ACLNN_BW_ISA", raising=False)
    seen = []

    def run(command, env, check):
        seen.append((command[1:], env["ACLNN_BW_ISA"]))
        return type("Done", (), {"returncode": 3})

    monkeypatch.setattr(sweep.subprocess, "run", run)
    arguments = ["--isa", "v3" if current == "v2" else "v2", "--only", "0"]
    assert sweep.main(arguments) == 3
    assert seen == [(["-m", "benchmarks.sweep", *arguments], arguments[1])]
    monkeypatch.setenv("ACLNN_BW_ISA", current)
    with pytest.raises(SystemExit):
        sweep.main(arguments)


@pytest.mark.torch
@pytest.mark.parametrize("found", [0.5, 1.0])
def test_a_slow_case_is_timed_again(monkeypatch, found):
    torch = pytest.importorskip("torch")
    budgets, right, threads = [], sweep.run_case, torch.get_num_threads()

    def slow(*arguments, budget, **options):
        budgets.append(budget)
        return right(*arguments, budget=0.001, **options)

    monkeypatch.setattr(sweep, "run_case", slow)
    monkeypatch.setattr(sweep, "ratio_of", lambda comparison: Spread(found, found, found))
    try:
        row = sweep.run(*SMALL["avg_pool2d"], [sweep.KNOWN["torch"](1)], budget=0.5)
    finally:
        torch.set_num_threads(threads)
    # What the peer wins is compared with copies too.
    assert budgets == ([0.5, 2.0, 0.5] if found < 1 else [0.5, 2.0])
    assert (row.copies is not None) == (found < 1)
    assert row.peers["torch"].into_ratio.median > 0
    assert row.peers["torch"].fresh_ratio is None


def row(operator, number, dtype, **ratios):
    time = Spread(1e3, 1e3, 1e3)
    peers = {
        name: Comparison(Times(time, None), Spread(value, value, value), None) for name, value in ratios.items()
    }
    return Row(operator, f"1x1x4x4 #{number}", dtype, 4096, 3, "", Times(time, None), None, None, peers)


def test_the_verdict():
    rows = [
        row("im2col", 0, "float32", a=4.0, b=2.0),
        row("im2col", 1, "float16", a=0.5),
        row("avg_pool2d", 2, "float32", a=0.9),
        row("avg_pool2d", 3, "float32", a=0.97),
    ]
    first, second = sweep.verdict(rows).split("\n\n")
    lines = [" ".join(line.split()) for line in first.splitlines()]
    assert lines[0] == "a: 4 cases, geometric mean 1.15, lowest 0.50"
    assert lines[1] == "below 0.95: 2 (50.0 %); below 0.8: 1"
    assert lines[2] == "geometric mean, lowest all float32 float16"
    assert lines[3] == "all 1.15, 0.50 1.52, 0.90 0.50, 0.50"
    assert set(lines[4:6]) == {"im2col 1.41, 0.50 4.00, 4.00 0.50, 0.50", "avg_pool2d 0.93, 0.90 0.93, 0.90 -"}
    assert [line.split(" ours ")[0] for line in lines[6:]] == [
        "0.50 (0.50-0.50) im2col 1x1x4x4 #1 float16, 4.00 KiB,",
        "0.90 (0.90-0.90) avg_pool2d 1x1x4x4 #2 float32, 4.00 KiB,",
        "0.97 (0.97-0.97) avg_pool2d 1x1x4x4 #3 float32, 4.00 KiB,",
    ]
    assert "below 0.95: 0 (0.0 %); below 0.8: none" in second
    copies = replace(rows[1], copies=Spread(1.3, 1.3, 1.3))
    assert sweep.verdict([copies]).endswith(" float16, 4.00 KiB, ours 1.00 us = 1.3 copies")
    assert sweep.verdict([replace(copies, streams=Spread(2.0, 2.0, 2.0))]).endswith(" ours 1.00 us = 2.0 copies")
    assert " float16, 4.00 KiB, 3.00 KiB of it places, ours 1.00 us" in sweep.verdict([replace(copies, places=3072)])
