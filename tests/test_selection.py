"""What plain pytest runs: selection.py, on lists and in a run of its own."""

import os
import random
import re
import subprocess
import sys
from itertools import combinations, product

import pytest
import selection
from helpers import TESTS

MODULE = """
import pytest

wide = pytest.mark.parametrize("wide", range(9))
high = pytest.mark.parametrize("high", "abcde")
deep = pytest.mark.parametrize(("deep", "deeper"), [(0, 1), (2, 3), (0, 3)])

@wide
@high
@deep
def test_three(wide, high, deep, deeper):
    pass

@wide
@high
def test_two(wide, high):
    pass

@pytest.mark.each_value
@wide
@high
def test_long(wide, high):
    pass

@pytest.mark.thorough
def test_rest():
    pass

def test_both(step, thorough):
    assert step == (1 if thorough else 11)
"""
# What runs together: 50 cases, of two fixtures' values.
MANY = """
import pytest

@pytest.fixture(params=[1, 2])
def place(request):
    yield request.param

@pytest.mark.parametrize("number", range(25))
def test_many(place, number, rng):
    print("ran", place, number, rng.random())
    if number == 24:
        pytest.skip("the last")
    assert number not in (7, 8, 22) or place == 2

@pytest.mark.parametrize("number", range(25))
def test_apart(tmp_path, number):
    print("apart", number)

@pytest.mark.parametrize("number", range(25))
def test_skipped(number):
    pytest.skip("all")
"""
CONFTEST = """
import pytest
import selection
from selection import step, thorough

def pytest_collection_modifyitems(config, items):
    selection.select(config, items)
    if MANY:
        selection.gather(config, items)

def pytest_pyfunc_call(pyfuncitem):
    return selection.run(pyfuncitem)

@pytest.fixture
def rng(request):
    return selection.generator(request.node)
"""


def run(folder, *options, module=MODULE, status=0):
    """What pytest prints of a module."""
    (folder / "test_toy.py").write_text(module)
    (folder / "conftest.py").write_text(CONFTEST.replace("MANY", str(module is MANY)))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough\n    each_value\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options], cwd=folder, capture_output=True,
        text=True, check=False, env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def collected(folder, *options):
    """The tests that would run, by function: a list of the parameters' names."""
    found = {}
    for line in run(folder, "--collect-only", *options).splitlines():
        if "::" in line:
            function, _, parameters = line.rpartition("::")[2].rstrip("]").partition("[")
            found.setdefault(function, []).append(parameters)
    return found


@pytest.mark.parametrize("sizes", [(3,), (9, 5, 3), (2, 2, 2, 2), (15, 30, 4)])
def test_every_pair_is_shown(sizes):
    cases = [set(combinations(enumerate(case), min(2, len(sizes)))) for case in product(*map(range, sizes))]
    kept = selection.covering(cases, random.Random(1))
    assert set().union(*(cases[number] for number in kept)) == set().union(*cases)
    largest = sorted(sizes)[-2:]
    assert len(kept) <= 1.6 * max(largest[0] * largest[-1], 4) or len(sizes) == 1
    assert kept == selection.covering(cases, random.Random(1))


ALONE = """
import time
import pytest

def now():
    return time.monotonic()

@pytest.mark.parametrize("number", range(12))
def test_others(number):
    begin = now()
    time.sleep(0.02)
    print("others", begin, now())

@pytest.mark.alone
@pytest.mark.parametrize("number", range(3))
def test_alone(number):
    begin = now()
    time.sleep(0.02)
    print("alone", begin, now())
"""


def test_what_is_marked_runs_alone(tmp_path):
    (tmp_path / "test_toy.py").write_text(ALONE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-rP", "-p", "no:cacheprovider", "-p", "conftest",
         "-c", TESTS.parent / "pyproject.toml", "--confcutdir", TESTS, tmp_path / "test_toy.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    times = [line.split() for line in done.stdout.splitlines() if line.startswith(("alone ", "others "))]
    assert sorted(kind for kind, *_ in times) == ["alone"] * 3 + ["others"] * 12
    spans = [(kind, float(begin), float(end)) for kind, begin, end in times]
    for kind, begin, end in spans:
        if kind == "alone":
            assert [span for span in spans if span[1] < end and begin < span[2]] == [(kind, begin, end)]


def test_plain_and_thorough_run_all_between_them(tmp_path):
    plain, thorough = collected(tmp_path), collected(tmp_path, "-m", "thorough")
    everything = collected(tmp_path, "-m", "thorough or not thorough")
    assert {name: len(cases) for name, cases in everything.items()} == {
        "test_three": 135, "test_two": 45, "test_long": 45, "test_rest": 1, "test_both": 1,
    }  # fmt: skip
    for name, cases in everything.items():
        both = plain.get(name, []) + thorough.get(name, [])
        assert sorted(set(both)) == sorted(cases)
        assert len(both) == len(cases) + (name == "test_both")
    assert "test_rest" not in plain
    assert len(plain["test_two"]) == 45
    assert 9 <= len(plain["test_long"]) <= 14
    pairs = {pair for case in plain["test_three"] for pair in combinations(case.split("-"), 2)}
    assert pairs == {pair for case in everything["test_three"] for pair in combinations(case.split("-"), 2)}
    assert 45 <= len(plain["test_three"]) < 75


def test_shares_are_all_between_them(tmp_path, monkeypatch):
    thorough = collected(tmp_path, "-m", "thorough")
    shares = []
    for share in range(3):
        monkeypatch.setenv("ACLNN_BW_SHARE", f"{share}/3")
        shares.append(collected(tmp_path, "-m", "thorough"))
    for name, cases in thorough.items():
        assert sorted(case for share in shares for case in share.get(name, [])) == sorted(cases)
    assert min(len(share["test_three"]) for share in shares) > len(thorough["test_three"]) / 6


@pytest.mark.thorough
def test_a_case_that_is_named_runs(tmp_path):
    everything = collected(tmp_path, "-m", "thorough or not thorough")
    plain = collected(tmp_path)
    [left_out, *_] = sorted(set(everything["test_three"]) - set(plain["test_three"]))
    assert "1 passed" in run(tmp_path, f"test_toy.py::test_three[{left_out}]")


def test_many_cases_run_together(tmp_path):
    printed = run(tmp_path, "-rA", module=MANY, status=1)
    lines = [line for line in printed.splitlines() if line.startswith("ran ")]
    everything = sorted([place, str(number)] for place in "12" for number in range(25))
    assert sorted(line.split()[1:3] for line in lines) == everything
    assert len({line.split()[3] for line in lines}) == 50  # each has numbers of its own
    # The report names each that failed, and no other.
    failed = re.findall(r"^test_toy.py::test_many\[(.*)\]$", printed, re.MULTILINE)
    assert failed == ["1-7", "1-8", "1-22"]
    assert printed.count("apart ") == 25
    assert "2 failed, 27 passed, 2 skipped" in printed.splitlines()[-1]


def test_a_case_that_is_named_runs_by_itself(tmp_path):
    printed = run(tmp_path, "-rA", "test_toy.py::test_many[2-5]", module=MANY)
    assert [line.split()[1:3] for line in printed.splitlines() if line.startswith("ran ")] == [["2", "5"]]
