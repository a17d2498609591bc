"""What the files beside the package say of it agrees: versions, the tools' pins, what a developer is told."""

import re
from pathlib import Path

import pytest

import aclnn_bw

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(aclnn_bw.__file__).parent


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pins(line):
    return set(re.findall(r'"([\w-]+==[\w.]+)"', line))


def test_the_version_stands_in_one_place():
    version = re.escape(aclnn_bw.__version__)
    assert re.fullmatch(f'__version__ = "{version}"\n', text("aclnn_bw/_version.py"))
    for name in ("pyproject.toml", "setup.py", "README.md", "CONTRIBUTING.md", *map(str, (ROOT / "docs").rglob("*.md"))):
        assert not re.search(rf"(?<![\w.=]){version}(?![\w.])", text(name)), name


def test_build_systems_are_told_the_version():
    if not (PACKAGE / "lib").exists():
        pytest.skip("this build has no C library")
    for name in ("pkgconfig/aclnn_bw.pc", "cmake/aclnn_bw/aclnn_bwConfigVersion.cmake"):
        lines = (PACKAGE / "lib" / name).read_text(encoding="utf-8").splitlines()
        wanted = "Version: {}" if name.endswith("pc") else 'set(PACKAGE_VERSION "{}")'
        assert wanted.format(aclnn_bw.__version__) in lines, name


def test_the_hooks_have_the_tools_of_the_extra():
    [lint] = re.findall(r"^lint = .*$", text("pyproject.toml"), re.MULTILINE)
    assert pins(lint) == pins(text(".pre-commit-config.yaml"))
    assert len(pins(lint)) == 3


def test_the_hooks_run_what_ci_runs():
    ci = ROOT / ".ci" / "run"
    if not ci.exists():
        pytest.skip("not a checkout")
    hooks = text(".pre-commit-config.yaml")
    assert re.search(r"mypy --strict [\w ]+", ci.read_text(encoding="utf-8"))[0] in hooks


def test_contributing_names_what_exists():
    contributing = text("CONTRIBUTING.md")
    names = set(re.findall(r"`((?:aclnn_bw|tests|benchmarks|docs|examples)/[\w./]*|[\w-]+\.(?:py|md|toml))`", contributing))
    assert len(names) > 15
    assert [name for name in sorted(names) if "OP" not in name and not (ROOT / name).exists()] == []


def test_contributing_names_every_folder():
    contributing = text("CONTRIBUTING.md")
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "aclnn_bw").rglob("*.p*") if "__pycache__" not in path.parts}
    for folder in folders:
        if "lib" not in folder.parts:
            assert f"`{folder.as_posix()}/" in contributing, folder
