"""The picture of ``growth``: a panel for each kind of problem, a line for each contestant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .peers import KNOWN
from .report import Row
from .timing import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of Okabe and Ito, whose colours are told apart with any kind of colour vision; the markers do it without colour.
_OURS, _COPY = "#0072B2", "#555555"
_PEERS = (
    ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#000000", "X"), ("#56B4E9", "P"),
    ("#7F6000", "*"),
)  # fmt: skip
_FRESH = {"ls": "--", "lw": 1.2, "mfc": "white"}
_TICKS = {1 << 10: "1 KiB", 1 << 15: "32 KiB", 1 << 20: "1 MiB", 1 << 25: "32 MiB", 1 << 30: "1 GiB"}
_COLUMNS = 3
# No date and no random names, so that the same figures give the same file.
_STYLE = {"svg.hashsalt": "aclnn_bw", "svg.fonttype": "path", "font.size": 9.0, "axes.grid": True, "grid.alpha": 0.25}


@dataclass(frozen=True)
class Line:
    """What a contestant did over the sizes."""

    label: str
    times: Sequence[tuple[int, Spread | None]]
    style: Mapping[str, Any]

    def rates(self) -> tuple[list[int], list[float]]:
        """Give the bytes, and how many of them a nanosecond."""
        times = [(nbytes, spread.median) for nbytes, spread in self.times if spread]
        return [nbytes for nbytes, _ in times], [nbytes / time for nbytes, time in times]


def check(name: str) -> None:
    """Raise ImportError without matplotlib, ValueError if it cannot write such a file: the work takes minutes."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("needs matplotlib: pip install 'aclnn_bw[plot]'") from error
    kinds = Figure().canvas.get_supported_filetypes()
    if Path(name).suffix.removeprefix(".") not in kinds:
        raise ValueError(f"must end with one of {', '.join(f'.{kind}' for kind in sorted(kinds))}")
    if not Path(name).absolute().parent.is_dir():
        raise ValueError("must lie in a folder that exists")


def draw(panels: Mapping[str, Sequence[Row]], environment: Mapping[str, Any], name: str) -> None:
    """Draw bytes a second over bytes, with a panel for each title, into a file whose name tells its kind."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    with matplotlib.rc_context(_STYLE):
        rows = -(-len(panels) // _COLUMNS)
        columns = min(_COLUMNS, len(panels))
        figure = Figure(figsize=(1.0 + 3.5 * columns, 1.6 + 2.7 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        shown = {}
        for axes, (title, points) in zip(grid.flat, panels.items(), strict=False):
            axes.set_title(title, fontsize=10.0)
            for line in lines(points):
                (artist,) = axes.plot(*line.rates(), label=line.label, **line.style)
                shown[line.label] = artist
            _mark(axes, environment["caches"])
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        first = grid[0, 0]
        first.set_xscale("log", base=2)
        first.set_yscale("log")
        first.set_xticks(list(_TICKS), _TICKS.values())
        first.yaxis.set_minor_locator(NullLocator())
        first.yaxis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:g}"))
        labels = sorted(shown, key=_place)
        figure.legend(
            [shown[label] for label in labels], labels, loc="outside upper center", ncols=2 * columns, frameon=False
        )
        figure.supylabel("GB/s of these bytes: higher is better", fontsize=9.0)
        caption = fill(_caption(panels, environment), width=60 * columns, break_on_hyphens=False)
        figure.supxlabel(f"bytes that must be read and written\n\n{caption}", fontsize=9.0)
        metadata = {"Date": None} if name.endswith(".svg") else {}
        figure.savefig(name, facecolor="white", dpi=150, metadata=metadata)


def lines(rows: Sequence[Row]) -> list[Line]:
    """Ours both ways; a peer into memory it was given, or into fresh memory if it can do no other."""
    style = {"color": _OURS, "marker": "o", "ms": 4.5, "lw": 2.0, "zorder": 3}
    lines = [
        Line("aclnn_bw, out=", [(row.nbytes, row.ours.into) for row in rows], style),
        Line("aclnn_bw, new", [(row.nbytes, row.ours.fresh) for row in rows], {**style, **_FRESH}),
    ]
    looks = dict(zip(KNOWN, cycle(_PEERS), strict=False))
    for name in (name for name in KNOWN if any(name in row.peers for row in rows)):
        style = {"color": looks[name][0], "marker": looks[name][1], "ms": 4.0, "lw": 1.2}
        times = [(row.nbytes, row.peers[name].times) for row in rows if name in row.peers]
        into = [(nbytes, each.into) for nbytes, each in times]
        fresh = [(nbytes, each.fresh) for nbytes, each in times]
        takes_memory = any(spread for _, spread in into)
        lines.append(
            Line(f"{name}, out=", into, style) if takes_memory else Line(f"{name}, new", fresh, {**style, **_FRESH})
        )
    lines.append(Line("a copy by one thread", [(row.nbytes, row.copy) for row in rows], {"color": _COPY, "ls": ":"}))
    return lines


def _place(label: str) -> int:
    """Where a line is told of: ours first, the peers in their own order, the copy last."""
    who = label.partition(",")[0]
    return ["aclnn_bw", *KNOWN, who].index(who)


def _mark(axes: Axes, caches: Mapping[str, int]) -> None:
    """Draw where the caches end."""
    for name, size in caches.items():
        axes.axvline(size, color="0.6", lw=0.8, zorder=0)
        axes.text(
            size, 0.02, f"{name} ", transform=axes.get_xaxis_transform(), ha="right", va="bottom", fontsize=7.0,
            color="0.4",
        )  # fmt: skip


def _caption(panels: Mapping[str, Sequence[Row]], environment: Mapping[str, Any]) -> str:
    dtypes = sorted({row.dtype for rows in panels.values() for row in rows})
    versions = [f"{name} {environment['peers'][name]}" for name in sorted(environment["peers"], key=_place)]
    threads = environment["threads"]
    return (
        f"{', '.join(dtypes)}, {threads} thread{'s' * (threads != 1)} for everybody on {environment['cpu']}; "
        "medians of interleaved rounds, results checked first; "
        f"aclnn_bw {environment['aclnn_bw']} (instruction set {environment['isa']}, {environment['compiler']})"
        f"{''.join(f', {version}' for version in versions)}"
    )
