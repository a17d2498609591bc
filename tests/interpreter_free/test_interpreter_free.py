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

import numpy as np
import pytest
from engine_helpers import NUMPY_DTYPE, PRODUCTS, argmax_indices, bad_index
from operators import OPERATORS, TAKEN, each_operator

import aclnn_bw

ROOT = Path(__file__).parents[2]
MASK_LAYOUTS = ["bitmask", "argmax"]
ROLES = ["read", "shape", "written"]
NUMBERS = {dtype: number for number, dtype in NUMPY_DTYPE.items()}


@pytest.fixture(scope="module")
def objects() -> list[str]:
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    folders = [f"build/temp.*{tag}/{folder}" for folder in ("_core", "_kernels_*")]
    found = [str(path) for folder in folders for path in sorted(ROOT.glob(f"{folder}/**/*.o"))]
    if not found or not shutil.which("gcc"):
        why = "no objects of this Python's build in build/" if not found else "no gcc"
        if os.environ.get("ACLNN_BW_REQUIRE_OBJECTS") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return found


@pytest.fixture(scope="module")
def link(objects, tmp_path_factory) -> list[str]:
    """The command that links them to a library. All of the core is visible, for the module calls it from outside: what
    is to be kept, a script says."""
    script = tmp_path_factory.mktemp("link") / "versions"
    script.write_text("{ global: aclnn_bw_*; local: *; };\n")
    return ["gcc", "-shared", *objects, f"-Wl,--version-script={script}", "-Wl,--gc-sections", "-Wl,-z,defs", "-lm"]


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
    for operator in OPERATORS:
        assert f"aclnn_bw_{re.sub('(?<!^)(?=[A-Z])', '_', operator).lower()}" in names
    for path in (ROOT / "aclnn_bw" / "_kernels").glob("*.pyx"):
        if path.stem != "table":
            assert any(name.startswith(f"aclnn_bw_{path.stem}_kernels_") for name in names)
    assert "aclnn_bw_execute" in names
    assert "aclnn_bw_refuse" in names
    assert any(name.startswith("aclnn_bw_fill_table_") for name in names)


def test_links_without_libpython_from_every_entry_point(objects, link, tmp_path):
    # Without roots --gc-sections would drop everything, and the link would prove nothing.
    roots = [f"-Wl,--require-defined={name}" for name in entry_points(objects)]
    library = tmp_path / "libcore.so"
    subprocess.run([*link, "-o", str(library), *roots], check=True)
    symbols = subprocess.run(["nm", str(library)], check=True, capture_output=True, text=True).stdout
    assert "aclnn_bw_execute" in symbols
    # An initialised global of Cython's would be set by module init, which a C program never runs.
    assert not re.findall(r" [bBdD] __pyx_[vf]\w*", symbols)
    assert not re.findall(r" U _?Py\w*", symbols)


def test_the_link_notices_a_need_for_the_interpreter(link, tmp_path):
    # The proof can fail: the same link with an object that calls Python.
    source = tmp_path / "needs_python.c"
    source.write_text("void *PyList_New(long);\nvoid *aclnn_bw_planted(void) { return PyList_New(0); }\n")
    done = subprocess.run(
        [*link, "-fPIC", "-o", str(tmp_path / "lib.so"), str(source), "-Wl,--require-defined=aclnn_bw_planted"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0
    assert "PyList_New" in done.stderr


@pytest.fixture(scope="module")
def program(objects, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("interpreter_free") / "main"
    subprocess.run(
        ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'aclnn_bw' / '_core'}", "-o", str(path),
         str(Path(__file__).with_name("main.c")),
         *objects, "-Wl,--gc-sections", "-lm"], check=True,
    )  # fmt: skip
    return str(path)


def ask(program: str, product: str, threads: int, workspace_size: int, call):
    """The program's answer to a call: (status, the bytes of all outputs or the message)."""
    tensors, arrays, numbers, scale, data = [], [], [], 0.0, b""
    for name, value in call.arguments.items():
        if name in call.roles:
            if value is None:
                tensors += [0, 0, 0, -1, 0, 0, 0, 0]
                continue
            rank = value.ndim
            role = call.roles[name]
            tensors += [ROLES.index(role), NUMBERS[value.dtype], value.itemsize, rank, *value.shape, *[0] * (4 - rank)]
            data += value.tobytes() if role == "read" else b""
        elif value is None:
            arrays += [-1, 0, 0, 0, 0]
        elif isinstance(value, tuple):
            arrays += [len(value), *value, *[0] * (4 - len(value))]
        elif isinstance(value, float):
            scale = value
        else:
            numbers.append(int(value))
    words = [
        list(OPERATORS).index(type(call).__name__),
        PRODUCTS.index(product),
        MASK_LAYOUTS.index(call.layout),
        threads,
        workspace_size,
    ]
    words += tensors + [0, 0, 0, -1, 0, 0, 0, 0] * (4 - len(tensors) // 8)
    words += arrays + [-1, 0, 0, 0, 0] * (5 - len(arrays) // 5)
    words += numbers + [0] * (4 - len(numbers))
    request = np.array(words, np.int64).tobytes() + np.float64(scale).tobytes() + data
    done = subprocess.run([program], input=request, capture_output=True, check=True)
    status = int(np.frombuffer(done.stdout[:8], np.int64)[0])
    return status, done.stdout[8:] if status == 0 else done.stdout[16:].decode()


def all_bytes(outputs):
    return b"".join(output.tobytes() for output in outputs)


@each_operator
@pytest.mark.parametrize("threads", [1, 3])
def test_a_c_program_gets_the_same_bytes(program, operator, threads):
    if not aclnn_bw.show_config(mode="dict")["openmp"]:
        threads = 1  # whatever phase 1 is asked for here
    for geometry in OPERATORS[operator.__name__].geometries:
        for dtype in TAKEN[operator.__name__]["Host"]:
            call = operator(dtype=NUMPY_DTYPE[dtype], seed=7, **geometry)
            with aclnn_bw.soc("Host", mask_layout=call.layout), aclnn_bw.num_threads(threads):
                size, _ = call.phase1()
            # The program gets exactly the workspace that phase 1 asks for here.
            status, answer = ask(program, "Host", threads, size, call)
            assert status == 0, (answer, geometry, dtype)
            assert answer == all_bytes(call.one_call()), (geometry, dtype)


def test_a_c_program_converts_between_dtypes(program):
    call = OPERATORS["Im2colBackward"]()
    for dtype in (np.float16, np.float64):
        call.arguments["out"] = np.empty(call["out"].shape, dtype)
        status, answer = ask(program, "Host", 1, 1 << 20, call)
        assert status == 0, answer
        assert answer == call.wanted["out"].astype(dtype).tobytes()


@pytest.mark.parametrize("product", ["Ascend910", "Ascend910B"])
@pytest.mark.parametrize("operator", ["AvgPool2dBackward", "MaxPool2dWithMaskBackward", "MaxPool2dWithMask"])
def test_a_c_program_gets_the_products_precision(program, product, operator):
    call = OPERATORS[operator](kernel=(3, 3), stride=(1, 1), padding=(1, 1))
    for name in call.named("read"):
        if name != "indices":
            call[name][...] = np.random.default_rng(3).standard_normal(call[name].shape)
    with aclnn_bw.soc(product), aclnn_bw.num_threads(1):  # as the program has
        size, executor = call.phase1()
        call.phase2(size, executor)
    rounds = product == "Ascend910" or operator == "AvgPool2dBackward"
    assert rounds == any(
        output.tobytes() != full.tobytes() for output, full in zip(call.outputs.values(), call.one_call(), strict=True)
    )
    status, answer = ask(program, product, 1, size, call)
    assert status == 0, answer
    assert answer == all_bytes(call.outputs.values())


@each_operator
def test_a_c_program_gets_the_refusals(program, operator):
    """Of every tensor and array in turn: null, and of every array a wrong length."""
    wrong = []
    for name, value in operator().arguments.items():
        if name in operator.roles or isinstance(value, tuple):
            wrong.append((name, None))
        if isinstance(value, tuple):
            wrong.append((name, (*value, 1, 1)[-4:] if len(value) < 4 else value[:1]))
    for name, value in wrong:
        if value is None and name in operator.nullable:
            continue
        call = operator()
        with aclnn_bw.soc("Host"), pytest.raises(aclnn_bw.AclnnError) as refused:
            call.phase1(**{name: value})
        call.arguments[name] = value
        assert ask(program, "Host", 1, 0, call) == (refused.value.status, str(refused.value))


def test_a_c_program_gets_the_refusal_of_a_value(program):
    call = OPERATORS["AvgPool2dBackward"](kernel=(3, 3), padding=(1, 1))
    call.arguments["padding"] = (2, 1)
    message = "padding[0] = 2: must be <= kernelSize[0] / 2 = 1"
    assert ask(program, "Host", 1, 0, call) == (161002, message)


def test_a_c_program_gets_the_refusal_of_an_index(program):
    call = OPERATORS["MaxPool2dWithMaskBackward"](layout="argmax")
    argmax_indices(call)[0, 2, 1, 1] = 64
    with aclnn_bw.soc("Host", mask_layout="argmax"), aclnn_bw.num_threads(1):  # as the program has
        size, executor = call.phase1()
    with pytest.raises(aclnn_bw.AclnnError, match=bad_index(64, (0, 2, 1, 1))) as refused:
        call.phase2(size, executor)
    assert ask(program, "Host", 1, size, call) == (161002, str(refused.value))


def test_a_c_program_gets_the_refusal_of_a_product(program):
    for product, taken in TAKEN["UpsampleNearestExact1dBackward"].items():
        status, _ = ask(program, product, 1, 1 << 20, OPERATORS["UpsampleNearestExact1dBackward"]())
        assert status == (0 if taken else 161002)
