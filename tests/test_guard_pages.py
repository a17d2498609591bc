"""The fuzzer with guard pages: a few of its cases, and that it reports what it is there to find."""

import os
import subprocess
import sys

import pytest
from helpers import TESTS, require_isa

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs mprotect")

SCRIPT = TESTS / "fuzz" / "guard_pages.py"

# The fuzzer with a runner that does one thing more after each case.
BROKEN = """
import ctypes, sys
sys.path.insert(0, {folder!r})
import guard_pages
guard_pages.__file__ = __file__
class Runner(guard_pages.Runner):
    def call(self, case, arrays):
        super().call(case, arrays)
        {more}
guard_pages.Runner = Runner
sys.exit(guard_pages.main())
"""


def run(script, *options, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "ACLNN_BW_ISA"}
    return subprocess.run(
        [sys.executable, script, *map(str, options)], env={**inherited, **environment}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_some_cases(isa):
    require_isa(isa)
    done = run(SCRIPT, "--cases", 150, "--seed", 1, ACLNN_BW_ISA=isa)
    assert done.returncode == 0, done.stdout + done.stderr
    assert isa in done.stdout.splitlines()[0]
    assert done.stdout.endswith("\n150 cases, no failures, seed 1\n")


@pytest.fixture(scope="module")
def good_case():
    options = "--seed 3 --case 5 --operator ReplicationPad2dBackward"  # contiguous arrays, not the output at its end
    assert run(SCRIPT, *options.split()).returncode == 0
    return options


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ("ctypes.string_at(self.arenas[0].address + self.arenas[0].size, 1)", "(SIGSEGV) "),
        ("ctypes.string_at(self.arenas[0].address - 1, 1)", "(SIGSEGV) "),
        ("ctypes.memset(self.arenas[0].address, 0, 1)", "(SIGSEGV) "),
        ("guard_pages.unreadable((1,), guard_pages.BYTE)[0].item()", "(SIGSEGV) "),
        ("self.arenas[1].bytes[self.arenas[1].watched[1] - 1] ^= 1", ""),
        ("arrays['gradInput'].view('u1')[...] ^= 1", ""),
    ],
    ids=["beyond", "before", "input written", "self read", "beside an output", "wrong result"],
)
def test_failures_are_reported(good_case, more, cause, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text(BROKEN.format(folder=str(SCRIPT.parent), more=more))
    done = run(script, *good_case.split())
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED {cause}python tests/fuzz/guard_pages.py {good_case}\n" in done.stdout
    assert done.stdout.endswith("\n1 cases, 1 failures, seed 3\n")


def test_a_large_case_is_legal():
    """This one was once drawn with a dilation that left room for no window."""
    done = run(SCRIPT, "--seed", 369257323, "--case", 398, "--operator", "Im2colBackward")
    assert done.returncode == 0, done.stdout + done.stderr
