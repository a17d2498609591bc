"""The benchmark of the C library compiles and gives figures."""

import shutil
from pathlib import Path

import pytest

import aclnn_bw
from benchmarks import c_library

pytestmark = pytest.mark.skipif(
    not shutil.which("gcc") or not (Path(aclnn_bw.__file__).parent / "lib").is_dir(), reason="no gcc or no C library"
)


def test_both_figures_are_there():
    same, other = c_library.measure()
    assert 0 < same < 1e6
    assert 0 < other < 1e6
