"""The command line: ``aclnn-bw info``, ``aclnn-bw demo [operator]``, ``aclnn-bw run OPERATOR ...``.

``python -m aclnn_bw`` is the same program. A bad argument or file is refused with one line on stderr and exit status 2.

An operator takes part through one entry of :data:`OPERATORS`: what ``run`` adds to the parser, how it prepares the two
phases from the parsed arguments, and its demonstration.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import ml_dtypes
import numpy as np
import numpy.typing as npt

import aclnn_bw

Array = npt.NDArray[Any]

_PROGRAM = "aclnn-bw"
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class CommandError(Exception):
    """What the person who typed the command did wrong, in one line."""


class _Parser(argparse.ArgumentParser):
    """argparse, but an error is one line without the usage text, and options are not guessed from their beginnings."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see {self.prog} --help)")


@dataclass(frozen=True)
class Call:
    """One prepared two-phase call."""

    inputs: dict[str, Array]
    output: tuple[str, Array]
    phase_1: Callable[[], tuple[int, aclnn_bw.aclOpExecutor]]
    phase_2: Callable[[Any, int, aclnn_bw.aclOpExecutor], None]


@dataclass(frozen=True)
class Operator:
    """What the command line knows of an operator."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    prepare: Callable[[argparse.Namespace], Call]
    demo: Callable[[], bool]  # whether the result was right


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    try:
        status = _main(argv)
        sys.stdout.flush()  # so that a full disk or a closed pipe shows here
        return status
    except CommandError as error:
        print(f"{_PROGRAM}: error: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_output()
        return 1
    except OSError as error:
        _discard_output()
        print(f"{_PROGRAM}: error: output: {error.strerror or error}", file=sys.stderr)
        return 2


def _discard_output() -> None:
    """Nobody takes our output: the interpreter must not complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _main(argv: Sequence[str] | None) -> int:
    options = _parser().parse_args(argv)
    if options.command == "run":
        _run(options)
    elif options.command == "demo":
        return 0 if OPERATORS[options.operator].demo() else 1
    else:
        aclnn_bw.show_config()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_PROGRAM, description="Five neural-network gradients behind the two-phase aclnn interface.")
    parser.add_argument("--version", action="version", version=f"{_PROGRAM} {aclnn_bw.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("info", help="versions, instruction set, threads, operators and dtypes (the default)")

    demo = commands.add_parser("demo", help="do step by step what the CANN sample of an operator does")
    demo.add_argument("operator", nargs="?", default=next(iter(OPERATORS)), choices=OPERATORS, metavar="OPERATOR",
                      help="default: %(default)s")  # fmt: skip

    run = commands.add_parser("run", help="run an operator on arrays of your own (.npy files)")
    operators = run.add_subparsers(dest="operator", required=True, metavar="OPERATOR")
    for name, operator in OPERATORS.items():
        one = operators.add_parser(name, help=operator.summary, description=operator.summary)
        operator.add_arguments(one)
        _add_common_arguments(one)
    return parser


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--dtype", choices=["bfloat16"], help="read uint16 files as bfloat16 bits, and write such bits")
    add("--soc", default="Host", metavar="NAME", help="the product whose rules hold (default: Host)")
    add("--threads", type=int, metavar="N", help="at most N threads (default: those that `info` shows)")
    add("--out", metavar="FILE.npy", help="write the result there")


def _run(options: argparse.Namespace) -> None:
    """Prepare, run both phases, tell what happened."""
    try:
        with aclnn_bw.num_threads(aclnn_bw.get_num_threads() if options.threads is None else options.threads):
            with aclnn_bw.soc(options.soc):
                call = OPERATORS[options.operator].prepare(options)
                start = time.perf_counter_ns()
                workspace_size, executor = call.phase_1()
                planned = time.perf_counter_ns()
            workspace = (
                aclnn_bw.aclrtMalloc(workspace_size, aclnn_bw.ACL_MEM_MALLOC_HUGE_FIRST) if workspace_size else None
            )
            begin = time.perf_counter_ns()
            call.phase_2(workspace, workspace_size, executor)
            end = time.perf_counter_ns()
    except MemoryError as error:
        raise CommandError(f"not enough memory: {error}") from None
    except (TypeError, ValueError, OverflowError) as error:  # AclnnError is a ValueError
        raise CommandError(str(error)) from None

    name, result = call.output
    for what, array in (*call.inputs.items(), call.output):
        print(f"{what:<12} {_describe(array)}")
    print(f"workspace    {workspace_size} bytes")
    print(f"phase 1      {_microseconds(planned - start)}")
    print(f"phase 2      {_microseconds(end - begin)} (one run, memory not yet touched)")
    if options.out is not None:
        _save(options.out, result)
        print(f"wrote        {name} to {options.out}{' as uint16' if result.dtype == _BFLOAT16 else ''}")


def _describe(array: Array) -> str:
    return f"{array.dtype} {' x '.join(map(str, array.shape)) or 'scalar'}"


def _microseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e3:.1f} us"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


# Files


def _load(option: str, path: str, dtype: str | None) -> Array:
    """Read a .npy file; its elements are converted to native byte order, nothing else."""
    try:
        with open(path, "rb") as file:
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror or error}") from None
    except MemoryError as error:
        raise CommandError(f"{option} {path}: not enough memory: {error}") from None
    except Exception as error:
        # A file that is no .npy, or a damaged one, can raise nearly anything.
        raise CommandError(f"{option} {path}: not a readable .npy file: {error}") from None
    if dtype == "bfloat16":
        # NumPy writes a bfloat16 array as raw two-byte records.
        if array.dtype.newbyteorder("=") != np.uint16 and array.dtype != np.dtype("V2"):
            raise CommandError(f"{option} {path}: holds {array.dtype}: with --dtype bfloat16 it must hold uint16")
        return _native_order(array).view(_BFLOAT16)
    if array.dtype.kind not in "fciub":
        raise CommandError(f"{option} {path}: holds {array.dtype}: must hold numbers")
    return _native_order(array)


def _native_order(array: Array) -> Array:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _save(path: str, array: Array) -> None:
    bits = array.view(np.uint16) if array.dtype == _BFLOAT16 else array
    try:
        # An open file, because np.save appends .npy to a bare name that lacks it.
        with open(path, "wb") as file:
            np.save(file, bits, allow_pickle=False)
    except OSError as error:
        raise CommandError(f"--out {path}: {error.strerror or error}") from None


# AvgPool2dBackward


def _cube_math_type(text: str) -> int:
    try:
        return int(aclnn_bw.CubeMathType[text])
    except KeyError:
        return int(text)  # phase 1 knows which numbers the product takes


def _add_avg_pool2d_backward(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--grad-output", required=True, metavar="FILE.npy", help="gradient of the pooled output")
    shape = parser.add_mutually_exclusive_group(required=True)
    shape.add_argument("--self", metavar="FILE.npy", help="what was pooled; only its shape and dtype are used")
    shape.add_argument("--self-shape", type=int, nargs="+", metavar="SIZE", help="its shape instead: [N] C H W")
    add("--kernel-size", type=int, nargs="+", required=True, metavar="K", help="one or two sizes")
    add("--stride", type=int, nargs="+", metavar="S", help="one or two steps (default: the kernel size)")
    add("--padding", type=int, nargs="+", default=[0], metavar="P", help="one or two widths (default: 0)")
    add("--ceil-mode", action="store_true", help="the output size was rounded up")
    add(
        "--count-include-pad", action=argparse.BooleanOptionalAction, default=True,
        help="padding counts in the divisor (default: it does)",
    )  # fmt: skip
    add("--divisor-override", type=int, default=0, metavar="D", help="divide by D instead (default: 0, none)")
    names = ", ".join(f"{int(member)} {member.name}" for member in aclnn_bw.CubeMathType)
    add("--cube-math-type", type=_cube_math_type, default=0, metavar="T", help=f"{names} (default: 0)")


def _prepare_avg_pool2d_backward(options: argparse.Namespace) -> Call:
    grad_output = _load("--grad-output", options.grad_output, options.dtype)
    if options.self is not None:
        x = _load("--self", options.self, options.dtype)
    else:
        if min(options.self_shape) < 0:
            raise CommandError(f"--self-shape {' '.join(map(str, options.self_shape))}: must not be negative")
        # Its values are not read: one element stands for all of them.
        x = np.broadcast_to(np.zeros((), grad_output.dtype), options.self_shape)
    grad_input = np.empty(x.shape, x.dtype)
    return Call(
        inputs={"gradOutput": grad_output, "self": x},
        output=("gradInput", grad_input),
        phase_1=lambda: aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad_output, x, options.kernel_size, options.stride, options.padding, options.ceil_mode,
            options.count_include_pad, options.divisor_override, options.cube_math_type, grad_input,
        ),
        phase_2=aclnn_bw.aclnnAvgPool2dBackward,
    )  # fmt: skip


def _demo_avg_pool2d_backward() -> bool:
    """The steps of the CANN sample: a 4x4 window over a 4x4 image, whose one gradient is shared by its 16 elements."""
    grad_output_shape, self_shape = (1, 16, 1, 1), (1, 16, 4, 4)

    def on_device(name: str, host: Array) -> tuple[Any, aclnn_bw.aclTensor]:
        data = aclnn_bw.aclrtMalloc(host.nbytes, aclnn_bw.ACL_MEM_MALLOC_HUGE_FIRST)
        aclnn_bw.aclrtMemcpy(data, host.nbytes, host, host.nbytes, aclnn_bw.ACL_MEMCPY_HOST_TO_DEVICE)
        tensor = aclnn_bw.aclCreateTensor(
            host.shape, aclnn_bw.ACL_FLOAT, None, 0, aclnn_bw.ACL_FORMAT_NCHW, host.shape, data
        )
        print(f"  {name:<11} {_describe(host)}: aclrtMalloc({host.nbytes}), aclrtMemcpy to the device, aclCreateTensor")
        return data, tensor

    print(f"AvgPool2dBackward on {aclnn_bw.aclrtGetSocName()}")
    print("1. aclInit, aclrtSetDevice(0), aclrtCreateStream")
    aclnn_bw.aclInit(None)
    aclnn_bw.aclrtSetDevice(0)
    stream = aclnn_bw.aclrtCreateStream()

    print("2. tensors and arrays")
    grad_output_data, grad_output = on_device("gradOutput", np.ones(grad_output_shape, np.float32))
    self_data, self_tensor = on_device("self", np.ones(self_shape, np.float32))
    grad_input_data, grad_input = on_device("gradInput", np.zeros(self_shape, np.float32))
    kernel_size = aclnn_bw.aclCreateIntArray([4, 4], 2)
    stride = aclnn_bw.aclCreateIntArray([1, 1], 2)
    padding = aclnn_bw.aclCreateIntArray([0, 0], 2)
    print("  kernelSize {4, 4}, stride {1, 1}, padding {0, 0}: aclCreateIntArray")

    print("3. phase 1: aclnnAvgPool2dBackwardGetWorkspaceSize(..., ALLOW_FP32_DOWN_PRECISION, gradInput)")
    workspace_size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
        grad_output, self_tensor, kernel_size, stride, padding,
        False, True, 0, aclnn_bw.ALLOW_FP32_DOWN_PRECISION, grad_input,
    )  # fmt: skip
    print(f"  workspaceSize = {workspace_size}")
    workspace = aclnn_bw.aclrtMalloc(workspace_size, aclnn_bw.ACL_MEM_MALLOC_HUGE_FIRST) if workspace_size else None

    print("4. phase 2: aclnnAvgPool2dBackward(workspace, workspaceSize, executor, stream)")
    aclnn_bw.aclnnAvgPool2dBackward(workspace, workspace_size, executor, stream)
    print("5. aclrtSynchronizeStream")
    aclnn_bw.aclrtSynchronizeStream(stream)

    print("6. aclrtMemcpy to the host; gradInput[0, 0] =")
    result = np.empty(self_shape, np.float32)
    aclnn_bw.aclrtMemcpy(result, result.nbytes, grad_input_data, result.nbytes, aclnn_bw.ACL_MEMCPY_DEVICE_TO_HOST)
    for row in result[0, 0]:
        print("  " + "  ".join(f"{value:.4f}" for value in row))

    print("7. aclDestroyTensor, aclDestroyIntArray, aclrtFree, aclrtDestroyStream, aclrtResetDevice, aclFinalize")
    for tensor in (grad_output, self_tensor, grad_input):
        aclnn_bw.aclDestroyTensor(tensor)
    for array in (kernel_size, stride, padding):
        aclnn_bw.aclDestroyIntArray(array)
    for data in (grad_output_data, self_data, grad_input_data, workspace):
        if data is not None:
            aclnn_bw.aclrtFree(data)
    aclnn_bw.aclrtDestroyStream(stream)
    aclnn_bw.aclrtResetDevice(0)
    aclnn_bw.aclFinalize()

    right = int(np.count_nonzero(result == 1 / 16))
    print(f"{right} of {result.size} elements are 1/16, as all of them must be")
    return right == result.size


OPERATORS: dict[str, Operator] = {
    "avg_pool2d_backward": Operator(
        summary="gradient of average pooling (AvgPool2dBackward)",
        add_arguments=_add_avg_pool2d_backward,
        prepare=_prepare_avg_pool2d_backward,
        demo=_demo_avg_pool2d_backward,
    ),
}
