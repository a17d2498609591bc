"""mypy and pyright accept what is right, and find what is wrong: see tests/typing/calls.py."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

import aclnn_bw
from aclnn_bw.products import MASK_LAYOUTS, PRODUCTS, MaskLayout, ProductName, SocName

ROOT = Path(__file__).resolve().parent.parent
CALLS = ROOT / "tests" / "typing" / "calls.py"
REQUIRED = os.environ.get("ACLNN_BW_REQUIRE_DOCS") == "1"
CHECKERS = {
    # Of nobody's configuration.
    "mypy": ["--strict", "--config-file=", "--no-error-summary", "--hide-error-context"],
    "pyright": ["--pythonpath", sys.executable, "--level", "error"],
}


def flat(alias):
    """The strings of an alias of literals and their unions."""
    return [name for one in get_args(alias) for name in ([one] if isinstance(one, str) else flat(one))]


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_type_checker_finds_what_is_wrong_and_nothing_else(checker, tmp_path):
    if find_spec(checker) is None:
        if REQUIRED:
            pytest.fail(f"ACLNN_BW_REQUIRE_DOCS=1, but {checker} is not installed")
        pytest.skip(f"{checker} is not installed")
    options = CHECKERS[checker] + ([f"--cache-dir={tmp_path}"] if checker == "mypy" else [])
    done = subprocess.run(
        [sys.executable, "-m", checker, *options, str(CALLS)], cwd=ROOT, capture_output=True, text=True, timeout=300,
        env=os.environ | {"MYPYPATH": str(ROOT), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    reported = re.findall(rf"{CALLS.name}:(\d+)(?::\d+)?(?: -|:) error", done.stdout)
    lines = CALLS.read_text(encoding="utf-8").splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if line.endswith("  # wrong")]
    assert len(wrong) > 25
    assert sorted({int(number) for number in reported}) == wrong, done.stdout


def test_the_names_that_type_checkers_know_are_taken():
    names = flat(SocName)
    assert len(set(names)) == len(names) > 15
    for name in names:
        aclnn_bw.soc(name)
    assert flat(ProductName) == list(PRODUCTS)
    assert set(PRODUCTS) < set(names)
    assert flat(MaskLayout) == list(MASK_LAYOUTS)
