"""The fuzzers of tests/fuzz for as long as a test may take; CI runs them for minutes, see there."""

import random

import numpy as np
import pytest

if np.lib.NumpyVersion(np.__version__) < "2.1.0":
    pytest.skip("np.add.at of NumPy 2.0, which the twin uses, fails on some views", allow_module_level=True)
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
        first, second = (fuzz.calls.draw(random.Random(5 << 40 | number)) for _ in range(2))
        assert first.notes == second.notes
        assert first.arguments.keys() == second.arguments.keys()
        assert [o[:2] for o in first.judge()] == [o[:2] for o in second.judge()]


def test_the_fuzzer_notices_what_the_rules_forbid(monkeypatch):
    """A rule that the package does not have is found missing, and one that it has beyond the rules as well."""
    wanted = fuzz.rules._OPERATORS["avg"]

    def stricter(judge, call, arguments):
        wanted(judge, call, arguments)
        judge.refuse(True, "nothing is allowed", "padding")

    monkeypatch.setitem(fuzz.rules._OPERATORS, "avg", stricter)
    assert "was accepted, but" in first_finding()
    monkeypatch.undo()
    monkeypatch.setattr(fuzz.rules, "_at_least", lambda *arguments: None)
    text = first_finding()
    assert "raised AclnnError" in text
    assert "must be >" in text


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
