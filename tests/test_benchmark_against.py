"""Two environments in turn: here this one beside itself, and beside one whose results are wrong."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import aclnn_bw
from benchmarks import against, cases, command
from benchmarks.check import WrongResult
from benchmarks.operators import OPERATORS
from benchmarks.problem import Case
from benchmarks.timing import Spread
from benchmarks.variations import Row

ROOT = Path(__file__).resolve().parent.parent
TINY = "1x16x4x4 k4"
# Never too slow, however loaded the machine is.
ANYTHING = ["--least", "0.001", "--tolerance", "0.999"]


def program(*arguments, other=sys.executable):
    """`python -m benchmarks.against` as its reader starts it: in the root of the repository."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("ACLNN_BW_")}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.against", str(other), "--seconds", "0.01", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def row(median, high, case="1x2x3x4"):
    times = {"this": Spread(1.0, 2.0, 3.0), "other": Spread(1.0, 2.0, 3.0)}
    return Row("avg_pool2d_backward", case, "float32", 1 << 20, 9, times, {"other": Spread(0.1, median, high)})


@pytest.fixture(scope="module")
def both():
    """Two processes of this environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ACLNN_BW_")}
    workers = [against.Worker(name, sys.executable, environment) for name in ("this", "other")]
    for worker in workers:
        assert worker.ask("start", 1)["threads"] == 1
    yield workers
    for worker in workers:
        worker.close()


def test_this_beside_itself(tmp_path):
    file = tmp_path / "figures.json"
    done = program("--case", TINY, "--dtype", "float32", "--json", str(file), *ANYTHING)
    assert (done.returncode, done.stderr) == (0, "")
    head, table = done.stdout.split("avg_pool2d_backward\n")
    folder = Path(aclnn_bw.__file__).parent
    assert f"this: {folder}\n" in head
    assert f"other: {folder}\n" in head
    assert head.count("1 thread for everybody") == 2
    heading, _, *lines = table.splitlines()
    assert heading.split() == ["case", "dtype", "MiB", "this", "other", "ratio"]
    rows, (mean, lowest, late) = lines[:-4], lines[-3:]
    assert [line.split("  ")[0] for line in rows] == [
        case.title for case in cases.CASES if case.operator == "avg_pool2d_backward" and TINY in case.title
    ]
    assert {len(line) for line in rows} == {len(heading)}
    assert mean.startswith("geometric mean")
    assert lowest.startswith("lowest ")
    assert late.startswith("too slow        0 ")
    figures = json.loads(file.read_text())
    assert figures["wrong"] == []
    assert len(figures["rows"]) == len(rows)
    assert all(list(row["ratios"]) == ["other"] for row in figures["rows"])


def test_a_slow_case_ends_in_1():  # the gradient and its forward
    done = program("--case", "2x4x8 -> 16", "--least", "1000")
    assert (done.returncode, done.stderr) == (1, "")
    assert ")  SLOWER\n" in done.stdout
    assert "too slow        2 (below 1000.0 " in done.stdout


def test_every_thread_and_instruction_set_that_is_asked_for():
    done = program("--case", "1x4x6x6", "--isa", "v2", "--threads", "2", *ANYTHING)
    if "v2" not in aclnn_bw.show_config(mode="dict")["isa_available"]:
        assert done.returncode == 2
        assert "--isa v2: this uses " in done.stderr.splitlines()[-1]
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("instruction set v2") == 2
        assert done.stdout.count("2 threads for everybody") == 2


@pytest.mark.skipif(os.name != "posix", reason="the other environment is a shell script")
def test_other_bytes_are_noticed(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import aclnn_bw\n"
        "right = aclnn_bw.avg_pool2d_backward\n"
        "def wrong(*arguments, out):\n"
        "    right(*arguments, out=out)\n"
        "    out[0, 3, 2, 1] += 1\n"
        "    return out\n"
        "aclnn_bw.avg_pool2d_backward = wrong\n"
    )
    path = os.pathsep.join(map(str, (tmp_path, Path(aclnn_bw.__file__).parent.parent)))
    other = tmp_path / "python"
    other.write_text(f"#!/bin/sh\nPYTHONPATH='{path}' exec '{sys.executable}' \"$@\"\n")
    other.chmod(0o755)
    done = program("--case", TINY, "--case", "1x4x6x6", *ANYTHING, other=other)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if "WRONG RESULT, not timed" in line]
    assert len(wrong) == 1  # the two phases do not go through that function
    assert f"avg_pool2d_backward {TINY} float32: the other environment's result has other bytes" in wrong[0]
    assert any(line.startswith("geometric mean") and " of 5 ratios" in line for line in lines)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_in_every_layout(both, operator):
    usual = OPERATORS[operator].small()[-1]
    digests = set()
    for layouts in {}, {"input": "channels last"}, {"input": "padded rows", "output": "channels last"}:
        case = replace(usual, attributes={**usual.attributes, **layouts})
        assert against.run(case, "bfloat16", both, budget=0.001, settle=0.0, least=0.001).rounds >= 4
        digests |= {worker.ask("digest") for worker in both}
    assert len(digests) == 1


@pytest.mark.parametrize("case", against.EXTRA, ids=lambda case: f"{case.operator} {case.title}")
def test_extra_cases_can_be_posed(case):
    assert set(case.attributes) <= {*OPERATORS[case.operator].signature, "mask_layout", "input", "output"}
    _, channels, *image = case.shape
    small = Case(case.operator, (1, min(channels, 2), *image), case.attributes)
    work = against._Work(small, "float32", 1)
    assert len(work.digest()) == 32
    work.close()


def test_extra_cases_are_others():
    titles = [(case.operator, case.title) for case in (*cases.CASES, *against.EXTRA)]
    assert len(set(titles)) == len(titles)
    assert {case.operator for case in against.EXTRA} == set(OPERATORS)


def test_a_case_that_seems_slow_is_timed_again(monkeypatch):
    class Both:
        def __init__(self, name, times):
            self.name, self.times, self.asked = name, iter(times), []

        def ask(self, what, *arguments):
            self.asked.append(what)
            return {"pose": ("digest", 1), "move": None, "repeats": 1}.get(what) or next(self.times)

    monkeypatch.setattr(against, "_MOVES", 1)
    this, other = Both("this", [2.0] * 5 + [1.0] * 20), Both("other", [1.0] * 25)
    found = against.run(cases.CASES[0], "float32", (this, other), budget=1e-9, settle=0.0, least=0.97)
    assert found.rounds == 10
    assert this.asked.count("move") == 2
    this = Both("this", [1.0] * 25)
    assert against.run(cases.CASES[0], "float32", (this, other), budget=1e-9, settle=0.0, least=0.97).rounds == 5
    other.ask = lambda what, *arguments: ("another", 1)
    with pytest.raises(WrongResult, match="other bytes"):
        against.run(cases.CASES[0], "float32", (this, other), budget=1e-9, settle=0.0, least=0.97)


@pytest.mark.parametrize(
    ("quotients", "good"),
    [
        ([(1.0, 1.1)], True),
        ([(0.9, 1.1), (1.2, 1.3)], True),  # only some of the rounds
        ([(0.9, 0.96), (1.2, 1.3)], False),
        ([(0.98, 1.1), (0.98, 1.1)], False),  # all a little
        ([(0.98, 1.1), (1.02, 1.1)], True),
        ([], False),
    ],
)
def test_verdict(quotients, good):
    text, seen = against.verdict([row(*quotient) for quotient in quotients], least=0.97, tolerance=0.01)
    assert seen is good
    if quotients:
        mean = np.exp(np.mean(np.log([median for median, _ in quotients])))
        assert text.startswith(f"geometric mean  {mean:.3f} of {len(quotients)} ratios (least 0.990)\nlowest ")


def test_what_a_worker_cannot_do_is_skipped(both):
    with pytest.raises(command.Skipped, match="other: "):
        both[1].ask("pose", Case("avg_pool2d_backward", (1, 1, 2, 2), {"kernel_size": 3, "stride": 1}), "float32")
    assert both[1].ask("pose", Case("avg_pool2d_backward", (1, 1, 3, 3), {"kernel_size": 3}), "float32")


def test_a_worker_that_ends_is_noticed():
    worker = against.Worker("other", sys.executable, {**os.environ, "PYTHONHASHSEED": "no number"})
    with pytest.raises(against.Lost, match="the process of other has ended with status"):
        worker.ask("start", 1)
    worker.close()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["/no/such/python"], "/no/such/python: No such file or directory"),
        ([sys.executable, "--case", "no such case"], "no case matches"),
        ([sys.executable, "--least", "0"], "must be > 0"),
        ([], "OTHER_PYTHON"),
    ],
)
def test_bad_arguments(capsys, arguments, part):
    with pytest.raises(SystemExit) as end:
        against.main(arguments)
    assert end.value.code == 2
    assert part in capsys.readouterr().err.splitlines()[-1]


def test_list(capsys):
    assert against.main([sys.executable, "--list", "--extra", "--operator", "im2col_backward", "--case", "k11"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"im2col_backward  8x3x127x127 k11 s4 p2  {dtype}" for dtype in ("float32", "float16")
    ]
