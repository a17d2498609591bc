"""``python tests/fuzz/mutants.py``: is every check needed, and does the fuzzer notice when it is gone?

A copy of the sources is built once, in which each refusal of the core and of the face, each call of a check in an
operator's chain, and the kernels' checks of indices can be switched off by the environment variable ACLNN_BW_MUTANT.
Then the fuzzer runs against each such mutant, in a child forked for it, until it finds something: a call that is
accepted and must not be, a wrong result, a crash. A mutant that survives is printed with its line.
Most are noticed within some hundred calls: with ``--calls 20000`` all of them took a minute and a half on two cores,
the build included, and one was left that needed 21,471.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent

_MOST_BYTES = 4 << 30  # the address space of a child
_HANG_SECONDS = 30  # that one call may take

# Why the fuzzer cannot see that these are gone: file: function: text of the line, each of which names one line.
_NO_MEMORY = "needs an allocation of some hundred bytes to fail"
KNOWN: dict[str, str] = {
    "checks.pxd: length_between: if low == high:": "chooses the words of a message",
    "executor.pyx: accept: if executor == NULL:": "the face looks first; this one is for a caller without it",
    "operators.pyx: start_executor: if made == NULL:": _NO_MEMORY,
    "results.pxi: run_at_once: if scratch == NULL:":
        "needs an allocation that is no larger than a result that could be had to fail",
    "executor.pyx: make_repeatable: if executor.spent:": "claim() asks again, for two runs that meet",
    "executor.pyx: rebind: if not 0 <= index < executor.tensors:":
        "the face looks first, and says how many inputs or outputs there are",
    "executors.pxi: set_address: if handle.executor.spent:":
        "a spent executor is not repeatable, which is refused next",
    "calls.pxi: result_shapes: if not describe_missing(&context, &reading):":
        "the command line's own, which the tests of it refuse through",
    "tensors.pxi: __dlpack__: if lent == NULL:": _NO_MEMORY,
    "tensors.pxi: __dlpack__: if self.array is None:": "the face alone makes loans, and of an array",
    "results.pxi: read_shape: if isinstance(value, (int, float, str)):":
        "read_tensor refuses these too, in other words",
    "executors.pxi: run_phase_2: if size < 0:":
        "the core finds it too small; this says so where no workspace is needed",
    "avg_pool2d.pyx: plan_backward: if not (reaches_image(&plan.h) and reaches_image(&plan.w)):":
        "a second line of defence: the rules before it leave no window in the padding alone",
}  # fmt: skip

_HEADER = """
#ifndef ACLNN_BW_MUTANT_H
#define ACLNN_BW_MUTANT_H
#include <stdlib.h>
static inline int aclnn_bw_mutant(void)
{
    static int number = -2;
    if (number == -2)
        number = getenv("ACLNN_BW_MUTANT") ? atoi(getenv("ACLNN_BW_MUTANT")) : -1;
    return number;
}
#endif
"""
_SWITCH = """cdef extern from "mutant.h" nogil:
    int mutant "aclnn_bw_mutant" () noexcept

"""


class Mutant(NamedTuple):
    """A check that can be switched off."""

    file: str
    line: int
    function: str
    text: str


def mutate(file: str, source: str, mutants: list[Mutant], switch: bool = True) -> str:
    """Make each check of a file one that can be switched off; they are appended to the list."""
    edits: list[tuple[int, int, str, str]] = []  # from, to, what stands before, what stands behind
    for refusal in re.finditer(r"^( +)(?:return refuse\(|raise (?!error_of|refusal_of|Imp))", source, re.MULTILINE):
        headers = [
            header
            for header in re.finditer(r"^( *)(?:el)?if (.*?):$", source[: refusal.start()], re.MULTILINE | re.DOTALL)
            if len(header[1]) < len(refusal[1])
        ]
        # The condition in whose body it stands: the last one that is less indented, if nothing stands between but the
        # end of an executor.
        if headers and re.fullmatch(
            r"\n+( +(delete_executor\(executor\)|result\[0\] = NULL)\n)*", source[headers[-1].end() : refusal.start()]
        ):
            edits.append((*headers[-1].span(2), "mutant() != {} and (", ")"))
    chained = r"(?:\breturn \(|\bor |= \(|= (?=check_(?!and)|not_null|same_|rank_|format_))"
    for call in re.finditer(chained + r"(?=[a-z_0-9]+\(&?context)", source):
        end = _closing(source, source.index("(", call.end()))
        if source[call.end() :].startswith("plan_"):
            continue
        edits.append((call.end(), end, "(0 if mutant() == {} else ", ")"))
    for index in re.finditer(r"^ +if (check_indices\(.*?|place >= 0):$", source, re.MULTILINE | re.DOTALL):
        edits.append((*index.span(1), "mutant() != {} and (", ")"))
    lines = source.splitlines()
    for begin, end, before, behind in sorted(edits, reverse=True):
        number, line = len(mutants), source.count("\n", 0, begin)
        functions = re.findall(r"^ *(?:cdef|cpdef|def) [^=#\n]*?(\w+)\(", source[:begin], re.MULTILINE)
        mutants.append(Mutant(file, line + 1, functions[-1] if functions else "", lines[line].strip()))
        source = source[:begin] + before.format(number) + source[begin:end] + behind + source[end:]
    if not edits or not switch:
        return source
    first = re.search(r"^cdef (?!extern)", source, re.MULTILINE)
    assert first is not None
    return source[: first.start()] + _SWITCH + source[first.start() :]


def _closing(text: str, opening: int) -> int:
    """Behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place + 1
    raise ValueError("unbalanced")


def build(folder: Path) -> list[Mutant]:
    """Copy the sources, switchable, and build them in place, unless that has been done."""
    built = list(folder.glob("aclnn_bw/_native*.so"))
    if not built:
        for name in ("aclnn_bw", "setup.py", "setup_kept.py", "pyproject.toml", "README.md", "LICENSE"):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
            else:
                shutil.copy(source, folder / name)
        (folder / "aclnn_bw" / "_core" / "mutant.h").write_text(_HEADER)
    mutants: list[Mutant] = []
    package = ROOT / "aclnn_bw"
    kernels = sorted((package / "_kernels").glob("max_pool2d_*.pyx"))
    for path in (*sorted((package / "_core").glob("*.p*x*")), *sorted((package / "_face").rglob("*.pxi")), *kernels):
        source = mutate(str(path.relative_to(package)), path.read_text(), mutants, path.suffix != ".pxi")
        if not built:
            (folder / path.relative_to(ROOT)).write_text(source)
    if not built:
        face = (package / "_native.pyx").read_text()     # of which the .pxi are parts
        (folder / "aclnn_bw" / "_native.pyx").write_text(face.replace("include ", f"{_SWITCH}include ", 1))
        subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, check=True,
            env={**os.environ, "ACLNN_BW_VARIANTS": "0"},
        )  # fmt: skip
    return mutants


def _try(number: int, mutant: Mutant, seed: int, calls: int, answer: int) -> None:
    """In a child of its own: switch one check off and make calls until one goes wrong."""
    os.environ["ACLNN_BW_MUTANT"] = str(number)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    from operators import OPERATORS

    from fuzz import hostile

    # Those that have the check: of a file that none has to itself, all.
    stem = mutant.file.rpartition("/")[2].split(".")[0].removesuffix("_forward")
    operators = tuple(one for one in OPERATORS.values() if one.record().one_call.startswith(stem))
    fuzzer = hostile.Fuzzer()
    for call in range(calls):
        signal.alarm(_HANG_SECONDS)
        try:
            fuzzer.one(seed, call, operators)
        except hostile.Finding as finding:
            os.write(answer, f"call {call}: {' '.join(str(finding).split())}".encode()[:1000])
            return


def run(
    mutants: list[Mutant], numbers: list[int], seed: int, calls: int, jobs: int
) -> Iterator[tuple[int, str | None]]:
    """For each mutant, how it was noticed, or None."""
    children: dict[int, tuple[int, int]] = {}
    waiting = numbers[::-1]
    while waiting or children:
        while waiting and len(children) < jobs:
            number = waiting.pop()
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    _try(number, mutants[number], seed, calls, write)
                finally:
                    os._exit(0)
            os.close(write)
            children[child] = number, read
        child, status = os.wait()
        number, read = children.pop(child)
        text = os.read(read, 1000).decode(errors="replace")
        os.close(read)
        if os.WIFSIGNALED(status):
            text = f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
        yield number, text or None


def main() -> int:
    """Run the program; 1 if a mutant survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1)
    add("--calls", type=int, default=150_000, help="of the fuzzer, for a mutant that it does not notice")
    add("--jobs", type=int, default=2, help="child processes")
    add("--only", type=int, nargs="+", help="these mutants")
    add("--folder", type=Path, help="build there, or take what has been built there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        folder.mkdir(exist_ok=True)
        mutants = build(folder)
        keys = [_key(mutant) for mutant in mutants]
        assert all(keys.count(key) == 1 for key in KNOWN), [key for key in KNOWN if keys.count(key) != 1]
        sys.path[:0] = [str(folder), str(ROOT / "tests")]
        from fuzz import hostile  # before the children are forked, which is why they start at once

        assert Path(hostile.aclnn_bw.__file__).is_relative_to(folder.resolve()), hostile.aclnn_bw.__file__
        left, noticed = options.only or list(range(len(mutants))), 0
        for calls in (options.calls // 15, options.calls):
            survivors = []
            for number, told in run(mutants, left, options.seed, calls, options.jobs):
                if told is None:
                    survivors.append(number)
                else:
                    noticed += 1
                    print(f"{_told(number, mutants[number])}\n       {told[:150]}", flush=True)
            left = [number for number in sorted(survivors) if _reason(mutants[number]) is None]
            for number in sorted(set(survivors) - set(left)):
                print(f"{_told(number, mutants[number])}\n       not noticed: {_reason(mutants[number])}")
        for number in left:
            print(f"{_told(number, mutants[number])}\n       SURVIVED")
    print(f"{len(mutants)} checks, {noticed} noticed when gone, {len(left)} survived")
    return 1 if left else 0


def _told(number: int, mutant: Mutant) -> str:
    return f"{number:4} {mutant.file}:{mutant.line}: {mutant.text}"


def _key(mutant: Mutant) -> str:
    return f"{Path(mutant.file).name}: {mutant.function}: {mutant.text}"


def _reason(mutant: Mutant) -> str | None:
    return KNOWN.get(_key(mutant))


if __name__ == "__main__":
    raise SystemExit(main())
