"""The recipes of examples/ run where their libraries are, and docs/recipes.md shows them as they are."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
NOTEBOOK = json.loads((EXAMPLES / "first_steps.ipynb").read_text(encoding="utf-8"))


def run(name, *arguments, needs):
    return run_file(EXAMPLES / f"{name}.py", *arguments, needs=needs)


def run_file(path, *arguments, needs):
    for module in needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    done = subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.torch
def test_torch_autograd():
    assert run("torch_autograd", needs=["torch"]).count("the gradient is right") == 5


def test_jax_custom_vjp():
    assert run("jax_custom_vjp", needs=["jax"]).count("the gradient is JAX's") == 2


def test_digits_cnn():
    printed = run("digits_cnn", "--epochs", "5", needs=["sklearn"])
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", printed)]
    assert len(losses) == 5
    assert losses[-1] < losses[0] / 2
    assert float(re.search(r"told right: ([\d.]+)%", printed)[1]) > 70     # chance: 10


def test_digits_cnn_plots(tmp_path):
    run("digits_cnn", "--epochs", "1", "--plot", str(tmp_path / "loss.png"), needs=["sklearn", "matplotlib"])
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_two_phase_training():
    printed = run("two_phase_training", "--epochs", "5", needs=["sklearn"])
    assert "the gradient is right" in printed
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", printed)]
    assert len(losses) == 5
    assert losses[-1] < losses[0] / 2
    assert float(re.search(r"told right: ([\d.]+)%", printed)[1]) > 60     # chance: 10
    plans, runs = map(int, re.search(r"(\d+) plans, (\d+) runs", printed).groups())
    assert plans == 10
    # A step runs all ten, a loss alone the six of the forward; the check is a step and nine losses.
    assert runs == 5 * 44 * 10 + 12 * 6 + 10 + 9 * 6


def test_larger_than_memory():
    printed = run("larger_than_memory", "--images", "5", "--block", "2", needs=["dask", "distributed"])
    assert "the bytes are those of one call" in printed


def test_compare_npu_dump():
    printed = run("compare_npu_dump", needs=[])
    assert "1 differ, by 6 ulp at most" in printed
    assert "first at [1, 3, 4, 5]" in printed


def test_the_notebook(tmp_path):
    """Its cells, one behind the other in a plain process: the last line of a cell is what Jupyter shows."""
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    program = "".join("".join(cell["source"]) + "\n\n" for cell in cells)
    for shown in ("gradInput[0, 0]", "max_pool2d_with_mask_backward(np.ones_like(maxima), image, mask, 2)[0, 0]"):
        assert program.count(f"\n{shown}\n") == 1
        program = program.replace(f"\n{shown}\n", f"\nprint({shown}.tolist())\n")
    program += "print(len(pyplot.get_fignums()), 'pictures;', *rates, sep='  ')\n"
    path = tmp_path / "cells.py"
    path.write_text(program, encoding="utf-8")
    printed = run_file(path, needs=["matplotlib"])
    assert "AvgPool2dBackward of ACL_FLOAT, ready" in printed
    assert "161002\npadding[0] = 2: must be <=" in printed
    average, maximum = (np.array(json.loads(line)) for line in printed.splitlines() if line.startswith("[["))
    assert average.tolist() == [[1.0, 1.0, 2.0, 2.0]] * 2 + [[3.0, 3.0, 4.0, 4.0]] * 2
    assert maximum.shape == (6, 6)
    assert (maximum.reshape(3, 2, 3, 2).sum((1, 3)) == 1).all()    # one maximum in each window
    assert "2  pictures;  aclnn_bw  plain NumPy" in printed


def test_the_notebook_is_kept_without_results():
    """What it shows is what it computes where it runs, and a change of it can be read."""
    assert NOTEBOOK["nbformat"] == 4
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.parametrize("name", ["recipes.md", "zh/recipes.md"])
def test_the_page_shows_the_files(name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    shown = dict(re.findall(r"`examples/(\w+\.py)`.*?\n```python\n(.*?)```\n", page, re.S))
    assert shown == {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py")}
    assert all(f"`examples/{path.name}`" in page for path in EXAMPLES.iterdir() if path.is_file())
