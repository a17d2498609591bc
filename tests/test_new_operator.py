"""An operator is added in the places that CONTRIBUTING names, and in no other: a made-up one is, in a copy of the tree.

It is the replication pad under another name, both ways. The other kernels are left empty in the copy, which takes most
of the time of a build away.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [
    pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc"),
    pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="no sources"),
]

MODEL, MADE_UP = "replication_pad2d", "made_up"
NO_KERNEL = """\
from aclnn_bw._core.types cimport RangeFn

cdef void {0}_kernels(RangeFn* row) noexcept nogil:
    pass
"""
# The files of each step of CONTRIBUTING, under aclnn_bw/, and of what the build complains that lacks them.
CORE = "_core/OP.pxd", "_core/OP.pyx"
KERNEL = "_kernels/OP.pxd", "_kernels/OP.pyx", "_kernels/OP_copy.pxd", "_kernels/OP_sums.pxd"
KERNEL += "_kernels/OP_forward.pxd", "_kernels/OP_forward.pyx"
HEADER = "include/aclnnop/aclnn_OP_backward.h", "include/aclnnop/level2/aclnn_OP_backward.h"
HEADER += "include/aclnnop/aclnn_OP.h", "include/aclnnop/level2/aclnn_OP.h"
MODELS = {name: "pad2d" if "backward" in name else MODEL for name in HEADER}  # the product names one of them so
FACE = ("_face/operators/OP.pxi",)
NO_HEADER = {f"aclnnMadeUp{way}{phase}" for way in ("", "Backward") for phase in ("", "GetWorkspaceSize")}
NO_CORE = {f"aclnn_bw_made_up{way}{part}" for way in ("", "_backward") for part in ("", "_facts")}
NO_CORE |= {"aclnn_bw_made_up_result"}
NO_KERNEL_FILE = {"aclnn_bw_made_up_kernels", "aclnn_bw_made_up_forward_kernels"}


def renamed(text):
    for old, new in ((MODEL, MADE_UP), (MODEL.upper(), MADE_UP.upper()), ("ReplicationPad2d", "MadeUp")):
        text = text.replace(old, new)
    return text


@pytest.fixture
def package(tmp_path):
    """The package's folder in a copy of the tree."""
    for name in ("aclnn_bw", "setup.py", "setup_kept.py", "pyproject.toml", "README.md", "LICENSE"):
        source, to = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, to, ignore=shutil.ignore_patterns("*.so", "lib", "lib64", "__pycache__"))
        else:
            shutil.copy(source, to)
    package = tmp_path / "aclnn_bw"
    for path in (package / "_kernels").glob("*.pyx"):
        if path.stem != "table":
            path.write_text(NO_KERNEL.format(path.stem))
    return package


SETTINGS = {name: value for name, value in os.environ.items() if not name.startswith("ACLNN_BW_")}
SETTINGS |= {"CFLAGS": "-O0", "ACLNN_BW_VARIANTS": "0", "ACLNN_BW_WERROR": "1"}


def lacks(package):
    """The names that the build misses; None if it is whole."""
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=package.parent, env=SETTINGS,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return None
    said = done.stdout + done.stderr
    found = re.findall(r"(?:undefined reference to|no previous prototype for) \W(\w+)", said)
    assert found, said
    return set(found)


def record(package):
    """Step 1: the records and the lines of the kernels' files."""
    path = package / "_core" / "operators.def"
    text = path.read_text(encoding="utf-8")
    operators = re.findall(rf"^OPERATOR\({MODEL.upper()}\w*,.*?\n\n", text, re.M | re.S)
    assert len(operators) == 2
    text = text.replace("#undef KERNEL\n#undef ARG", f"{renamed(''.join(operators))}#undef KERNEL\n#undef ARG")
    kernels = f"KERNEL({MODEL})\nKERNEL({MODEL}_forward)\n"
    assert kernels in text
    path.write_text(text.replace(kernels, kernels + renamed(kernels)), encoding="utf-8")


def add(package, *names):
    for name in names:
        model = MODELS.get(name, MODEL)
        source, to = ROOT / "aclnn_bw" / name.replace("OP", model), package / name.replace("OP", MADE_UP)
        text = source.read_text(encoding="utf-8")
        for pad in ("aclnn_pad2d_", "ACLNN_PAD2D_", "LEVEL2_PAD2D_"):  # names of headers and their guards
            text = text.replace(pad, pad.replace("pad2d", MADE_UP).replace("PAD2D", MADE_UP.upper()))
        to.write_text(renamed(text), encoding="utf-8")


TRY = """
import aclnn_bw, numpy as np
from aclnn_bw import cli
grad = np.arange(24, dtype=np.float32).reshape(1, 4, 6)
print(aclnn_bw.made_up_backward(grad, (1, 2, 3), (1, 2, 1, 1)).astype(int).tolist())
print("MadeUpBackward" in aclnn_bw.show_config(mode="dict")["operators"])
print(aclnn_bw.aclnnMadeUpBackward.__name__)
assert np.array_equal(aclnn_bw.made_up(grad, (1, 2, 3, 0)), np.pad(grad, ((0, 0), (3, 0), (1, 2)), "edge"))
assert cli.main(["demo", "made_up_backward"]) == 0
"""


@pytest.mark.thorough
def test_an_operator_is_added_in_the_places_that_contributing_names(package):
    record(package)
    assert lacks(package) == NO_HEADER
    add(package, *HEADER)
    assert lacks(package) == NO_CORE | NO_KERNEL_FILE
    add(package, *CORE, *KERNEL, *FACE)
    native = package / "_native.pyx"
    text = native.read_text(encoding="utf-8")
    native.write_text(f'{text}include "{FACE[0].replace("OP", MADE_UP)}"\n', encoding="utf-8")
    assert lacks(package) is None
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(package.parent)!r})\n{TRY}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    sums, known, name, *demo = done.stdout.splitlines()
    padded = np.arange(24).reshape(4, 6)
    rows = np.stack([padded[:2].sum(0), padded[2:].sum(0)])
    assert sums == str([np.stack([rows[:, :2].sum(1), rows[:, 2], rows[:, 3:].sum(1)], 1).tolist()])
    assert (known, name) == ("True", "aclnnMadeUpBackward")
    assert demo[-1] == "gradInput: 4 of 4 elements are right"
    # What the tests have to be told, they ask for by its name.
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path[:0] = [{str(package.parent)!r}, {str(ROOT / 'tests')!r}]\n"
         "import operators"], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "No module named 'operators.made_up_backward'" in done.stderr


def test_contributing_names_these_places():
    recipe = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to add an operator\n")[2]
    recipe = recipe.partition("\n## ")[0]
    for name in ("operators.def", CORE[0], KERNEL[1], HEADER[0], *FACE, "tests/operators/OP_backward.py"):
        assert name in recipe or name.replace("OP", "op") in recipe, name
    assert len(re.findall(r"^\d+\. ", recipe, re.M)) <= 12
