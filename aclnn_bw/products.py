"""Products: which dtypes, values and precision rules hold, and how a max-pool mask is laid out."""

from __future__ import annotations

import os
from contextvars import Token
from types import TracebackType
from typing import Literal, TypeAlias

from aclnn_bw import _native

ProductName: TypeAlias = Literal["Ascend910", "Ascend310P", "Ascend910B", "Host"]
SocName: TypeAlias = Literal[
    "Ascend910", "Ascend910A", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA",
    "Ascend310P", "Ascend310P1", "Ascend310P2", "Ascend310P3", "Ascend310P5", "Ascend310P7",
    "Ascend910B", "Ascend910B1", "Ascend910B2", "Ascend910B2C", "Ascend910B3", "Ascend910B4", "Ascend910B4-1",
    "Host",
]
"""The names of products and chips as CANN spells them, for type checkers: a name that is misspelt in the source is an
error before anything runs. At run time any case will do, and any number of a chip. A name that is not known before is
a `str`, so that it takes a `cast(SocName, name)`; `soc` and `aclrtSetSocName` check it as always.
"""
MaskLayout: TypeAlias = Literal["bitmask", "argmax"]

PRODUCTS: tuple[ProductName, ...] = ("Ascend910", "Ascend310P", "Ascend910B", "Host")
MASK_LAYOUTS: tuple[MaskLayout, ...] = ("bitmask", "argmax")
_INVALID = 161002


def _index(argument: str, value: str, known: tuple[str, ...]) -> int:
    if not isinstance(value, str):
        raise TypeError(f"{argument} = {value!r}: must be a str, not {type(value).__name__}")
    number = _native.product_of(value) if known is PRODUCTS else known.index(value) if value in known else -1
    if number < 0:
        raise _native.refusal(_INVALID, f"{argument} = {value!r}: must be one of {', '.join(map(repr, known))}")
    return number


def aclrtGetSocName() -> ProductName:
    """Return the name of the product whose rules hold here.

    >>> import aclnn_bw
    >>> with aclnn_bw.soc("Ascend310P"):
    ...     aclnn_bw.aclrtGetSocName()
    'Ascend310P'
    """
    return PRODUCTS[_native.current_product()[0]]


def aclrtSetSocName(socName: SocName) -> None:
    """Set the product of the process: "Ascend910", "Ascend310P", "Ascend910B" or "Host", or a chip as `soc` takes it.

    Every thread sees it at once; a `soc` context wins over it.
    """
    global _process_product
    _process_product = _index("socName", socName, PRODUCTS)
    _native.set_process_product(_process_product, _process_layout)


class soc:
    """Context manager: the product, and the layout of max-pool masks, for the current context only.

    name is one of "Ascend910" (Atlas training series), "Ascend310P" (Atlas inference series), "Ascend910B" (Atlas A2)
    and "Host" (no product's limits, every floating dtype, no reduced precision), in any case; a chip's name, as
    "Ascend910B3", stands for its series. mask_layout is "bitmask" or "argmax". Phase 1 reads both; executors made
    inside keep them. Contexts nest. Asyncio tasks that are started inside see the product; a thread does not, but what
    `aclrtSetSocName` has set for the process, unless it gets the context: `pool.submit(contextvars.copy_context().run,
    function, *arguments)`, or `initializer=soc("Host").__enter__` for all that a pool does. (Python 3.14 can start
    threads with the context of their makers: `-X thread_inherit_context=1`.)

    >>> import aclnn_bw
    >>> with aclnn_bw.soc("Host"):
    ...     print(aclnn_bw.aclrtGetSocName())
    Host
    """

    def __init__(self, name: SocName, *, mask_layout: MaskLayout = "bitmask") -> None:
        """Check the names; nothing changes before the context is entered."""
        self._setting = (_index("name", name, PRODUCTS)
                         | _index("mask_layout", mask_layout, MASK_LAYOUTS) << 8)
        self._name = name
        self._mask_layout = mask_layout
        self._tokens: list[Token[int | None]] = []

    def __repr__(self) -> str:
        """Show how it was made."""
        return f"soc({self._name!r}, mask_layout={self._mask_layout!r})"

    def __enter__(self) -> soc:
        """Make the product hold in this context."""
        self._tokens.append(_native.soc_setting.set(self._setting))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        """Restore what held before."""
        _native.soc_setting.reset(self._tokens.pop())


_process_product = _index("ACLNN_BW_SOC", os.environ.get("ACLNN_BW_SOC") or "Ascend910B", PRODUCTS)
_process_layout = _index("ACLNN_BW_MASK_LAYOUT", os.environ.get("ACLNN_BW_MASK_LAYOUT") or "bitmask", MASK_LAYOUTS)
_native.set_process_product(_process_product, _process_layout)
