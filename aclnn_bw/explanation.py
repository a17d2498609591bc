"""What an executor is going to do, in words: the answer of aclOpExecutor.explain()."""

from __future__ import annotations

from typing import NamedTuple

from aclnn_bw._records import OPERATORS
from aclnn_bw.enums import aclDataType

# What the algorithms of each operator do; the core chooses one in phase 1.
ALGORITHMS = {name: operator.algorithms for name, operator in OPERATORS.items()}


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class Explanation(NamedTuple):
    """What phase 1 has decided: the answer of aclOpExecutor.explain(). `print` shows it in a few lines.

    geometry maps the names of the tensor arguments to their shapes, and those of the attributes to their values, pairs
    for h and w. algorithm names the way to the result ("" where there is nothing to do); no choice of it, of isa or of
    threads changes a bit of the result. The work is `units` independent pieces, split into `ranges`, one for each
    thread. workspace_size is in bytes; compulsory_bytes are those that any implementation reads and writes.
    """

    operator: str
    state: str
    dtype: aclDataType
    geometry: dict[str, tuple[int, ...] | float | bool | str]
    algorithm: str
    isa: str
    threads: int
    ranges: int
    units: int
    workspace_size: int
    compulsory_bytes: int

    def __str__(self) -> str:
        """Tell it in a few lines."""
        known = ALGORITHMS[self.operator]
        algorithm = "; ".join(f"{name}: {known[name]}" for name in self.algorithm.split(", ") if name)
        return "\n".join((
            f"{self.operator} of {self.dtype.name}, {self.state}",
            f"  geometry   {', '.join(f'{name} {value}' for name, value in self.geometry.items())}",
            f"  algorithm  {algorithm or 'none: there is nothing to do'}",
            f"  isa        {self.isa}",
            f"  threads    {self.threads}, for {_counted(self.units, 'unit')} in {_counted(self.ranges, 'range')}",
            f"  workspace  {self.workspace_size} bytes",
            f"  traffic    {self.compulsory_bytes} bytes at least",
        ))
