"""Streams: in order, at once, failures at synchronize, draining, and the end of the process."""

import copy
import gc
import itertools
import os
import pickle
import signal
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest
from engine_helpers import (
    Failure,
    Gate,
    Note,
    argmax_indices,
    bad_index,
    check_k3s1p1,
    expected,
    gradient,
    phase2,
    plan,
    plan_with_workspace,
    refusal,
    run_python,
    sentinel_array,
    untouched,
)
from operators import OPERATORS, each_operator

import aclnn_bw as a

INVALID, INNER = a.AclnnStatus.ACLNN_ERR_PARAM_INVALID, a.AclnnStatus.ACLNN_ERR_INNER
RUNTIME = a.AclnnStatus.ACLNN_ERR_RUNTIME_ERROR
IN = (2, 3, 8, 8)


@pytest.fixture(autouse=True)
def host():
    with a.soc("Host"):
        yield


@pytest.fixture
def stream():
    stream = a.aclrtCreateStream()
    yield stream
    try:
        a.aclrtDestroyStream(stream)
    except a.AclnnError as error:
        # The test has destroyed it already.
        assert error.status == RUNTIME  # noqa: PT017


@pytest.fixture
def gate(stream):
    """A gate at the head of the stream; opened when the test ends, whatever happened."""
    gate = Gate()
    stream._submit(gate)
    assert gate.entered.wait(30)
    yield gate
    gate.open()


def queue(stream, seed=0):
    """Queue a fresh call; give (gradOutput, gradInput)."""
    grad_output, grad_input = gradient(seed=seed), sentinel_array(IN)
    phase2(*plan(grad_output, grad_input), stream)
    return grad_output, grad_input


def test_a_stream_computes(stream):
    size, executor, grad_output, grad_input = plan_with_workspace()
    phase2(size, executor, stream)
    a.aclrtSynchronizeStream(stream)
    check_k3s1p1(grad_output, grad_input)


def test_phase_2_returns_at_once(stream, gate):
    calls = [queue(stream, seed) for seed in range(20)]
    assert all(untouched(grad_input) for _, grad_input in calls)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    assert all(np.array_equal(grad_input, expected(grad_output)) for grad_output, grad_input in calls)


def test_work_starts_without_a_synchronize(stream):
    started = threading.Event()

    class Job:
        def execute(self):
            started.set()

    grad_output, grad_input = queue(stream)
    stream._submit(Job())
    assert started.wait(30)
    assert np.array_equal(grad_input, expected(grad_output))


def test_work_runs_in_order(stream, gate):
    notes = []
    for value in range(100):
        stream._submit(Note(notes, value))
    assert notes == []
    gate.open()
    a.aclrtSynchronizeStream(stream)
    assert notes == list(range(100))


def test_a_chain_of_calls_through_one_array(stream):
    first = gradient((1, 1, 2, 2))
    arrays = [first] + [np.zeros((1, 1, 2 << i, 2 << i), np.float32) for i in range(1, 8)]
    for grad_output, grad_input in itertools.pairwise(arrays):
        phase2(*plan(grad_output, grad_input), stream)
    a.aclrtSynchronizeStream(stream)
    want = np.repeat(np.repeat(first, 128, 2), 128, 3) / 4**7
    assert np.array_equal(arrays[-1], want)


def test_streams_do_not_wait_for_each_other(stream, gate):
    other = a.aclrtCreateStream()
    grad_output, grad_input = queue(other)
    a.aclrtSynchronizeStream(other)
    assert np.array_equal(grad_input, expected(grad_output))
    assert gate.entered.is_set()
    a.aclrtDestroyStream(other)


def test_synchronizing_an_idle_stream(stream):
    for _ in range(3):
        assert a.aclrtSynchronizeStream(stream) in (None, a.ACLNN_SUCCESS)
    a.aclrtSynchronizeDevice()


def test_synchronize_lets_other_threads_run(stream, gate):
    opener = threading.Timer(0.05, gate.open)
    opener.start()
    a.aclrtSynchronizeStream(stream)
    opener.join()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_a_signal_interrupts_a_synchronize(stream, gate):
    class Interrupt(Exception):
        pass

    def handler(number, frame):
        raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Interrupt):
            a.aclrtSynchronizeStream(stream)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    grad_output, grad_input = queue(stream)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    assert np.array_equal(grad_input, expected(grad_output))


# failures


def test_the_first_failure_is_raised_once(stream, gate):
    notes = []
    stream._submit(Failure(ZeroDivisionError("first")))
    stream._submit(Note(notes, "between"))
    stream._submit(Failure(KeyError("second")))
    grad_output, grad_input = queue(stream)
    stream._submit(Note(notes, "after"))
    gate.open()
    with pytest.raises(ZeroDivisionError, match="first"):
        a.aclrtSynchronizeStream(stream)
    assert notes == ["between", "after"]
    assert np.array_equal(grad_input, expected(grad_output))
    a.aclrtSynchronizeStream(stream)


def test_a_stream_works_after_a_failure(stream):
    for value in range(3):
        stream._submit(Failure(RuntimeError(f"failure {value}")))
        with pytest.raises(RuntimeError, match=f"failure {value}"):
            a.aclrtSynchronizeStream(stream)
    grad_output, grad_input = queue(stream)
    a.aclrtSynchronizeStream(stream)
    assert np.array_equal(grad_input, expected(grad_output))


def test_a_failure_belongs_to_its_stream(stream):
    other = a.aclrtCreateStream()
    other._submit(Failure(RuntimeError("of the other")))
    queue(stream)
    a.aclrtSynchronizeStream(stream)
    with pytest.raises(RuntimeError, match="of the other"):
        a.aclrtSynchronizeStream(other)
    a.aclrtDestroyStream(other)


def test_synchronize_device_raises_a_failure(stream):
    stream._submit(Failure(RuntimeError("of the device")))
    with pytest.raises(RuntimeError, match="of the device"):
        a.aclrtSynchronizeDevice()
    a.aclrtSynchronizeDevice()
    a.aclrtSynchronizeStream(stream)


def test_a_failure_sets_the_message_of_the_synchronizing_thread(stream):
    a.aclGetRecentErrMsg()
    stream._submit(Failure(a.AclnnError(INVALID, "indices[0] = 99: must be < 16")))
    with refusal(INVALID, r"indices\[0\] = 99"):
        a.aclrtSynchronizeStream(stream)
    messages = []
    thread = threading.Thread(target=lambda: messages.append(a.aclGetRecentErrMsg()))
    thread.start()
    thread.join()
    assert messages == [None]
    assert a.aclGetRecentErrMsg() == "indices[0] = 99: must be < 16"
    assert a.aclGetRecentErrMsg() is None


def test_refusals_of_phase_2_come_at_the_call(stream, gate):
    size, executor, grad_output, grad_input = plan_with_workspace()
    with refusal(INVALID, "^workspaceSize"):
        a.aclnnAvgPool2dBackward(bytearray(size), size - 1, executor, stream)
    with refusal(INVALID, "^workspace"):
        a.aclnnAvgPool2dBackward(bytes(size), size, executor, stream)
    phase2(size, executor, stream)
    with refusal(INNER, "^executor.*spent"):
        phase2(size, executor, stream)
    with refusal(INNER, "^executor.*spent"):
        phase2(size, executor, None)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    check_k3s1p1(grad_output, grad_input)


@pytest.mark.parametrize("thing", [5, "stream", object(), threading.Event()], ids=lambda thing: type(thing).__name__)
def test_something_that_is_no_stream(thing):
    size, executor, grad_output, grad_input = plan_with_workspace()
    with pytest.raises(TypeError, match="stream"):
        phase2(size, executor, thing)
    for call in (a.aclrtSynchronizeStream, a.aclrtDestroyStream):
        with pytest.raises(TypeError, match="stream"):
            call(thing)
    phase2(size, executor)
    check_k3s1p1(grad_output, grad_input)


def test_a_stream_is_no_array(stream):
    with pytest.raises(TypeError, match=r"^aclrtStream: is no array$"):
        np.asarray(stream)


def test_streams_are_not_copied(stream):
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            duplicate(stream)


# destroying


def test_destroy_drains(stream, gate):
    notes = []
    stream._submit(Note(notes, 1))
    grad_output, grad_input = queue(stream)
    opener = threading.Timer(0.05, gate.open)
    opener.start()
    a.aclrtDestroyStream(stream)
    opener.join()
    assert notes == [1]
    assert np.array_equal(grad_input, expected(grad_output))


def test_use_after_destroy(stream):
    a.aclrtDestroyStream(stream)
    size, executor, grad_output, grad_input = plan_with_workspace()
    with refusal(RUNTIME, "stream"):
        phase2(size, executor, stream)
    for call in (a.aclrtSynchronizeStream, a.aclrtDestroyStream):
        with refusal(RUNTIME, "stream"):
            call(stream)
    assert untouched(grad_input)
    phase2(size, executor)
    check_k3s1p1(grad_output, grad_input)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
def test_destroy_ends_the_thread():
    code = """
        import os, time
        import numpy as np
        import aclnn_bw as a

        def tasks():
            return len(os.listdir("/proc/self/task"))

        before = tasks()
        streams = [a.aclrtCreateStream() for _ in range(8)]
        x, y = np.ones((1, 1, 2, 2), np.float32), np.zeros((1, 1, 4, 4), np.float32)
        for stream in streams:
            made = a.aclnnAvgPool2dBackwardGetWorkspaceSize(x, y, [2], None, [0], False, True, 0, 0, y)
            a.aclnnAvgPool2dBackward(bytearray(made[0]), *made, stream)
        assert tasks() == before + 8
        for stream in streams:
            a.aclrtDestroyStream(stream)
        deadline = time.monotonic() + 30
        while tasks() > before and time.monotonic() < deadline:
            time.sleep(0.001)
        assert tasks() == before
    """
    run_python(code)


def test_forgotten_streams_do_their_work():
    calls = [queue(a.aclrtCreateStream(), seed) for seed in range(8)]
    gc.collect()
    a.aclrtSynchronizeDevice()
    assert all(np.array_equal(grad_input, expected(grad_output)) for grad_output, grad_input in calls)


def test_synchronize_device_waits_for_all(stream, gate):
    others = [a.aclrtCreateStream() for _ in range(3)]
    calls = [queue(s, seed) for seed, s in enumerate([stream, *others])]
    opener = threading.Timer(0.05, gate.open)
    opener.start()
    a.aclrtSynchronizeDevice()
    assert all(np.array_equal(grad_input, expected(grad_output)) for grad_output, grad_input in calls)
    opener.join()
    for other in others:
        a.aclrtDestroyStream(other)


# what is kept alive


def test_arrays_live_until_they_have_run(stream, gate):
    size, executor, grad_output, grad_input = plan_with_workspace()
    workspace = np.empty(size, np.uint8)
    alive = [weakref.ref(array) for array in (grad_output, workspace)]
    values = grad_output.copy()
    a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
    del grad_output, workspace, executor
    gc.collect()
    assert all(ref() is not None for ref in alive)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    check_k3s1p1(values, grad_input)


def test_buffers_are_held_until_they_have_run(stream, gate):
    size, executor, _, _ = plan_with_workspace()
    workspace = bytearray(size)
    a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
    with pytest.raises(BufferError):
        workspace.append(0)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    workspace.append(0)


def test_destroyed_executor_still_runs_what_is_queued(stream, gate):
    grad_output, grad_input = gradient(), sentinel_array(IN)
    size, executor = plan(grad_output, grad_input)
    a.aclSetAclOpExecutorRepeatable(executor)
    phase2(size, executor, stream)
    a.aclDestroyAclOpExecutor(executor)
    with refusal(INNER, "^executor"):
        phase2(size, executor, stream)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    assert np.array_equal(grad_input, expected(grad_output))


def test_memory_does_not_grow_with_queued_runs(stream):
    grad_output, grad_input = gradient(), sentinel_array(IN)
    size, executor = plan(grad_output, grad_input)
    a.aclSetAclOpExecutorRepeatable(executor)

    def work():
        for _ in range(1000):
            phase2(size, executor, stream)
        a.aclrtSynchronizeStream(stream)

    work()
    gc.collect()
    blocks = sys.getallocatedblocks()
    for _ in range(10):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500


# repeatable executors


def repeatable(seed=0):
    grad_output, grad_input = gradient(seed=seed), sentinel_array(IN)
    size, executor = plan(grad_output, grad_input)
    a.aclSetAclOpExecutorRepeatable(executor)
    return size, executor, grad_output, grad_input


def test_a_repeatable_executor_is_queued_many_times(stream, gate):
    size, executor, grad_output, grad_input = repeatable()
    seen = []

    class Look:
        def execute(self):
            seen.append(np.array_equal(grad_input, expected(grad_output)))
            grad_input[...] = -7
            grad_output[...] += 1

    for _ in range(50):
        phase2(size, executor, stream)
        stream._submit(Look())
    gate.open()
    a.aclrtSynchronizeStream(stream)
    assert seen == [True] * 50


def test_while_queued_elsewhere_a_run_is_refused(stream, gate):
    size, executor, grad_output, grad_input = repeatable()
    phase2(size, executor, stream)
    phase2(size, executor, stream)
    other = a.aclrtCreateStream()
    with refusal(INNER, "^executor"):
        phase2(size, executor, None)
    with refusal(INNER, "^executor"):
        phase2(size, executor, other)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    grad_input[...] = -7
    phase2(size, executor, other)
    a.aclrtSynchronizeStream(other)
    assert np.array_equal(grad_input, expected(grad_output))
    phase2(size, executor, None)
    a.aclrtDestroyStream(other)


def test_a_failure_before_it_does_not_hold_an_executor(stream, gate):
    size, executor, grad_output, grad_input = repeatable()
    stream._submit(Failure(RuntimeError("before")))
    phase2(size, executor, stream)
    gate.open()
    with pytest.raises(RuntimeError, match="before"):
        a.aclrtSynchronizeStream(stream)
    phase2(size, executor, None)
    assert np.array_equal(grad_input, expected(grad_output))


def test_queued_runs_keep_the_old_address(stream, gate):
    size, executor, first_in, first_out = repeatable()
    second_in, second_out = gradient(seed=1), sentinel_array(IN)
    phase2(size, executor, stream)
    a.aclSetInputTensorAddr(executor, 0, None, second_in)
    a.aclSetOutputTensorAddr(executor, 0, None, second_out)
    phase2(size, executor, stream)
    alive = weakref.ref(first_in)
    want = expected(first_in)
    del first_in
    gc.collect()
    assert alive() is not None
    gate.open()
    a.aclrtSynchronizeStream(stream)
    gc.collect()
    assert alive() is None
    assert np.array_equal(first_out, want)
    assert np.array_equal(second_out, expected(second_in))


def test_a_queued_run_keeps_what_it_was_accepted_with():
    """The executor is re-pointed by what phase 2 itself asks of the stream, just before it accepts the run."""
    size, executor, _, grad_input = repeatable()
    jobs, alive = [], []

    class Sly:
        @property
        def _number(self):
            grad_output = gradient(seed=2)
            alive.append(weakref.ref(grad_output))
            a.aclSetInputTensorAddr(executor, 0, None, grad_output)
            return 77

        def _submit(self, job):
            jobs.append(job)

    phase2(size, executor, Sly())
    a.aclSetInputTensorAddr(executor, 0, None, gradient(seed=3))
    gc.collect()
    assert alive[0]() is not None
    jobs.pop().execute()
    assert np.array_equal(grad_input, expected(gradient(seed=2)))
    assert alive[0]() is None


# many threads


def test_streams_from_many_threads():
    shared = a.aclrtCreateStream()
    wrong = []

    def work(number):
        own = a.aclrtCreateStream()
        with a.soc("Host"):
            for seed in range(60):
                calls = [queue(s, number * 1000 + seed) for s in (own, shared)]
                a.aclrtSynchronizeStream(own)
                if not np.array_equal(calls[0][1], expected(calls[0][0])):
                    wrong.append((number, seed, "own"))
                a.aclrtSynchronizeStream(shared)
                if not np.array_equal(calls[1][1], expected(calls[1][0])):
                    wrong.append((number, seed, "shared"))
        a.aclrtDestroyStream(own)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    a.aclrtDestroyStream(shared)
    assert not wrong


def test_destroy_races_with_use():
    for _ in range(30):
        stream = a.aclrtCreateStream()
        barrier = threading.Barrier(3)
        outcomes = []

        def use(stream=stream, barrier=barrier, outcomes=outcomes):
            with a.soc("Host"):
                barrier.wait()
                for seed in range(5):
                    try:
                        outcomes.append(queue(stream, seed))
                    except a.AclnnError as error:
                        outcomes.append(int(error.status))

        def destroy(stream=stream, barrier=barrier):
            barrier.wait()
            a.aclrtDestroyStream(stream)

        threads = [threading.Thread(target=target) for target in (use, use, destroy)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert len(outcomes) == 10
        for outcome in outcomes:
            # Accepted work is drained; the rest is told that the stream is gone.
            if isinstance(outcome, tuple):
                assert np.array_equal(outcome[1], expected(outcome[0]))
            else:
                assert outcome == RUNTIME


def test_synchronize_device_races_with_new_streams():
    wrong = []
    end = threading.Event()

    def create():
        while not end.is_set():
            for stream in [a.aclrtCreateStream() for _ in range(40)]:
                a.aclrtDestroyStream(stream)

    def synchronize():
        for _ in range(300):
            try:
                a.aclrtSynchronizeDevice()
            except Exception as error:
                wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        creators = [threading.Thread(target=create) for _ in range(2)]
        waiters = [threading.Thread(target=synchronize) for _ in range(2)]
        for thread in creators + waiters:
            thread.start()
        for thread in waiters:
            thread.join()
        end.set()
        for thread in creators:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


# the end of the process

EXIT_WITH_WORK = """
import sys, time
import numpy as np
import aclnn_bw as a

class Slow:
    def execute(self):
        time.sleep(0.3)

stream = a.aclrtCreateStream()
stream._submit(Slow())
grad_output = np.arange(64 * 16 * 32 * 32, dtype=np.float32).reshape(64, 16, 32, 32)
grad_input = np.memmap(sys.argv[1], np.float32, "w+", shape=(64, 16, 64, 64))
with a.soc("Host"):
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(
        grad_output, grad_input, [2], None, [0], False, True, 0, 0, grad_input)
a.aclnnAvgPool2dBackward(bytearray(size) if size else None, size, executor, stream)
assert not grad_input.any()
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "del stream, grad_input, grad_output, executor"])
def test_exit_waits_for_pending_work(tmp_path, end):
    path = tmp_path / "result"
    done = run_python(EXIT_WITH_WORK.replace("{end}", end), path)
    assert done.stderr == ""
    grad_output = np.arange(64 * 16 * 32 * 32, dtype=np.float32).reshape(64, 16, 32, 32)
    assert np.array_equal(np.fromfile(path, np.float32).reshape(64, 16, 64, 64), expected(grad_output))


def test_exit_after_an_exception_waits_too(tmp_path):
    path = tmp_path / "result"
    done = run_python(EXIT_WITH_WORK.replace("{end}", "raise SystemExit(7)"), path, check=False)
    assert done.returncode == 7
    grad_output = np.arange(64 * 16 * 32 * 32, dtype=np.float32).reshape(64, 16, 32, 32)
    assert np.array_equal(np.fromfile(path, np.float32).reshape(64, 16, 64, 64), expected(grad_output))


def test_exit_with_an_idle_stream_and_one_that_failed():
    code = """
        import aclnn_bw as a

        class Bad:
            def execute(self):
                raise RuntimeError("nobody asked")

        idle, failed = a.aclrtCreateStream(), a.aclrtCreateStream()
        failed._submit(Bad())
    """
    run_python(code)


def test_the_garbage_collector_may_end_a_stream_while_streams_are_counted():
    """A forgotten handle in a cycle, collected just while the registry of streams is in use: no deadlock."""
    code = """
        import gc, threading
        import aclnn_bw as a
        from aclnn_bw import streams

        gc.disable()
        forgotten = a.aclrtCreateStream()
        forgotten.cycle = forgotten
        del forgotten
        with streams._registry_lock:
            gc.collect()
        a.aclrtSynchronizeDevice()
    """
    run_python(textwrap.dedent(code), timeout=60)


# ---- every operator -------------------------------------------------------------------------------------------------


@each_operator
def test_each_operator_runs_on_a_stream(stream, gate, operator):
    calls = [operator((4, 8, 24, 24), dtype, seed) for seed in range(3) for dtype in (np.float32, np.float16)]
    for call in calls:
        with a.num_threads(2):
            size, executor = call.phase1()
        call.phase2(size, executor, stream)
        with refusal(INNER, "^executor.*spent"):
            call.phase2(size, executor, stream)
    assert all(call.untouched() for call in calls)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    for call in calls:
        call.check()


@each_operator
def test_another_operators_executor_is_refused_at_the_call(stream, gate, operator):
    call = operator()
    size, executor = call.phase1()
    for other in OPERATORS.values():
        if other is not operator:
            with refusal(INVALID, "^executor: was made by another operator"):
                other.phase2(size, executor, stream)
    call.phase2(size, executor, stream)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    call.check()


@each_operator
def test_queued_runs_of_each_operator_keep_their_addresses(stream, gate, operator):
    first, second = operator(seed=1), operator(seed=2)
    size, executor = first.repeatable()
    first.phase2(size, executor, stream)
    first.phase2(size, executor, stream)
    for index, name in enumerate(first.roles):
        a.aclSetTensorAddr(executor, index, None, second[name])
    first.phase2(size, executor, stream)
    with refusal(INNER, "^executor"):
        first.phase2(size, executor, None)
    wanted = first.wanted, second.wanted
    a.aclDestroyAclOpExecutor(executor)
    gate.open()
    a.aclrtSynchronizeStream(stream)
    first.check(wanted[0])
    second.check(wanted[1])


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
def test_a_forward_and_its_backward_on_one_stream(stream, layout):
    # The mask goes from one to the other without a synchronize between.
    for seed in range(5):
        forward = OPERATORS["MaxPool2dWithMask"](seed=seed, layout=layout)
        backward = OPERATORS["MaxPool2dWithMaskBackward"](seed=seed, layout=layout)
        wanted = backward.wanted
        forward["self"][...] = backward["self"]
        backward.arguments["indices"] = forward["indices"]
        with a.soc("Host", mask_layout=layout):
            plans = forward.phase1(), backward.phase1()
        forward.phase2(*plans[0], stream)
        backward.phase2(*plans[1], stream)
        a.aclrtSynchronizeStream(stream)
        backward.check(wanted)


def with_bad_index(place, value, shape=(2, 3, 8, 8)):
    """A max-pool gradient in the layout "argmax" that phase 2 will refuse."""
    call = OPERATORS["MaxPool2dWithMaskBackward"](shape, layout="argmax")
    argmax_indices(call)[place] = value
    return call


@pytest.fixture
def argmax(host):
    with a.soc("Host", mask_layout="argmax"):
        yield


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_a_bad_index_is_raised_by_synchronize(argmax, stream, threads):
    a.aclGetRecentErrMsg()
    call = with_bad_index((3, 1, 7, 11), -9, (8, 8, 40, 40))
    argmax_indices(call)[3, 1, 8, 0] = -8
    argmax_indices(call)[7, 7, 19, 19] = -7
    with a.num_threads(threads):
        size, executor = call.phase1()
    call.phase2(size, executor, stream)
    # Phase 2 has accepted it: it is spent although it fails.
    with refusal(INNER, "^executor.*spent"):
        call.phase2(size, executor, stream)
    after = [operator(seed=3, layout="argmax") for operator in OPERATORS.values()]
    for later in after:
        later.phase2(*later.phase1(), stream)
    a.aclGetRecentErrMsg()
    with refusal(INVALID, bad_index(-9, (3, 1, 7, 11))) as info:
        a.aclrtSynchronizeStream(stream)
    # The message is that of the thread that synchronizes, once.
    assert a.aclGetRecentErrMsg() == str(info.value)
    assert a.aclGetRecentErrMsg() is None
    for later in after:
        later.check()
    a.aclrtSynchronizeStream(stream)


def test_the_first_of_many_bad_runs_is_raised(argmax, stream, gate):
    calls = [with_bad_index((1, 2, 3, column), -1 - column) for column in range(4)]
    for call in calls:
        call.phase2(*call.phase1(), stream)
    gate.open()
    with refusal(INVALID, bad_index(-1, (1, 2, 3, 0))):
        a.aclrtSynchronizeStream(stream)
    a.aclrtSynchronizeStream(stream)
    calls[1].phase2(*calls[1].phase1(), stream)
    with refusal(INVALID, bad_index(-2, (1, 2, 3, 1))):
        a.aclrtSynchronizeDevice()


def test_a_bad_run_gives_a_repeatable_executor_back(argmax, stream, gate):
    call = with_bad_index((0, 1, 1, 2), 64)
    size, executor = call.repeatable()
    bad = call["indices"].copy()
    for _ in range(3):
        call.phase2(size, executor, stream)
    gate.open()
    with refusal(INVALID, bad_index(64, (0, 1, 1, 2))):
        a.aclrtSynchronizeStream(stream)
    good = OPERATORS["MaxPool2dWithMaskBackward"](layout="argmax")
    call["indices"][...] = good["indices"]
    call.clear()
    # Off the stream, on another one, and on the first again.
    call.phase2(size, executor)
    call.check(good.wanted)
    other = a.aclrtCreateStream()
    for queue in (other, stream):
        call.clear()
        call.phase2(size, executor, queue)
        a.aclrtSynchronizeStream(queue)
        call.check(good.wanted)
    a.aclrtDestroyStream(other)
    call["indices"][...] = bad
    with refusal(INVALID, bad_index(64, (0, 1, 1, 2))):
        call.phase2(size, executor)


def test_a_bad_run_lets_its_arrays_go(argmax, stream):
    call = with_bad_index((0, 0, 0, 0), -1)
    arrays = [call[name] for name in call.roles]
    before = [sys.getrefcount(array) for array in arrays]
    call.phase2(*call.phase1(), stream)
    with refusal(INVALID, bad_index(-1, (0, 0, 0, 0))):
        a.aclrtSynchronizeStream(stream)
    gc.collect()
    assert [sys.getrefcount(array) for array in arrays] == before


def test_exit_with_a_bad_run_pending():
    code = """
        import numpy as np
        import aclnn_bw as a

        mask = np.full(a.mask_shape((1, 4, 4), 2), -1, np.int8)
        grad_output, grad_input = np.ones((1, 2, 2), np.float32), np.empty((1, 4, 4), np.float32)
        stream = a.aclrtCreateStream()
        with a.soc("Host", mask_layout="argmax"):
            size, executor = a.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
                grad_output, grad_input, mask, [2], [], [0], [1], False, grad_input)
        a.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor, stream)
    """
    run_python(code)


# as a context manager


def bad_argmax_run(stream):
    """Queue a run that fails."""
    with a.soc("Host", mask_layout="argmax"):
        x = np.zeros((1, 1, 4, 4), np.float32)
        mask = np.full(a.mask_shape(x.shape, 2), -1, np.int8)
        size, executor = a.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
            np.ones((1, 1, 2, 2), np.float32), x, mask, [2], [2], [0], [1], False, x
        )
    a.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor, stream)


def test_the_end_of_a_with_block_drains_and_destroys():
    grad_output, grad_input = np.ones((4, 16, 64, 64), np.float32), np.zeros((4, 16, 128, 128), np.float32)
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(
        grad_output, grad_input, [2], [2], [0], False, True, 0, 0, grad_input
    )
    with a.aclrtCreateStream() as stream:
        a.aclnnAvgPool2dBackward(bytearray(size), size, executor, stream)
    assert np.all(grad_input == 0.25)
    assert "destroyed" in repr(stream)
    with pytest.raises(a.AclnnError, match="destroyed"), stream:
        raise AssertionError("not entered")


def test_the_end_of_a_with_block_raises_what_failed():
    stream = a.aclrtCreateStream()
    with pytest.raises(a.AclnnError, match=r"^indices\[0, 0, 0, 0\] = -1"), stream:
        bad_argmax_run(stream)
    assert "destroyed" in repr(stream)


def test_the_end_of_a_with_block_hides_no_exception():
    stream = a.aclrtCreateStream()
    bad_argmax_run(stream)
    with pytest.raises(ZeroDivisionError) as info, stream:
        raise ZeroDivisionError
    if hasattr(info.value, "__notes__"):
        assert "indices[0, 0, 0, 0] = -1" in info.value.__notes__[0]
    assert "destroyed" in repr(stream)


def test_a_with_block_whose_stream_is_destroyed_within():
    with a.aclrtCreateStream() as stream:
        a.aclrtDestroyStream(stream)


def test_a_failed_stream_says_so():
    stream = a.aclrtCreateStream()
    bad_argmax_run(stream)
    while "pending" in repr(stream):
        time.sleep(0.001)
    assert repr(stream).endswith("idle, failed>")
    with pytest.raises(a.AclnnError):
        a.aclrtSynchronizeStream(stream)
    assert repr(stream).endswith("idle>")
    a.aclrtDestroyStream(stream)
