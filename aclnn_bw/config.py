"""What this installation is: versions, instruction set, threads, and the operators with their dtypes."""

from __future__ import annotations

import platform
from typing import Any, Literal, overload

import numpy

from aclnn_bw import _native
from aclnn_bw._records import OPERATORS
from aclnn_bw._version import __version__
from aclnn_bw.products import aclrtGetSocName
from aclnn_bw.threads import get_num_threads


def _operators() -> dict[str, dict[str, list[str]]]:
    """Each operator's dtypes on each product."""
    return {
        name: {product: [dtype.name for dtype in dtypes] for product, dtypes in operator.dtypes.items()}
        for name, operator in OPERATORS.items()
    }


@overload
def show_config() -> None: ...
@overload
def show_config(mode: Literal["stdout"]) -> None: ...
@overload
def show_config(mode: Literal["dict"]) -> dict[str, Any]: ...
def show_config(mode: Literal["stdout", "dict"] = "stdout") -> dict[str, Any] | None:
    """Print the versions, the instruction set chosen, threads, compiler, and operators x products x dtypes.

    With mode="dict" return them instead.

    >>> import aclnn_bw
    >>> sorted(aclnn_bw.show_config(mode="dict")["operators"]["AvgPool2dBackward"])
    ['Ascend310P', 'Ascend910', 'Ascend910B', 'Host']
    """
    if mode not in ("stdout", "dict"):
        raise ValueError(f"mode = {mode!r}: must be 'stdout' or 'dict'")
    import ml_dtypes  # not before it is needed: it may take a second

    build = _native.build_info()
    found = {
        "version": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "compiler": build["compiler"],
        "openmp": build["openmp"],
        "isa": build["isa"],
        "isa_available": build["isa_available"],
        "threads": get_num_threads(),
        "product": aclrtGetSocName(),
        "operators": _operators(),
    }
    if mode == "dict":
        return found
    for key, value in found.items():
        if key != "operators":
            print(f"{key + ':':<15}{', '.join(value) if isinstance(value, list) else value}")
    for name, products in _operators().items():
        print(f"{name}:")
        for product, dtypes in products.items():
            print(f"  {product + ':':<13}{', '.join(dtypes) or 'not available'}")
    return None
