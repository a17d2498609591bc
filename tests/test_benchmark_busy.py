"""The benchmarks of a machine that others use, of first calls and untouched memory, and of the fastest copies."""

import json
import os
import shutil
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import aclnn_bw
from benchmarks import busy, first, report, streams
from benchmarks.growth import FAMILIES
from benchmarks.operators import OPERATORS
from benchmarks.timing import Statement

SMALL = FAMILIES["avg"].case(0, "float32")


@pytest.fixture
def small(monkeypatch):
    """One small size, and no peers."""
    for module in busy, first:
        monkeypatch.setattr(module, "_STEPS", (0,))
        monkeypatch.setattr(module, "load", lambda names, threads: ([], [f"{names[0]} is left out: not here"]))


# ---- busy -----------------------------------------------------------------------------------------------------------


def test_a_neighbour_works_until_it_is_no_longer_wanted(monkeypatch):
    started, popen = [], busy.subprocess.Popen
    monkeypatch.setattr(busy.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])
    with busy.neighbour(19):
        (process,) = started
        assert process.poll() is None
        if hasattr(os, "getpriority"):
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
    assert process.returncode
    with busy.neighbour(None):
        assert started == [process]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs sched_setaffinity")
def test_cores_are_given_back():
    cores = os.sched_getaffinity(0)
    with busy.few_cores(1):
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == cores


def test_our_callers_have_their_threads():
    callers = busy.callers(SMALL, [], 2)
    assert {name: caller.threads for name, caller in callers.items()} == {"ours, 2 threads": 2, "ours, 1 thread": 1}
    seen = []
    watched = {
        name: busy.Caller(Statement("see(get())", {"see": seen.append, "get": aclnn_bw.get_num_threads}), threads)
        for name, (_, threads) in callers.items()
    }
    spreads = busy.latencies(watched, 0.001)
    assert set(seen) == {1, 2}
    assert all(0 < spread.median <= spread.late <= spread.latest for spread in spreads.values())


def test_callers_call_at_once():
    together = threading.Barrier(3)
    log = []
    statement = Statement("meet(); log.append(1)", {"meet": together.wait, "log": log})
    assert busy.at_once([statement] * 3, 4) > 0
    assert len(log) == 12


def test_percentiles():
    assert busy.Spread.of([second / 100 for second in range(101)]) == pytest.approx((5e8, 9.5e8, 9.9e8))
    assert str(busy.Spread(1234, 99949, 1e6)) == "1.2, 99.9, 1000"


def test_busy_prints_both_tables_and_writes_the_figures(small, capsys, tmp_path):
    file = tmp_path / "figures.json"
    assert busy.main(["--seconds", "0.001", "--json", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.err == "torch is left out: not here\n"
    rows = json.loads(file.read_text())["rows"]
    titles = ["no neighbour", "neighbour of nice 0", "neighbour of nice 19", "8 callers"]
    assert [row["title"] for row in rows] == titles
    assert [list(row["ns"]) for row in rows] == [["ours, 2 threads", "ours, 1 thread"]] * 3 + [["ours"]]
    lines = [line[:22].strip() for line in printed.out.splitlines()[-7:]]
    assert lines == ["a call", *titles[:3], "", "a call of all", titles[3]]


# ---- first ----------------------------------------------------------------------------------------------------------


def test_the_first_call_of_a_process():
    imported, one, two = first.first_call("ours", 1)
    assert imported > 1e-3
    assert 0 < two < 1
    assert 0 < one < 10


@pytest.mark.torch
def test_the_first_call_of_pytorch():
    pytest.importorskip("torch")
    assert len(first.first_call("torch", 1)) == 3


def test_untouched_memory_is_kept(monkeypatch):
    kept, right = [], first.contestants

    def seen(case, peers):
        contestant = right(case, peers)["ours"]
        call = contestant.fresh.names["avg_pool2d_backward"]
        contestant.fresh.names["avg_pool2d_backward"] = lambda *a, out=None: kept.append(call(*a, out=out)) or kept[-1]
        return {"ours": contestant}

    monkeypatch.setattr(first, "contestants", seen)
    assert all(seconds > 0 for seconds in first.touched("ours", 0, 1))
    assert len({array.ctypes.data for array in kept}) > first._MOST


def test_calls_into_new_pages():
    """Each result is in pages of its own, and every operator takes part."""
    assert {case.operator for case in first.images()} == set(OPERATORS)
    small = [replace(case, shape=(1, 2, *case.shape[2:])) for case in first.images()]
    for case in small:
        assert all(seconds > 0 for seconds in first.into_pages(case, 1, 1))
    array = np.ones((3, 1000), "float16")
    one, other = first.new_pages(array), first.new_pages(array)
    assert one.shape == array.shape
    assert one.dtype == array.dtype
    assert not np.shares_memory(one, other)
    assert not one.any()


def test_first_prints_its_tables_and_writes_the_figures(small, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(first, "first_call", lambda name, threads: [0.2, 0.001, 1e-6])
    monkeypatch.setattr(first, "into_pages", lambda case, threads: [0.001, 0.004, 0.003])
    file = tmp_path / "figures.json"
    assert first.main(["--processes", "1", "--threads", "1", "--json", str(file)]) == 0
    rows = json.loads(file.read_text())["rows"]
    assert rows[0] == {"title": "a small call", "seconds": {"ours": [0.2, 0.001, 1e-6]}}
    assert len(rows[1]["seconds"]["ours"]) == 2
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "small", "call", "200.000", "1.000", "0.001"] in lines
    assert rows[-1]["seconds"] == {"ours": [0.001, 0.004, 0.003]}
    assert lines[-1][-4:] == ["1.000", "4.000", "3.000", "1.00"]


def test_processes_must_be_some(capsys):
    with pytest.raises(SystemExit):
        first.main(["--processes", "0"])
    assert "must be >= 1" in capsys.readouterr().err


# ---- streams --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("lines", [1, 2, 1000])
def test_both_copies_copy(threads, lines):
    statements = streams.copies(2 * 64 * lines, threads)
    assert len(statements) == 2
    for statement in statements.values():
        source, target = statement.names["kept"]
        assert source.nbytes == target.nbytes == 64 * lines
        assert source.ctypes.data % 64 == target.ctypes.data % 64 == 0
        source[:] = np.random.default_rng(0).integers(0, 256, source.size)
        target[:] = 0
        statement.run()
        assert np.array_equal(source, target)


def test_without_a_compiler_there_is_no_such_yardstick(monkeypatch):
    larger = FAMILIES["avg"].case(5, "float32")
    monkeypatch.setattr(streams, "_library", lambda: None)
    row = report.run(larger, "float32", [], budget=0.001)
    assert row.streams is None
    assert report.Table([row.case]).lines(row)[0].endswith(" -")


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_the_fastest_copy_is_the_yardstick(monkeypatch):
    naps = {name: Statement("nap(seconds)", {"nap": time.sleep, "seconds": seconds})
            for name, seconds in (("slow", 0.02), ("quick", 0.002))}  # fmt: skip
    monkeypatch.setattr(report, "copies", lambda nbytes, threads: naps)
    row = report.run(FAMILIES["avg"].case(5, "float32"), "float32", [], budget=0.001)
    assert row.streams.median * 0.01e9 > row.ours.into.median
    assert report.Row.from_json(row.as_json()) == row
