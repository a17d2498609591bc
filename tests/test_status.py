"""Status codes, enums and the exception: names, numbers, and what a person can do with them."""

import copy
import enum
import pickle

import numpy as np
import pytest
from engine_helpers import run_python

import aclnn_bw as a

STATUS = {
    "ACLNN_SUCCESS": 0,
    "ACLNN_ERR_PARAM_NULLPTR": 161001,
    "ACLNN_ERR_PARAM_INVALID": 161002,
    "ACLNN_ERR_RUNTIME_ERROR": 361001,
    "ACLNN_ERR_INNER": 561000,
    "ACLNN_ERR_INNER_INFERSHAPE_ERROR": 561001,
    "ACLNN_ERR_INNER_TILING_ERROR": 561002,
    "ACLNN_ERR_INNER_FIND_KERNEL_ERROR": 561003,
    "ACLNN_ERR_INNER_CREATE_EXECUTOR": 561101,
    "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR": 561102,
    "ACLNN_ERR_INNER_NULLPTR": 561103,
}

DATA_TYPE = {
    "ACL_DT_UNDEFINED": -1,
    "ACL_FLOAT": 0,
    "ACL_FLOAT16": 1,
    "ACL_INT8": 2,
    "ACL_INT32": 3,
    "ACL_UINT8": 4,
    "ACL_INT16": 6,
    "ACL_UINT16": 7,
    "ACL_UINT32": 8,
    "ACL_INT64": 9,
    "ACL_UINT64": 10,
    "ACL_DOUBLE": 11,
    "ACL_BOOL": 12,
    "ACL_STRING": 13,
    "ACL_COMPLEX64": 16,
    "ACL_COMPLEX128": 17,
    "ACL_BF16": 27,
    "ACL_INT4": 29,
    "ACL_UINT1": 30,
    "ACL_COMPLEX32": 33,
    "ACL_HIFLOAT8": 34,
    "ACL_FLOAT8_E5M2": 35,
    "ACL_FLOAT8_E4M3FN": 36,
    "ACL_FLOAT8_E8M0": 37,
    "ACL_FLOAT4_E2M1": 40,
}

FORMAT = {
    "ACL_FORMAT_UNDEFINED": -1,
    "ACL_FORMAT_NCHW": 0,
    "ACL_FORMAT_NHWC": 1,
    "ACL_FORMAT_ND": 2,
    "ACL_FORMAT_NC1HWC0": 3,
    "ACL_FORMAT_FRACTAL_Z": 4,
    "ACL_FORMAT_NC1HWC0_C04": 12,
    "ACL_FORMAT_HWCN": 16,
    "ACL_FORMAT_NDHWC": 27,
    "ACL_FORMAT_FRACTAL_NZ": 29,
    "ACL_FORMAT_NCDHW": 30,
    "ACL_FORMAT_NDC1HWC0": 32,
    "ACL_FRACTAL_Z_3D": 33,
    "ACL_FORMAT_NC": 35,
    "ACL_FORMAT_NCL": 47,
}

CUBE_MATH_TYPE = {"KEEP_DTYPE": 0, "ALLOW_FP32_DOWN_PRECISION": 1, "USE_FP16": 2, "USE_HF32": 3}

ENUMS = {"AclnnStatus": STATUS, "aclDataType": DATA_TYPE, "aclFormat": FORMAT, "CubeMathType": CUBE_MATH_TYPE}
MEMBERS = [(name, member, number) for name, members in ENUMS.items() for member, number in members.items()]


@pytest.mark.parametrize("name", list(ENUMS))
def test_members_are_complete(name):
    cls = getattr(a, name)
    assert issubclass(cls, enum.IntEnum)
    assert {member.name: int(member) for member in cls} == ENUMS[name]
    assert len(cls.__members__) == len(ENUMS[name]), "an alias"
    assert cls.__doc__


@pytest.mark.parametrize(("name", "member", "number"), MEMBERS)
def test_members_are_names_of_the_module(name, member, number):
    value = getattr(a, member)
    assert value is getattr(a, name)(number) is getattr(a, name)[member]
    assert value == number
    assert member in a.__all__
    assert pickle.loads(pickle.dumps(value)) is value


def test_enums_and_numbers_serve_alike():
    arrays = np.ones((1, 1, 2, 2), np.float32), np.zeros((1, 1, 4, 4), np.float32)
    for dtype, fmt, mode in ((a.ACL_FLOAT, a.ACL_FORMAT_NCHW, a.KEEP_DTYPE), (0, 0, 0), (np.int64(0), 0, np.int8(0))):
        handle = a.aclCreateTensor((1, 1, 2, 2), dtype, None, 0, fmt, (4,), arrays[0])
        a.aclnnAvgPool2dBackwardGetWorkspaceSize(handle, arrays[1], [2], [2], [0], False, True, 0, mode, arrays[1])


def test_error_is_a_value_error():
    error = a.AclnnError(a.AclnnStatus.ACLNN_ERR_PARAM_INVALID, "padding[0] = 3: must be <= 1")
    assert isinstance(error, ValueError)
    assert error.status is a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
    assert error.status == 161002
    assert str(error) == "padding[0] = 3: must be <= 1"
    assert "padding[0] = 3" in repr(error)


def test_error_takes_plain_numbers():
    error = a.AclnnError(161001, "self = None: must not be null")
    assert error.status is a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR
    assert a.AclnnError(107000, "aclrtMemcpy").status == 107000


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("status", [161002, 107000])
def test_error_is_copied_whole(duplicate, status):
    error = a.AclnnError(status, "padding[0] = 3: must be <= 1")
    error.note = "kept"
    other = duplicate(error)
    assert type(other) is a.AclnnError
    assert other is not error
    assert (other.status, str(other), other.args) == (error.status, str(error), error.args)
    assert type(other.status) is type(error.status)
    assert other.note == "kept"


def test_refusal_is_raised_as_this_error():
    with pytest.raises(ValueError, match=r"^gradOutput = None") as info:
        a.aclnnAvgPool2dBackwardGetWorkspaceSize(None, None, None, None, None, False, True, 0, 0, None)
    assert type(info.value) is a.AclnnError
    assert info.value.status is a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR
    other = pickle.loads(pickle.dumps(info.value))
    assert (other.status, str(other)) == (info.value.status, str(info.value))


def test_error_crosses_processes():
    code = """
        import multiprocessing
        import sys
        import aclnn_bw as a

        def refuse(_):
            a.aclnnAvgPool2dBackwardGetWorkspaceSize(None, None, None, None, None, False, True, 0, 0, None)

        with multiprocessing.get_context("fork").Pool(1) as pool:
            try:
                pool.map(refuse, [0])
            except a.AclnnError as error:
                assert error.status == 161001, error.status
                assert str(error).startswith("gradOutput = None"), error
            else:
                raise AssertionError("nothing raised")
    """
    run_python(code, warnings="ignore")


def test_recent_message_starts_empty():
    code = """
        import aclnn_bw as a
        assert a.aclGetRecentErrMsg() is None
        try:
            a.aclrtSetSocName("Ascend")
        except a.AclnnError as error:
            assert a.aclGetRecentErrMsg() == str(error)
        assert a.aclGetRecentErrMsg() is None
    """
    run_python(code)


@pytest.mark.parametrize(
    ("message", "argument"),
    [
        ("padding[0] = 3: must be <= 1", "padding"),
        ("len(kernelSize) = 3: must be 1 to 2", "kernelSize"),
        ("self.shape = (1, 2): must be", "self"),
        ("indices[0, 0, 1, 2] = 7: must lie inside", "indices"),
        ("out is read-only: must be writable", "out"),
        ("gradInput overlaps gradOutput: an output must not", "gradInput"),
        ("gradOutput has a byte stride", "gradOutput"),
        ("gradOutput.dtype = ACL_FLOAT in swapped byte order: must be", "gradOutput"),
        ("executor: is spent", "executor"),
        ("Ascend310P does not have Im2colBackward; use soc('Ascend910B')", None),
        ("aclInit was called already; call aclFinalize first", None),
        ("", None),
    ],
)
def test_argument(message, argument):
    error = a.AclnnError(161002, message)
    assert error.argument == argument
    assert pickle.loads(pickle.dumps(error)).argument == argument


def test_notebooks_show_it_escaped():
    error = a.AclnnError(161002, "socName = '<script>&': must be one of")
    assert error._repr_html_() == (
        "<b>ACLNN_ERR_PARAM_INVALID</b> (161002)<br>socName = &#x27;&lt;script&gt;&amp;&#x27;: must be one of"
    )


def refused(call, **changes):
    with pytest.raises(Exception, match=" ") as info:
        call(**changes)
    return str(info.value)


def test_remedies():
    x, y = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 2, 2), np.float32)
    arguments = {
        "gradOutput": y, "self": x, "kernelSize": [2], "stride": [2], "padding": [0], "ceilMode": False,
        "countIncludePad": True, "divisorOverride": 0, "cubeMathType": 0, "gradInput": x,
    }  # fmt: skip

    def avg(**changes):
        return a.aclnnAvgPool2dBackwardGetWorkspaceSize(**{**arguments, **changes})

    with a.soc("Ascend910"):
        message = refused(avg)
        assert message.endswith("on Ascend910; pass cubeMathType=1, or use soc('Ascend910B')")
        avg(cubeMathType=1)     # as it says
        assert refused(avg, gradOutput=y.astype(np.float64)).endswith("; use soc('Host')")
        assert refused(avg, divisorOverride=256, cubeMathType=1).endswith("on Ascend910; soc('Host') has no limit")
        assert refused(
            a.aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize, gradOutput=y, outputSize=[1], inputSize=[1],
            scales=0, out=y,
        ) == "Ascend910 does not have UpsampleNearestExact1dBackward; use soc('Ascend910B')"  # fmt: skip
    assert refused(avg, kernelSize=2) == "kernelSize = 2: must be a sequence of ints, not int; pass [2]"
    assert refused(avg, gradOutput=[1.0]).endswith("not list; numpy.array makes one")
    for wrong in (4, 4.0, "4"):     # where a shape would do, an array made of it would not
        message = refused(a.avg_pool2d_backward, grad_output=y, self=wrong, kernel_size=2)
        rule = "self: must be an array or a shape, which is a tuple or a list of ints, not "
        assert message == rule + type(wrong).__name__
    _, executor = avg()
    a.aclnnAvgPool2dBackward(None, 0, executor)
    with pytest.raises(a.AclnnError, match=r"spent.*: call phase 1 again, or aclSetAclOpExecutorRepeatable") as info:
        a.aclnnAvgPool2dBackward(None, 0, executor)
    assert info.value.argument == "executor"


def test_every_function_takes_keywords():
    x, y = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 2, 2), np.float32)
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(
        gradInput=x, cubeMathType=0, divisorOverride=0, countIncludePad=True, ceilMode=False, padding=[0], stride=[2],
        kernelSize=[2], self=x, gradOutput=y,
    )  # fmt: skip
    a.aclSetAclOpExecutorRepeatable(executor=executor)
    a.aclSetTensorAddr(executor=executor, index=0, tensor=None, data=y)
    a.aclnnAvgPool2dBackward(workspace=None, workspaceSize=size, executor=executor, stream=None)
    a.aclDestroyAclOpExecutor(executor=executor)
    a.aclDestroyIntArray(array=a.aclCreateIntArray(value=[1], size=1))
    a.aclDestroyTensor(tensor=a.aclCreateTensor(viewDims=[1], dataType=0))
    a.avg_pool2d_backward(grad_output=y, self=x, kernel_size=2)
    stream = a.aclrtCreateStream()
    a.aclrtSynchronizeStream(stream=stream)
    a.aclrtDestroyStream(stream=stream)
