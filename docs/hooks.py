"""Hooks of the site: a page may repeat a section of the README, and the pages under zh/ are marked as Chinese.

A line ``<!-- README.md: Performance -->`` becomes what stands under that heading, so that figures stand in one place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(r"^<!-- (README[\w.-]*\.md): (.+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the sections in; called by mkdocs for every page."""
    up = "../" * page.file.src_uri.count("/")
    return MARK.sub(lambda found: section(*found.groups()).replace("](docs/", f"]({up}"), markdown)


def on_page_context(context: Any, page: Any, config: Any, **_: Any) -> Any:
    """Choose the language of the theme's own words; called by mkdocs before each page is rendered."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith("zh/") else "en"
    return context


def section(file: str, heading: str) -> str:
    """Return what stands under a heading of the second level."""
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{file} has no heading '## {heading}'")
    return found.group(1).strip()
