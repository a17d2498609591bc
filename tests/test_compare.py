"""``aclnn-bw compare``: dumps of every operator, differences counted, and files that are no dumps."""

import ml_dtypes
import numpy as np
import pytest
from operators import each_operator

import aclnn_bw as a
from aclnn_bw import cli
from aclnn_bw._compare import compare, ulps


def written(path, operator, **arrays):
    brain = [name for name, array in arrays.items() if np.asarray(array).dtype == ml_dtypes.bfloat16]
    bits = {name: arrays[name].view(np.uint16) for name in brain}
    np.savez(path, operator=operator, bfloat16=np.array(brain, str), **{**arrays, **bits})
    return str(path)


@each_operator
def test_each_operator(tmp_path, operator, capsys):
    call = operator()
    call.phase2(*call.phase1())
    path = written(tmp_path / "dump.npz", operator.__name__, **call.arguments)
    assert cli.main(["compare", path]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"aclnn{operator.__name__}"
    assert all(line.endswith("elements: the same") for line in printed[1:])
    assert [line.split()[0] for line in printed[1:]] == list(call.named("written"))


def avg(dtype, **changes):
    grad_output = np.ones((1, 2, 2, 2), dtype)
    with a.soc("Host"):
        grad_input = a.avg_pool2d_backward(grad_output, (1, 2, 4, 4), 2)
    return {
        "gradOutput": grad_output, "self_shape": [1, 2, 4, 4], "kernelSize": [2], "stride": [2], "padding": [0],
        "ceilMode": False, "countIncludePad": True, "divisorOverride": 0, "cubeMathType": 0, "gradInput": grad_input,
        "soc": "Host", **changes,
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_the_first_difference_and_the_largest(tmp_path, dtype, capsys):
    call = avg(dtype)
    wrong = call["gradInput"]
    bits = wrong.view(f"i{wrong.itemsize}")
    bits[0, 1, 0, 3] += 2
    bits[0, 1, 2, 1] -= 5
    path = written(tmp_path / "dump.npz", "aclnnAvgPool2dBackward", **call)
    (difference,) = compare(path)[1]
    assert (difference.elements, difference.different, difference.ulp) == (32, 2, 5)
    assert difference.first == ((0, 1, 0, 3), wrong[0, 1, 0, 3], dtype(0.25))
    assert cli.main(["compare", path]) == 1
    assert cli.main(["compare", path, "--ulp", "4"]) == 1
    assert cli.main(["compare", path, "--ulp", "5"]) == 0
    assert "2 differ, by 5 ulp at most" in capsys.readouterr().out


def test_ulps():
    tiny = np.float32(1e-45)
    theirs = np.array([0.0, -0.0, tiny, 1, np.nan, np.nan, np.inf], np.float32)
    ours = np.array([-0.0, tiny, -tiny, 1.0000001, np.nan, 1, np.finfo(np.float32).max], np.float32)
    assert ulps(theirs, ours).tolist() == [0, 1, 2, 1, 0, 2**31, 1]
    above = np.nextafter(np.float32(1), np.float32(2))
    assert ulps(np.array([1.5 + 1j], np.complex64), np.array([complex(1.5, above)], np.complex64)).tolist() == [1]
    assert ulps(np.array([-(2.0**1000)]), np.array([2.0**1000])) > 2**62


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operator": "Pool"}, "operator = 'Pool': must be one of"),
        ({"kernelSize": None}, "kernelSize is missing"),
        ({"kernel": [2]}, "kernel: no argument of aclnnAvgPool2dBackward"),
        ({"kernelSize": [3]}, "gradOutput.shape"),
        ({"soc": "NPU"}, "name = 'NPU'"),
        ({"bfloat16": ["gradOutput"]}, "gradOutput: listed as bfloat16, must be an array of uint16"),
    ],
)
def test_what_is_no_dump(tmp_path, changes, message, capsys):
    call = {"operator": "AvgPool2dBackward", **avg(np.float32), **changes}
    np.savez(tmp_path / "dump.npz", **{name: value for name, value in call.items() if value is not None})
    assert cli.main(["compare", str(tmp_path / "dump.npz")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"PK\x03\x04 nonsense"])
def test_what_is_no_file(tmp_path, content, capsys):
    if content is not None:
        (tmp_path / "dump.npz").write_bytes(content)
    assert cli.main(["compare", str(tmp_path / "dump.npz")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
