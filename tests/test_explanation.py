"""What an executor says of itself: explain(), repr, and its end as a context manager."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from engine_helpers import refusal
from operators import OPERATORS, each_operator

import aclnn_bw as a
from aclnn_bw.explanation import ALGORITHMS

SOURCES = Path(__file__).parent.parent / "aclnn_bw"


@pytest.fixture(autouse=True)
def host():
    with a.soc("Host"):
        yield


def avg(size, kernel, stride, padding=0, batch=1, channels=2):
    """The executor of an average pool of square planes."""
    out = (size + 2 * padding - kernel) // stride + 1
    shape, grad_input = (batch, channels, out, out), np.empty((batch, channels, size, size), np.float32)
    return a.aclnnAvgPool2dBackwardGetWorkspaceSize(
        np.ones(shape, np.float32), grad_input, [kernel], [stride], [padding], False, True, 0, 0, grad_input
    )


@each_operator
def test_every_executor_explains_itself(operator):
    size, executor = operator().phase1()
    told = executor.explain()
    assert type(told) is a.Explanation
    assert told.operator == operator.__name__
    assert told.state == "ready"
    assert told.isa == a.show_config(mode="dict")["isa"]
    assert told.workspace_size == size
    assert 1 <= told.ranges == told.threads <= told.units
    assert set(told.algorithm.split(", ")) <= set(ALGORITHMS[told.operator])
    arrays = [array for array in operator().arguments.values() if isinstance(array, np.ndarray)]
    assert 0 < told.compulsory_bytes <= sum(array.nbytes for array in arrays)
    lines = str(told).splitlines()
    assert lines[0] == f"{told.operator} of {told.dtype.name}, ready"
    assert [line.split()[0] for line in lines[1:]] == [
        "geometry", "algorithm", "isa", "threads", "workspace", "traffic"
    ]  # fmt: skip
    assert pickle.loads(pickle.dumps(told)) == told
    with pytest.raises(AttributeError):
        told.threads = 3


@pytest.mark.parametrize(
    ("case", "algorithm"),
    [
        ((7, 7, 7), "FILL"),
        ((8, 2, 2), "DOUBLE"),
        ((9, 3, 1, 1), "BANDED"),
        ((9, 3, 2, 1), "BANDED"),
        ((12, 5, 1), "BANDED"),
        ((24, 9, 4), "BANDED"),
        ((24, 9, 4, 0, 2, 8), "ACROSS"),
        ((24, 9, 4, 0, 1, 11), "BANDED"),
    ],
)
def test_the_chosen_algorithm(case, algorithm):
    assert avg(*case)[1].explain().algorithm == algorithm


def test_the_geometry_is_the_callers():
    told = avg(9, 3, 2, 1, channels=3)[1].explain()
    assert told.geometry == {
        "gradOutput": (1, 3, 5, 5), "self": (1, 3, 9, 9), "gradInput": (1, 3, 9, 9), "kernelSize": (3, 3),
        "stride": (2, 2), "padding": (1, 1), "countIncludePad": True,
    }  # fmt: skip
    out = np.empty((1, 2, 4, 5), np.float32)
    columns = np.ones((1, 2 * 6, 2), np.float32)
    told = a.aclnnIm2colBackwardGetWorkspaceSize(columns, [4, 5], [3, 2], [1, 2], [0, 0], [7, 2], out)[1].explain()
    assert {name: told.geometry[name] for name in ("kernelSize", "dilation", "padding", "stride")} == {
        "kernelSize": (3, 2), "dilation": (1, 2), "padding": (0, 0), "stride": (7, 2)
    }  # fmt: skip
    grad_input = np.empty((1, 2, 2), np.float32)
    told = a.aclnnReplicationPad2dBackwardGetWorkspaceSize(
        np.ones((1, 5, 1), np.float32), grad_input, [-3, 2, 4, -1], grad_input
    )[1].explain()
    assert told.geometry["padding"] == (-3, 2, 4, -1)
    x, kernel = np.ones((1, 4, 4), np.float32), [4, 3]
    out, mask = np.empty((1, 1, 1), np.float32), np.empty(a.mask_shape((1, 4, 4), kernel, [9, 8]), np.int8)
    told = a.aclnnMaxPool2dWithMaskGetWorkspaceSize(x, kernel, [9, 8], [0], [1], False, out, mask)[1].explain()
    assert told.geometry["stride"] == (9, 8)
    assert told.geometry["mask_layout"] == "bitmask"


def test_one_and_many():
    # Planes whose windows overlap are not joined, in any build.
    one, several = (avg(8, 3, 1, 1, channels=channels)[1].explain() for channels in (1, 5))
    assert "1 unit in 1 range\n" in str(one)
    assert f"{several.units} units in " in str(several)
    assert several.units > 1


def test_nothing_to_do():
    told = avg(8, 2, 2, batch=0)[1].explain()
    assert (told.algorithm, told.units, told.ranges, told.compulsory_bytes) == ("", 0, 0, 0)
    assert "nothing to do" in str(told)


@pytest.mark.parametrize(("file", "enums"), sorted({(one.core or one.page, one.enums) for one in OPERATORS.values()}))
def test_the_names_are_those_of_the_core(file, enums):
    core = (SOURCES / "_core" / f"{file}.pxd").read_text(encoding="utf-8")
    members = [re.search(rf"cdef enum {enum}:\n((?: +\w+ .*\n| +\w+\n)+)", core)[1] for enum in enums]
    wanted = [line.split()[0] for line in "".join(members).splitlines()]
    # In their order: the record's are bits that the core sets by these numbers.
    found = set()
    for name, operator in OPERATORS.items():
        if (operator.core or operator.page, operator.enums) == (file, enums):
            some = list(ALGORITHMS[name])
            begin = wanted.index(some[0])
            assert some == wanted[begin : begin + len(some)]
            found |= {*some}
    assert found == {*wanted}


def test_every_operator_is_known():
    assert set(ALGORITHMS) == set(OPERATORS)


# the states


def test_states():
    size, executor = avg(8, 2, 2)
    assert "ready" in repr(executor)
    assert "1 thread," in repr(executor)
    a.aclnnAvgPool2dBackward(bytearray(size), size, executor)
    assert "spent" in repr(executor)
    assert executor.explain().state == "spent"
    size, executor = avg(8, 2, 2)
    a.aclSetAclOpExecutorRepeatable(executor)
    assert " repeatable, " in repr(executor)
    a.aclDestroyAclOpExecutor(executor)
    assert "destroyed" in repr(executor)
    assert executor.explain().state == "destroyed"


def test_a_queued_executor_says_so():
    size, executor = avg(256, 3, 1, 1, batch=4, channels=64)
    a.aclSetAclOpExecutorRepeatable(executor)
    with a.aclrtCreateStream() as stream:
        workspace = bytearray(size)
        for _ in range(3):
            a.aclnnAvgPool2dBackward(workspace, size, executor, stream)
        # However fast it is: three are not done when the third has just been queued.
        assert re.search(r"repeatable, [123] runs? queued or running", repr(executor))
        assert re.search(r"[123] pending", repr(stream))
    assert "queued" not in repr(executor)


def test_an_executor_as_context_manager():
    size, executor = avg(8, 2, 2)
    with executor as same:
        assert same is executor
        a.aclnnAvgPool2dBackward(bytearray(size), size, executor)
    with refusal(a.ACLNN_ERR_INNER, "^executor: has been destroyed"):
        a.aclnnAvgPool2dBackward(bytearray(size), size, executor)
    with refusal(a.ACLNN_ERR_INNER, "^executor: has been destroyed"), executor:
        raise AssertionError("not entered")
    size, executor = avg(8, 2, 2)
    with executor:
        a.aclDestroyAclOpExecutor(executor)     # earlier than the end: fine
    size, executor = avg(8, 2, 2)
    with pytest.raises(ZeroDivisionError), executor:
        raise ZeroDivisionError
    assert "destroyed" in repr(executor)
