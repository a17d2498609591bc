"""What setup.py keeps of the build before: a file is made again only if something that it is made from is another.

Beside each file that was made lies a stamp, ``NAME.made``: the files that were read for it, and a digest of their
contents, the flags and the tools. It is a module, as setup.py is none: the processes that translate find ``translate``
by its name.
"""
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from setuptools.errors import CompileError


@functools.cache
def outside() -> dict[str, str]:
    """Where NumPy and Cython lie: pip unpacks them into another folder each time, which must not count."""
    found = {f"<{name}>": importlib.util.find_spec(name) for name in ("numpy", "Cython")}
    return {name: os.path.realpath(spec.submodule_search_locations[0]) for name, spec in found.items() if spec}


def portable(path: str) -> str:
    """A file's name, the same wherever NumPy, Cython and this tree lie."""
    path = os.path.realpath(path)
    for name, folder in {**outside(), "": os.getcwd()}.items():
        if path.startswith(folder + os.sep):
            return name + path[len(folder) + (not name):]
    return path


def digest(name: str) -> str:
    """Of a file's contents, by its portable name; empty if there is none."""
    path = located(name)
    return digest_of(path, path.stat().st_mtime_ns) if path.is_file() else ""


@functools.cache
def digest_of(path: Path, date: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def located(name: str) -> Path:
    mark, _, rest = name.rpartition(">")
    return Path(outside().get(f"{mark}>", mark) + rest)


@functools.cache
def names_of_headers() -> list[str]:
    """A new one may be found before the one that was included."""
    return sorted(str(path) for path in Path("aclnn_bw").rglob("*.*") if path.suffix in (".h", ".pxd"))


def signature(settings: object, files: Iterable[str]) -> str:
    """Of all that decides what a command makes."""
    text = json.dumps([settings, names_of_headers(), [(name, digest(name)) for name in files]])
    return hashlib.sha256(text.encode()).hexdigest()


def kept(path: Path, settings: object, make: Callable[[], Iterable[str]]) -> float | None:
    """Call ``make``, which tells the files that it read, unless `path` is what it would make; the seconds it took.

    Contents count and not dates, for a checkout sets dates as it likes. The stamp beside the result goes before it is
    made and comes when it is complete, so that nothing that was interrupted is taken, nor what was made while somebody
    wrote into a file that it is made from.
    """
    stamp = path.with_name(f"{path.name}.made")
    if path.exists() and stamp.exists():
        made = json.loads(stamp.read_text())
        if made["signature"] == signature(settings, made["files"]):
            return None
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    begin, clock = time.time(), time.perf_counter()
    files = sorted({portable(file) for file in make()})
    seconds = time.perf_counter() - clock
    if all(located(name).stat().st_mtime < begin for name in files):
        stamp.write_text(json.dumps({"signature": signature(settings, files), "files": files}))
    return seconds


def prerequisites(rule: Path) -> list[str]:
    """The files that a rule for make names behind its colon."""
    words = re.split(r"(?<!\\)\s+", rule.read_text().replace("\\\n", " ").partition(": ")[2].strip())
    return [word.replace("\\ ", " ") for word in words]


def translate(source: Path, module: str, to: Path, directives: dict[str, object], strict: bool) -> float | None:
    """Translate a .pyx to C, unless it has been; the seconds that it took. Strictly: a warning is an error."""
    def make() -> list[str]:
        from Cython.Compiler import Main, Options

        Options.warning_errors = strict
        result = Main.compile(str(source), full_module_name=module, output_file=str(to), depfile=True,
                              compiler_directives=directives)
        if result.num_errors:
            raise CompileError(f"{source}: Cython refuses it")
        return prerequisites(to.with_name(f"{to.name}.dep"))

    return kept(to, [directives, strict, importlib.metadata.version("cython"), module], make)
