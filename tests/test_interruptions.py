"""Signals, forks, settings and other interpreters in the middle of everything: the process stays usable.

Each test runs a fresh interpreter, which a failure may end. What a stream or an executor does under contention is in
test_streams.py and test_executor.py.
"""

import os
import signal
import sys
import sysconfig

import pytest
from engine_helpers import run_python

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
needs_signals = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")

PROLOGUE = """
import os, signal, sys, threading, time
import numpy as np
import aclnn_bw as a

a.set_num_threads(2)
grad = (np.arange(8 * 64**3) % 97).astype(np.float32).reshape(8, 64, 64, 64)
out = np.empty((8, 64, 128, 128), np.float32)
wanted = np.repeat(np.repeat(grad[:1], 2, 2), 2, 3)[:, :, :8] / 4

def compute(into=None):
    return a.avg_pool2d_backward(grad, out.shape, 2, out=into)

def right(result):
    return np.array_equal(result[:1, :, :8], wanted)
"""


def fresh(code, **options):
    return run_python(PROLOGUE + code, timeout=240, **options).stdout.split()


@needs_signals
@pytest.mark.parametrize("way", ["one call", "two phases", "stream"])
def test_ctrl_c_during_a_long_run(way):
    """The signal is seen when the run returns; the result is whole, and so is everything after it."""
    output = fresh(f"""
way = {way!r}
signal.signal(signal.SIGINT, signal.default_int_handler)
size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(grad, out, [2], None, [0], False, True, 0, 0, out)
a.aclSetAclOpExecutorRepeatable(executor)
workspace = bytearray(size) if size else None
stream = a.aclrtCreateStream()
interrupted = 0
compute(out)
start = time.perf_counter()
compute(out)
delay = max((time.perf_counter() - start) / 2, 1e-3)
for _ in range(20):
    out[...] = -1
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        if way == "one call":
            compute(out)
        elif way == "two phases":
            a.aclnnAvgPool2dBackward(workspace, size, executor)
        else:
            for _ in range(5):
                a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
            a.aclrtSynchronizeStream(stream)
        time.sleep(3 * delay)
    except KeyboardInterrupt:
        interrupted += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    while True:
        try:
            a.aclrtSynchronizeDevice()
            break
        except KeyboardInterrupt:
            interrupted += 1
    assert right(out) or way == "stream", "a run was cut short"
    assert right(compute())
a.aclrtDestroyStream(stream)
print(interrupted)
""")
    assert int(output[0]) > 0


@needs_fork
def test_forks_while_other_threads_compute():
    """A child made in the middle of a run of another thread computes by itself, and ends."""
    fresh("""
end = False
problems = []

def work(stream):
    mine = np.empty_like(out)
    while not end:
        compute(mine)
        if not right(mine):
            problems.append("a wrong result")

threads = [threading.Thread(target=work, args=(None,)) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(12):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if right(compute()) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, number
end = True
for thread in threads:
    thread.join()
assert not problems and right(compute())
""", warnings="ignore")  # fmt: skip


def test_settings_change_while_runs_go_on():
    """The thread count, the product and the mask layout of other threads' runs are those of their own phase 1."""
    fresh("""
end = False
problems = []
x = np.arange(2 * 3 * 64 * 64, dtype=np.float32).reshape(2, 3, 64, 64)

def work():
    mine = np.empty_like(out)
    while not end:
        compute(mine)
        with a.soc("Host", mask_layout="argmax"), a.num_threads(3):
            y, mask = a.max_pool2d_with_mask(x, 2)
            again = a.max_pool2d_with_mask_backward(np.ones_like(y), x, mask, 2)
        if not right(mine) or again.sum() != y.size:
            problems.append("a wrong result")

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
until = time.monotonic() + 3
number = 0
while time.monotonic() < until:
    number += 1
    a.set_num_threads(1 + number % 5)
    a.aclrtSetSocName(("Host", "Ascend910", "Ascend910B")[number % 3])
end = True
for thread in threads:
    thread.join()
assert not problems, problems[:3]
""")  # fmt: skip


def test_many_threads_use_many_streams_of_their_own():
    """Streams are made, used, shared and destroyed by many threads while the device is synchronized."""
    fresh("""
end = False
problems = []
small = (np.arange(8 * 16 * 16) % 7).astype(np.float32).reshape(1, 8, 16, 16)
want = np.repeat(np.repeat(small, 2, 2), 2, 3) / 4

def work():
    for _ in range(40):
        stream = a.aclrtCreateStream()
        mine = np.zeros((1, 8, 32, 32), np.float32)
        size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(small, mine, [2], None, [0], False, True, 0, 0, mine)
        a.aclSetAclOpExecutorRepeatable(executor)
        workspace = bytearray(size) if size else None
        for _ in range(10):
            a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
        a.aclDestroyAclOpExecutor(executor)
        del executor
        a.aclrtSynchronizeStream(stream)
        if not np.array_equal(mine, want):
            problems.append("a wrong result")
        a.aclrtDestroyStream(stream)

def synchronize():
    while not end:
        a.aclrtSynchronizeDevice()

other = threading.Thread(target=synchronize)
other.start()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
end = True
other.join()
assert not problems, problems[:3]
""")  # fmt: skip


def test_a_second_interpreter_is_refused():
    """The compiled module belongs to one interpreter of a process; another gets an ImportError, the first goes on."""
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    pytest.importorskip(name)
    output = fresh(f"""
import {name} as interpreters
other = interpreters.create()
code = '''
try:
    import aclnn_bw
except ImportError:
    import os
    os.write(1, b"refused ")
'''
try:
    problem = interpreters.run_string(other, code)
    assert problem is None, problem
finally:
    interpreters.destroy(other)
assert right(compute())
print("usable")
""", warnings="ignore")  # fmt: skip
    assert output == ["refused", "usable"]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded build")
def test_a_free_threaded_interpreter_gets_its_gil_back():
    """The module does not declare that it runs without the GIL, so the interpreter turns it on again."""
    output = fresh("print(sys._is_gil_enabled())", warnings="ignore")
    assert output == ["True"]
