"""What all tests share: the installed package before the source folder, opt-in slow tests, settings left as found."""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent

# `python -m pytest` and pytest's pythonpath put the repository root first, where aclnn_bw lies without its compiled
# module unless the install is editable. The root moves to the end: the installed package wins, `benchmarks` is found.
if not any((ROOT / "aclnn_bw" / f"_native{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    kept = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
    sys.path[:] = [*kept, str(ROOT)]

from hypothesis import settings  # noqa: E402  (after the path is right)

settings.register_profile("default", deadline=None, database=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure():
    if os.environ.get("ACLNN_BW_REQUIRE_TORCH") == "1" and find_spec("torch") is None:
        raise pytest.UsageError("ACLNN_BW_REQUIRE_TORCH=1, but torch is not installed")


def pytest_collection_modifyitems(config, items):
    if "slow" in config.getoption("markexpr"):
        return
    skip = pytest.mark.skip(reason="takes minutes; ask for it with -m slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def settings_are_restored():
    """No test may leave another product or another number of threads behind."""
    import aclnn_bw

    product, threads = aclnn_bw.aclrtGetSocName(), aclnn_bw.get_num_threads()
    yield
    seen = aclnn_bw.aclrtGetSocName(), aclnn_bw.get_num_threads()
    if seen != (product, threads):
        aclnn_bw.aclrtSetSocName(product)
        aclnn_bw.set_num_threads(threads)
    assert seen == (product, threads), "the test left its product or number of threads behind"


@pytest.fixture
def rng(request):
    """A generator whose seed is the test's own name: the same numbers on every run and in any order of tests."""
    return np.random.default_rng(list(request.node.nodeid.encode()))
