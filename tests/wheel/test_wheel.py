"""The wheel as it is published: what it holds, and that it works where it was installed, beside other OpenMP runtimes.

`tests/wheel/run` makes and installs it. $ACLNN_BW_WHEEL is the file, $ACLNN_BW_OUTSIDE the PATH with compilers.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from engine_helpers import run_python

import aclnn_bw

WHEEL = os.environ.get("ACLNN_BW_WHEEL", "")
OUTSIDE = os.environ.get("ACLNN_BW_OUTSIDE", os.environ["PATH"])
PACKAGE = Path(aclnn_bw.__file__).parent
LIBRARIES = [*PACKAGE.glob("_native*.so"), *PACKAGE.glob("lib*/*.so")]
THREADS = {"ACLNN_BW_NUM_THREADS": "2"}
CANN = ("ascendcl", "nnopbase", "opapi", "opapi_nn", "opapi_cv", "opapi_math")

pytestmark = pytest.mark.skipif(not WHEEL, reason="tests the wheel that tests/wheel/run makes")

# A call large enough for two threads, its result for one, and the OpenMP runtimes of the process.
PROLOGUE = """
import os, threading
import numpy as np
import aclnn_bw as a

def gradient():
    return np.random.default_rng(1).standard_normal((8, 32, 64, 64)).astype(np.float32)

def call(g):
    return a.avg_pool2d_backward(g, (8, 32, 128, 128), 2).tobytes()

def runtimes():
    paths = {line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line}
    return sorted(os.path.basename(os.path.dirname(path)) for path in paths)

def check(g):
    with a.num_threads(1):
        expected = call(g)
    before = set(os.listdir("/proc/self/task"))
    assert call(g) == expected
    assert len(set(os.listdir("/proc/self/task")) - before) <= 1
    return expected
"""


def program(name):
    path = shutil.which(name, path=OUTSIDE)
    if path is None:
        pytest.skip(f"no {name}")
    return path


def run(*command, **environment):
    done = subprocess.run(
        [str(word) for word in command], env={"PATH": OUTSIDE, **environment}, cwd=PACKAGE.parent, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# What it holds


def test_it_is_small_and_for_any_linux():
    assert Path(WHEEL).stat().st_size < 4.0e6
    assert "-manylinux_" in Path(WHEEL).name


def test_it_holds_the_package_alone():
    with ZipFile(WHEEL) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
    folders = {name.partition("/")[0] for name in names}
    version = aclnn_bw.__version__
    assert folders == {"aclnn_bw", "aclnn_bw.libs", f"aclnn_bw-{version}.dist-info"}
    inside = {"/".join(Path(name).parts[1:-1]) for name in names if name.startswith("aclnn_bw/")}
    assert inside == {
        "", "include/acl", "include/aclnn", "include/aclnnop", "include/aclnnop/level2", "lib", "lib/pkgconfig",
        "lib/cmake/aclnn_bw", "lib64", "torch",
    }  # fmt: skip
    assert {Path(name).suffix for name in names if name.startswith("aclnn_bw/")} == {
        ".py", ".pyi", ".typed", ".so", ".h", ".pc", ".cmake",
    }  # fmt: skip


def test_it_was_installed_from_there_and_no_compiler_is_in_reach():
    assert not any(shutil.which(name) for name in ("cc", "gcc", "clang", "c99"))
    assert not PACKAGE.is_relative_to(Path(__file__).parents[2])
    assert sorted(path.stem for path in (PACKAGE / "lib64").iterdir()) == sorted(f"lib{name}" for name in CANN)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_libraries_are_stripped_and_know_no_folder_of_the_builder(library):
    readelf = program("readelf")
    assert ".symtab" not in run(readelf, "--section-headers", "--wide", library)
    dynamic = run(readelf, "--dynamic", "--wide", library).splitlines()
    paths = [line.split("[")[1].rstrip("]") for line in dynamic if "RPATH" in line or "RUNPATH" in line]
    expected = {"lib64": "$ORIGIN/../lib", "lib": "$ORIGIN/../../aclnn_bw.libs"}
    assert paths == [expected.get(library.parent.name, "$ORIGIN/lib:$ORIGIN/../aclnn_bw.libs")]
    needed = {line.split("[")[1].partition(".")[0].partition("-")[0] for line in dynamic if "NEEDED" in line}
    own = {"libaclnn_bw"} if library.parent == PACKAGE else set()
    assert needed <= {"libc", "libm", "libpthread", "ld", "libgomp"} | own


# How it works in Python


def test_openmp_comes_from_the_wheel():
    code = PROLOGUE + """
check(gradient())
assert len(os.listdir("/proc/self/task")) == 2
assert runtimes() == ["aclnn_bw.libs"], runtimes()
assert a.show_config(mode="dict")["openmp"]
    """
    run_python(code, environment=THREADS)


def test_many_thread_counts():
    code = PROLOGUE + """
expected = check(gradient())
for n in (3, 16, 2, 5, 1):
    a.set_num_threads(n)
    assert call(gradient()) == expected
    """
    run_python(code, environment=THREADS)


EIGHT_THREADS = """
def eight_threads(expected):
    g, seen = gradient(), []
    def work():
        for _ in range(5):
            seen.append(call(g))
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 40 and set(seen) == {expected}
"""

FORK = """
def fork(expected):
    child = os.fork()
    if child == 0:
        os._exit(0 if call(gradient()) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert call(gradient()) == expected
"""


def test_eight_python_threads():
    run_python(PROLOGUE + EIGHT_THREADS + "eight_threads(check(gradient()))", environment=THREADS)


def test_fork():
    code = PROLOGUE + FORK + EIGHT_THREADS + "e = check(gradient())\nfork(e)\neight_threads(e)\nfork(e)"
    run_python(code, warnings="default", environment=THREADS)


@pytest.mark.torch
@pytest.mark.parametrize("first", ["aclnn_bw", "torch"])
@pytest.mark.parametrize("used", [False, True], ids=["imported", "used"])
def test_beside_torch(first, used):
    """Two OpenMP runtimes in one process, whichever came first, and whichever made its threads first."""
    pytest.importorskip("torch")
    code = PROLOGUE + EIGHT_THREADS + FORK
    code = code.replace("import numpy as np", "import numpy as np\nimport torch") if first == "torch" else code
    code += f"""
expected = check(gradient()) if {used and first == "aclnn_bw"} else None
import torch
torch.set_num_threads(2)

def theirs():
    x = torch.zeros(8, 32, 128, 128, requires_grad=True)
    torch.nn.functional.avg_pool2d(x, 2).backward(torch.from_numpy(gradient()))
    return x.grad.numpy().tobytes()

torch_first = theirs() if {used and first == "torch"} else None
expected = expected or check(gradient())
assert len(runtimes()) >= 2 and "aclnn_bw.libs" in runtimes(), runtimes()
for _ in range(5):
    assert theirs() == call(gradient()) == expected
assert torch_first in (None, expected)
busy = threading.Thread(target=lambda: [theirs() for _ in range(10)])
busy.start()
eight_threads(expected)
busy.join()
fork(expected)
assert theirs() == expected
    """
    run_python(code, warnings="default", environment=THREADS)


# How it works for C


C_PROGRAM = r"""
#include "acl/acl.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 8 * 32 * 64 * 64 };

int main(void)
{
    int64_t small[] = {8, 32, 64, 64}, large[] = {8, 32, 128, 128}, two[] = {2, 2}, zero[] = {0, 0};
    float *gradient = malloc(N * sizeof(float)), *result = malloc(4 * N * sizeof(float));
    for (int i = 0; i < N; i++)
        gradient[i] = (float)(i % 1000);
    aclTensor *gradOutput = aclCreateTensor(small, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, small, 4, gradient);
    aclTensor *gradInput = aclCreateTensor(large, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, large, 4, result);
    aclIntArray *kernel = aclCreateIntArray(two, 2), *padding = aclCreateIntArray(zero, 2);
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    void *workspace = NULL;
    if (aclInit(NULL) || aclrtSetDevice(0)
        || aclnnAvgPool2dBackwardGetWorkspaceSize(
               gradOutput, gradInput, kernel, kernel, padding, false, true, 0, 0, gradInput, &size, &executor)
        || (size > 0 && aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST))
        || aclnnAvgPool2dBackward(workspace, size, executor, NULL) || aclrtSynchronizeStream(NULL))
        return printf("%s\n", aclGetRecentErrMsg()), 1;
    for (int i = 0; i < 4 * N; i++)
        if (result[i] != gradient[i / 256 * 64 + i % 128 / 2] / 4)
            return printf("wrong at %d\n", i), 1;
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "libgomp"))
            fputs(strchr(line, '/'), stdout);
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (strstr(line, "Threads:"))
            fputs(line, stdout);
    return 0;
}
"""


def config(question):
    return run(sys.executable, "-m", "aclnn_bw", "config", f"--{question}").split()


@pytest.mark.parametrize("way", ["flags", "cann", "pkg-config"])
def test_a_c_program(way, tmp_path):
    """Linked by the library's own name, and by CANN's; its OpenMP runtime is the wheel's."""
    source, to = tmp_path / "program.c", tmp_path / "program"
    source.write_text(C_PROGRAM)
    [prefix] = config("prefix")
    assert Path(prefix) == PACKAGE
    environment = {}
    if way == "flags":
        flags = config("cflags") + config("libs")
    elif way == "pkg-config":
        [folder] = config("pkgconfigdir")
        flags = run(program("pkg-config"), "--cflags", "--libs", "aclnn_bw", PKG_CONFIG_PATH=folder).split()
    else:
        flags = [f"-I{prefix}/include", f"-L{prefix}/lib64", *(f"-l{name}" for name in CANN)]
        environment = {"LD_LIBRARY_PATH": f"{prefix}/lib64"}
    run(program("gcc"), "-std=c99", "-Wall", "-Werror", source, "-o", to, *flags)
    printed = run(to, **THREADS, **environment).split("\n")
    ours = {str(path) for path in PACKAGE.parent.glob("aclnn_bw.libs/*")}
    assert {line for line in printed if "libgomp" in line} == ours
    assert "Threads:\t2" in printed
