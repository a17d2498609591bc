"""``python tests/fuzz/mutants.py``: is every check needed, and does the fuzzer notice when it is gone?

A copy of the sources is built once, in which each refusal of the core, and each call of a check in an operator's chain,
can be switched off by the environment variable ACLNN_BW_MUTANT. Then the fuzzer runs against each such mutant, until it
finds something: a call that is accepted and must not be, a wrong result, a crash. A mutant that survives is printed
with its line. Takes some ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent

# Why the fuzzer cannot see that these are gone; matched against the line.
KNOWN: dict[str, str] = {
    "ERR_CREATE_EXECUTOR": "needs an allocation of some hundred bytes to fail",
    "a window lies in the padding alone": "a second line of defence, which the rules before it make unreachable",
}

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
    text: str


def mutate(file: str, source: str, mutants: list[Mutant]) -> str:
    """Make each check of a file one that can be switched off; they are appended to the list."""
    edits: list[tuple[int, int, str, str]] = []  # from, to, what stands before, what stands behind
    for refusal in re.finditer(r"^( +)return refuse\(", source, re.MULTILINE):
        headers = [
            header
            for header in re.finditer(r"^( *)(?:el)?if (.*?):$", source[: refusal.start()], re.MULTILINE | re.DOTALL)
            if len(header[1]) < len(refusal[1])
        ]
        # The condition in whose body it stands: the last one that is less indented, if nothing else stands between.
        if headers and "\n" not in source[headers[-1].end() : refusal.start()].strip("\n"):
            edits.append((*headers[-1].span(2), "mutant() != {} and (", ")"))
    for call in re.finditer(r"\b(?:return \(|or |= \()(?=[a-z_0-9]+\(context)", source):
        end = _closing(source, source.index("(", call.end()))
        if source[call.end() :].startswith("plan_"):
            continue
        edits.append((call.end(), end, "(0 if mutant() == {} else ", ")"))
    lines = source.splitlines()
    for begin, end, before, behind in sorted(edits, reverse=True):
        number, line = len(mutants), source.count("\n", 0, begin)
        mutants.append(Mutant(file, line + 1, lines[line].strip()))
        source = source[:begin] + before.format(number) + source[begin:end] + behind + source[end:]
    if not edits:
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
    """Copy the sources, switchable, and build them in place."""
    for name in ("aclnn_bw", "setup.py", "pyproject.toml", "README.md", "LICENSE", "tests"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy(source, folder / name)
    mutants: list[Mutant] = []
    (folder / "aclnn_bw" / "_core" / "mutant.h").write_text(_HEADER)
    for path in sorted((folder / "aclnn_bw" / "_core").glob("*.p*x*")):
        source = path.read_text()
        path.write_text(mutate(path.name, source, mutants))
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, check=True,
        env={**os.environ, "ACLNN_BW_VARIANTS": "0"},
    )  # fmt: skip
    return mutants


def main() -> int:
    """Run the program; 1 if a mutant survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--calls", type=int, default=200_000, help="of the fuzzer, for a mutant that it does not notice")
    add("--only", type=int, nargs="+", help="these mutants")
    options = parser.parse_args()
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        mutants = build(Path(name))
        for number, mutant in enumerate(mutants):
            if options.only and number not in options.only:
                continue
            done = subprocess.run(
                [sys.executable, "tests/fuzz/hostile.py", "--calls", str(options.calls), "--seconds", "90"],
                cwd=name, capture_output=True, text=True, check=False,
                env={**os.environ, "ACLNN_BW_MUTANT": str(number), "PYTHONPATH": name},
            )  # fmt: skip
            reason = next((reason for text, reason in KNOWN.items() if text in mutant.text), None)
            told = done.stderr.strip().splitlines()[:1] if done.returncode else [reason or "SURVIVED"]
            survivors += not done.returncode and reason is None
            print(
                f"{number:4} {mutant.file}:{mutant.line}: {mutant.text}\n       {told[0][:150] if told else ''}",
                flush=True,
            )
    print(f"{len(mutants)} mutants, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
