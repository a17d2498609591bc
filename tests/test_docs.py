"""The pages under docs/ tell the truth: their examples run."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def test_there_are_pages():
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("".join(blocks), {}, page.name, str(page), 0)
    assert test.examples
    report = []
    failed, _ = doctest.DocTestRunner().run(test, out=report.append)
    assert failed == 0, "".join(report)
