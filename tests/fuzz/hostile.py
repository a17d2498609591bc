"""``python tests/fuzz/hostile.py``: random calls with hostile arguments, each judged by the rules written down apart.

Every call must end as rules.py says: with an exception of the right type or status that names the argument, and nothing
written, or with the right result and nothing written beside it. A crash or a hang of the child that makes the calls is
told with the line that repeats the one call.
"""

from __future__ import annotations

import argparse
import math
import mmap
import os
import re
import resource
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from random import Random
from typing import Any

import numpy as np

import aclnn_bw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from operators import OPERATORS

from fuzz import calls, handles, results, rules
from fuzz.calls import CANARY, Drawn

_PHASE_2_WOES = (
    "none", "none", "none", "none", "small buffer", "small size", "large size", "null workspace", "read-only workspace",
    "no workspace", "negative size", "no size", "null executor", "no executor", "another operator", "destroyed",
    "no stream", "overlapping workspace", "spent", "stream", "repeatable",
)  # fmt: skip
_WORKSPACE_WOES = ("small buffer", "small size", "null workspace", "read-only workspace", "overlapping workspace")
_ALL = tuple(OPERATORS.values())
_CANARIES = bytes([CANARY]) * (1 << 20)
_OOM_BYTES = 4 << 30  # the address space of a child: what cannot be had is refused, not swapped in
_HANG_SECONDS = 30
_AROUND = 0.1  # of the calls are not those of an operator
INNER = 561000


class Finding(AssertionError):
    """A call did not end as it must."""


class Fuzzer:
    """Makes calls and counts how they ended."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.stream = aclnn_bw.aclrtCreateStream()
        self.spare = [operator((1, 2, 3, 3)) for operator in OPERATORS.values()]

    def one(self, seed: int, number: int, operators: Any = ()) -> None:
        """Make call `number` of a seed, of one of these operators, or of any."""
        random = calls.Dice(seed << 40 | number)
        try:
            around = random.random()
            if around < _AROUND:
                self._around(random, around)
            else:
                try:
                    drawn = calls.draw(random, operators or _ALL)
                except (ValueError, MemoryError):  # a strange view could not be laid out: no call, no finding
                    self.counts["not drawn"] += 1
                    return
                self._run(random, drawn)
        except Finding:
            raise
        except Exception as error:
            raise Finding(f"{error!r}\n{traceback.format_exc()}") from error

    def _around(self, random: Random, which: float) -> None:
        """Call one of the functions that stand around the operators."""
        after: Any = None
        if which < 0.026:
            name, (call, objections) = "aclCreateTensor", handles.create(random)
        elif which < 0.037:
            name, (call, objections, after) = "aclCreateIntArray", handles.lists(random)
        elif which < 0.047:
            name, (call, objections, after) = "mask converters", handles.converters(random)
        elif which < 0.073:
            name, (call, objections, after) = "aclSetTensorAddr", handles.address(random)
        else:
            name, (call, objections, after) = "mask_shape", handles.masks(random)
        drawn = Drawn(name, "", "", "", {}, ())
        result = self._judged(drawn, objections, lambda: (call(),))
        if name == "aclSetTensorAddr":
            _check(after(), "the run after it went wrong")
        elif after is not None and result is not None:
            _check(after(result[0]), f"wrong result {result[0]!r}")

    # ---- one call ------------------------------------------------------------------------------------------------

    def _run(self, random: Random, drawn: Drawn) -> None:
        objections = drawn.judge()
        values = {name: argument.value for name, argument in drawn.arguments.items()}
        if not objections and _too_large(drawn):
            self.counts["left out, too large to run"] += 1
            return
        if drawn.face == "two-phase":
            with aclnn_bw.soc(drawn.product, mask_layout=drawn.layout):
                phase_1 = getattr(aclnn_bw, f"aclnn{drawn.name}GetWorkspaceSize")
                made = self._judged(drawn, objections, lambda: phase_1(*values.values()))
            if made is not None:
                self._phase_2(random, drawn, *made)
            return
        function = getattr(aclnn_bw, drawn.operator.record().one_call)
        wanted, bad_index = None, False
        if not objections:
            try:
                wanted = results.expected(drawn)
            except results.BadIndex as bad:
                bad_index, objections = True, [bad.refusal]
        result = self._judged(drawn, objections, lambda: function(**values), may_write=bad_index)
        if result is None:
            return
        found = list(result) if isinstance(result, tuple) else [result]
        names = [parameter.one_call for parameter in drawn.operator.record().of_kind("written")]
        for i, name in enumerate(names):
            if values.get(name) is not None:
                _check(found[i] is values[name], f"the result is not `{name}`")
                found[i] = drawn.arguments[name].array
        self._compare(drawn, found, wanted)

    def _judged(self, drawn: Drawn, objections: list[rules.Refusal], call: Any, may_write: bool = False) -> Any:
        """Make the call; its result, or None where it was refused as it had to be."""
        aclnn_bw.aclGetRecentErrMsg()
        try:
            result = call()
        except MemoryError as error:
            if not any(o.error is MemoryError for o in objections):
                raise Finding(f"raised {error!r}, but {_told(objections)}") from error
            self.counts[f"{drawn.name}: too large"] += 1
            return None
        except Exception as error:
            fitting = [o for o in objections if _fits(error, o)]
            if not fitting:
                raise Finding(f"raised {error!r}, but {_told(objections)}") from error
            if isinstance(error, aclnn_bw.AclnnError):
                _check(aclnn_bw.aclGetRecentErrMsg() == str(error), "aclGetRecentErrMsg is not the message")
            self.counts.update({f"{drawn.name}: {objection.rule}" for objection in fitting})
            self.counts["refused"] += 1
            if drawn.arguments:
                if may_write:
                    self._restore(drawn)
                _check(calls.ARENA.untouched(), "a refused call has written something")
            return None
        if objections:
            raise Finding(f"was accepted, but {_told(objections)}")
        return result

    def _compare(self, drawn: Drawn, outputs: list[Any], wanted: list[Any] | None) -> None:
        self.counts["accepted"] += 1
        if wanted is None:
            self.counts["accepted, but not compared"] += 1
        else:
            for output, right in zip(outputs, wanted, strict=True):
                if not results.agrees(drawn, output, right):
                    raise Finding(f"wrong result\n{output!r}\nnot\n{right!r}")
            self.counts[f"{drawn.name}: computed"] += 1
            self.counts["compared"] += 1
        self._restore(drawn)
        _check(calls.ARENA.untouched(), "something beside the outputs was written")

    def _restore(self, drawn: Drawn) -> None:
        for name in drawn.outputs:
            drawn.arguments[name].restore()

    # ---- phase 2 -------------------------------------------------------------------------------------------------

    def _phase_2(self, random: Random, drawn: Drawn, size: int, executor: Any) -> None:
        name = f"aclnn{drawn.name}"
        run = getattr(aclnn_bw, name)
        try:
            wanted: list[Any] | None = results.expected(drawn) if _bound(drawn) else None
            objections: list[rules.Refusal] = []
        except results.BadIndex as bad:
            wanted, objections = None, [bad.refusal]
        outputs = [drawn.arguments[name] for name in drawn.outputs]
        empty = all(output.array is None or output.array.size == 0 for output in outputs)
        if not _bound(drawn) and not empty:
            unbound = [
                n for n, a in drawn.arguments.items() if isinstance(a.meaning, rules.View) and a.meaning.address is None
            ]
            objections = [rules.Refusal("unbound in phase 2", rules.NULLPTR, name) for name in unbound]
        buffer = bytearray(_CANARIES[: size + 128]) if size < len(_CANARIES) - 128 else bytearray(size + 128)
        at = random.randrange(1, 64)
        outside = buffer[:at], buffer[at + size :]
        workspace: Any = memoryview(buffer)[at : at + size] if size else random.choice((None, bytearray(3)))
        if size and random.random() < 0.5:
            workspace = np.frombuffer(workspace, np.uint8)
        arguments: list[Any] = [workspace, size, executor, None]
        woe = random.choice(_PHASE_2_WOES)
        if size and random.random() < 0.75:  # which some operators seldom need
            woe = random.choice(_WORKSPACE_WOES)
        woe = woe if _bound(drawn) else "none"
        spoiled, wrong = self._spoil(random, drawn, woe, list(arguments), size)
        drawn.notes.append(f"phase 2: {woe}")
        if wrong is not None:
            self._judged(drawn, [wrong], lambda: run(*spoiled))
        if woe == "destroyed":
            return
        if woe == "repeatable":
            aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
            self._judged(drawn, objections, lambda: run(*arguments) or True, may_write=True)
        if woe == "stream":
            arguments[3] = self.stream
            if any(o.rule == "index outside its window" for o in objections):
                run(*arguments)
                self._judged(drawn, objections, lambda: aclnn_bw.aclrtSynchronizeStream(self.stream), may_write=True)
                return
        done = self._judged(drawn, objections, lambda: run(*arguments) or True, may_write=True)
        if woe == "stream":
            aclnn_bw.aclrtSynchronizeStream(self.stream)
        if done is None:
            return
        _check((buffer[:at], buffer[at + size :]) == outside, "a write beside the workspace")
        self._compare(drawn, [output.array for output in outputs], wanted)
        if woe == "spent":
            spent = [rules.Refusal("spent", INNER, "executor")]
            self._judged(drawn, spent, lambda: aclnn_bw.aclSetAclOpExecutorRepeatable(executor))
            self._judged(drawn, spent, lambda: run(*arguments))

    def _spoil(self, random: Random, drawn: Drawn, woe: str, arguments: list[Any], size: int) -> Any:
        """Phase 2's arguments with one thing wrong, and what must come of it (None: it is not wrong after all)."""
        refuse = rules.Refusal
        if woe == "small buffer" and size:
            arguments[0] = bytearray(random.randrange(size))
            return arguments, refuse("workspace too small", rules.INVALID, "workspace")
        if woe == "small size" and size:
            arguments[1] = random.randrange(size)
            return arguments, refuse("workspaceSize too small", rules.INVALID, "workspaceSize")
        if woe == "large size":
            arguments[0] = bytearray(size + 1)
            arguments[1] = random.choice((size + 2, 2**31, 2**62, 2**63 - 1))
            return arguments, refuse("workspace too small", rules.INVALID, "workspace")
        if woe == "null workspace":
            arguments[:2] = None, size or random.choice((1, 64, 2**62))
            return arguments, refuse("null workspace", rules.NULLPTR, "workspace")
        if woe == "read-only workspace" and size:
            arguments[0] = bytes(size)
            return arguments, refuse("read-only workspace", rules.INVALID, "workspace")
        if woe == "no workspace":
            arguments[0] = random.choice((0, 1.5, "workspace", [1, 2], object()))
            return arguments, refuse("no workspace", TypeError, "workspace")
        if woe == "negative size":
            arguments[1] = random.choice((-1, -(2**31), -(2**63)))
            return arguments, refuse("negative workspaceSize", rules.INVALID, "workspaceSize")
        if woe == "no size":
            arguments[1] = random.choice((None, 1.0, "0", True))
            return arguments, refuse("no workspaceSize", TypeError, "workspaceSize")
        if woe == "null executor":
            arguments[2] = None
            return arguments, refuse("null executor", rules.NULLPTR, "executor")
        if woe == "no executor":
            arguments[2] = random.choice((0, "executor", object(), aclnn_bw.aclOpExecutor))
            return arguments, refuse("no executor", INNER, "executor")
        if woe == "another operator":
            other = next(spare for spare in self.spare if type(spare) is not drawn.operator)
            with aclnn_bw.soc("Host"):
                made = other.phase1()
            arguments[:3] = bytearray(made[0]), made[0], made[1]
            return arguments, refuse("another operator's executor", rules.INVALID, "executor")
        if woe == "destroyed":
            aclnn_bw.aclDestroyAclOpExecutor(arguments[2])
            return arguments, refuse("destroyed executor", INNER, "executor")
        if woe == "no stream":
            arguments[3] = random.choice((0, "stream", object()))
            return arguments, refuse("no stream", TypeError, "stream")
        if woe == "overlapping workspace" and size:
            for name in drawn.arguments:
                argument = drawn.arguments[name]
                view = argument.meaning
                if not isinstance(view, rules.View) or argument.array is None or view.empty or view.address is None:
                    continue
                if drawn.role(name) != "shape":
                    start = argument.start + view.reach()[0] * rules.SIZES[view.dtype]
                    arguments[0] = calls.ARENA.memory[start : start + size]
                    return arguments, refuse("overlapping workspace", rules.INVALID, "workspace")
        return arguments, None


# ---- judging what happened ------------------------------------------------------------------------------------------


def _check(condition: Any, text: str) -> None:
    if not condition:
        raise Finding(text)


def _told(objections: list[rules.Refusal]) -> str:
    return " or ".join(map(str, objections)) or "nothing is wrong with it"


def _fits(error: Exception, objection: rules.Refusal) -> bool:
    """Whether an exception is what an objection asks for, and names the argument."""
    if isinstance(objection.error, int):
        if not isinstance(error, aclnn_bw.AclnnError) or error.status != objection.error:
            return False
    elif type(error) is not objection.error:
        return False
    if objection.rule == "a forged capsule" and "DLPack" not in str(error):
        return False
    if objection.rule == "rank" and re.search(r"\.rank|len\(", str(error)) is None:
        return False
    return objection.rule == "raises" or _names(objection.argument).match(str(error)) is not None


@cache
def _names(argument: str) -> re.Pattern[str]:
    """What a message begins with that is about an argument."""
    return re.compile(rf"(len\()?({argument})\b")


def _bound(drawn: Drawn) -> bool:
    """Whether every tensor whose values are read or written has memory."""
    return not any(
        isinstance(argument.meaning, rules.View) and argument.meaning.address is None
        for name, argument in drawn.arguments.items()
        if drawn.role(name) != "shape"
    )


def _too_large(drawn: Drawn) -> bool:
    """Whether a right call would work on more than a test should."""
    views = [a.meaning for a in drawn.arguments.values() if isinstance(a.meaning, rules.View)]
    # An empty one too is too large for the twin if its other sizes are.
    elements = max(math.prod(size or 1 for size in view.shape) for view in views)
    kernel = (
        drawn.arguments.get("kernelSize") or drawn.arguments.get("kernel_size") or calls.Argument(None, None)
    ).meaning
    positions = kernel[0] * kernel[-1] if kernel else 1
    if "out" in drawn.arguments and drawn.face == "one-call":
        made = drawn.operator.fresh({name: argument.meaning for name, argument in drawn.arguments.items()})
        elements = max(elements, math.prod(size or 1 for size in made or ()))
    return elements > 1 << 16 or positions > drawn.operator.most_positions


# ---- running them ---------------------------------------------------------------------------------------------------


def _child(progress: str, slot: int, seed: int, first: int, step: int, last: int, until: float, answers: Any) -> None:
    """Make every `step`-th call; the file holds the number of the one that runs."""
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which needs terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (_OOM_BYTES, _OOM_BYTES))
    aclnn_bw.set_num_threads(1 + slot % 2)
    fuzzer, finding, number = Fuzzer(), None, first
    with open(progress, "r+b") as file, mmap.mmap(file.fileno(), 0) as place:
        while number < last and time.time() < until:
            struct.pack_into("<q", place, 8 * slot, number)
            try:
                fuzzer.one(seed, number)
            except Finding as found:
                finding = (number, str(found))
                break
            number += step
    # A rule that never objected is counted too.
    fuzzer.counts.update({f"{operator}: {rule}": 0 for operator, rule in rules.KNOWN})
    answers.put((slot, fuzzer.counts, (number - first) // step, finding))


def run(seed: int, total: int, seconds: float, jobs: int) -> tuple[Counter[str], int, str | None]:
    """Make calls in child processes: the counts, how many calls were made, and the first finding."""
    context = get_context("spawn")  # a forked child cannot use OpenMP
    answers: Any = context.Queue()
    counts: Counter[str] = Counter()
    made, findings = 0, []
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(8 * jobs))
        file.flush()
        until = time.time() + seconds
        children = [
            context.Process(target=_child, args=(file.name, slot, seed, slot, jobs, total, until, answers), daemon=True)
            for slot in range(jobs)
        ]
        for child in children:
            child.start()
        waiting, before, changed = set(range(jobs)), [-1] * jobs, [time.time()] * jobs
        while waiting:
            try:
                slot, more, number, finding = answers.get(timeout=1)
            except Empty:
                with open(file.name, "rb") as progress:
                    now = struct.unpack(f"<{jobs}q", progress.read())
                for slot in list(waiting):
                    child = children[slot]
                    if now[slot] != before[slot]:
                        before[slot], changed[slot] = now[slot], time.time()
                    if child.exitcode:
                        findings.append((now[slot], f"the process died with exit code {child.exitcode}"))
                    elif time.time() - changed[slot] > _HANG_SECONDS:
                        findings.append((now[slot], f"no end after {_HANG_SECONDS} s"))
                        child.kill()
                    else:
                        continue
                    waiting.discard(slot)
                continue
            waiting.discard(slot)
            counts.update(more)  # "+=" would forget what was counted 0 times
            made += number
            if finding:
                findings.append(finding)
        for child in children:
            child.join()
    if not findings:
        return counts, made, None
    number, text = min(findings)
    return (
        counts,
        made,
        f"call {number} of seed {seed}: {text}\nrepeat it: python tests/fuzz/hostile.py --seed {seed} --only {number}",
    )


def main() -> int:
    """Run the program; 1 if a call did not end as it must."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1)
    add("--calls", type=int, default=1_000_000, help="stop after so many")
    add("--seconds", type=float, default=300.0, help="stop after so long")
    add("--jobs", type=int, default=2, help="child processes; every second one uses two threads")
    add("--only", type=int, help="make this one call, in this process, and show it")
    add("--least", type=int, default=0, help="fail unless every rule was hit so often, and a quarter was computed")
    options = parser.parse_args()
    if options.only is not None:
        random = calls.Dice(options.seed << 40 | options.only)
        if random.random() >= _AROUND:
            drawn = calls.draw(random, _ALL)
            print(drawn.name, drawn.face, drawn.product, drawn.layout, *drawn.notes, sep="\n  ")
            for name, argument in drawn.arguments.items():
                print(f"{name} = {argument.value!r:.300}\n    {argument.meaning!r:.300}")
            print("expected:", _told(drawn.judge()))
        Fuzzer().one(options.seed, options.only)
        print("as expected")
        return 0
    counts, made, finding = run(options.seed, options.calls, options.seconds, options.jobs)
    for name, count in sorted(counts.items()):
        print(f"{count:9}  {name}")
    print(
        f"{made} calls of seed {options.seed}: {counts['compared']} computed and compared, {counts['refused']} refused"
    )
    rare = [f"{name}: {count}" for name, count in counts.items() if ": " in name and count < options.least]
    if rare:
        print(f"seen less than {options.least} times: {'; '.join(sorted(rare))}", file=sys.stderr)
    if counts["not drawn"] > made / 100:
        print("more than a hundredth of the calls could not be drawn", file=sys.stderr)
        return 1
    if options.least and counts["compared"] < made / 4:
        print("less than a quarter of the calls reached a kernel", file=sys.stderr)
        return 1
    if finding:
        print(finding, file=sys.stderr)
    return 1 if finding or rare else 0


if __name__ == "__main__":
    raise SystemExit(main())
