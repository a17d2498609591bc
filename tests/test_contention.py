"""What a late thread of a team does to the runs after it: contention.h by a clock of ours, and beside a neighbour."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from engine_helpers import run_python

import aclnn_bw as a

CORE = Path(__file__).parent.parent / "aclnn_bw" / "_core"
US, MS, S = 1_000, 1_000_000, 1_000_000_000


class Cores(ctypes.Structure):
    """The state, and the functions of contention.h on it; times in nanoseconds."""

    _fields_ = (("until", ctypes.c_int64), ("rest", ctypes.c_int64))

    def is_contended(self, now):
        return bool(self.library.is_contended(ctypes.byref(self), ctypes.c_int64(now)))

    def judge(self, now, *, took, share, threads=2):
        """A team that ends now; its first thread needed `share` for its own."""
        times = (threads, now - took, now - took + share, now)
        self.library.judge(ctypes.byref(self), *map(ctypes.c_int64, times))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("gcc") is None or not CORE.exists():
        if os.environ.get("ACLNN_BW_REQUIRE_OBJECTS") == "1":
            pytest.fail("no gcc, or no sources")
        pytest.skip("needs gcc and the sources")
    folder = tmp_path_factory.mktemp("contention")
    (folder / "contention.c").write_text(
        """
        #include "contention.h"
        int is_contended(aclnn_bw_contention *cores, int64_t now) { return aclnn_bw_is_contended(cores, now); }
        void judge(aclnn_bw_contention *cores, int64_t threads, int64_t begun, int64_t left, int64_t now)
        {
            aclnn_bw_judge_team(cores, threads, begun, left, now);
        }
        """
    )
    command = ["gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{CORE}", "-o", folder / "contention.so"]
    subprocess.run([*command, folder / "contention.c"], check=True)
    return ctypes.CDLL(str(folder / "contention.so"))


@pytest.fixture
def cores(library):
    made = Cores()
    made.library = library
    return made


def test_cores_are_free_to_begin_with(cores):
    assert not cores.is_contended(0)
    assert not cores.is_contended(10**15)


@pytest.mark.parametrize(
    ("took", "share", "threads"),
    [
        (20 * US, 20 * US, 2),  # as it should be
        (319 * US, 10 * US, 2),  # pays nothing, but the first team of a process is as late
        (9 * MS, 5 * MS, 2),  # a thread was late, and still there was a gain
        (8 * MS, 2 * MS, 4),
        (15 * MS, 1 * MS, 16),
        (2 * MS, 2 * MS, 1),
    ],
)
def test_a_team_that_gains_goes_on(cores, took, share, threads):
    for turn in range(1, 4):
        cores.judge(turn * S, took=took, share=share, threads=threads)
        assert not cores.is_contended(turn * S)


@pytest.mark.parametrize(("took", "share", "threads", "lost"), [
    (4 * MS, 20 * US, 2, 4 * MS - 40 * US),
    (12 * MS, 5 * MS, 2, 2 * MS),
    (12 * MS, 1 * MS, 8, 4 * MS),
    (320 * US, 10 * US, 2, 300 * US),
])  # fmt: skip
def test_a_rest_is_sixteen_times_what_was_lost(cores, took, share, threads, lost):
    cores.judge(5 * S, took=took, share=share, threads=threads)
    assert cores.is_contended(5 * S)
    assert cores.is_contended(5 * S + 16 * lost - 1)
    assert not cores.is_contended(5 * S + 16 * lost)


def test_rests_double_while_threads_are_late_and_begin_anew(cores):
    now = 5 * S
    for rest in (64, 128, 256, 512, 1000, 1000):  # a second at most
        cores.judge(now, took=4 * MS, share=0)
        assert cores.is_contended(now + rest * MS - 1)
        assert not cores.is_contended(now + rest * MS)
        now += rest * MS + 30 * MS  # some teams in time, then a late one
    now += 1 * S
    cores.judge(now, took=4 * MS, share=0)
    assert cores.is_contended(now + 64 * MS - 1)
    assert not cores.is_contended(now + 64 * MS)


def test_the_first_rest_is_a_second_at_most(cores):
    cores.judge(5 * S, took=4 * S, share=0)
    assert cores.is_contended(6 * S - 1)
    assert not cores.is_contended(6 * S)


def test_teams_that_began_before_a_rest_do_not_prolong_it(cores):
    cores.judge(5 * S, took=4 * MS, share=0)
    cores.judge(5 * S + 10 * MS, took=14 * MS, share=0)
    assert not cores.is_contended(5 * S + 64 * MS)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and sched_setaffinity")
def test_runs_stay_on_one_thread_beside_a_busy_neighbour():
    if not a.show_config(mode="dict")["openmp"]:
        pytest.skip("a serial build")
    code = r"""
        import os, subprocess, sys, time
        import numpy as np
        import aclnn_bw as a

        a.set_num_threads(2)
        ones, image = np.ones((16, 16, 32, 32), np.float32), np.zeros((16, 16, 64, 64), np.float32)

        def call():
            a.avg_pool2d_backward(ones, image, 2, out=image)

        def switches():
            with open(f"/proc/self/task/{other}/status") as status:
                return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)

        def calls(woke):
            # Until of 20 calls in a row all, or none, have woken the other thread.
            deadline = time.monotonic() + 60
            while True:
                before = switches()
                for _ in range(20):
                    call()
                if switches() >= before + 20 if woke else switches() == before:
                    return
                assert time.monotonic() < deadline, woke

        call()
        (other,) = {int(name) for name in os.listdir("/proc/self/task")} - {os.getpid()}
        calls(woke=True)

        # Now that thread may run on one core alone, where two neighbours go first.
        core, *others = os.sched_getaffinity(0)
        os.sched_setaffinity(os.getpid(), others or {core})
        os.sched_setaffinity(other, {core})
        os.sched_setscheduler(other, os.SCHED_IDLE, os.sched_param(0))
        busy = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
        neighbours = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2)]
        try:
            calls(woke=False)
        finally:
            for each in neighbours:
                each.kill()
                each.wait()
        calls(woke=True)
        assert np.all(image == 0.25)
    """
    run_python(code, environment={"OMP_WAIT_POLICY": "passive"})
