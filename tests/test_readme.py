"""The README tells the truth: its Python and its commands run, what it names exists."""

import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import aclnn_bw
from aclnn_bw import cli

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "aclnn_bw" / "_kernels"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    """(line, content) of the fenced blocks in a language."""
    found = re.finditer(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [(README.count("\n", 0, block.start(1)) + 1, block.group(1)) for block in found]


PYTHON = blocks("python")
COMMANDS = [
    line.removeprefix("$ ") for _, block in blocks("sh") for line in block.splitlines() if line.startswith("aclnn-bw ")
]

# What the commands read, besides a mask.
FILES = {
    "g.npy": (2, 3, 28, 28),
    "x.npy": (2, 3, 56, 56),
    "columns.npy": (2, 27, 3136),
    "padded.npy": (2, 3, 63, 59),
    "signal.npy": (2, 3, 112),
}


@pytest.fixture
def threads_are_restored():
    before = aclnn_bw.get_num_threads()
    yield
    aclnn_bw.set_num_threads(before)


def test_every_fence_is_found():
    assert README.count("```python\n") == len(PYTHON) > 0
    assert README.count("\n```") == 2 * sum(len(blocks(language)) for language in ("python", "sh", "cpp", "text"))


@pytest.mark.parametrize(("line", "code"), PYTHON, ids=[f"line{line}" for line, _ in PYTHON])
def test_python(line, code, threads_are_restored):
    if code.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(code, {}, "README.md", "README.md", line - 1)
        assert test.examples
        report = []
        failed, _ = doctest.DocTestRunner().run(test, out=report.append)
        assert failed == 0, "".join(report)
    else:
        exec(compile("\n" * (line - 1) + code, "README.md", "exec"), {})


def test_the_two_phase_example_computes_the_gradient():
    (code,) = [code for _, code in PYTHON if not code.startswith(">>>")]
    names = {}
    exec(code, names)
    expected = aclnn_bw.avg_pool2d_backward(names["gradOutput"], names["self"], 3, 2, 1)
    assert names["gradInput"].tobytes() == expected.tobytes()


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, shape in FILES.items():
        np.save(name, np.ones(shape, np.float32))
    np.save("mask.npy", aclnn_bw.max_pool2d_with_mask(np.load("x.npy"), 3, 2, 1)[1])
    assert cli.main(shlex.split(command)[1:]) == 0, capsys.readouterr().err


def test_there_are_commands():
    assert any(command.startswith("aclnn-bw run") for command in COMMANDS)


def test_the_tree_is_there():
    ((_, tree),) = blocks("text")
    for line in tree.splitlines():
        assert (ROOT / line.split()[0]).exists(), line


def test_names_in_the_text_exist():
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    names = set(re.findall(r"`(acl\w+|ACLNN?_(?!BW)\w+|[a-z]+_num_threads|soc|AclnnError|show_config)\b", prose))
    assert len(names) > 15
    names -= {"aclnn", "aclnn_bw"}
    assert [name for name in sorted(names) if not hasattr(aclnn_bw, name)] == []


def test_the_tests_that_hold_the_promises_exist():
    named = re.findall(r"`(tests/[\w./]+)(?:::(\w+))?", README)
    assert len(named) > 20
    operators = {re.sub("_(forward|gather|scatter)$", "", path.stem) for path in KERNELS.glob("*.pyx")} - {"table"}
    for path, test in named:
        for operator in operators if "_OP" in path else ("",):
            file = ROOT / path.replace("OP", operator)
            assert file.exists(), path
            assert not test or f"def {test}(" in file.read_text(encoding="utf-8"), f"{file}: {test}"


def test_links_lead_somewhere():
    anchors = {
        re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", README, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_the_changelog_knows_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{aclnn_bw.__version__}] - " in changelog
