"""What an executor is going to do, in words: the answer of aclOpExecutor.explain()."""

from __future__ import annotations

from typing import NamedTuple

from aclnn_bw.enums import aclDataType

# What the algorithms of each operator do; the core chooses one in phase 1.
ALGORITHMS = {
    "AvgPool2dBackward": {
        "FILL": "one window covers the whole plane: its share everywhere",
        "DOUBLE": "kernel and stride 2, dense rows: every element becomes four in one pass",
        "BANDED": "any geometry: rows summed along w, then along h, some at a time, and spread to what they serve",
        "STREAMED": "as BANDED, one row of windows at a time, for kernels too tall for the scratch",
    },
    "MaxPool2dWithMaskBackward": {
        "GATHER": "each element of gradInput asks the windows that hold it",
        "SCATTER": "each window adds to its maximum",
        "PLANES": "as SCATTER, whole planes of at most 64 positions at a time",
    },
    "MaxPool2dWithMask": {
        "PHASES": "a row of the image split by its columns' phases, windows side by side in a vector",
        "SCAN": "one window after the other",
    },
    "Im2colBackward": {
        "SCATTER": "any geometry and any strides: each row of windows is added where it lies in a row or plane of sums",
        "GATHER": "all terms of a position are added in a register, one column phase at a time",
        "INTERLEAVE": "kernel == stride along w: every position has one term at most",
    },
    "ReplicationPad2dBackward": {
        "PLANES": "rows lie apart for each channel",
        "PACKED": "the channels of gradOutput lie side by side, those of gradInput do not: transposed in groups",
        "PIXELS": "the channels of both lie side by side: all channels of a pixel are copied and summed at once",
    },
    "UpsampleNearestExact1dBackward": {
        "ROWS": "rows lie apart for each channel",
        "PACKED": "the channels of gradOutput lie side by side, those of out do not: groups of them are transposed",
        "PIXELS": "the channels of both lie side by side: all channels of a source are summed at once",
        "PERIODIC": "one table of sources for all blocks, since the map repeats itself",
        "WHOLE": "the executor holds the table of sources of every block",
        "FILLED": "phase 2 fills one table of sources at a time, since the map is too long",
    },
}


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
