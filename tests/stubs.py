"""The type stubs of the operators' functions, made of their records: `python tests/stubs.py --write` after a change.

What is above the mark in _native.pyi is written by hand; what is below it, here.
"""

import inspect
import sys
import textwrap
from itertools import combinations
from pathlib import Path

from aclnn_bw import _native
from aclnn_bw._records import OPERATORS

STUB = Path(__file__).parents[1] / "aclnn_bw" / "_native.pyi"
MARK = "# ---- of the operators' records, by tests/stubs.py: nobody edits what follows\n"
TWO_PHASE = {
    "read": "_Tensor | None", "shape": "_Tensor | None", "written": "_Tensor | None", "ints": "_Ints | None",
    "bool": "_Bool", "int": "_Int", "real": "_Float",
}  # fmt: skip
ONE_CALL = {"read": "_Tensor", "shape": "_Tensor | _Shape", "bool": "_Bool", "int": "_Int", "real": "_Float"}
# What the first argument may be, and what each result is then.
FIRST = {
    "npt.NDArray[_Dtype]": "npt.NDArray[_Dtype]",
    "_Exporter": "_Exporter",
    "_Plain": "npt.NDArray[Any]",
}


def function(name, parameters, result):
    head, tail = f"def {name}(", f") -> {result}: ..."
    if len(head) + len(", ".join(parameters)) + len(tail) <= 120:
        return f"{head}{', '.join(parameters)}{tail}\n"
    lines = ["   "]
    for parameter in parameters:
        if len(lines[-1]) + len(parameter) + 2 > 120:
            lines.append("   ")
        lines[-1] += f" {parameter},"
    return "\n".join([head, *lines, tail]).replace(f",\n{tail}", f"\n{tail}") + "\n"


def two_phase(operator):
    parameters = [
        f"{parameter.name}: {'CubeMathType | _Int' if parameter.name == 'cubeMathType' else TWO_PHASE[parameter.kind]}"
        for parameter in operator.two_phase
    ]
    yield function(f"aclnn{operator.name}GetWorkspaceSize", parameters, "tuple[int, aclOpExecutor]")
    yield function(
        f"aclnn{operator.name}",
        ["workspace: _Memory | None", "workspaceSize: _Int", "executor: aclOpExecutor | None",
         "stream: aclrtStream | None = None"], "None",
    )  # fmt: skip


def argument(parameter, default):
    """The annotation of an argument of a one-call function."""
    if parameter.kind == "layout":
        kind = "_Layout"
    elif parameter.kind == "ints":
        kind = "_IntOrInts" if parameter.repeats else "_Ints"
    else:
        kind = ONE_CALL[parameter.kind]
    if default is inspect.Parameter.empty:
        return f"{parameter.one_call}: {kind}{' | None' if parameter.empty else ''}"
    return f"{parameter.one_call}: {kind}{' | None' if default is None else ''} = {default!r}".replace("'", '"')


def one_call(operator):
    known = {parameter.one_call: parameter for parameter in operator.parameters}
    written = operator.of_kind("written")
    # Each result is given or made, and what is made follows from the first argument.
    given = [set(names) for n in range(len(written), 0, -1) for names in combinations(range(len(written)), n)]
    forms = [("_Tensor", "Any", here) for here in given] + [(*first, set()) for first in FIRST.items()]
    for first, result, here in forms:
        outs = {one.one_call: f"_Out{i + 1 if i else ''}" for i, one in enumerate(written) if i in here}
        parameters, keywords = [], False
        for name, parameter in inspect.signature(operator.function).parameters.items():
            if parameter.kind == inspect.Parameter.KEYWORD_ONLY and not keywords:
                parameters.append("*")
                keywords = True
            if name in outs:
                parameters.append(f"{name}: {outs[name]}")
            elif known[name].kind == "written":
                parameters.append(f"{name}: None = None")
            elif not [word for word in parameters if word != "*"]:
                parameters.append(f"{name}: {first}")
            else:
                parameters.append(argument(known[name], parameter.default))
        own = {"npt.NDArray[np.int8]": "is_mask", "npt.NDArray[np.int64]": "is_indices"}
        results = [
            outs.get(one.one_call)
            or next((name for name, flag in own.items() if getattr(one, flag) and result.startswith("npt.")), result)
            for one in written
        ]  # fmt: skip
        yield "@overload\n" + function(
            operator.one_call, parameters, results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
        )


def stub():
    hand_written = STUB.read_text().partition(MARK)[0].rstrip("\n")
    names = textwrap.fill(", ".join(f'"{name}"' for name in _native.__all__), 116)
    made = [f"\n\n{MARK}\n__all__ = [\n{textwrap.indent(names, '    ')},\n]\n\n"]
    for operator in OPERATORS.values():
        made += [*two_phase(operator), *one_call(operator)]
    return hand_written + "".join(made)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    STUB.write_text(stub())
