"""setup.py makes again what has changed, and only that: on a package of a few lines, built in a folder of its own."""

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [
    pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc"),
    pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="no sources"),
]

FILES = {
    "_version.py": '__version__ = "1"\n',
    "_core/shared.pxd": """\
cdef extern int seven "toy_seven" () noexcept nogil

cdef inline int one() noexcept nogil:
    return 1
""",
    "_core/shared.pyx": """\
cdef extern from "seven.h" nogil:
    int SEVEN

cdef int seven() noexcept nogil:
    return SEVEN
""",
    "_core/seven.h": "#define SEVEN 7\n",
    "_kernels/half.pxd": 'cdef extern int half "aclnn_bw_half_kernels" (int n) noexcept nogil\n',
    "_kernels/half.pyx": "cdef int half(int n) noexcept nogil:\n    return n // 2\n",
    "_capi/templates/toy.pc": "Version: @VERSION@\n",
    "_native.pyx": """\
from aclnn_bw._core.shared cimport one, seven

cdef extern from *:
    '''
    #ifndef EXTRA
    #define EXTRA 0
    #endif
    '''
    int EXTRA

def values(int odd=-7):
    return one(), seven(), EXTRA, odd // 2
""",
}
# What each of them is made of, and what is linked of all.
OBJECTS = {"_core/shared.c", "_kernels_baseline/half.c", "face/_native.c"}
MODULE = "_native" + sysconfig.get_config_var("EXT_SUFFIX")


class Toy:
    """The package, and what its last build made."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("setup.py", "setup_kept.py"):
            shutil.copy(ROOT / name, folder)
        (folder / "pyproject.toml").write_text('[project]\nname = "toy"\nversion = "1"\n')
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.folder / "aclnn_bw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".pyx":
            (path.parent / "__init__.py").touch()
        path.write_text(text)

    def replace(self, file, old, new):
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def build(self, **environment):
        """The files that were made."""
        settings = {"ACLNN_BW_TIMES": "1", "ACLNN_BW_VARIANTS": "0", "ACLNN_BW_SANITIZE": "", **environment}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ACLNN_BW_")}
        done = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=self.folder, capture_output=True,
            text=True, timeout=300, check=False, env={**inherited, **settings},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        self.warned = "warning:" in done.stdout + done.stderr
        *lines, total = re.findall(r"^ *[\d.]+ s  (.*)$", done.stdout, re.MULTILINE)
        assert total == f"for {len(lines)} files that were made"
        return {line for line in lines if not line.endswith(".so") or line == MODULE}

    def values(self):
        code = "from aclnn_bw._native import values; print(*values())"
        command = [sys.executable, "-c", code]  # which looks in the current folder first
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    toy = Toy(tmp_path_factory.mktemp("toy"))
    made = toy.build()
    assert made == {*OBJECTS, *(f"{name} to C" for name in map(as_source, OBJECTS)), MODULE}
    assert toy.values() == [1, 7, 0, -3]
    return toy


def as_source(compiled):
    folder, name = compiled.split("/")
    return str(Path("aclnn_bw", {"face": "", "_kernels_baseline": "_kernels"}.get(folder, folder), name[:-1] + "pyx"))


@pytest.fixture
def toy(built, tmp_path):
    """A copy of the tree and of its build elsewhere: nothing in it is new."""
    folder = tmp_path / "copy"
    shutil.copytree(built.folder, folder)
    toy = Toy.__new__(Toy)
    toy.folder = folder
    return toy


def test_nothing_is_made_twice(toy):
    for path in toy.folder.rglob("*"):
        os.utime(path)  # a checkout sets new dates
    assert toy.build() == set()
    assert toy.values() == [1, 7, 0, -3]


def test_a_header_makes_what_includes_it(toy):
    toy.replace("aclnn_bw/_core/seven.h", "7", "8")
    assert toy.build() == {"_core/shared.c", MODULE}
    assert toy.values() == [1, 8, 0, -3]
    # Even if its date is older than that of what was made from it.
    toy.replace("aclnn_bw/_core/seven.h", "8", "9")
    os.utime(toy.folder / "aclnn_bw/_core/seven.h", (0, 0))
    assert toy.build() == {"_core/shared.c", MODULE}
    assert toy.values() == [1, 9, 0, -3]


def test_a_declaration_makes_what_imports_it(toy):
    toy.replace("aclnn_bw/_core/shared.pxd", "return 1", "return 2")
    made = toy.build()
    assert made >= {"aclnn_bw/_native.pyx to C", "face/_native.c", "aclnn_bw/_core/shared.pyx to C", MODULE}
    assert "_kernels_baseline/half.c" not in made
    assert toy.values() == [2, 7, 0, -3]


@pytest.mark.thorough
def test_a_header_that_is_found_before_another(toy):
    toy.write("_kernels/seven.h", "#define SEVEN 70\n")
    toy.write("seven.h", "#define SEVEN 77\n")
    assert toy.build() >= {"_core/shared.c", MODULE}
    assert toy.values() == [1, 77, 0, -3]


def test_a_flag_makes_what_is_compiled_with_it(toy):
    flags = sysconfig.get_config_var("CFLAGS")
    made = toy.build(CFLAGS=f"{flags} -DEXTRA=5")
    assert made == {*OBJECTS, MODULE}
    assert toy.values() == [1, 7, 5, -3]
    assert toy.build(CFLAGS=f"{flags} -DEXTRA=5") == set()
    assert toy.build() == {*OBJECTS, MODULE}
    assert toy.values() == [1, 7, 0, -3]


@pytest.mark.thorough
def test_a_flag_of_the_linker_links_again(toy):
    assert toy.build(LDFLAGS="-s") == {MODULE}
    assert toy.build(LDFLAGS="-s") == set()


def test_a_directive_translates_again(toy):
    toy.replace("setup.py", '"cdivision": True', '"cdivision": False')
    made = toy.build()
    assert {f"{as_source(name)} to C" for name in OBJECTS} <= made
    # A file whose C is the same needs no compiler.
    assert {"face/_native.c", MODULE} <= made
    assert toy.values() == [1, 7, 0, -4]


@pytest.mark.thorough
def test_another_compiler_makes_all(toy, tmp_path):
    compiler = tmp_path / "gcc"
    compiler.write_text('#!/bin/sh\n[ "$1" = -v ] && echo another >&2\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    assert toy.build(CC=str(compiler)) == {*OBJECTS, MODULE}


@pytest.mark.thorough
def test_what_was_interrupted_is_made_again(toy):
    [path] = toy.folder.glob("build/temp.*/_core/**/shared.o")
    path.write_bytes(path.read_bytes()[:100])
    path.with_name("shared.o.made").unlink()
    assert toy.build() >= {"_core/shared.c"}
    assert toy.values() == [1, 7, 0, -3]


@pytest.mark.thorough
def test_an_error_is_told_and_leaves_nothing(toy):
    toy.replace("aclnn_bw/_core/seven.h", "7", "7 +")
    with pytest.raises(AssertionError, match=r"error: "):
        toy.build()
    toy.replace("aclnn_bw/_core/seven.h", "7 +", "11")
    assert toy.build() == {"_core/shared.c", MODULE}
    assert toy.values() == [1, 11, 0, -3]


@pytest.mark.thorough
def test_objects_of_sources_that_are_gone_go_too(toy):
    """The tests that link the objects would take them along."""
    for name in ("half.pyx", "half.pxd"):
        (toy.folder / "aclnn_bw/_kernels" / name).unlink()
    toy.build()
    assert not list(toy.folder.glob("build/temp.*/**/half.o"))


# A compiler for another processor, as far as the probes can see, which are programs of this name.
CROSS = '#!/bin/sh\ncase "$*" in *probe.c*) exec gcc -U__x86_64__ "$@" ;; esac\nexec gcc "$@"\n'


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="builds the variants of x86")
def test_variants_are_those_of_the_compilers_target(toy, tmp_path):
    """Not of the machine that builds: a cross build makes none of x86, and does not warn that it cannot."""
    settings = {"ACLNN_BW_VARIANTS": "1", "ACLNN_BW_OPENMP": "0"}
    variants = {f"_kernels_{level}/half.c" for level in ("v2", "v3", "v4")}
    assert toy.build(**settings) >= variants
    compiler = tmp_path / "cross"
    compiler.write_text(CROSS)
    compiler.chmod(0o755)
    assert toy.build(CC=str(compiler), **settings) == {*OBJECTS, MODULE}
    assert not toy.warned
