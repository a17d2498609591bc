"""Hooks of the site: pages under zh/ are marked as Chinese, and the choice of the language stays on the page."""

from __future__ import annotations

from typing import Any

CHINESE = "zh/"


def on_page_context(context: Any, page: Any, config: Any, **_: Any) -> Any:
    """Choose the language of the theme's own words, and where a page leads to in each language.

    Called by mkdocs before each page is rendered. A page without a twin leads to the home of the other language.
    """
    source = page.file.src_uri
    config.theme["language"] = "zh" if source.startswith(CHINESE) else "en"
    urls = {file.src_uri: file.url for file in context["pages"]}
    for choice in config.extra["alternate"]:
        prefix = CHINESE if choice["lang"] == "zh" else ""
        twin = prefix + source.removeprefix(CHINESE)
        choice["link"] = urls[twin] if twin in urls else urls[f"{prefix}index.md"]
    return context
