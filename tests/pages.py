"""The pages of the documentation, taken apart: fenced blocks, tables, headings and links."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CHINESE = DOCS / "zh"


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    language: str
    code: str
    line: int  # of its first line, from 1

    def without_comments(self):
        """The lines of the code, without comments and the blanks before them."""
        mark = "//" if self.language == "cpp" else "#"
        return [re.sub(rf"(^|\s+){mark} .*$", "", line).rstrip() for line in self.code.splitlines()]


@dataclass(frozen=True)
class Page:
    """A Markdown file."""

    path: Path
    text: str

    @classmethod
    def read(cls, path):
        return cls(path, path.read_text(encoding="utf-8"))

    @property
    def name(self):
        return str(self.path.relative_to(ROOT))

    @property
    def requires(self):
        """The modules that its examples need, from the front matter: `requires: torch, dask`."""
        found = re.match(r"---\n(?:.*\n)*?requires: (.*)\n(?:.*\n)*?---\n", self.text)
        return [module.strip() for module in found.group(1).split(",")] if found else []

    @property
    def blocks(self):
        found = re.finditer(r"^```(\w+)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        return [Block(b.group(1), b.group(2), self.text.count("\n", 0, b.start(2)) + 1) for b in found]

    @property
    def prose(self):
        return re.sub(r"^```\w*\n.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    @property
    def headings(self):
        return re.findall(r"^(#+) (.*)$", self.prose, re.MULTILINE)

    @property
    def links(self):
        """The targets of links and pictures."""
        return re.findall(r"\]\(([^)\s]+)\)", self.prose)

    @property
    def tables(self):
        """Each table as rows of cells; the first row is the head."""
        found = re.findall(r"(?:^\|.*\|\n)+", self.prose + "\n", re.MULTILINE)
        tables = [[_cells(line) for line in table.splitlines()] for table in found]
        for table in tables:
            assert all(re.fullmatch(r":?-+:?", cell) for cell in table[1]), table[1]
            assert len({len(row) for row in table}) == 1, table
        return [[table[0], *table[2:]] for table in tables]


def _cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def facts(cell):
    """What a translation must keep: code, numbers and names such as float32, gradOutput or Ascend910B."""
    code = re.findall(r"`[^`]+`", cell)
    rest = re.sub(r"`[^`]+`|\]\([^)]*\)", " ", cell)
    words = re.findall(r"[A-Za-z0-9_.+\-]+", rest)
    names = [word.strip(".-+") for word in words if re.search(r"\d|_|[a-z][A-Z]|^[A-Z]{2}", word)]
    return Counter(code + names)


def is_bare(cell):
    """Whether no word is left in a cell that could be translated."""
    return not re.search(r"[a-z]{2}", re.sub(r"`[^`]+`", "", cell))


def differences(english, chinese):
    """What a translation has changed that it must keep, in sentences."""
    yield from _differing_blocks(english.blocks, chinese.blocks)
    yield from _differing_tables(english.tables, chinese.tables)
    levels = [[len(marks) for marks, _ in page.headings] for page in (english, chinese)]
    if levels[0] != levels[1]:
        yield f"levels of headings: {levels[0]} and {levels[1]}"
    targets = [[target.partition("#")[0].rpartition("/")[2] for target in page.links] for page in (english, chinese)]
    if Counter(targets[0]) != Counter(targets[1]):
        yield f"links: {Counter(targets[0]) - Counter(targets[1])}, {Counter(targets[1]) - Counter(targets[0])}"


def _differing_blocks(english, chinese):
    if [block.language for block in english] != [block.language for block in chinese]:
        yield f"blocks: {[b.language for b in english]} and {[b.language for b in chinese]}"
        return
    for one, other in zip(english, chinese, strict=True):
        if one.without_comments() != other.without_comments():
            pairs = zip(one.without_comments(), other.without_comments(), strict=False)
            first = next(((a, b) for a, b in pairs if a != b), "their lengths")
            yield f"block at lines {one.line} and {other.line}: {first}"


def _differing_tables(english, chinese):
    shapes = [[(len(table), len(table[0])) for table in tables] for tables in (english, chinese)]
    if shapes[0] != shapes[1]:
        yield f"rows and columns of tables: {shapes[0]} and {shapes[1]}"
        return
    for one, other in zip(english, chinese, strict=True):
        for a, b in zip(chain(*one[1:]), chain(*other[1:]), strict=True):
            if facts(a) != facts(b) or (is_bare(a) and a != b):
                yield f"cell {a!r} and {b!r}: {facts(a) - facts(b)}, {facts(b) - facts(a)}"
