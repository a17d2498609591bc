"""Signals, forks, settings and other interpreters in the middle of everything: the process stays usable.

Each test runs a fresh interpreter, which a failure may end. What a stream or an executor does under contention is in
test_streams.py and test_executor.py.
"""

import os
import signal
import sys
import sysconfig

import numpy as np
import pytest
from engine_helpers import run_python

import aclnn_bw as a

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


@pytest.mark.alone
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
    # On a busy machine the signal may come before the run does.
    assert right(out) or (out == -1).all() or way == "stream", "a run was cut short"
    assert right(compute())
a.aclrtDestroyStream(stream)
print(interrupted)
""")
    assert int(output[0]) > 0


@pytest.mark.alone
@needs_signals
def test_a_signal_between_any_two_lines(thorough):
    """Wherever a handler raises in phase 2 or a wait, the stream runs in order on, and the executor is free again."""
    output = fresh(f"""
import random

seconds = {5 if thorough else 2}
""" + """
class Note:
    def __init__(self, value):
        self.value = value

    def execute(self):
        seen.append((self.value, threading.get_ident()))

def interrupt(*_):
    if armed:
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
small, large = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.zeros((1, 1, 8, 8), np.float32)
rng, interrupted, until = random.Random(1), 0, time.monotonic() + seconds
while time.monotonic() < until:
    seen, stream = [], a.aclrtCreateStream()
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(small, large, [2], None, [0], False, True, 0, 0, large)
    a.aclSetAclOpExecutorRepeatable(executor)
    workspace = bytearray(size) if size else None
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 4e-4))
        for number in range(30):
            stream._submit(Note(number))
            a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
            if number % 10 == 9:
                a.aclrtSynchronizeStream(stream)
        armed = False
    except KeyboardInterrupt:
        armed = False
        interrupted += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    stream._submit(Note(30))
    a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
    a.aclrtSynchronizeStream(stream)
    a.aclnnAvgPool2dBackward(workspace, size, executor)
    assert [value for value, _ in seen] == sorted({value for value, _ in seen}) and seen[-1][0] == 30, seen
    assert len({thread for _, thread in seen}) == 1, seen
    assert np.array_equal(large, np.repeat(np.repeat(small, 2, 2), 2, 3) / 4)
    a.aclrtDestroyStream(stream)
print(interrupted)
""")
    assert int(output[0]) > 20


def test_no_thread_to_be_had():
    """A stream whose thread cannot start refuses the run; executor and stream serve again."""
    fresh("""
from aclnn_bw import streams

size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(grad, out, [2], None, [0], False, True, 0, 0, out)
workspace = bytearray(size) if size else None
stream = a.aclrtCreateStream()
start = streams.start_new_thread

def no_thread(*_):
    raise RuntimeError("can't start new thread")

streams.start_new_thread = no_thread
try:
    a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
except RuntimeError as error:
    assert "start new thread" in str(error)
else:
    raise AssertionError("no error")
a.aclrtSynchronizeStream(stream)
streams.start_new_thread = start
a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
a.aclrtDestroyStream(stream)
assert right(out)
""")


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


@needs_fork
def test_forks_in_the_middle_of_everything():
    """Children made while others run, queue, create, destroy, synchronize and set: each works and ends in its way."""
    fresh("""
end = False
problems = []
small = (np.arange(8 * 16 * 16) % 7).astype(np.float32).reshape(1, 8, 16, 16)
want = np.repeat(np.repeat(small, 2, 2), 2, 3) / 4

def on_a_stream(times=3):
    stream, mine = a.aclrtCreateStream(), np.zeros((1, 8, 32, 32), np.float32)
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(small, mine, [2], None, [0], False, True, 0, 0, mine)
    a.aclSetAclOpExecutorRepeatable(executor)
    workspace = bytearray(size) if size else None
    for _ in range(times):
        a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
    a.aclDestroyAclOpExecutor(executor)
    a.aclrtSynchronizeStream(stream)
    a.aclrtDestroyStream(stream)
    return np.array_equal(mine, want)

def work(number):
    while not end:
        if number == 0:
            a.set_num_threads(1 + int(time.monotonic() * 1e6) % 4)
            a.aclrtSynchronizeDevice()
        elif not (right(compute()) if number == 1 else on_a_stream()):
            problems.append("a wrong result")

threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
for thread in threads:
    thread.start()
for number in range(24):
    child = os.fork()
    if child == 0:
        end = True      # the parent's threads are not here
        signal.alarm(60)
        good = right(compute()) and on_a_stream()
        a.aclrtSynchronizeDevice()
        a.set_num_threads(3)
        if number % 3 == 0:
            grandchild = os.fork()
            if grandchild == 0:
                os._exit(0 if right(compute()) and on_a_stream() else 1)
            good = good and os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 0
        if number % 2:
            os._exit(0 if good else 1)
        threading._shutdown = lambda: None  # join no thread of the parent's
        sys.exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, number
end = True
for thread in threads:
    thread.join()
assert not problems and right(compute()) and on_a_stream()
""", warnings="ignore")  # fmt: skip


# How a process may end while work is queued on a stream, which takes a while, or runs in another thread; and with what.
ENDS = {
    "an exception": ('raise RuntimeError("the end")', 1, True),
    "sys.exit": ("sys.exit(3)", 3, True),
    "sys.exit in a thread": (
        "thread = threading.Thread(target=sys.exit, args=(3,)); thread.start(); thread.join()", 0, True,
    ),
    "os._exit": ("os._exit(4)", 4, False),
    "an atexit function of later": ("import atexit; atexit.register(lambda: None)", 0, True),
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("by", ["main", "thread", "daemon"])
def test_exit_with_work_pending(end, by, tmp_path):
    """What was queued, by whatever thread, is done before the process ends, unless it is told to end at once."""
    code, status, done = ENDS[end]
    path = tmp_path / "result"
    result = run_python(PROLOGUE + f"""
class Slow:
    def execute(self):
        time.sleep(0.2)

result = np.memmap({str(path)!r}, np.float32, "w+", shape=out.shape)
queued = threading.Event()

def work():
    stream = a.aclrtCreateStream()
    stream._submit(Slow())
    made = a.aclnnAvgPool2dBackwardGetWorkspaceSize(grad, result, [2], None, [0], False, True, 0, 0, result)
    a.aclnnAvgPool2dBackward(bytearray(made[0]) if made[0] else None, *made, stream)
    queued.set()
    a.aclrtSynchronizeStream(stream)
    while {by == "daemon"}:     # and goes on computing while the interpreter ends
        compute()

if {by == "main"}:
    stream = a.aclrtCreateStream()
    stream._submit(Slow())
    made = a.aclnnAvgPool2dBackwardGetWorkspaceSize(grad, result, [2], None, [0], False, True, 0, 0, result)
    a.aclnnAvgPool2dBackward(bytearray(made[0]) if made[0] else None, *made, stream)
else:
    threading.Thread(target=work, daemon={by == "daemon"}).start()
    queued.wait()
{code}
""", check=False, timeout=120)  # fmt: skip
    assert result.returncode == status, result.stderr
    assert ("RuntimeError: the end" in result.stderr) == (end == "an exception"), result.stderr
    if done:
        right = np.fromfile(path, np.float32).reshape(8, 64, 128, 128)[0, 0]
        grad = (np.arange(64**2) % 97).astype(np.float32).reshape(64, 64)
        assert np.array_equal(right, np.repeat(np.repeat(grad, 2, 0), 2, 1) / 4)


def test_a_run_in_an_atexit_function_of_before():
    """Such a function runs after the streams were drained: a direct run still works, a stream's works or is refused."""
    output = run_python("""
import atexit

def late():
    assert right(compute())
    stream = a.aclrtCreateStream()
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(grad, out, [2], None, [0], False, True, 0, 0, out)
    try:
        a.aclnnAvgPool2dBackward(bytearray(size) if size else None, size, executor, stream)
    except RuntimeError:    # no thread starts any more, Python 3.12 and later
        a.aclnnAvgPool2dBackward(bytearray(size) if size else None, size, executor)
    a.aclrtDestroyStream(stream)
    assert right(out)
    print("late")

atexit.register(late)
""" + PROLOGUE, timeout=120)  # fmt: skip
    assert output.stdout.split() == ["late"]
    assert output.stderr == ""


def test_settings_change_while_runs_go_on(thorough):
    """The thread count, the product and the mask layout of other threads' runs are those of their own phase 1."""
    fresh(f"""
seconds = {3 if thorough else 1}
""" + """
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
until = time.monotonic() + seconds
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


@pytest.mark.skipif(sys.version_info < (3, 13), reason="the slot came with Python 3.13")
@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="of another layout, and tested below")
def test_the_module_does_not_declare_itself_free_threaded():
    """Free-threaded builds are not tested, so Py_mod_gil must not say Py_MOD_GIL_NOT_USED."""
    import ctypes

    get_definition = ctypes.pythonapi.PyModule_GetDef
    get_definition.argtypes, get_definition.restype = [ctypes.py_object], ctypes.POINTER(ctypes.c_void_p)
    definition = get_definition(a._native)  # 5 words of PyModuleDef_Base, name, doc, size, methods, slots
    slots = ctypes.cast(definition[9], ctypes.POINTER(ctypes.c_void_p))
    found = {}
    while slots and (slots[2 * len(found)] or 0) & 0xFFFFFFFF:
        found[slots[2 * len(found)] & 0xFFFFFFFF] = slots[2 * len(found) + 1]
    assert found
    assert not found.get(4)  # Py_mod_gil: absent, or Py_MOD_GIL_USED, which is 0


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded build")
def test_a_free_threaded_interpreter_gets_its_gil_back():
    """The module does not declare that it runs without the GIL, so the interpreter turns it on again."""
    output = fresh("print(sys._is_gil_enabled())", warnings="ignore")
    assert output == ["True"]
