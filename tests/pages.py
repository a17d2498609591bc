"""The pages of the documentation, taken apart: fenced blocks, tables, headings and links.

``python tests/pages.py`` brings the Chinese pages up to date where no translator is needed, that is in their code and
in tables without a Chinese word below the head, and prints in which other places they differ from the English ones.
With ``--accept`` it first writes what the examples of the English pages print now; look at the difference.
"""

import doctest
import re
import sys
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CHINESE = DOCS / "zh"
# Chinese counts the phases in words.
PHASE = re.compile(r"phases? [12]", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    language: str
    code: str
    line: int  # of its first line, from 1

    def without_comments(self):
        """The lines of the code, without comments and the blanks before them."""
        mark = "//" if self.language == "cpp" else "#"
        lines = [re.sub(rf"(^|\s+){mark} .*$", "", line).rstrip() for line in self.code.splitlines()]
        # What follows a path in a tree is a comment, too.
        return [re.sub(r"^(\S+/)\s+.*$", r"\1", line) for line in lines] if self.language == "text" else lines


FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)


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
        found = FENCED.finditer(self.text)
        return [Block(b.group(1), b.group(2), self.text.count("\n", 0, b.start(2)) + 1) for b in found]

    @property
    def prose(self):
        return FENCED.sub("", self.text)

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
        tables = [[_cells(line) for line in table.splitlines()] for table in TABLE.findall(self.prose + "\n")]
        for table in tables:
            assert all(re.fullmatch(r":?-+:?", cell) for cell in table[1]), table[1]
            assert len({len(row) for row in table}) == 1, table
        return [[table[0], *table[2:]] for table in tables]


def _cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def facts(cell):
    """What a translation must keep: code, numbers and names such as float32, gradOutput or Ascend910B."""
    cell = PHASE.sub("phase", cell)
    code = re.findall(r"`[^`]+`", cell)
    rest = re.sub(r"`[^`]+`|\]\([^)]*\)", " ", cell)
    words = re.findall(r"[A-Za-z0-9_.+\-]+", rest)
    names = [word.strip(".-+").removesuffix("-bit") for word in words if re.search(r"\d|_|[a-z][A-Z]|^[A-Z]{2}", word)]
    return Counter(code + names)


def is_bare(cell):
    """Whether no word is left in a cell that could be translated."""
    return not re.search(r"[a-z]{2}", re.sub(r"`[^`]+`", "", cell))


def differences(english, chinese):
    """What a translation has changed that it must keep, in sentences."""
    yield from _differing_blocks(english.blocks, chinese.blocks)
    yield from _differing_tables(english.tables, chinese.tables)
    numbers = [_numbers(page) for page in (english, chinese)]
    if numbers[0] != numbers[1]:
        yield f"numbers in the text: {numbers[0] - numbers[1]}, {numbers[1] - numbers[0]}"
    levels = [[len(marks) for marks, _ in page.headings] for page in (english, chinese)]
    if levels[0] != levels[1]:
        yield f"levels of headings: {levels[0]} and {levels[1]}"
    files = [[target.partition("#")[0].rpartition("/")[2] for target in page.links] for page in (english, chinese)]
    targets = [[file.replace(".zh-CN", "") for file in names] for names in files]  # the READMEs point to each other
    if Counter(targets[0]) != Counter(targets[1]):
        yield f"links: {Counter(targets[0]) - Counter(targets[1])}, {Counter(targets[1]) - Counter(targets[0])}"


def _numbers(page):
    """The numbers of the text that stand alone, tables and links left out."""
    text = re.sub(r"^\|.*\|$|\]\([^)]*\)|`[^`]*`", " ", PHASE.sub("phase", page.prose), flags=re.MULTILINE)
    return Counter(re.findall(r"(?<![A-Za-z0-9_.])\d+(?:\.\d+)?(?![A-Za-z0-9_])", text))


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
            if facts(a) != facts(b) or (is_bare(a) and a != b.replace("、", ", ")):
                yield f"cell {a!r} and {b!r}: {facts(a) - facts(b)}, {facts(b) - facts(a)}"


# ---- bringing the Chinese pages up to date --------------------------------------------------------------------------


def pairs():
    """Each English page with its Chinese one."""
    paths = [(DOCS / path.relative_to(CHINESE), path) for path in sorted(CHINESE.rglob("*.md"))]
    paths.append((ROOT / "README.md", ROOT / "README.zh-CN.md"))
    return [(Page.read(english), Page.read(chinese)) for english, chinese in paths]


def updated(english, chinese):
    """The Chinese text with the English code, and the English rows of tables that have no Chinese word in theirs."""
    blocks, tables = iter(english.blocks), iter(TABLE.findall(english.prose + "\n"))

    def table(old):
        new = next(tables).splitlines(keepends=True)
        head, rule, *body = old.group().splitlines(keepends=True)
        return old.group() if re.search("[\u4e00-\u9fff]", "".join(body)) else "".join([head, rule, *new[2:]])

    def block(old):
        new = next(blocks)
        seen = Block(old.group(1), old.group(2), 0)
        codes = [one.code.splitlines(keepends=True) for one in (seen, new)]
        same = SequenceMatcher(None, seen.without_comments(), new.without_comments(), autojunk=False)
        parts = (
            codes[0][a:b] if tag == "equal" else codes[1][c:d]  # with the translated comments
            for tag, a, b, c, d in same.get_opcodes()
        )
        return f"```{new.language}\n{''.join(chain(*parts))}```"

    counts = [(len(page.blocks), len(page.tables)) for page in (english, chinese)]
    if counts[0] != counts[1]:
        return chinese.text
    parts = re.split(r"(^```\w+\n.*?^```$)", chinese.text, flags=re.MULTILINE | re.DOTALL)
    return "".join(FENCED.sub(block, part) if part.startswith("```") else TABLE.sub(table, part) for part in parts)


class Accepting(doctest.DocTestRunner):
    """Notes what an example prints where it should print something else."""

    def __init__(self):
        super().__init__()
        self.printed = {}

    def report_failure(self, out, test, example, got):
        self.printed[example.lineno] = (example, got)

    def report_unexpected_exception(self, out, test, example, exc_info):
        raise exc_info[1]


def accepted(page):
    """The text of a page with what its examples print now."""
    names = {"__name__": page.name}

    def rerun(found):
        language, code = found.groups()
        if language != "python":
            return found.group()
        if not code.startswith(">>>"):
            exec(code, names)
            return found.group()
        test = doctest.DocTestParser().get_doctest(code, names, page.name, page.name, 0)
        test.globs = names
        runner = Accepting()
        runner.run(test, clear_globs=False)
        lines = code.splitlines(keepends=True)
        for first, (example, got) in sorted(runner.printed.items(), reverse=True):
            start = first + example.source.count("\n")
            lines[start : start + example.want.count("\n")] = [got]
        return f"```python\n{''.join(lines)}```"

    return FENCED.sub(rerun, page.text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--accept"]:
        for path in DOCS.rglob("*.md"):
            page = Page.read(path)
            if CHINESE not in path.parents and not page.requires:
                path.write_text(accepted(page), encoding="utf-8")
    for english, chinese in pairs():
        chinese.path.write_text(updated(english, chinese), encoding="utf-8")
        for difference in differences(english, Page.read(chinese.path)):
            print(f"{chinese.name}: {difference}")
