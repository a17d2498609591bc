"""Gives the generated reference what static analysis cannot see, as an extension of griffe.

Signatures come from the sources and, for the compiled module, from its stub file; its docstrings come from the module
itself, which must be installed. Examples are fenced, so that they are shown as code.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import griffe


class RuntimeDocstrings(griffe.Extension):
    """Docstrings of the compiled module, and fences around examples."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Complete the package once it is loaded."""
        native = pkg["_native"]
        runtime = importlib.import_module(native.path)
        for name in add_overloaded(native, runtime):
            if name in runtime.__all__ and name not in pkg.members:  # the package takes all of these
                pkg.set_member(name, griffe.Alias(name, native[name], parent=pkg))
        add_docstrings(native, runtime)
        fence_examples(pkg)


def add_overloaded(described: griffe.Module, runtime: Any) -> list[str]:
    """Give each function that the stubs have in several forms one signature with all of its types; their names."""
    added = []
    for name, forms in described.overloads.items():
        if forms and name not in described.members:
            code = f"def {name}({', '.join(parameters(forms[0], getattr(runtime, name)))}) -> {result(forms[0])}: ..."
            found = griffe.visit(described.path, filepath=described.filepath, code=code)
            described.set_member(name, found[name])
            added.append(name)
    return added


def parameters(form: griffe.Function, function: Any) -> Iterator[str]:
    """Write each parameter of the form that takes the most, in which memory for the results is given."""
    keywords = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            yield "*"
        annotation = re.sub(r"^_Out2?$", "_Tensor | None", str(form.parameters[name].annotation))
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        yield f"{name}: {annotation}{default}"


def result(form: griffe.Function) -> str:
    """Write what is returned; the page says what follows from the arguments."""
    return re.sub(r"_Out2?\b", "_Array", str(form.returns))


def add_docstrings(described: griffe.Module | griffe.Class, runtime: Any) -> None:
    """Take the docstrings of a module or class from the object that runs."""
    for name, member in described.members.items():
        text = getattr(getattr(runtime, name, None), "__doc__", None)
        if member.is_alias or not (member.is_function or member.is_class) or not text:
            continue
        text = cleandoc(text)
        if text.startswith(f"{name}("):  # Cython writes the signature first
            text = text.partition("\n\n")[2]
        member.docstring = griffe.Docstring(text, parent=member)
        if isinstance(member, griffe.Class):
            add_docstrings(member, getattr(runtime, name))


def fence_examples(described: griffe.Object) -> None:
    """Fence the examples in the docstrings of an object and all that it holds."""
    if described.docstring is not None:
        described.docstring.value = fenced(described.docstring.value)
    for member in described.members.values():
        if not member.is_alias:
            fence_examples(member)


def fenced(text: str) -> str:
    """Put a fence around each paragraph that is an example, and take the rest for plain text."""
    paragraphs = cleandoc(text).split("\n\n")
    return "\n\n".join(f"```pycon\n{part}\n```" if part.startswith(">>> ") else escaped(part) for part in paragraphs)


def escaped(text: str) -> str:
    """Keep Markdown from reading products as emphasis and brackets as links; what stands in `code` stays."""
    return re.sub(r"(`[^`]*`)|([*_\[\]<])", lambda found: found.group(1) or "\\" + found.group(2), text)
