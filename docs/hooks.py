"""A hook of the site: the pages under zh/ are marked as Chinese."""

from __future__ import annotations

from typing import Any


def on_page_context(context: Any, page: Any, config: Any, **_: Any) -> Any:
    """Choose the language of the theme's own words; called by mkdocs before each page is rendered."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith("zh/") else "en"
    return context
