"""The operators that are measured: one module for each, with its rows in every program of benchmarks/."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import aclnn_bw

from ..problem import Operator


def _found() -> dict[str, Operator]:
    """All that this build of the package has, in its order; another environment's may lack some."""
    found = {}
    for module in iter_modules(__path__):
        for value in vars(import_module(f"{__name__}.{module.name}")).values():
            call = getattr(value, "call", None)
            if isinstance(value, type) and issubclass(value, Operator) and hasattr(aclnn_bw, call or ""):
                found[value.call] = value()
    return {name: found[name] for name in aclnn_bw.__all__ if name in found}


OPERATORS: dict[str, Operator] = _found()
