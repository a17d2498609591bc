"""``aclnn-bw demo``: the steps of the CANN samples, one small example for each operator."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

import aclnn_bw
from aclnn_bw._npy import Array, describe


@dataclass(frozen=True)
class Demo:
    """One or more two-phase calls in a row, and what they must give."""

    about: str
    calls: Mapping[str, str]  # what follows aclnn in the names of both phases: the arguments of phase 1 in their order
    given: Mapping[str, Any]  # an array becomes a tensor, a list an int array; others are passed as they are
    expected: Mapping[str, Array]  # tensors that the calls write


def run(demo: Demo) -> bool:
    """Do and print every step; whether all results are right. The mask layout is "bitmask"."""
    step = (f"{number}." for number in count(1))
    print(f"{', '.join(demo.calls)} on {aclnn_bw.aclrtGetSocName()}: {demo.about}")
    with aclnn_bw.soc(aclnn_bw.aclrtGetSocName()), ExitStack() as release:
        print(next(step), "aclInit, aclrtSetDevice(0), aclrtCreateStream")
        aclnn_bw.aclInit(None)
        release.callback(aclnn_bw.aclFinalize)
        aclnn_bw.aclrtSetDevice(0)
        release.callback(aclnn_bw.aclrtResetDevice, 0)
        stream = aclnn_bw.aclrtCreateStream()
        release.callback(aclnn_bw.aclrtDestroyStream, stream)

        print(next(step), "tensors and arrays")
        # The outputs begin with values that no result has: what is right later has been written.
        on_host = {**demo.given, **{name: np.full_like(array, -1) for name, array in demo.expected.items()}}
        buffers: dict[str, Array] = {}
        arguments = {name: _on_device(name, value, buffers, release) for name, value in on_host.items()}

        for operator, names in demo.calls.items():
            print(next(step), f"phase 1: aclnn{operator}GetWorkspaceSize({', '.join(names.split())})")
            phase_1 = getattr(aclnn_bw, f"aclnn{operator}GetWorkspaceSize")
            workspace_size, executor = phase_1(*(arguments[name] for name in names.split()))
            print(f"  workspaceSize = {workspace_size}")
            workspace = _malloc(workspace_size, release) if workspace_size else None
            print(next(step), f"phase 2: aclnn{operator}(workspace, workspaceSize, executor, stream)")
            getattr(aclnn_bw, f"aclnn{operator}")(workspace, workspace_size, executor, stream)
        print(next(step), "aclrtSynchronizeStream")
        aclnn_bw.aclrtSynchronizeStream(stream)

        print(next(step), "aclrtMemcpy to the host")
        results = {name: np.empty_like(array) for name, array in demo.expected.items()}
        for name, result in results.items():
            device_to_host = aclnn_bw.ACL_MEMCPY_DEVICE_TO_HOST
            aclnn_bw.aclrtMemcpy(result, result.nbytes, buffers[name], result.nbytes, device_to_host)
            _print(name, result)
        print(next(step), "aclDestroyTensor, aclDestroyIntArray, aclrtFree, aclrtDestroyStream, aclrtResetDevice, "
              "aclFinalize")  # fmt: skip

    right = {name: int(np.count_nonzero(results[name] == array)) for name, array in demo.expected.items()}
    for name, array in demo.expected.items():
        print(f"{name}: {right[name]} of {array.size} elements are right")
    return all(right[name] == array.size for name, array in demo.expected.items())


def _on_device(name: str, value: Any, buffers: dict[str, Array], release: ExitStack) -> Any:
    """Make the argument of a call from a value of the host."""
    if isinstance(value, list):
        array = aclnn_bw.aclCreateIntArray(value, len(value))
        release.callback(aclnn_bw.aclDestroyIntArray, array)
        print(f"  {name:<15} {{{', '.join(map(str, value))}}}: aclCreateIntArray")
        return array
    if not isinstance(value, np.ndarray):
        print(f"  {name:<15} {getattr(value, 'name', value)}")  # of an enum its name
        return value
    buffers[name] = data = _malloc(value.nbytes, release)
    aclnn_bw.aclrtMemcpy(data, value.nbytes, value, value.nbytes, aclnn_bw.ACL_MEMCPY_HOST_TO_DEVICE)
    tensor = aclnn_bw.aclCreateTensor(
        value.shape,
        {"float32": aclnn_bw.ACL_FLOAT, "int8": aclnn_bw.ACL_INT8}[value.dtype.name],
        None,
        0,
        aclnn_bw.ACL_FORMAT_NCHW if value.ndim == 4 else aclnn_bw.ACL_FORMAT_ND,
        value.shape,
        data,
    )
    release.callback(aclnn_bw.aclDestroyTensor, tensor)
    print(f"  {name:<15} {describe(value)}: aclrtMalloc({value.nbytes}), aclrtMemcpy to the device, aclCreateTensor")
    return tensor


def _malloc(size: int, release: ExitStack) -> Array:
    data = aclnn_bw.aclrtMalloc(size, aclnn_bw.ACL_MEM_MALLOC_HUGE_FIRST)
    release.callback(aclnn_bw.aclrtFree, data)
    return data


def _print(name: str, array: Array) -> None:
    """Show the first plane; of a mask the first words of each row, the others are zero in these examples."""
    first = (0,) * (array.ndim - 2)
    plane = array[first]
    place = f"{name}[{', '.join(map(str, first))}]"
    if array.dtype == np.int8:
        plane = plane.view("<u2")[:, :4]
        place += ".view('<u2')[:, :4]"
    print(f"  {place} =")
    for row in plane:
        print("  " + "  ".join(f"{value:g}" for value in row))


# ---- the examples ---------------------------------------------------------------------------------------------------


def _floats(*values: Any) -> Array:
    return np.array(values, np.float32)


_POOLING = {"kernelSize": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1], "ceilMode": False}
_IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)  # the maximum of each window is its last element
_MAXIMA = _floats([[[5, 7], [13, 15]]])
_MASK = np.zeros((1, 1, 4, 64), np.int8)
_MASK[0, 0, 3, 0:8:2] = 1  # kernel position 3, output positions 0 to 3: bit 0, for channel 0, of a word of two bytes
_FORWARD = {"MaxPool2dWithMask": "self kernelSize stride padding dilation ceilMode out indices"}

DEMOS: dict[str, Demo] = {
    "avg_pool2d_backward": Demo(
        about="a 4x4 window over a 4x4 image, whose one gradient is shared by its 16 elements",
        calls={
            "AvgPool2dBackward": "gradOutput self kernelSize stride padding ceilMode countIncludePad divisorOverride "
            "cubeMathType gradInput"
        },
        given={
            "gradOutput": np.ones((1, 16, 1, 1), np.float32), "self": np.ones((1, 16, 4, 4), np.float32),
            "kernelSize": [4, 4], "stride": [1, 1], "padding": [0, 0], "ceilMode": False, "countIncludePad": True,
            "divisorOverride": 0, "cubeMathType": aclnn_bw.ALLOW_FP32_DOWN_PRECISION,
        },
        expected={"gradInput": np.full((1, 16, 4, 4), 1 / 16, np.float32)},
    ),
    "im2col_backward": Demo(
        about="four columns of 2x2 elements folded back to a 3x3 image, whose middle belongs to all of them",
        calls={"Im2colBackward": "gradOutput inputSize kernelSize dilation padding stride out"},
        given={
            "gradOutput": np.ones((1, 4, 4), np.float32), "inputSize": [3, 3], "kernelSize": [2, 2],
            "dilation": [1, 1], "padding": [0, 0], "stride": [1, 1],
        },
        expected={"out": _floats([[[1, 2, 1], [2, 4, 2], [1, 2, 1]]])},
    ),
    "max_pool2d_with_mask": Demo(
        about="the maxima of 2x2 windows, and a mask that says where they lie",
        calls=_FORWARD,
        given={"self": _IMAGE, **_POOLING},
        expected={"out": _MAXIMA, "indices": _MASK},
    ),
    "max_pool2d_with_mask_backward": Demo(
        about="each gradient goes to where the maximum of its 2x2 window lay",
        calls={
            **_FORWARD,
            "MaxPool2dWithMaskBackward": "gradOutput self indices kernelSize stride padding dilation ceilMode "
            "gradInput",
        },
        given={"self": _IMAGE, "gradOutput": _floats([[[1, 2], [3, 4]]]), **_POOLING},
        expected={
            "out": _MAXIMA, "indices": _MASK,
            "gradInput": _floats([[[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4]]]),
        },
    ),
    "replication_pad2d_backward": Demo(
        about="a border element takes the gradients of its copies in the padding",
        calls={"ReplicationPad2dBackward": "gradOutput self padding gradInput"},
        given={
            "gradOutput": np.ones((1, 1, 5, 5), np.float32), "self": np.ones((1, 1, 3, 3), np.float32),
            "padding": [1, 1, 1, 1],
        },
        expected={"gradInput": _floats([[[4, 2, 4], [2, 1, 2], [4, 2, 4]]])},
    ),
    "upsample_nearest_exact1d_backward": Demo(
        about="two samples stretched to four; each takes the gradients of its two copies",
        calls={"UpsampleNearestExact1dBackward": "gradOutput outputSize inputSize scales out"},
        given={
            "gradOutput": _floats([[1, 2, 3, 4], [5, 6, 7, 8]]), "outputSize": [4], "inputSize": [1, 2, 2],
            "scales": 2.0,
        },
        expected={"out": _floats([[3, 7], [11, 15]])},
    ),
}  # fmt: skip
