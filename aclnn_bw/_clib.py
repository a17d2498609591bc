"""Where the C library and its headers lie, for compilers and build systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aclnn_bw._npy import CommandError

_PACKAGE = Path(__file__).resolve().parent
QUESTIONS = {
    "cflags": "flags for the compiler: where the headers are",
    "libs": "flags for the linker, with a run path to the library",
    "prefix": "the folder with include/, lib/ and lib64/; lib64/ has the names of CANN's libraries",
    "cmakedir": "the folder for find_package(aclnn_bw), as -Daclnn_bw_DIR=",
    "pkgconfigdir": "the folder for PKG_CONFIG_PATH",
}


def _answer(question: str) -> str:
    if question == "cflags":
        return f"-I{_quoted(_PACKAGE / 'include')}"
    if question == "libs":
        library = _quoted(_PACKAGE / "lib")
        return f"-L{library} -Wl,-rpath,{library} -laclnn_bw"
    if question == "prefix":
        return str(_PACKAGE)
    if question == "cmakedir":
        return str(_PACKAGE / "lib" / "cmake" / "aclnn_bw")
    return str(_PACKAGE / "lib" / "pkgconfig")


def _quoted(path: Path) -> str:
    """As a shell reads it again: `$(aclnn-bw config --cflags)` splits at spaces, so they are refused."""
    text = str(path)
    if any(character.isspace() for character in text):
        raise CommandError(f"{text!r}: a path with spaces cannot be given as a flag; use --prefix")
    return text


def answers(questions: Sequence[str] | None) -> list[str]:
    """Return one line for each question, or all of them with their names if none is asked."""
    if not (_PACKAGE / "lib" / "libaclnn_bw.so").exists():
        raise CommandError("this build has no C library: it is made on 64-bit Linux")
    if questions:
        return [_answer(question) for question in questions]
    return [f"{question + ':':<14}{_answer(question)}" for question in QUESTIONS]
