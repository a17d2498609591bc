"""What a peer is."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, ClassVar

from ..check import Array
from ..operators import OPERATORS
from ..problem import Contestant, Problem
from ..timing import Statement


class NotOffered(Exception):
    """The framework has no such operator, or not with these attributes or this dtype."""


class Peer(ABC):
    """An installed framework. A subclass has a method for each operator it offers, named after our call.

    Such a method takes a problem and gives a contestant, or raises NotOffered. It converts the inputs and compiles
    what must be compiled; the contestant's statements run the operator alone and wait for the result.
    """

    name: ClassVar[str]
    version: str

    @abstractmethod
    def __init__(self, threads: int) -> None:
        """Import the framework, set to use ``threads`` threads; ImportError if it is not there."""

    def contestant(self, problem: Problem) -> Contestant | None:
        """Give its statements; None if it does not offer the operator, the attributes or the dtype."""
        offer: Callable[[Problem], Contestant] | None = getattr(self, problem.case.operator, None)
        try:
            return offer(problem) if offer else None
        except NotOffered:
            return None

    def returning(
        self, code: str, names: Mapping[str, Any], results: Callable[[Any], Array], note: str = ""
    ) -> Contestant:
        """Give the contestant that only returns its one result, in memory of its own."""
        return Contestant(self.name, None, (), Statement(code, names), lambda outs: tuple(map(results, outs)), note)


def attributes(problem: Problem) -> dict[str, Any]:
    """All attributes of the problem, in the order of our call."""
    return OPERATORS[problem.case.operator].attributes(problem.case)


def require(offered: bool) -> None:
    """Raise NotOffered unless ``offered``."""
    if not offered:
        raise NotOffered


def in_one_line(error: BaseException) -> str:
    """Tell what went wrong."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" ...")


def own_threads(prefix: str) -> int | None:
    """How many threads of this process have a name that begins so; None where the system does not tell."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        return None
    return sum((task / "comm").read_text().startswith(prefix) for task in tasks.iterdir())


@contextmanager
def starting(**variables: str) -> Iterator[None]:
    """Set environment variables, and drop what is written to stderr, for as long as a framework takes to start.

    Frameworks greet from C++, below sys.stderr. An exception says what went wrong.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere, redirect_stderr(io.StringIO()):
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
