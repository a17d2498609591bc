"""What all tests share: the installed package before the source folder, the choice of tests, settings left as found."""

import gc
import os
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

import pytest

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ROOT = Path(__file__).resolve().parent.parent

# Threads that spin for one another take the core from another worker's: some tests take five times as long then. It is
# read when the first library loads that has threads.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# `python -m pytest` and pytest's pythonpath put the repository root first, where aclnn_bw lies without its compiled
# module unless the install is editable. The root moves to the end: the installed package wins, `benchmarks` is found.
if not any((ROOT / "aclnn_bw" / f"_native{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    kept = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
    sys.path[:] = [*kept, str(ROOT)]

import selection  # noqa: E402
from hypothesis import settings  # noqa: E402  (after the path is right)
from selection import step, thorough  # noqa: E402, F401  (fixtures)

# The same examples on every run.
settings.register_profile("default", deadline=None, database=None, derandomize=True, print_blob=True)
settings.load_profile("default")


def pytest_configure():
    if os.environ.get("ACLNN_BW_REQUIRE_TORCH") == "1" and find_spec("torch") is None:
        raise pytest.UsageError("ACLNN_BW_REQUIRE_TORCH=1, but torch is not installed")


def pytest_xdist_auto_num_workers(config):
    """One process for a test that is named: others would only take time to start."""
    return 0 if any("::" in argument for argument in config.args) else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    selection.select(config, items)
    if "slow" not in config.getoption("markexpr"):
        skip = pytest.mark.skip(reason="takes minutes; ask for it with -m slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)
    # What runs alone comes last, when the other processes have little left.
    items.sort(key=lambda item: "alone" in item.keywords)
    result = yield  # to -k and -m
    selection.gather(config, items)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return selection.run(pyfuncitem)


def pytest_collection_finish():
    gc.collect()


@pytest.fixture(scope="module", autouse=True)
def garbage_is_the_tests_own():
    """Take what was there before out of the tests' collections of garbage, each a third of a second."""
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Run a test that is marked alone while no other process of this run is in one.

    It is a lock of the file system: each test holds a share of it, the marked one all of it.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None or fcntl is None:
        return (yield)
    with open(os.path.join(tempfile.gettempdir(), f"aclnn_bw_{run}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if "alone" in item.keywords else fcntl.LOCK_SH)
        return (yield)


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
    return selection.generator(request.node)
