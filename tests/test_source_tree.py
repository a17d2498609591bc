"""What the files beside the package say of it agrees: versions, the tools' pins, what a developer is told."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aclnn_bw

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(aclnn_bw.__file__).parent


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pins(line):
    return set(re.findall(r'"([\w-]+(?:\[\w+\])?==[\w.]+)"', line))


def test_the_version_stands_in_one_place():
    version = re.escape(aclnn_bw.__version__)
    assert re.fullmatch(f'__version__ = "{version}"\n', text("aclnn_bw/_version.py"))
    pages = map(str, (ROOT / "docs").rglob("*.md"))
    for name in ("pyproject.toml", "setup.py", "README.md", "CONTRIBUTING.md", *pages):
        assert not re.search(rf"(?<![\w.=]){version}(?![\w.])", text(name)), name


def test_build_systems_are_told_the_version():
    if not (PACKAGE / "lib").exists():
        pytest.skip("this build has no C library")
    for name in ("pkgconfig/aclnn_bw.pc", "cmake/aclnn_bw/aclnn_bwConfigVersion.cmake"):
        lines = (PACKAGE / "lib" / name).read_text(encoding="utf-8").splitlines()
        wanted = "Version: {}" if name.endswith("pc") else 'set(PACKAGE_VERSION "{}")'
        assert wanted.format(aclnn_bw.__version__) in lines, name


@pytest.mark.parametrize("page", ["install.md", "zh/install.md"])
def test_every_extra_is_told(page):
    extras = text("pyproject.toml").partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    told = re.search(r"^\| (?:extra|名称).*\n\|.*\n((?:\|.*\n)+)", text(f"docs/{page}"), re.MULTILINE)[1]
    names = set(re.findall(r"^(\w+) = ", extras, re.MULTILINE))
    assert set(re.findall(r"^\| `(\w+)`", told, re.MULTILINE)) == names


def test_the_hooks_have_the_tools_of_the_extra():
    [lint] = re.findall(r"^lint = .*$", text("pyproject.toml"), re.MULTILINE)
    assert pins(lint) == pins(text(".pre-commit-config.yaml"))
    assert len(pins(lint)) == 4


def test_the_hooks_run_what_ci_runs():
    ci = ROOT / ".ci" / "run"
    if not ci.exists():
        pytest.skip("not a checkout")
    [command] = re.findall(r"mypy\"? (--strict [\w ]+)$", ci.read_text(encoding="utf-8"), re.MULTILINE)
    assert f"entry: mypy {command}\n" in text(".pre-commit-config.yaml")


def test_contributing_names_what_exists():
    named = r"(?:aclnn_bw|tests|benchmarks|docs)/[\w./]*\w|(?<![/.])\b\w+\.(?:py|md|toml|pyx|pxd)\b"
    names = set(re.findall(named, text("CONTRIBUTING.md")))
    assert len(names) > 30
    folders = [ROOT, ROOT / "tests", *(ROOT / "aclnn_bw" / name for name in ("", "_core", "_kernels", "_capi"))]
    folders += [ROOT / "tests" / "c_library", ROOT / "tests" / "fuzz"]
    made = {"aclnn_bw/lib", "aclnn_bw/lib64"}  # by a build in place
    missing = {name for name in names if not any((folder / name).exists() for folder in folders)} - made
    assert {name for name in missing if not re.search(r"OP\b|OP_|op_", name)} == set()


def test_the_sizes_of_arrays_in_cython_are_those_in_c():
    """Cython must know the numbers by itself."""
    headers = text("aclnn_bw/_core/types.h") + text("aclnn_bw/_core/operators.h")
    in_c = dict(re.findall(r"ACLNN_BW_(MAX_\w+) = (\d+)", headers))
    in_cython = dict(re.findall(r"^    (MAX_\w+) = (\d+)", text("aclnn_bw/_core/types.pxd"), re.MULTILINE))
    assert len(in_c) == 6
    assert in_cython == in_c


def test_contributing_names_every_folder():
    contributing = text("CONTRIBUTING.md")
    for name in ("aclnn_bw", "_core", "_face", "_kernels", "_capi", "include"):
        assert f"`{'' if name == 'aclnn_bw' else 'aclnn_bw/'}{name}/`" in contributing, name
    folders = re.findall(r"`([\w/]+/)`", "".join(re.findall(r"^\| (`.*?) \|", contributing, re.MULTILINE)))
    assert {"tests/", "tests/operators/", "docs/", "benchmarks/", "examples/"} <= {*folders}
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


def test_a_source_folder_that_is_not_compiled_says_so(tmp_path):
    shutil.copytree(ROOT / "aclnn_bw", tmp_path / "aclnn_bw", ignore=shutil.ignore_patterns("*.so", "*.pyd"))
    # Where the package is installed in place, a finder of pip's would find what is compiled there.
    code = "import sys; sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f)]; import aclnn_bw"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: aclnn_bw is imported from a source folder that is not compiled" in done.stderr


KERNELS = ROOT / "aclnn_bw" / "_kernels"
INTRINSIC = re.compile(r"\b_mm\d*_|\bv(?:ld|st|add|cvt|tbl|qtbl)\w*_[fsu]\d|__AVX|__SSE|__ARM")


def functions(path):
    """(name, lines) of each function of a Cython unit or a header."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    if path.suffix == ".h":
        begins = [i for i, line in enumerate(lines) if re.match(r"(?:SIMD_INLINE|static)\b.*\w\(", line)]
        return [(lines[i], lines.index("}", i) + 1 - i) for i in begins]
    begins = [i for i, line in enumerate(lines) if re.match(r"cdef [^#]*\w\(", line) and "extern" not in line]
    tops = [i for i, line in enumerate(lines) if line and not line[0].isspace()] + [len(lines)]
    return [(lines[i], len("\n".join(lines[i : min(t for t in tops if t > i)]).rstrip().split("\n"))) for i in begins]


@pytest.mark.parametrize("path", sorted(path for path in KERNELS.iterdir() if path.suffix in (".pyx", ".pxd", ".h")),
                         ids=lambda path: path.name)  # fmt: skip
def test_kernels_can_be_held_in_mind(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 700
    assert [name for name, length in functions(path) if length > 80] == []
    if not path.name.startswith("simd"):
        assert INTRINSIC.search(source) is None


def test_every_fault_has_its_place():
    """What tests/fuzz/faults.py plants must be there still when the kernels have changed."""
    script = ROOT / "tests" / "fuzz" / "faults.py"
    done = subprocess.run([sys.executable, script, "--list"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d{3} faults$", done.stdout, re.MULTILINE)
