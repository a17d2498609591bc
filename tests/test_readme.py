"""The README tells the truth: its Python runs, what it names exists, its figures are those of the documentation."""

import doctest
import re

import pytest
from pages import DOCS, ROOT, Page

import aclnn_bw

README = Page.read(ROOT / "README.md")
READMES = [README, Page.read(ROOT / "README.zh-CN.md")]
PYTHON = [block for block in README.blocks if block.language == "python"]

each_readme = pytest.mark.parametrize("readme", READMES, ids=lambda page: page.name)


@each_readme
def test_it_is_read_in_one_go(readme):
    assert len(readme.text.splitlines()) <= 180


def test_every_fence_is_found():
    assert README.text.count("```python\n") == len(PYTHON) > 0
    assert README.text.count("\n```") == 2 * len(README.blocks)
    assert {block.language for block in README.blocks} == {"python", "sh", "cpp"}


@pytest.mark.parametrize("block", PYTHON, ids=[f"line{block.line}" for block in PYTHON])
def test_python(block):
    if block.code.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.code, {}, "README.md", "README.md", block.line - 1)
        assert test.examples
        report = []
        failed, _ = doctest.DocTestRunner().run(test, out=report.append)
        assert failed == 0, "".join(report)
    else:
        exec(compile("\n" * (block.line - 1) + block.code, "README.md", "exec"), {})


def test_the_two_phase_example_computes_the_gradient():
    (code,) = [block.code for block in PYTHON if not block.code.startswith(">>>")]
    names = {}
    exec(code, names)
    expected = aclnn_bw.avg_pool2d_backward(names["gradOutput"], names["self"], 3, 2, 1)
    assert names["gradInput"].tobytes() == expected.tobytes()


def test_the_two_commands_are_there():
    commands = [block.code.strip() for block in README.blocks if block.language == "sh"]
    for arguments, command in ((".", "aclnn-bw demo"), ('".[test]"', "pytest")):
        install = f"python3 -m venv .venv && .venv/bin/pip install {arguments} && .venv/bin/{command}"
        assert install in commands


def test_names_in_the_text_exist():
    names = set(re.findall(r"`(acl\w+|ACLNN?_(?!BW)\w+|[a-z]+_num_threads|soc|AclnnError|show_config)\b", README.prose))
    names |= {name for row in README.tables[0][1:] for name in re.findall(r"`(\w+)`", " ".join(row))}
    assert len(names) > 24
    names -= {"aclnn", "aclnn_bw"}
    assert [name for name in sorted(names) if not hasattr(aclnn_bw, name)] == []


def test_every_operator_is_listed():
    rows = README.tables[0][1:]
    operators = aclnn_bw.show_config(mode="dict")["operators"]
    assert [re.match(r"\[(\w+)\]", row[0]).group(1) for row in rows] != []
    assert {re.match(r"\[(\w+)\]", row[0]).group(1): row[1] for row in rows} == {
        name: f"`aclnn{name}`" for name in operators
    }


def test_the_speed_is_that_of_the_documentation():
    measured = {row[0]: row for row in Page.read(DOCS / "performance.md").tables[0][1:]}
    rows = README.tables[1][1:]
    assert len(rows) == 6
    for row in rows:
        case, time, ratio, _, *others = measured[row[0]]
        assert row == [case, time, ratio, *others]
    ratios = [float(row[2]) for case, row in measured.items() if "phase 2" not in case and "forward" not in case]
    assert f"{min(ratios):.1f} to {max(ratios):.0f} times as fast as PyTorch" in README.text


def anchors(page):
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for _, title in page.headings}


@each_readme
def test_links_lead_somewhere(readme):
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', readme.text)
    assert len(pictures) == 2
    for target in readme.links + pictures:
        path, _, anchor = target.partition("#")
        if not target.startswith("http"):
            assert (ROOT / path).exists(), target
            assert not anchor or anchor in anchors(Page.read(ROOT / path) if path else readme), target


def test_the_changelog_knows_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{aclnn_bw.__version__}] - " in changelog
