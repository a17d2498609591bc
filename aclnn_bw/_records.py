"""The operators, as the one table of them says: ``_core/operators.def``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from aclnn_bw import _native
from aclnn_bw.enums import aclDataType
from aclnn_bw.products import PRODUCTS


class Parameter(NamedTuple):
    """A parameter; operators.h says what each of these means."""

    kind: Literal["read", "shape", "written", "ints", "bool", "int", "real", "layout"]
    name: str  # in the two-phase call, which has no "layout"
    one_call: str
    is_mask: bool
    is_indices: bool
    own_dtype: bool
    nullable: bool
    empty: bool
    optional: bool
    two_phase_only: bool
    sampled: bool
    known: bool
    repeats: int  # for so many values stands one int


class Operator(NamedTuple):
    """An operator; its parameters are in the order of the C call."""

    number: int
    name: str  # behind aclnn in the names of both phases
    one_call: str
    parameters: tuple[Parameter, ...]
    dtypes: dict[str, list[aclDataType]]  # of each product
    algorithms: dict[str, str]  # what each does

    def of_kind(self, *kinds: str) -> list[Parameter]:
        """Tell which parameters are of one of these kinds."""
        return [parameter for parameter in self.parameters if parameter.kind in kinds]

    @property
    def two_phase(self) -> list[Parameter]:
        """The parameters of phase 1."""
        return [parameter for parameter in self.parameters if parameter.kind != "layout"]

    @property
    def function(self) -> Callable[..., Any]:
        """The one-call function."""
        function: Callable[..., Any] = getattr(_native, self.one_call)
        return function

    @property
    def summary(self) -> str:
        """What it computes, in the words of the one-call function's docstring."""
        lines = (self.function.__doc__ or "").splitlines()
        return next(line for line in lines if line.startswith("Return ")).removeprefix("Return ").rstrip(".")


OPERATORS = {
    record["name"]: Operator(
        number,
        record["name"],
        record["one_call"],
        tuple(Parameter(**parameter) for parameter in record["parameters"]),
        {
            product: [aclDataType(dtype) for dtype in dtypes]
            for product, dtypes in zip(PRODUCTS, record["dtypes"], strict=True)
        },
        record["algorithms"],
    )
    for number, record in enumerate(_native.records())
}
