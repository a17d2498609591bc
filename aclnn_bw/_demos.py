"""``aclnn-bw demo``: the steps of the CANN samples, with the example of an operator's phase 1."""

from __future__ import annotations

import ast
import doctest
from contextlib import ExitStack
from itertools import count
from typing import Any

import numpy as np

import aclnn_bw
from aclnn_bw._npy import Array, describe
from aclnn_bw._records import Operator

_TYPES = {"array": np.array, "float32": np.float32, "uint16": np.uint16, "int32": np.int32}  # in what an example prints


class Example:
    """The example in the docstring of phase 1: its arguments, and what it shows after phase 2."""

    def __init__(self, operator: Operator) -> None:
        """Run what comes before phase 1."""
        phase_1 = getattr(aclnn_bw, f"aclnn{operator.name}GetWorkspaceSize")
        examples = doctest.DocTestParser().get_examples(phase_1.__doc__)
        at = next(i for i, example in enumerate(examples) if f"{phase_1.__name__}(" in example.source)
        self.names: dict[str, Any] = {}
        for example in examples[:at]:
            exec(example.source, self.names)
        call = ast.parse(examples[at].source).body[0]
        assert isinstance(call, ast.Assign)
        assert isinstance(call.value, ast.Call)
        # What a result is called in the example is what its last lines show.
        sources = [ast.unparse(argument) for argument in call.value.args]
        self.variables = dict(zip([parameter.name for parameter in operator.two_phase], sources, strict=True))
        self.arguments = {name: eval(source, self.names) for name, source in self.variables.items()}
        for parameter in operator.of_kind("written"):
            # It begins with values that no result has: what is right later has been written.
            self.arguments[parameter.name] = np.full_like(self.arguments[parameter.name], -1)
        self.shown = {example.source.strip(): eval(example.want, dict(_TYPES)) for example in examples[at + 2 :]}

    def results(self, results: dict[str, Array]) -> dict[str, tuple[Array, Array]]:
        """Each shown expression: (its value with these results, what it shall be)."""
        names = {**self.names, **{self.variables[name]: array for name, array in results.items()}}
        return {source: (np.asarray(eval(source, names)), wanted) for source, wanted in self.shown.items()}


def run(operator: Operator) -> bool:
    """Do and print every step; whether all results are right. The mask layout is "bitmask"."""
    step = (f"{number}." for number in count(1))
    name = operator.name
    print(f"{name} on {aclnn_bw.aclrtGetSocName()}: {operator.summary}")
    with aclnn_bw.soc(aclnn_bw.aclrtGetSocName()), ExitStack() as release:
        example = Example(operator)
        print(next(step), "aclInit, aclrtSetDevice(0), aclrtCreateStream")
        aclnn_bw.aclInit(None)
        release.callback(aclnn_bw.aclFinalize)
        aclnn_bw.aclrtSetDevice(0)
        release.callback(aclnn_bw.aclrtResetDevice, 0)
        stream = aclnn_bw.aclrtCreateStream()
        release.callback(aclnn_bw.aclrtDestroyStream, stream)

        print(next(step), "tensors and arrays")
        buffers: dict[str, Array] = {}
        arguments = [_on_device(name, value, buffers, release) for name, value in example.arguments.items()]

        print(next(step), f"phase 1: aclnn{name}GetWorkspaceSize({', '.join(example.arguments)})")
        workspace_size, executor = getattr(aclnn_bw, f"aclnn{name}GetWorkspaceSize")(*arguments)
        print(f"  workspaceSize = {workspace_size}")
        workspace = _malloc(workspace_size, release) if workspace_size else None
        print(next(step), f"phase 2: aclnn{name}(workspace, workspaceSize, executor, stream)")
        getattr(aclnn_bw, f"aclnn{name}")(workspace, workspace_size, executor, stream)
        print(next(step), "aclrtSynchronizeStream")
        aclnn_bw.aclrtSynchronizeStream(stream)

        print(next(step), "aclrtMemcpy to the host")
        host = {parameter.name: example.arguments[parameter.name] for parameter in operator.of_kind("written")}
        for argument, result in host.items():
            device_to_host = aclnn_bw.ACL_MEMCPY_DEVICE_TO_HOST
            aclnn_bw.aclrtMemcpy(result, result.nbytes, buffers[argument], result.nbytes, device_to_host)
        results = example.results(host)
        for source, (value, _) in results.items():
            _print(source, value)
        print(next(step), "aclDestroyTensor, aclDestroyIntArray, aclrtFree, aclrtDestroyStream, aclrtResetDevice, "
              "aclFinalize")  # fmt: skip

    for source, (value, wanted) in results.items():
        print(f"{source}: {np.count_nonzero(value == wanted)} of {wanted.size} elements are right")
    return all(np.array_equal(value, wanted) for value, wanted in results.values())


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
        {"float32": aclnn_bw.ACL_FLOAT, "int8": aclnn_bw.ACL_INT8, "int32": aclnn_bw.ACL_INT32}[value.dtype.name],
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


def _print(source: str, array: Array) -> None:
    """Show the first plane."""
    print(f"  {source} =")
    for row in array[(0,) * (array.ndim - 2)]:
        print("  " + "  ".join(f"{value:g}" for value in row))
