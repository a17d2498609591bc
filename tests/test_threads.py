"""Thread counts, their sources, the frozen plan, calls from many threads, forks, and torch beside us."""

import asyncio
import contextvars
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from engine_helpers import (
    NUMPY_DTYPE,
    argmax_indices,
    bad_index,
    check_k3s1p1,
    expected,
    gradient,
    label,
    phase2,
    plan,
    run_python,
    sentinel_array,
)
from operators import OPERATORS, TAKEN, each_operator

import aclnn_bw as a

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# A call large enough for many threads, in a fresh interpreter; `tasks` counts the threads of the process.
PROLOGUE = """
import os, sys
import numpy as np
import aclnn_bw as a

def tasks():
    return len(os.listdir("/proc/self/task"))

def make(shape=(64, 16, 32, 32), dtype=np.float32):
    grad_output = (np.arange(int(np.prod(shape))) % 97).astype(dtype).reshape(shape)
    grad_input = np.zeros((*shape[:2], 2 * shape[2], 2 * shape[3]), dtype)
    with a.soc("Host"):
        size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad_output, grad_input, [2], None, [0], False, True, 0, 0, grad_input)
    return size, executor, grad_output, grad_input

def run(size, executor, grad_output, grad_input, stream=None):
    a.aclnnAvgPool2dBackward(bytearray(size) if size else None, size, executor, stream)
    if stream is not None:
        a.aclrtSynchronizeStream(stream)
    want = np.repeat(np.repeat(grad_output.astype(np.float64), 2, 2), 2, 3) / 4
    assert np.array_equal(grad_input.astype(np.float64), want)
"""


def fresh(code, **options):
    """Run PROLOGUE and `code` in a fresh interpreter; give its standard output."""
    return run_python(PROLOGUE + textwrap.dedent(code), **options).stdout.strip()


def has_openmp():
    return a.show_config(mode="dict")["openmp"]


@pytest.fixture(autouse=True)
def host():
    with a.soc("Host"):
        yield


@pytest.fixture
def restored():
    before = a.get_num_threads()
    yield before
    a.set_num_threads(before)


# the setting


@pytest.mark.parametrize("count", [1, 2, 3, 7, 65535])
def test_set_is_reported_back(restored, count):
    a.set_num_threads(count)
    assert a.get_num_threads() == count


@pytest.mark.parametrize("count", [0, -1, 65536, 2**31, 2**63, -(2**70)])
def test_counts_out_of_range(restored, count):
    with pytest.raises(ValueError, match=str(count)):
        a.set_num_threads(count)
    with pytest.raises(ValueError, match=str(count)), a.num_threads(count):
        pass
    assert a.get_num_threads() == restored


@pytest.mark.parametrize("count", [1.0, True, "2", None, [2], np.float64(2)], ids=label)
def test_counts_of_another_type(restored, count):
    if count is not None:
        with pytest.raises(TypeError):
            a.set_num_threads(count)
    with pytest.raises(TypeError), a.num_threads(count):
        pass
    assert a.get_num_threads() == restored


def test_numpy_integers_serve(restored):
    a.set_num_threads(np.int64(3))
    assert a.get_num_threads() == 3
    assert type(a.get_num_threads()) is int


def test_none_sets_what_held_at_import():
    for environment in ({"ACLNN_BW_NUM_THREADS": "3"}, {"OMP_NUM_THREADS": "4,2"}, {}):
        code = """
            first = a.get_num_threads()
            os.environ.update(ACLNN_BW_NUM_THREADS="7")
            a.set_num_threads(first + 1)
            a.set_num_threads(None)
            print(first, a.get_num_threads())
        """
        first, then = fresh("import os\n" + textwrap.dedent(code), environment=environment).split()
        assert first == then == next(iter(environment.values()), first)[0]


def test_pools_get_the_context_as_the_documentation_says(restored):
    a.set_num_threads(5)

    def seen():
        return a.get_num_threads(), a.aclrtGetSocName()

    with a.num_threads(2), a.soc("Ascend310P"):
        with ThreadPoolExecutor(1) as pool:
            inherits = getattr(sys.flags, "thread_inherit_context", False)
            assert pool.submit(seen).result() == ((2, "Ascend310P") if inherits else (5, "Ascend910B"))
            assert pool.submit(contextvars.copy_context().run, seen).result() == (2, "Ascend310P")
        assert asyncio.run(asyncio.to_thread(seen)) == (2, "Ascend310P")
    with ThreadPoolExecutor(1, initializer=a.num_threads(3).__enter__) as pool:
        assert pool.submit(a.get_num_threads).result() == 3
    with ThreadPoolExecutor(1, initializer=a.soc("Ascend910").__enter__) as pool:
        assert pool.submit(a.aclrtGetSocName).result() == "Ascend910"


def test_openmps_own_default_is_not_read():
    """As the documentation says of threadpoolctl, which sets it."""
    pytest.importorskip("threadpoolctl")
    code = """
        import threadpoolctl
        a.set_num_threads(2)
        with threadpoolctl.threadpool_limits(1):
            print(make()[1].explain().threads)
    """
    assert fresh(code) == ("2" if has_openmp() else "1")


def test_the_setting_holds_in_every_thread(restored):
    a.set_num_threads(5)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(a.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [5]


def test_the_context_wins_and_ends(restored):
    with a.num_threads(3):
        assert a.get_num_threads() == 3
        with a.num_threads(4):
            assert a.get_num_threads() == 4
        assert a.get_num_threads() == 3
        a.set_num_threads(6)
        assert a.get_num_threads() == 3
    assert a.get_num_threads() == 6


def test_the_context_ends_with_an_exception(restored):
    with pytest.raises(KeyError), a.num_threads(3):
        raise KeyError
    assert a.get_num_threads() == restored


def test_the_context_is_of_this_context_only(restored):
    seen = []
    with a.num_threads(restored + 1):
        thread = threading.Thread(target=lambda: seen.append(a.get_num_threads()))
        thread.start()
        thread.join()
        outside = contextvars.copy_context()
    assert seen == [restored]
    assert outside.run(a.get_num_threads) == restored + 1
    assert a.get_num_threads() == restored


def test_the_context_in_coroutines(restored):
    import asyncio

    async def one(count, order):
        with a.num_threads(count):
            for _ in range(3):
                await asyncio.sleep(0)
                order.append(a.get_num_threads() == count)

    async def main():
        order = []
        await asyncio.gather(*(one(count, order) for count in (2, 3, 4)))
        return order

    assert asyncio.run(main()) == [True] * 9


# the environment


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({"ACLNN_BW_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": " 6 , 2 "}, 6),
        ({"ACLNN_BW_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"ACLNN_BW_NUM_THREADS": " 7 "}, 7),
        ({"ACLNN_BW_NUM_THREADS": "65535"}, 65535),
    ],
    ids=str,
)
def test_environment(environment, count):
    assert run_python("import aclnn_bw; print(aclnn_bw.get_num_threads())", environment=environment).stdout.split() == [
        str(count)
    ]


@pytest.mark.parametrize("variable", ["ACLNN_BW_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize(
    "value", ["0", "-2", "many", "2.5", "65536", "1e3", "9" * 40, "9" * 5000, ",", "x,2"], ids=lambda v: v[:9]
)
def test_environment_that_makes_no_sense(variable, value):
    code = """
        import warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import aclnn_bw
            count = aclnn_bw.get_num_threads()
        import os
        assert 1 <= count <= os.cpu_count(), count
        assert seen
        for warning in seen:
            assert os.environ["variable"] in str(warning.message)
            assert os.environ[os.environ["variable"]] in str(warning.message)
    """
    run_python(code, environment={variable: value, "variable": variable})


@pytest.mark.parametrize("value", ["0", "many"])
def test_a_bad_own_variable_leaves_the_general_one(value):
    code = """
        import warnings
        warnings.simplefilter("ignore")
        import aclnn_bw
        print(aclnn_bw.get_num_threads())
    """
    environment = {"ACLNN_BW_NUM_THREADS": value, "OMP_NUM_THREADS": "3"}
    assert run_python(code, environment=environment).stdout.split() == ["3"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity")
def test_without_settings_the_cores_that_are_left():
    code = """
        import os
        cores = sorted(os.sched_getaffinity(0))
        import aclnn_bw
        assert 1 <= aclnn_bw.get_num_threads() <= len(cores)
    """
    run_python(code)
    code = """
        import os
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        import aclnn_bw
        print(aclnn_bw.get_num_threads())
    """
    assert run_python(code).stdout.split() == ["1"]


def test_no_variable_is_written():
    code = """
        import os
        before = dict(os.environ)
        import aclnn_bw
        aclnn_bw.set_num_threads(3)
        with aclnn_bw.num_threads(2), aclnn_bw.soc("Host"):
            pass
        assert dict(os.environ) == before
    """
    run_python(code)


# the plan


@needs_proc
def test_the_thread_count_is_fixed_in_phase_1():
    code = """
        a.set_num_threads(1)
        serial = make()
        a.aclSetAclOpExecutorRepeatable(serial[1])
        a.set_num_threads(4)
        parallel = make()
        a.aclSetAclOpExecutorRepeatable(parallel[1])
        run(*serial)
        run(*serial)
        print(tasks())
        a.set_num_threads(1)
        run(*parallel)
        print(tasks())
    """
    expected_threads = "4" if has_openmp() else "1"
    assert fresh(code).split() == ["1", expected_threads]


@needs_proc
def test_the_context_decides_the_plan_too():
    code = """
        a.set_num_threads(4)
        with a.num_threads(1):
            serial = make()
        run(*serial)
        print(tasks())
        a.set_num_threads(1)
        with a.num_threads(3):
            parallel = make()
        run(*parallel)
        print(tasks())
    """
    assert fresh(code).split() == ["1", "3" if has_openmp() else "1"]


def test_the_workspace_fits_the_plan(restored):
    grad_output = gradient((4, 16, 64, 64), np.float16)
    sizes = {}
    for planned in (1, 2, 5):
        grad_input = sentinel_array(grad_output.shape, np.float16)
        a.set_num_threads(planned)
        size, executor = plan(grad_output, grad_input, 3, 1, 1)
        a.set_num_threads(7)
        phase2(size, executor)
        check_k3s1p1(grad_output, grad_input)
        sizes[planned] = size
    assert sizes[1] <= sizes[2] <= sizes[5]


@needs_proc
def test_small_work_stays_serial():
    code = """
        a.set_num_threads(4)
        run(*make((1, 16, 8, 8)))
        assert tasks() == 1
        run(*make((1, 2, 8, 8), np.float16))
        assert tasks() == 1
    """
    fresh(code)


@needs_proc
def test_large_work_does_not():
    if not has_openmp():
        pytest.skip("a serial build")
    assert fresh("a.set_num_threads(2); run(*make()); print(tasks())") == "2"


@needs_proc
def test_one_plane_is_shared_too():
    if not has_openmp():
        pytest.skip("a serial build")
    assert fresh("a.set_num_threads(2); run(*make((1, 1, 1024, 1024))); print(tasks())") == "2"


@needs_proc
def test_a_team_is_capped():
    code = """
        a.set_num_threads(65535)
        assert a.get_num_threads() == 65535
        run(*make((64, 64, 32, 32)))
        print(tasks())
    """
    seen = int(fresh(code))
    assert seen <= max(16, 4 * os.cpu_count())
    if has_openmp():
        assert seen > 1


def test_more_threads_than_ranges(restored):
    for shape in ((1, 1, 300, 300), (3, 1, 64, 64), (1, 2, 1, 100_000), (1, 2, 100_000, 1)):
        for count in (2, 5, 64):
            grad_output = gradient(shape, np.float16)
            grad_input = sentinel_array((*shape[:2], 2 * shape[2], 2 * shape[3]), np.float16)
            a.set_num_threads(count)
            phase2(*plan(grad_output, grad_input))
            assert np.array_equal(grad_input, expected(grad_output))


# OpenMP


def test_the_module_has_openmp(tmp_path):
    if os.environ.get("ACLNN_BW_OPENMP") == "0":
        pytest.skip("built without OpenMP on purpose")
    if not sys.platform.startswith("linux") or shutil.which("gcc") is None:
        pytest.skip("needs Linux and gcc")
    source = tmp_path / "probe.c"
    source.write_text("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
    probe = ["gcc", "-fopenmp", "-o", tmp_path / "probe", source]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("gcc has no OpenMP here")
    assert has_openmp() is True


# Python threads


@pytest.mark.parametrize("threads", [1, 2])
def test_eight_python_threads_at_once(threads):
    wrong = []
    barrier = threading.Barrier(8)

    def work(number):
        with a.soc("Host"), a.num_threads(threads):
            barrier.wait()
            for seed in range(12):
                for dtype in (np.float32, np.float16):
                    grad_output = gradient((4, 8, 32, 32), dtype, number * 100 + seed)
                    grad_input = sentinel_array((4, 8, 64, 64), dtype)
                    phase2(*plan(grad_output, grad_input))
                    if not np.array_equal(grad_input, expected(grad_output)):
                        wrong.append((number, seed, dtype))
                    if not np.array_equal(a.avg_pool2d_backward(grad_output, grad_input, 2), grad_input):
                        wrong.append((number, seed, dtype, "one call"))

    pool = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert not wrong


def test_one_call_functions_with_scratch_of_many_sizes():
    # Two threads whose calls end in another order than they began in must not mix up the sizes of their scratch.
    code = """
        import threading
        shapes = [(600, 16, 20, 20), (1, 16, 20, 20), (1, 4, 120, 120), (1, 1, 400, 400), (2, 40, 40, 40)]
        wrong = []

        def work(number):
            rng = np.random.default_rng(number)
            for _ in range(150):
                shape = shapes[rng.integers(len(shapes))]
                ones = np.full(shape, 9, np.float16)
                result = a.avg_pool2d_backward(ones, ones, 3, 1, 1)
                if not np.all(result[..., 1:-1, 1:-1] == 9) or not np.all(result[..., 0, 0] == 4):
                    wrong.append(shape)

        pool = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
        assert not wrong, wrong
    """
    # glibc then fills what is freed, and notices what has been overwritten.
    fresh(code, environment={"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"})


@pytest.mark.parametrize("one_call", [False, True], ids=["two phases", "one call"])
def test_the_gil_is_released_during_a_kernel(one_call):
    grad_output = np.ones((8, 32, 256, 256), np.float32)
    grad_input = np.zeros((8, 32, 256, 256), np.float32)
    count, running, end = 0, threading.Event(), False

    def tick():
        nonlocal count
        while not end:
            count += 1
            running.set()
            time.sleep(0)

    interval = sys.getswitchinterval()
    ticker = threading.Thread(target=tick)
    with a.num_threads(1):
        size, executor = plan(grad_output, grad_input, 5, 1, 2)
        a.aclSetAclOpExecutorRepeatable(executor)
        workspace = bytearray(size) if size else None
        ticker.start()
        running.wait()
        try:
            # Nobody takes the GIL from a call: the ticker moves only while the call lets it go.
            sys.setswitchinterval(100)
            before = count
            for _ in range(5):
                if one_call:
                    a.avg_pool2d_backward(grad_output, grad_input, 5, 1, 2, out=grad_input)
                else:
                    a.aclnnAvgPool2dBackward(workspace, size, executor, None)
            after = count
        finally:
            sys.setswitchinterval(interval)
            end = True
            ticker.join()
    assert grad_input.all()
    assert after - before > 20


# forks

FORK = """
import signal, traceback

def child(work):
    "Run `work` in a forked child, which has a minute; fail if it fails."
    sys.stdout.flush()
    number = os.fork()
    if number == 0:
        try:
            signal.alarm(60)
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0
"""


@needs_fork
@needs_proc
@pytest.mark.parametrize("region_before", [True, False])
def test_a_forked_child_works_serially(region_before):
    code = """
        a.set_num_threads(2)
        if region_before:
            run(*make())
        made_before = make()
        repeated = make()
        a.aclSetAclOpExecutorRepeatable(repeated[1])
        if region_before:
            run(*repeated)

        def work():
            run(*made_before)
            run(*repeated)
            run(*repeated)
            run(*make())
            assert np.array_equal(a.avg_pool2d_backward(repeated[2], repeated[3], 2), repeated[3])
            assert tasks() == 1, tasks()
            a.set_num_threads(7)
            assert a.get_num_threads() == 7
            run(*make())
            with a.num_threads(3):
                run(*make())
            assert tasks() == 1, tasks()
            stream = a.aclrtCreateStream()
            run(*make(), stream)
            a.aclrtSynchronizeDevice()
            a.aclrtDestroyStream(stream)

        child(work)
        child(lambda: child(work))
        # The parent goes on as before, threads and all.
        run(*made_before)
        run(*repeated)
        assert tasks() == (2 if a.show_config(mode="dict")["openmp"] else 1)
    """
    run_python(f"{PROLOGUE}\n{FORK}\nregion_before = {region_before}\n" + textwrap.dedent(code), warnings="ignore")


@needs_fork
def test_an_inherited_stream_is_refused_in_the_child():
    code = """
        stream = a.aclrtCreateStream()
        run(*make(), stream)

        class Slow:
            def execute(self):
                import time
                time.sleep(0.2)

        def refused(call):
            try:
                call()
            except a.AclnnError as error:
                assert error.status == 361001, error
            else:
                raise AssertionError("not refused")

        def work():
            size, executor, grad_output, grad_input = make()
            workspace = bytearray(size) if size else None
            refused(lambda: a.aclnnAvgPool2dBackward(workspace, size, executor, stream))
            assert not grad_input.any()
            refused(lambda: a.aclrtSynchronizeStream(stream))
            refused(lambda: a.aclrtDestroyStream(stream))
            # What was refused is unspent, and a device without streams of its own has nothing to wait for.
            run(size, executor, grad_output, grad_input)
            a.aclrtSynchronizeDevice()

        stream._submit(Slow())
        child(work)
        run(*make(), stream)
    """
    run_python(f"{PROLOGUE}\n{FORK}\n" + textwrap.dedent(code), warnings="ignore")


@needs_fork
def test_a_child_that_exits_normally_does_not_hang():
    code = """
        stream = a.aclrtCreateStream()

        class Slow:
            def execute(self):
                import time
                time.sleep(0.3)

        stream._submit(Slow())
        number = os.fork()
        if number == 0:
            signal.alarm(60)
            run(*make())
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0
        a.aclrtSynchronizeStream(stream)
    """
    run_python(f"{PROLOGUE}\n{FORK}\n" + textwrap.dedent(code), warnings="ignore")


@needs_fork
def test_an_executor_that_was_queued_at_the_fork_runs_in_the_child():
    code = """
        import threading

        class Wait:
            def __init__(self):
                self.event = threading.Event()

            def execute(self):
                self.event.wait(60)

        stream, wait = a.aclrtCreateStream(), Wait()
        stream._submit(wait)
        queued = make()
        a.aclSetAclOpExecutorRepeatable(queued[1])
        for _ in range(3):
            a.aclnnAvgPool2dBackward(bytearray(queued[0]), queued[0], queued[1], stream)
        child(lambda: run(*queued))
        wait.event.set()
        a.aclrtSynchronizeStream(stream)
        run(*queued)
    """
    run_python(f"{PROLOGUE}\n{FORK}\n" + textwrap.dedent(code), warnings="ignore")


@needs_fork
def test_multiprocessing_by_fork():
    code = """
        import multiprocessing
        a.set_num_threads(2)
        run(*make())

        def work(seed):
            run(*make())
            return seed

        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(work, range(6)) == list(range(6))
        run(*make())
    """
    run_python(f"{PROLOGUE}\n{FORK}\n" + textwrap.dedent(code), warnings="ignore")


# beside torch


@pytest.mark.torch
@pytest.mark.parametrize("order", ["import torch\nimport aclnn_bw as a", "import aclnn_bw as a\nimport torch"])
def test_beside_torch(order):
    pytest.importorskip("torch")
    code = """
        torch.set_num_threads(2)
        a.set_num_threads(2)
        for _ in range(3):
            run(*make())
            x = torch.ones(8, 16, 128, 128, requires_grad=True)
            y = torch.nn.functional.avg_pool2d(x, 2)
            y.sum().backward()
            assert torch.all(x.grad == 0.25)
            ours = a.avg_pool2d_backward(torch.ones_like(y), x.detach(), 2)
            assert np.array_equal(ours, x.grad.numpy())
    """
    run_python(f"{order}\n{PROLOGUE}\n" + textwrap.dedent(code), warnings="ignore")


# ---- every operator -------------------------------------------------------------------------------------------------


@each_operator
def test_results_of_each_operator_at_every_thread_count(operator):
    for dtype in TAKEN[operator.__name__]["Host"]:
        for shape in ((4, 19, 40, 40), (1, 1, 250, 301)):
            call = operator(shape, NUMPY_DTYPE[dtype])
            for threads in (1, 2, 3, 5):
                call.clear()
                with a.num_threads(threads):
                    call.run()
                call.check()


@each_operator
@pytest.mark.parametrize("shape", [(64, 16, 32, 32), (1, 1, 1024, 1024)], ids=["many planes", "one plane"])
def test_large_work_of_each_operator_is_shared(operator, shape):
    if not has_openmp():
        pytest.skip("a serial build")
    with a.num_threads(2):
        _, executor = operator(shape).phase1()
        assert "2 threads" in repr(executor)
        _, executor = operator((1, 2, 8, 8)).phase1()
        assert "1 thread," in repr(executor)


def test_all_operators_at_once_in_many_python_threads():
    wrong = []
    kinds = [(operator, dtype) for operator in OPERATORS.values() for dtype in (np.float32, np.float16)]
    barrier = threading.Barrier(len(kinds))

    def work(operator, dtype):
        calls = [operator((4, 8, 32, 32), dtype, seed) for seed in range(3)]
        with a.soc("Host"), a.num_threads(2):
            wanted = [[value.tobytes() for value in call.wanted.values()] for call in calls]
            barrier.wait()
            for _ in range(8):
                for call, want in zip(calls, wanted, strict=True):
                    call.clear()
                    call.run()
                    if [call[name].tobytes() for name in call.wanted] != want:
                        wrong.append((operator, dtype, "two phases"))
                    if [result.tobytes() for result in call.one_call()] != want:
                        wrong.append((operator, dtype, "one call"))

    pool = [threading.Thread(target=work, args=kind) for kind in kinds]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert not wrong


def test_messages_of_bad_indices_stay_with_their_threads():
    wrong = []
    barrier = threading.Barrier(8)

    def work(number):
        call = OPERATORS["MaxPool2dWithMaskBackward"]((8, 8, 32, 32), layout="argmax")
        argmax_indices(call)[number, 7 - number, 1, number] = -100 - number
        with a.soc("Host", mask_layout="argmax"), a.num_threads(2):
            barrier.wait()
            for _ in range(30):
                size, executor = call.phase1()
                try:
                    call.phase2(size, executor)
                except a.AclnnError as error:
                    text = str(error)
                    pattern = bad_index(-100 - number, (number, 7 - number, 1, number))
                    if not re.search(pattern, text) or a.aclGetRecentErrMsg() != text:
                        wrong.append((number, text))
                else:
                    wrong.append((number, "not refused"))

    pool = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert not wrong


@needs_fork
@needs_proc
def test_a_forked_child_runs_every_operator_serially():
    code = """
        sys.path.insert(0, sys.argv[1])
        from engine_helpers import argmax_indices
        from operators import OPERATORS

        a.set_num_threads(2)
        with a.soc("Host"):
            calls = [operator((8, 8, 40, 40)) for operator in OPERATORS.values()]
            plans = [call.phase1() for call in calls]
            repeated = [call.repeatable() for call in calls]
        for call, plan in zip(calls, repeated):
            call.phase2(*plan)
            call.check()
        bad = OPERATORS["MaxPool2dWithMaskBackward"]((8, 8, 40, 40), layout="argmax")
        argmax_indices(bad)[5, 4, 3, 2] = -1
        with a.soc("Host", mask_layout="argmax"):
            bad_plan = bad.phase1()

        def work():
            with a.soc("Host"):
                for call, once, again in zip(calls, plans, repeated):
                    for run in (lambda: call.phase2(*once), lambda: call.phase2(*again), call.run):
                        call.clear()
                        run()
                        call.check()
                    assert [r.tobytes() for r in call.one_call()] == [w.tobytes() for w in call.wanted.values()]
            try:
                bad.phase2(*bad_plan)
            except a.AclnnError as error:
                assert error.status == 161002 and "5, 4, 3, 2" in str(error), error
            else:
                raise AssertionError("not refused")
            assert tasks() == 1, tasks()

        child(work)
        for call, plan in zip(calls, plans):
            call.clear()
            call.phase2(*plan)
            call.check()
        assert tasks() == (2 if a.show_config(mode="dict")["openmp"] else 1)
    """
    tests = os.path.dirname(os.path.abspath(__file__))
    run_python(f"{PROLOGUE}\n{FORK}\n" + textwrap.dedent(code), tests, warnings="ignore")
