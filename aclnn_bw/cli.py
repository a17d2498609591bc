"""The command line: ``aclnn-bw info``, ``demo [OPERATOR]``, ``run OPERATOR``, ``compare DUMP.npz``, ``config``.

``python -m aclnn_bw`` is the same program. A bad argument or file is refused with one line on stderr and exit status 2.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import aclnn_bw
from aclnn_bw import _clib, _demos
from aclnn_bw._npy import BFLOAT16, CommandError, Output, check_output, describe
from aclnn_bw._progress import Progress, duration
from aclnn_bw._runs import OPERATORS, Work, add_options, outputs, value_of

_PROGRAM = "aclnn-bw"


class _Parser(argparse.ArgumentParser):
    """argparse, but an error is one line without the usage text, and options are not guessed from their beginnings."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Look for options that are not there first: what is required and misspelt is not missing."""
        if self._subparsers is None:
            for word in [] if args is None else args:
                if word == "--":
                    break
                option = word.partition("=")[0]
                if option.startswith("--") and option not in self._option_string_actions:
                    self.error(f"unrecognized option {option}{_suggestion(option, self._option_string_actions)}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += _suggestion(str(value), map(str, action.choices or ()))
            raise


def _suggestion(word: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(word.lower().removeprefix("aclnn"), list(known), 1)
    return f"; did you mean {found[0]}?" if found else ""


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
    description = "Pooling, im2col, padding and upsampling with their gradients, behind the two-phase aclnn interface."
    parser = _Parser(prog=_PROGRAM, description=description)
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
    add("--force", action="store_true", help="overwrite files that are there already")
    add("--repeat", type=int, default=1, metavar="N", help="run phase 2 so often, to time it (default: %(default)s)")


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
    """Check, run both phases of each batch, write, tell what happened."""
    operator = OPERATORS[options.operator]
    if options.repeat < 1:
        raise CommandError(f"--repeat {options.repeat}: must be at least 1")
    paths = {option: value_of(options, option) for option in outputs(operator).values()}
    taken = {
        f"--{one.one_call.replace('_', '-')}": path
        for one in operator.of_kind("read", "shape")
        if (path := getattr(options, one.one_call)) is not None
    }
    for option, path in paths.items():
        if path is not None:
            check_output(option, path, taken, options.force)
            taken[option] = path
    try:
        with _settings(options), Progress() as progress:
            work = Work(operator, options, progress.tell)
            try:
                work.check()
                told = _compute(work, paths, options.repeat, progress)
            except aclnn_bw.AclnnError as error:
                raise CommandError(work.named(error)) from None
    except MemoryError as error:
        raise CommandError(f"not enough memory: {error}") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise CommandError(str(error)) from None
    for name, value in {**work.values, **work.results}.items():
        if hasattr(value, "shape"):
            print(f"{name:<12} {describe(value)}")
    print("\n".join(told))
    for (name, option), result in zip(outputs(operator).items(), work.results.values(), strict=True):
        if paths[option] is not None:
            print(f"wrote        {name} to {paths[option]}{' as uint16' if result.dtype == BFLOAT16 else ''}")


@contextlib.contextmanager
def _settings(options: argparse.Namespace) -> Iterator[None]:
    """The threads and the product, whose refusals name the options."""
    layout = {"mask_layout": options.mask_layout} if "mask_layout" in options else {}
    with contextlib.ExitStack() as settings:
        option = f"--threads {options.threads}"
        try:
            if options.threads is not None:
                settings.enter_context(aclnn_bw.num_threads(options.threads))
            option = f"--soc {options.soc}"
            settings.enter_context(aclnn_bw.soc(options.soc, **layout))
        except ValueError as error:
            raise CommandError(f"{option}: {str(error).rpartition(': ')[2]}") from None
        yield


def _compute(work: Work, paths: dict[str, str | None], repeat: int, progress: Progress) -> list[str]:
    """Run every batch and write its results; what there is to tell of it."""
    phase_2 = getattr(aclnn_bw, f"aclnn{work.operator.name}")
    files: dict[str, Output] = {}
    first, times, most, workspace = 0, [0] * repeat, 0, None
    progress.tell("computing")
    try:
        for (name, option), result in zip(outputs(work.operator).items(), work.results.values(), strict=True):
            path = paths[option]
            if path is not None:
                files[name] = Output(option, path, *result)
        for done, arguments in work.batches():
            start = time.perf_counter_ns()
            size, executor = work.phase_1(arguments)
            first += time.perf_counter_ns() - start
            if size > most:
                most = size
                workspace = aclnn_bw.aclrtMalloc(size, aclnn_bw.ACL_MEM_MALLOC_HUGE_FIRST)
            if repeat > 1:
                aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
            for i in range(repeat):
                begin = time.perf_counter_ns()
                phase_2(workspace if size else None, size, executor)
                times[i] += time.perf_counter_ns() - begin
            if done == work.samples:
                progress.tell(f"writing {', '.join(file.path for file in files.values())}" if files else "")
            for name, file in files.items():
                file.write(work.filled(name, arguments[name]))
            progress.done(done, work.samples)
        for file in files.values():
            file.complete()
    finally:
        for file in files.values():
            file.abandon()
    count = -(-work.samples // work.step)
    batches = f" in {count} batches" if count > 1 else ""
    if repeat == 1:
        told = f"{duration(times[0] / 1e9)} (one run{batches}, memory not yet touched)"
    else:
        middle = duration(statistics.median(times) / 1e9)
        told = f"{duration(min(times) / 1e9)} at best, {middle} in the middle of {repeat} runs{batches}"
    return [
        f"workspace    {most} bytes",
        f"phase 1      {duration(first / 1e9)}",
        f"phase 2      {told}",
    ]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
