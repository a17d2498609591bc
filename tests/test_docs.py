"""The pages under docs/ tell the truth: their examples run, their tables and pictures are those of the library, their
links lead somewhere, the Chinese ones say the same, and the site builds without a warning."""

import doctest
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO

import numpy as np
import pytest
from operators import OPERATORS
from pages import CHINESE, DOCS, ROOT, Page, accepted, differences, pairs, updated

import aclnn_bw
from aclnn_bw import cli

KERNELS = ROOT / "aclnn_bw" / "_kernels"
PAGES = [Page.read(path) for path in sorted(DOCS.rglob("*.md"))]
LANGUAGES = {"python", "c", "cpp", "cmake", "sh", "text"}
REQUIRED = os.environ.get("ACLNN_BW_REQUIRE_DOCS") == "1"

OPERATORS_PAGES = {operator.page for operator in OPERATORS.values()}
each_operators_page = pytest.mark.parametrize("name", sorted(OPERATORS_PAGES))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


# What the commands read, besides a mask.
FILES = {
    "g.npy": (2, 3, 28, 28),
    "x.npy": (2, 3, 56, 56),
    "columns.npy": (2, 27, 3136),
    "padded.npy": (2, 3, 63, 59),
    "signal.npy": (2, 3, 112),
}


def test_there_are_pages():
    assert len(PAGES) > 5


@each_page
def test_every_fence_is_found(page):
    assert page.text.count("\n```") == 2 * len(page.blocks)
    assert {block.language for block in page.blocks} <= LANGUAGES


@each_page
def test_python(page):
    """All blocks of a page in their order, in one namespace: sessions are compared, programs are run."""
    for module in page.requires:
        pytest.importorskip(module)
    names = {"__name__": page.name}
    for block in page.blocks:
        if block.language != "python":
            continue
        if block.code.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page.path), block.line - 1)
            test.globs = names  # what a session defines stays for the next
            report = []
            failed, _ = doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
            assert failed == 0, "".join(report)
        else:
            with redirect_stdout(StringIO()):
                exec(compile("\n" * (block.line - 1) + block.code, str(page.path), "exec"), names)


def commands(page):
    return [line for block in page.blocks if block.language == "sh" for line in block.code.splitlines()]


def test_there_are_commands():
    run = [line for line in commands(Page.read(DOCS / "command-line.md")) if line.startswith("aclnn-bw run ")]
    assert len({line.split()[2] for line in run}) == 6


@each_page
def test_commands(page, tmp_path, monkeypatch, capsys):
    """Each in a folder of its own: no output overwrites a file."""
    for number, line in enumerate(line for line in commands(page) if line.startswith("aclnn-bw ")):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        if line.startswith("aclnn-bw run "):
            for name, shape in FILES.items():
                np.save(name, np.ones(shape, np.float32))
            if "--mask mask.npy" in line:
                np.save("mask.npy", aclnn_bw.max_pool2d_with_mask(np.load("x.npy"), 3, 2, 1)[1])
        assert cli.main(shlex.split(line, comments=True)[1:]) == 0, capsys.readouterr().err


@each_page
def test_links_lead_to_files(page):
    for target in page.links:
        path = target.partition("#")[0]
        if path and not target.startswith("http"):
            assert (page.path.parent / path).is_file(), target


@each_page
def test_names_in_the_text_exist(page):
    names = set(re.findall(r"`(acl\w+|ACLNN?_(?!BW)\w+|[a-z]+_num_threads|soc|Acl\w+|show_config)\b", page.prose))
    names -= {"aclnn", "aclnn_bw", "aclnnXxx", "aclnnXxxGetWorkspaceSize"}
    # The C library has more names than the Python package.
    headers = "".join(path.read_text() for path in (ROOT / "aclnn_bw" / "include").rglob("*.h"))
    names -= {*re.findall(r"\b(acl\w+)\(", headers), *re.findall(r"\b(acl\w+)(?:\.h|/)", page.prose)}
    if page.path.name == "c-library.md":  # its lists tell what is not there
        names -= set(re.findall(r"`(acl\w+)", "".join(re.findall(r"^- .*\n", page.text, re.MULTILINE))))
    assert [name for name in sorted(names) if not hasattr(aclnn_bw, name)] == []


# ---- the operators' pages -------------------------------------------------------------------------------------------


@each_operators_page
def test_dtypes_of_the_products(name):
    operators = aclnn_bw.show_config(mode="dict")["operators"]
    page = Page.read(DOCS / "operators" / f"{name}.md")
    tables = {tuple(table[0]): table[1:] for table in page.tables}
    found = [rows for head, rows in tables.items() if head[0] == "product" and "dtypes" in head[1]]
    expected = [operators[operator] for operator in OPERATORS if OPERATORS[operator].page == name]
    assert len(found) == len(expected)
    for rows, dtypes in zip(found, expected, strict=True):
        assert {row[0].strip("`"): re.findall(r"`(ACL_\w+)`", row[1]) for row in rows} == dtypes


@each_operators_page
def test_signatures(name):
    """The first table of a page has the argument names of the calls, in their order."""
    cells = [row[1] for row in Page.read(DOCS / "operators" / f"{name}.md").tables[0][1:]]
    calls = [re.fullmatch(r"`(\w+)\((.*)\)`", cell) for cell in cells]
    assert len(calls) >= 3
    for call in calls:
        signature = getattr(aclnn_bw, call.group(1)).__doc__.splitlines()[0]
        if "Workspace" in call.group(2) or call.group(2).startswith("workspace"):
            assert call.group(2).startswith("workspace, workspaceSize, executor")
        else:
            assert signature == f"{call.group(1)}({call.group(2)})"


def test_numbers_of_the_enums():
    (table,) = [table for table in Page.read(DOCS / "porting.md").tables if table[0] == ["enum", "members"]]
    enums = {row[0].strip("`"): dict(re.findall(r"`(\w+)` (-?\d+)", row[1])) for row in table[1:]}
    assert len(enums) == 7
    for name, members in enums.items():
        expected = {member.name: str(int(member)) for member in getattr(aclnn_bw, name)}
        assert members == expected, name


# ---- what all operators share --------------------------------------------------------------------------------------


def shared_table(head):
    (table,) = [table[1:] for table in Page.read(DOCS / "operators" / "index.md").tables if table[0] == head]
    return table


def test_operators_that_a_product_lacks():
    operators = aclnn_bw.show_config(mode="dict")["operators"]
    table = shared_table(["name", "product", "operators that it lacks"])
    lacking = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[2])) for row in table}
    products = dict.fromkeys(product for dtypes in operators.values() for product in dtypes)
    assert lacking == {
        product: {name for name, dtypes in operators.items() if not dtypes[product]} for product in products
    }


def beside_pytorch():
    rows = shared_table(["operator", "one call", "`torch.ops.aten`"])
    return {re.match(r"\[(\w+)\]", row[0]).group(1): (row[1].strip("`"), row[2].strip("`")) for row in rows}


def test_one_call_functions_are_listed_with_their_arguments():
    expected = {}
    for name, operator in OPERATORS.items():
        signature = getattr(aclnn_bw, operator.record().one_call).__doc__.splitlines()[0]
        expected[name] = re.sub(r", \*,.*", ")", signature)
    assert {name: ours for name, (ours, _) in beside_pytorch().items()} == expected


@pytest.mark.torch
def test_pytorchs_functions_are_listed_with_their_arguments():
    aten = pytest.importorskip("torch").ops.aten

    def written(argument):
        default = argument.default_value
        if isinstance(default, list) and default:
            default = default[0]  # one for each axis
        return f"{argument.name}={default!r}" if argument.has_default_value() else argument.name

    without = {name for name, (_, theirs) in beside_pytorch().items() if theirs == "none"}
    assert without == {"MaxPool2dWithMask", "MaxPool2dWithMaskBackward"}
    assert not any(hasattr(aten, OPERATORS[name].record().one_call) for name in without)
    for _, theirs in beside_pytorch().values():
        if theirs != "none":
            name = theirs.partition("(")[0]
            arguments = map(written, getattr(aten, name).default._schema.arguments)
            assert theirs == f"{name}({', '.join(arguments)})"


def test_arguments_come_in_pytorchs_order():
    renamed = {"Im2colBackward": {"self": "grad_output", "output_size": "input_size"}}
    for name, (ours, theirs) in beside_pytorch().items():
        if theirs != "none":
            names = [re.findall(r"[(,]\s*(\w+)", call) for call in (ours, theirs)]
            assert names[0] == [renamed.get(name, {}).get(one, one) for one in names[1]]


def units():
    """The kernels' files, each but for what it makes of an operator: several are of one, on one page."""
    return {
        re.sub("(_(across|forward|gather|last|masks|scatter|table))+$", "", path.stem) for path in KERNELS.glob("*.pyx")
    }


def test_the_tests_that_hold_the_promises_exist():
    named = re.findall(r"`(tests/[\w./]+)(?:::(\w+))?", (DOCS / "promises.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    operators = units() - {"table"}
    for path, test in named:
        for operator in operators if "_OP" in path else ("",):
            file = ROOT / path.replace("OP", operator)
            assert file.exists(), path
            assert not test or f"def {test}(" in file.read_text(encoding="utf-8"), f"{file}: {test}"


# ---- the pictures ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def draw():
    spec = importlib.util.spec_from_file_location("draw", DOCS / "pictures" / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_are_as_drawn(draw):
    for path, content in draw.drawn():
        assert path.read_text(encoding="utf-8") == content, path.name


def gradients_of_each_output(shape, call):
    """gradInput for a gradOutput of zeros with a single one, at each place in turn."""
    for one in np.eye(shape[0] * shape[1], dtype=np.float32):
        yield np.squeeze(call(one.reshape(1, *shape)))


@pytest.mark.parametrize("operator", [one for one in OPERATORS.values() if one.picture], ids=lambda one: one.page)
def test_pictures_show_what_feeds_what(draw, operator):
    feeds = getattr(draw, operator.page)()
    for o, gradient in enumerate(gradients_of_each_output(*operator.picture)):
        expected = {place for place, outputs in feeds.items() if o in outputs}
        assert set(zip(*(axis.tolist() for axis in np.nonzero(gradient)), strict=True)) == expected


# ---- the Chinese pages ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("english", "chinese"), pairs(), ids=lambda page: page.name)
def test_chinese_pages_say_the_same(english, chinese):
    assert list(differences(english, chinese)) == []


def test_every_operator_has_a_page():
    # With indices the max pool has a page of its own.
    assert {*OPERATORS_PAGES, "table"} - {"max_pool2d_indices"} == units()
    assert {path.stem for path in (DOCS / "operators").glob("*.md")} == {*OPERATORS_PAGES, "index"}


def test_every_page_but_the_design_has_a_twin():
    pages = {path.relative_to(DOCS) for path in DOCS.rglob("*.md")}
    chinese = {path.relative_to(CHINESE) for path in CHINESE.rglob("*.md")}
    assert {path for path in pages if path.parts[0] not in ("design", "zh")} == chinese


def test_every_operator_has_a_chinese_page():
    english, chinese = ({path.name for path in (root / "operators").glob("*.md")} for root in (DOCS, CHINESE))
    assert chinese == english


@pytest.mark.parametrize(("english", "chinese"), pairs(), ids=lambda page: page.name)
def test_nothing_is_left_to_update(english, chinese):
    assert updated(english, chinese) == chinese.text


def test_an_update_keeps_what_is_translated():
    english = Page(DOCS / "a.md", "| a | b |\n|---|---|\n| x | 2 |\n\n```python\nf(2)  # one\ng()\n```\n")
    chinese = Page(DOCS / "b.md", "| 甲 | 乙 |\n|---|---|\n| x | 1 |\n\n```python\nf(2)  # 一\n```\n")
    expected = "| 甲 | 乙 |\n|---|---|\n| x | 2 |\n\n```python\nf(2)  # 一\ng()\n```\n"
    assert updated(english, chinese) == expected


def test_accepting_changes_only_what_is_printed():
    text = "```python\n>>> def f():\n...     return 2\n>>> f()\n1\n>>> 3\n3\n```\n\n```python\n>>> f() + 1\n```\n"
    expected = text.replace("\n1\n", "\n2\n").replace("f() + 1\n", "f() + 1\n3\n")
    assert accepted(Page(DOCS / "a.md", text)) == expected


def test_differences_are_seen():
    english = Page(DOCS / "a.md", "# T\n\n| a | b |\n|---|---|\n| `x` 3 | 1.5 |\n\n```python\nf(1)  # one\n```\n")
    for old, new in (("`x`", "`y`"), (" 3 ", " 4 "), ("1.5", "1.50"), ("f(1)", "f(2)"), ("# T", "## T"),
                     ("```python", "```sh"), ("| 1.5 |", "|")):  # fmt: skip
        changed = Page(DOCS / "b.md", english.text.replace(old, new))
        if old == "| 1.5 |":
            with pytest.raises(AssertionError):
                list(differences(english, changed))
        else:
            assert list(differences(english, changed)) != [], (old, new)
    translated = Page(DOCS / "b.md", english.text.replace("| a |", "| 甲 |").replace("# one", "# 一"))
    assert list(differences(english, translated)) == []


# ---- the reference and the site -------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [DOCS, CHINESE], ids=["en", "zh"])
def test_the_reference_is_complete(root):
    described = re.findall(r"^::: aclnn_bw\.(\w+)$", (root / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    enums = (aclnn_bw.aclDataType, aclnn_bw.aclFormat, aclnn_bw.CubeMathType, aclnn_bw.aclrtMemMallocPolicy,
             aclnn_bw.aclrtMemcpyKind, aclnn_bw.AclnnStatus, aclnn_bw.AclError)  # fmt: skip
    members = {name for enum in enums for name in enum.__members__}
    wanted = [name for name in aclnn_bw.__all__ if name not in members and not name.startswith("__")]
    assert Counter(described) == Counter(wanted)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if find_spec("mkdocs") is None:
        if REQUIRED:
            pytest.fail("ACLNN_BW_REQUIRE_DOCS=1, but mkdocs is not installed")
        pytest.skip("mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # Elsewhere than in the root, whose source folder may not be compiled.
    done = subprocess.run(command, cwd=folder.parent, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_the_site_builds_without_a_warning(site):
    assert (site / "index.html").exists()
    for page, language in (("operators", "en"), ("zh/operators", "zh")):
        assert f'<html lang="{language}"' in (site / page / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_choice_of_the_language_stays_on_the_page(site, page):
    """A page of the design, which is in English alone, leads to the Chinese home."""
    source = page.path.relative_to(DOCS)
    name = source.relative_to("zh") if source.parts[0] == "zh" else source
    folder = site / source.parent / ("" if source.stem == "index" else source.stem)
    text = (folder / "index.html").read_text(encoding="utf-8")
    choices = dict(re.findall(r'<a href="([^"]*)" hreflang="(\w+)"', text))
    assert set(choices.values()) == {"en", "zh"}
    for link, language in choices.items():
        twin = DOCS / ("zh" if language == "zh" else "") / name
        home = site / ("zh" if language == "zh" else "")
        expected = home / name.parent / ("" if name.stem == "index" else name.stem) if twin.is_file() else home
        assert (folder / link).resolve() == expected.resolve(), link
        assert twin.is_file() or name.parts[0] == "design"


def test_the_site_fetches_nothing(site):
    for page in site.rglob("*.html"):
        tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*", page.read_text(encoding="utf-8"))
        assert [tag for tag in tags if re.search(r"""(?:src|href)=["']?(?:https?:)?//""", tag)] == []


def test_the_reference_has_the_docstrings(site):
    text = (site / "reference" / "index.html").read_text(encoding="utf-8")
    assert "Return the gradient of avg_pool2d with respect to its input." in text
    assert "<span class=\"n\">countIncludePad</span>" in text
