"""The command line: ``aclnn-bw info``, ``demo [OPERATOR]``, ``run OPERATOR``, ``compare DUMP.npz``, ``config``.

``python -m aclnn_bw`` is the same program. A bad argument or file is refused with one line on stderr and exit status 2.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

import aclnn_bw
from aclnn_bw import _clib, _demos
from aclnn_bw._npy import BFLOAT16, CommandError, describe, save
from aclnn_bw._runs import OPERATORS, add_options, outputs
from aclnn_bw._runs import arguments as arguments_of

_PROGRAM = "aclnn-bw"


class _Parser(argparse.ArgumentParser):
    """argparse, but an error is one line without the usage text, and options are not guessed from their beginnings."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see {self.prog} --help)")


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
    elif options.command == "compare":
        return _compare(options)
    elif options.command == "demo":
        return _demo(options.operator)
    elif options.command == "config":
        print("\n".join(_clib.answers(options.asked)))
    else:
        aclnn_bw.show_config()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_PROGRAM, description="Five neural-network gradients behind the two-phase aclnn interface.")
    parser.add_argument("--version", action="version", version=f"{_PROGRAM} {aclnn_bw.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("info", help="versions, instruction set, threads, operators and dtypes (the default)")

    demo = commands.add_parser("demo", help="do step by step what the CANN sample of an operator does")
    demo.add_argument(
        "operator", nargs="?", default="avg_pool2d_backward", choices=OPERATORS, metavar="OPERATOR",
        help=f"{', '.join(OPERATORS)} (default: %(default)s)",
    )  # fmt: skip

    config = commands.add_parser("config", help="what a compiler needs to build programs with the C library")
    for question, text in _clib.QUESTIONS.items():
        config.add_argument(f"--{question}", dest="asked", action="append_const", const=question, help=text)

    run = commands.add_parser("run", help="run an operator on arrays of your own (.npy files)")
    operators = run.add_subparsers(dest="operator", required=True, metavar="OPERATOR")
    for name, operator in OPERATORS.items():
        text = f"{operator.name}: {operator.summary}"
        one = operators.add_parser(name, help=text, description=text)
        add_options(one, operator)
        _add_common_arguments(one)

    compare = commands.add_parser("compare", help="compare an operator's results, dumped elsewhere, with ours")
    compare.add_argument(
        "dump", metavar="DUMP.npz", help="operator (its C name) and its arguments under their C names, results among "
        "them; soc, mask_layout; bfloat16: the names of the arrays that hold its bits",
    )  # fmt: skip
    compare.add_argument("--ulp", type=int, default=0, metavar="N", help="so much may differ (default: %(default)s)")
    return parser


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--dtype", choices=["bfloat16"], help="read uint16 files as bfloat16 bits, and write such bits")
    add("--soc", default="Host", metavar="NAME", help="the product whose rules hold (default: Host)")
    add("--threads", type=int, metavar="N", help="at most N threads (default: those that `info` shows)")
    add("--out", metavar="FILE.npy", help="write the result there")


def _demo(name: str) -> int:
    try:
        return 0 if _demos.run(OPERATORS[name]) else 1
    except ValueError as error:  # the product of the process may lack the operator
        raise CommandError(str(error)) from None


def _compare(options: argparse.Namespace) -> int:
    """Tell how each output differs; 1 if one does by more than it may."""
    from aclnn_bw._compare import compare

    try:
        name, differences = compare(options.dump)
    except MemoryError as error:
        raise CommandError(f"not enough memory: {error}") from None
    except (TypeError, ValueError, OverflowError) as error:  # AclnnError is a ValueError
        raise CommandError(f"{options.dump}: {error}") from None
    print(f"aclnn{name}")
    for difference in differences:
        print(difference)
    return int(any(difference.ulp > options.ulp for difference in differences))


def _run(options: argparse.Namespace) -> None:
    """Prepare, run both phases, tell what happened."""
    operator = OPERATORS[options.operator]
    phase_1 = getattr(aclnn_bw, f"aclnn{operator.name}GetWorkspaceSize")
    phase_2 = getattr(aclnn_bw, f"aclnn{operator.name}")
    layout = {"mask_layout": options.mask_layout} if "mask_layout" in options else {}
    try:
        with aclnn_bw.num_threads(aclnn_bw.get_num_threads() if options.threads is None else options.threads):
            with aclnn_bw.soc(options.soc, **layout):
                arguments = arguments_of(operator, options)
                start = time.perf_counter_ns()
                workspace_size, executor = phase_1(*arguments.values())
                planned = time.perf_counter_ns()
            workspace = (
                aclnn_bw.aclrtMalloc(workspace_size, aclnn_bw.ACL_MEM_MALLOC_HUGE_FIRST) if workspace_size else None
            )
            begin = time.perf_counter_ns()
            phase_2(workspace, workspace_size, executor)
            end = time.perf_counter_ns()
    except MemoryError as error:
        raise CommandError(f"not enough memory: {error}") from None
    except (TypeError, ValueError, OverflowError) as error:  # AclnnError is a ValueError
        raise CommandError(str(error)) from None

    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            print(f"{name:<12} {describe(value)}")
    print(f"workspace    {workspace_size} bytes")
    print(f"phase 1      {_microseconds(planned - start)}")
    print(f"phase 2      {_microseconds(end - begin)} (one run, memory not yet touched)")
    for name, option in outputs(operator).items():
        path = getattr(options, option.removeprefix("--").replace("-", "_"))
        if path is not None:
            save(option, path, arguments[name])
            print(f"wrote        {name} to {path}{' as uint16' if arguments[name].dtype == BFLOAT16 else ''}")


def _microseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e3:.1f} us"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
