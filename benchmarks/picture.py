"""The picture of ``growth``: a panel for each kind of problem, with ours, the quickest peer, and a plain copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import log
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .peers import KNOWN
from .report import Row
from .timing import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of Okabe and Ito, whose colours are told apart with any kind of colour vision; the markers do it without colour.
_OURS, _COPY = "#0072b2", "#5d6880"
_PEERS = (
    ("#d55e00", "s"), ("#8a5bb5", "^"), ("#cc79a7", "D"), ("#e69f00", "v"), ("#222222", "X"), ("#009e73", "P"),
    ("#7f6000", "*"),
)  # fmt: skip
_FRESH = {"ls": "--", "lw": 1.4, "mfc": "#ffffff"}
_GROUND, _TEXT, _GRID = "#ffffff", "#1d2433", "#dde2eb"
# On a dark page an SVG file changes these colours by itself, as the pictures of the operators do.
_DARK = {
    _GROUND: "#1b1f2a", _TEXT: "#eef1f7", _GRID: "#39415a", _COPY: "#a9b3c9", _OURS: "#5cb3f0", "#d55e00": "#ff8a3d",
    "#8a5bb5": "#b892e0", "#009e73": "#3fd0a4", "#cc79a7": "#e5a0c6",
    "#222222": "#f0f0f0", "#7f6000": "#d6b64c",
}  # fmt: skip
# More cannot be told apart where they cross.
_MOST = 4
_TICKS = {1 << 10: "1 KiB", 1 << 15: "32 KiB", 1 << 20: "1 MiB", 1 << 25: "32 MiB", 1 << 30: "1 GiB"}
# In inches: the panels lie below each other, so that their text is legible on a telephone, too.
_WIDTH, _HEIGHT, _MARGIN = 5.2, 2.4, 1.3
# No date and no random names, so that the same figures give the same file.
_STYLE = {
    "svg.hashsalt": "aclnn_bw", "svg.fonttype": "path", "font.size": 11.0, "axes.grid": True, "grid.color": _GRID,
    "axes.edgecolor": _COPY, "text.color": _TEXT, "axes.labelcolor": _TEXT, "axes.titlecolor": _TEXT,
    "xtick.color": _COPY, "ytick.color": _COPY, "xtick.labelcolor": _TEXT, "ytick.labelcolor": _TEXT,
    "legend.edgecolor": _GRID, "legend.facecolor": _GROUND, "legend.framealpha": 1.0,
}  # fmt: skip


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
        figure = Figure(figsize=(_WIDTH, _MARGIN + _HEIGHT * len(panels)), layout="constrained")
        grid = figure.subplots(len(panels), 1, squeeze=False, sharex=True, sharey=True)
        for axes, (title, points) in zip(grid.flat, panels.items(), strict=True):
            axes.set_title(title, fontsize=12.0)
            for line in lines(points):
                axes.plot(*line.rates(), label=line.label, **line.style)
            axes.set_ylabel("GB/s")
            axes.tick_params(labelbottom=True)
            axes.legend(loc="lower right", fontsize=9.5, handlelength=2.4, borderpad=0.3, labelspacing=0.25)
            _mark(axes, environment["caches"])
        first = grid[0, 0]
        first.set_xscale("log", base=2)
        first.set_yscale("log")
        first.set_xticks(list(_TICKS), _TICKS.values())
        first.yaxis.set_minor_locator(NullLocator())
        first.yaxis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:g}"))
        first.set_ylim(top=4 * first.get_ylim()[1])  # for the names of the caches
        caption = fill(_caption(panels, environment), width=66, break_on_hyphens=False)
        axis = "bytes that must be read and written\nGB/s of these bytes: higher is better"
        figure.supxlabel(f"{axis}\n\n{caption}", fontsize=10.0)
        metadata = {"Date": None} if name.endswith(".svg") else {}
        figure.savefig(name, facecolor=_GROUND, dpi=150, metadata=metadata)
    if name.endswith(".svg"):
        file = Path(name)
        file.write_text(_in_both_modes(file.read_text(encoding="utf-8")), encoding="utf-8")


def _in_both_modes(svg: str) -> str:
    """Add what a browser does to the colours on a dark page."""
    rules = "".join(
        f'[style*="{property}: {light}"]{{{property}:{dark} !important}}\n'
        for light, dark in _DARK.items()
        for property in ("fill", "stroke")
    )
    return svg.replace("</style>", f"\n@media (prefers-color-scheme: dark) {{\n{rules}}}</style>", 1)


def lines(rows: Sequence[Row]) -> list[Line]:
    """Ours both ways, the quickest of the peers, and the copy.

    A peer is shown with the memory it was given, or with fresh memory if it can do no other.
    """
    style = {"color": _OURS, "marker": "o", "ms": 5.0, "lw": 2.0, "zorder": 3}
    ours = [
        Line("aclnn_bw, out=", [(row.nbytes, row.ours.into) for row in rows], style),
        Line("aclnn_bw, new", [(row.nbytes, row.ours.fresh) for row in rows], {**style, **_FRESH}),
    ]
    peers = []
    looks = dict(zip(KNOWN, cycle(_PEERS), strict=False))
    for name in (name for name in KNOWN if any(name in row.peers for row in rows)):
        style = {"color": looks[name][0], "marker": looks[name][1], "ms": 5.0, "lw": 1.4}
        times = [(row.nbytes, row.peers[name].times) for row in rows if name in row.peers]
        into = [(nbytes, each.into) for nbytes, each in times]
        fresh = [(nbytes, each.fresh) for nbytes, each in times]
        takes_memory = any(spread for _, spread in into)
        peers.append(
            Line(f"{name}, out=", into, style) if takes_memory else Line(f"{name}, new", fresh, {**style, **_FRESH})
        )
    copy = Line(
        "a copy by one thread", [(row.nbytes, row.copy) for row in rows], {"color": _COPY, "ls": ":", "lw": 1.8}
    )
    quickest = sorted(peers, key=_quickness, reverse=True)[: _MOST - len(ours) - 1]
    return [*ours, *quickest, copy]


def _quickness(peer: Line) -> tuple[int, float]:
    """Order peers by the geometric mean of their rates; those that have been measured at few sizes come last."""
    rates = peer.rates()[1]
    return len(rates), fmean(log(rate) for rate in rates) if rates else 0.0


def _place(label: str) -> int:
    """Where a line is told of: ours first, the peers in their own order, the copy last."""
    who = label.partition(",")[0]
    return ["aclnn_bw", *KNOWN, who].index(who)


def _mark(axes: Axes, caches: Mapping[str, int]) -> None:
    """Draw where the caches end."""
    for name, size in caches.items():
        axes.axvline(size, color=_COPY, lw=0.8, zorder=0)
        axes.text(
            size, 0.98, f"{name} ", transform=axes.get_xaxis_transform(), ha="right", va="top", fontsize=9.0,
            color=_COPY,
        )  # fmt: skip


def _caption(panels: Mapping[str, Sequence[Row]], environment: Mapping[str, Any]) -> str:
    dtypes = sorted({row.dtype for rows in panels.values() for row in rows})
    versions = [f"{name} {environment['peers'][name]}" for name in sorted(environment["peers"], key=_place)]
    threads = environment["threads"]
    return (
        f"{', '.join(dtypes)}, {threads} thread{'s' * (threads != 1)} for everybody on {environment['cpu']}; "
        "medians of interleaved rounds, results checked first; of the libraries each panel has the quickest; "
        f"aclnn_bw {environment['aclnn_bw']} (instruction set {environment['isa']}, {environment['compiler']})"
        f"{''.join(f', {version}' for version in versions)}"
    )
