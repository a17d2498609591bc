"""The core and the kernels need no interpreter: the very objects of the build are linked without libpython, and run.

The objects are those that `pip install .` leaves in build/. Where there are none (a wheel from elsewhere is tested),
the tests are skipped, unless ACLNN_BW_REQUIRE_OBJECTS=1, as in CI.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import aclnn_bw

ROOT = Path(__file__).parents[2]
PRODUCTS = ["Ascend910", "Ascend310P", "Ascend910B", "Host"]
DTYPES = {
    np.dtype(np.float32): aclnn_bw.ACL_FLOAT,
    np.dtype(np.float64): aclnn_bw.ACL_DOUBLE,
    np.dtype(np.float16): aclnn_bw.ACL_FLOAT16,
    np.dtype(ml_dtypes.bfloat16): aclnn_bw.ACL_BF16,
}


@pytest.fixture(scope="module")
def objects() -> list[str]:
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    found = [str(path) for path in sorted(ROOT.glob(f"build/temp.*{tag}/_*/**/*.o"))]
    if not found or not shutil.which("gcc"):
        why = "no objects of this Python's build in build/" if not found else "no gcc"
        if os.environ.get("ACLNN_BW_REQUIRE_OBJECTS") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return found


def entry_points(objects: list[str]) -> list[str]:
    """Every C function that the declarations of _core and _kernels name; kernels once for each variant built."""
    variants = sorted({match[1] for path in objects if (match := re.search(r"/_kernels_(\w+)/", path))})
    names = []
    for path in sorted((ROOT / "aclnn_bw").glob("_*/*.pxd")):
        for name in re.findall(r'^cdef extern [^\n"]*"(aclnn_bw_\w+)"|^    int refuse "(\w+)"', path.read_text(), re.M):
            name = name[0] or name[1]
            names += [f"{name}_{variant}" for variant in variants] if path.parent.name == "_kernels" else [name]
    return names


def test_the_entry_points_are_found(objects):
    names = entry_points(objects)
    assert "aclnn_bw_avg_pool2d_backward" in names
    assert "aclnn_bw_execute" in names
    assert "aclnn_bw_refuse" in names
    assert any(name.startswith("aclnn_bw_fill_table_") for name in names)
    assert len(names) >= 30


def test_links_without_libpython_from_every_entry_point(objects, tmp_path):
    # Without roots --gc-sections would drop everything, and the link would prove nothing.
    roots = [f"-Wl,--require-defined={name}" for name in entry_points(objects)]
    library = tmp_path / "libcore.so"
    subprocess.run(
        ["gcc", "-shared", "-o", str(library), *objects, "-Wl,--gc-sections", "-Wl,-z,defs", *roots, "-lm"], check=True)
    symbols = subprocess.run(["nm", str(library)], check=True, capture_output=True, text=True).stdout
    assert "aclnn_bw_execute" in symbols
    # An initialised global of Cython's would be set by module init, which a C program never runs.
    assert not re.findall(r" [bBdD] __pyx_[vf]\w*", symbols)
    assert not re.findall(r" U _?Py\w*", symbols)


def test_the_link_notices_a_need_for_the_interpreter(objects, tmp_path):
    # The proof can fail: the same link with an object that calls Python.
    source = tmp_path / "needs_python.c"
    source.write_text("void *PyList_New(long);\nvoid *aclnn_bw_planted(void) { return PyList_New(0); }\n")
    done = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "lib.so"), str(source), *objects, "-Wl,--gc-sections",
         "-Wl,-z,defs", "-Wl,--require-defined=aclnn_bw_planted", "-lm"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "PyList_New" in done.stderr


@pytest.fixture(scope="module")
def program(objects, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("interpreter_free") / "main"
    subprocess.run(
        ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", str(path), str(Path(__file__).with_name("main.c")),
         *objects, "-Wl,--gc-sections", "-lm"], check=True)
    return str(path)


def ask(program: str, product: str, threads: int, grad, input_shape, kernel, stride, padding, ceil, include, divisor):
    """The program's answer: (status, bytes of gradInput or the message)."""
    numbers = [DTYPES[grad.dtype], PRODUCTS.index(product), threads, *input_shape, *grad.shape[2:], *kernel, *stride,
               *padding, ceil, include, divisor]
    done = subprocess.run([program], input=np.array(numbers, np.int64).tobytes() + grad.tobytes(), capture_output=True,
                          check=True)
    status = int(np.frombuffer(done.stdout[:8], np.int64)[0])
    return status, done.stdout[8:] if status == 0 else done.stdout[16:].decode()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "ceil", "include", "divisor"),
    [
        ((9, 13), (3, 3), (1, 1), (1, 1), False, True, 0),
        ((9, 13), (3, 3), (1, 1), (1, 1), False, False, 0),
        ((9, 14), (2, 2), (2, 2), (0, 0), False, True, 0),
        ((57, 58), (3, 3), (2, 2), (1, 1), True, False, 0),
        ((57, 58), (5, 4), (3, 2), (2, 1), True, True, 0),
        ((7, 7), (7, 7), (7, 7), (0, 0), False, True, 0),
        ((200, 90), (5, 5), (1, 1), (2, 2), False, True, -3),
        ((12, 12), (2, 3), (5, 4), (1, 0), True, True, 7),
    ],
)
def test_a_c_program_gets_the_same_bytes(
    program, dtype, threads, size, kernel, stride, padding, ceil, include, divisor
):
    pooled = []
    for n, k, s, p in zip(size, kernel, stride, padding, strict=True):
        out = (n + 2 * p - k + (s - 1 if ceil else 0)) // s + 1
        pooled.append(out - (ceil and (out - 1) * s >= n + p))
    rng = np.random.default_rng(7)
    grad = rng.standard_normal((3, 2, *pooled)).astype(dtype)
    shape = (3, 2, *size)
    status, answer = ask(program, "Host", threads, grad, shape, kernel, stride, padding, ceil, include, divisor)
    assert status == 0, answer
    expected = aclnn_bw.avg_pool2d_backward(grad, shape, kernel, stride, padding, ceil, include, divisor or None)
    assert answer == expected.tobytes()


@pytest.mark.parametrize("product", ["Ascend910", "Ascend910B"])
def test_a_c_program_gets_the_products_precision(program, product):
    grad = np.random.default_rng(3).standard_normal((1, 2, 8, 8)).astype(np.float32)
    status, answer = ask(program, product, 1, grad, (1, 2, 8, 8), (3, 3), (1, 1), (1, 1), False, True, 0)
    expected = np.empty((1, 2, 8, 8), np.float32)
    with aclnn_bw.soc(product):
        size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad, expected, [3, 3], [1, 1], [1, 1], False, True, 0, aclnn_bw.ALLOW_FP32_DOWN_PRECISION, expected)
        aclnn_bw.aclnnAvgPool2dBackward(bytearray(size), size, executor)
    assert status == 0
    assert answer == expected.tobytes()


def test_a_c_program_gets_the_refusal(program):
    grad = np.ones((1, 1, 4, 4), np.float32)
    status, message = ask(program, "Host", 1, grad, (1, 1, 4, 4), (3, 3), (1, 1), (2, 1), False, True, 0)
    assert status == 161002
    assert message == "padding[0] = 2: must be <= kernelSize[0] / 2 = 1"
