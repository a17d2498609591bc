"""Digests of what the operators compute: they say that nothing changed, and no more.

    python tests/digests.py             # compare with tests/digests.json; the exit status is 1 if a digest differs
    python tests/digests.py --write     # store them anew

Whether a value is right is for the operators' own tests, which compare with their twins. Here are seeded
calls in groups, a digest for the outputs of each group in each dtype, so that a change of a kernel that is to change no
bit can be seen to change none. The results are the same on every instruction set and number of threads, hence one file
serves all. Together the calls reach every algorithm and nearly every path of the kernels: widths around the lengths of
vectors, kernels and strides of all sizes, both mask layouts, all kinds of strides, arrays beyond the caches, and values
that are rounded, cancelled or no numbers.

Inputs are bits of a generator whose stream NumPy promises to keep, put together by integer arithmetic. A change of the
calls or of their inputs changes digests too: then store them anew with kernels that are known to be good.
"""

import argparse
import hashlib
import json
import sys
from functools import lru_cache
from itertools import islice
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
if any((TESTS.parent / "aclnn_bw").glob("_native.*so")):  # built in place: no other installation is meant
    sys.path.insert(0, str(TESTS.parent))

import numpy as np  # noqa: E402
from digest_calls import DTYPES, NAN, canonical, laid, output, rules, values  # noqa: E402
from helpers import LAYOUTS  # noqa: E402
from operators import OPERATORS  # noqa: E402
from operators.max_pool import large_mask  # noqa: E402

import aclnn_bw  # noqa: E402
from aclnn_bw import _native  # noqa: E402

STORED = TESTS / "digests.json"

def prepared(call, dtype, seed):
    """Inputs and outputs."""
    operator = OPERATORS[call.operator].digested
    layout, layouts = operator.layouts(call)
    inputs = [laid(values(dtype, operator.input_shape(call), seed, call.kind), layout), *operator.extra(call, seed)]
    shapes, dtypes = operator.output_shapes(call), operator.output_dtypes(call, DTYPES[dtype])
    return inputs, [output(*each) for each in zip(shapes, dtypes, layouts, strict=True)]


def phase_1(call, inputs, outs):
    with rules(call):
        name = f"aclnn{call.operator}GetWorkspaceSize"
        return getattr(aclnn_bw, name)(*OPERATORS[call.operator].digested.phase_1(call, inputs, outs))


def results(call, dtype, number):
    """The outputs: of the two phases, or, for a third of the calls that both faces can make, of the one call."""
    # The same in all dtypes, so that they share a mask.
    inputs, outs = prepared(call, dtype, 7919 * number)
    if call.product == "Host" and not call.rest and number % 3 == 2:
        return OPERATORS[call.operator].digested.one_call(call, inputs, outs)
    size, executor = phase_1(call, inputs, outs)
    workspace = np.full(size, NAN, np.uint8) if size else None
    getattr(aclnn_bw, f"aclnn{call.operator}")(workspace, size, executor)
    return outs


def plan(call, dtype):
    """An executor that is never run."""
    operator = OPERATORS[call.operator].digested
    layout, layouts = operator.layouts(call)

    def empty(shape, dtype, layout):
        base, view = LAYOUTS[layout](*shape)
        return view(np.empty(base, dtype))

    inputs = [empty(operator.input_shape(call), DTYPES[dtype], layout)]
    inputs += operator.unread(call)
    shapes, dtypes = operator.output_shapes(call), operator.output_dtypes(call, DTYPES[dtype])
    _, executor = phase_1(call, inputs, [empty(*each) for each in zip(shapes, dtypes, layouts, strict=True)])
    return executor


@lru_cache
def groups():
    """The groups of every name: one, or more that differ in their dtypes."""
    found = {}
    for operator in OPERATORS:
        for name, group in OPERATORS[operator].digested.groups():
            assert group.calls
            found.setdefault(f"{operator}: {name}", []).append(group)
    return found


def each():
    """Name, group and dtype of every digest."""
    return ((name, group, dtype) for name, both in groups().items() for group in both for dtype in group.dtypes)


# ---- digests --------------------------------------------------------------------------------------------------------


def digest_of(group, dtype):
    """A hash of the outputs of all calls of a group."""
    together = hashlib.blake2b(digest_size=8)
    for number, call in enumerate(group.calls):
        for array in results(call, dtype, number):
            together.update(canonical(array).data)
    return together.hexdigest()


def left_out(name, without):
    return any(text in name for text in without)


def digests(step=1, without=()):
    """The digest of every group in each of its dtypes, by the name of both; or of every `step`-th.

    Those that have one of the texts `without` in their names are left out.
    """
    found = {}
    for name, group, dtype in islice(each(), 0, None, step):
        assert f"{name}, {dtype}" not in found
        if left_out(name, without):
            continue
        found[f"{name}, {dtype}"] = digest_of(group, dtype)
    large_mask.cache_clear()
    return found


def nested(flat):
    """By operator, group and dtype: shorter."""
    found = {}
    for name, seen in flat.items():
        operator, _, rest = name.partition(": ")
        group, _, dtype = rest.rpartition(", ")
        found.setdefault(operator, {}).setdefault(group, {})[dtype] = seen
    return found


def stored():
    listed = json.loads(STORED.read_text(encoding="utf-8"))
    return {
        f"{operator}: {name}, {dtype}": seen
        for operator, named in listed.items()
        for name, by_dtype in named.items()
        for dtype, seen in by_dtype.items()
    }


def differences(seen, wanted):
    """A line for each group that changed, appeared or is gone."""
    lines = []
    for name in sorted(seen.keys() | wanted.keys()):
        if name not in wanted:
            lines.append(f"{name}: {seen[name]} is not stored")
        elif name not in seen:
            lines.append(f"{name}: is stored, but no longer computed")
        elif seen[name] != wanted[name]:
            lines.append(f"{name}: {seen[name]}, not {wanted[name]}")
    return lines


def main(argv=None):
    parser = argparse.ArgumentParser(description="Compare what the operators compute with the digests that are stored.")
    parser.add_argument("--write", action="store_true", help="store the digests instead")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="compute with so many (default 1)")
    parser.add_argument(
        "--without", metavar="TEXT", action="append", default=[],
        help="leave out the groups that have this in their names; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--step", type=int, default=1, metavar="N",
        help="compute every N-th digest; where N is odd, all dtypes have their turn",
    )  # fmt: skip
    parser.add_argument(
        "--stream", action="store_true", help="results of any size go past the caches where larger ones would"
    )
    options = parser.parse_args(argv)
    if options.stream:
        _native.stream_from(0, 0)
    if options.write and (options.without or options.step != 1):
        parser.error("what is stored has every group")
    with aclnn_bw.num_threads(options.threads):
        seen = digests(options.step, options.without)
    calls = sum(len(group.calls) for name, group, dtype in each() if f"{name}, {dtype}" in seen)
    print(f"{len(seen)} digests of {calls} calls, instruction set {aclnn_bw.show_config(mode='dict')['isa']}")
    if options.write:
        STORED.write_text(json.dumps(nested(seen), indent=0) + "\n", encoding="utf-8")
        return 0
    computed = {f"{name}, {dtype}" for name, _, dtype in islice(each(), 0, None, options.step)}
    wanted = {
        name: kept
        for name, kept in stored().items()
        if not left_out(name, options.without) and (options.step == 1 or name in computed)
    }
    lines = differences(seen, wanted)
    print("\n".join(lines) or "nothing changed")
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
