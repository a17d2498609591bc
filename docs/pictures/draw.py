"""Draws the pictures: for an operator which element of gradOutput feeds which of gradInput, for the README the speed.

``python docs/pictures/draw.py`` writes the SVG files beside it. The functions named after operators say what feeds
what by the plain formula; a test compares them with the library. The speed is that of a table in docs/performance.md.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

Place = tuple[int, ...]
Feeds = dict[Place, list[int]]  # for each element of gradInput the flat indices of gradOutput that it sums

# ---- what feeds what ------------------------------------------------------------------------------------------------

MAX_INPUT = ((3, 1, 2), (0, 5, 4), (9, 7, 8))


def avg_pool2d() -> Feeds:
    """Each window feeds all its elements in the image."""
    feeds: Feeds = {place: [] for place in product(range(5), range(5))}
    for o, (oh, ow) in enumerate(product(range(3), range(3))):
        for kh, kw in product(range(3), range(3)):
            place = (oh * 2 - 1 + kh, ow * 2 - 1 + kw)
            if place in feeds:
                feeds[place].append(o)
    return feeds


def max_pool2d() -> Feeds:
    """Each window feeds its maximum."""
    feeds: Feeds = {place: [] for place in product(range(3), range(3))}
    for o, (oh, ow) in enumerate(product(range(2), range(2))):
        window = [(oh + kh, ow + kw) for kh, kw in product(range(2), range(2))]
        feeds[max(window, key=lambda place: MAX_INPUT[place[0]][place[1]])].append(o)
    return feeds


def im2col() -> Feeds:
    """Row (kh, kw) of column (lh, lw) feeds (lh + kh, lw + kw)."""
    feeds: Feeds = {place: [] for place in product(range(3), range(3))}
    kernel = list(product(range(2), range(2)))
    for o, ((kh, kw), (lh, lw)) in enumerate(product(kernel, kernel)):
        feeds[lh + kh, lw + kw].append(o)
    return feeds


def replication_pad2d() -> Feeds:
    """Each element feeds the nearest one of the image."""
    feeds: Feeds = {place: [] for place in product(range(3), range(3))}
    for o, (p, q) in enumerate(product(range(4), range(6))):
        feeds[min(max(p - 1, 0), 2), min(max(q - 1, 0), 2)].append(o)
    return feeds


def upsample_nearest_exact1d() -> Feeds:
    """Source j feeds target floor((j + 0.5) * 3 / 5)."""
    feeds: Feeds = {(i,): [] for i in range(3)}
    for j in range(5):
        feeds[(int((j + 0.5) * 3 / 5),)].append(j)
    return feeds


# ---- drawing --------------------------------------------------------------------------------------------------------

# Light and dark colours, both on a ground of their own: legible whatever the page's theme.
LIGHT = """
svg{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.ground{fill:#fff}.text{fill:#1d2433}.faint{fill:#5d6880}.small{font-size:11px}
.cell{fill:#f1f4f9;stroke:#56617a}.zero{fill:#fff;stroke:#9aa4b8}.padding{fill:none;stroke:#9aa4b8;stroke-dasharray:4 3}
.c0{fill:#cfe2ff}.c1{fill:#ffe0b8}.c2{fill:#cdeccb}.c3{fill:#f6cfe0}.c4{fill:#fdf3b0}.c5{fill:#dcd3f5}.c6{fill:#c9eeee}
.c7{fill:#eadcc8}.c8{fill:#d9dee8}
.c0,.c1,.c2,.c3,.c4,.c5,.c6,.c7,.c8{stroke:#56617a}
.line{fill:none;stroke:#56617a;stroke-width:1.5}.window{fill:none;stroke:#c0392b;stroke-width:3}
.window2{fill:none;stroke:#1f5fbf;stroke-width:3}.head{fill:#56617a}
"""
DARK = """
.ground{fill:#1b1f2a}.text{fill:#eef1f7}.faint{fill:#a9b3c9}
.cell{fill:#2a3040;stroke:#8a95ad}.zero{fill:#1b1f2a;stroke:#5f6a80}.padding{stroke:#6d778d}
.c0{fill:#234a85}.c1{fill:#7a4d12}.c2{fill:#27602a}.c3{fill:#742a4c}.c4{fill:#655a10}.c5{fill:#4a3a80}.c6{fill:#1c5c5c}
.c7{fill:#5c4728}.c8{fill:#465066}
.c0,.c1,.c2,.c3,.c4,.c5,.c6,.c7,.c8{stroke:#8a95ad}
.line{stroke:#a9b3c9}.window{stroke:#ff7b6b}.window2{stroke:#6fa8ff}.head{fill:#a9b3c9}
"""
STYLE = LIGHT + "@media (prefers-color-scheme:dark){" + DARK.rstrip() + "}\n"


class Picture:
    """Shapes on a ground that grows with them."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.parts: list[str] = []
        self.right = self.bottom = 0.0

    def grow(self, x: float, y: float) -> None:
        """Make room for a point."""
        self.right, self.bottom = max(self.right, x), max(self.bottom, y)

    def text(self, x: float, y: float, text: str, kind: str = "text", anchor: str = "middle") -> None:
        """Write one line whose base is at y."""
        width = len(text) * (7 if "small" in kind else 8.6)
        self.grow({"middle": x + width / 2, "start": x + width, "end": x}[anchor], y + 4)
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escaped}</text>')

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Draw a rectangle."""
        self.grow(x + width, y + height)
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>')

    def cell(self, x: float, y: float, width: float, height: float, lines: list[str], kind: str) -> None:
        """Draw a rectangle with centred lines of text."""
        self.box(x, y, width, height, kind)
        small = len(lines) > 1 or any(len(line) * 8.6 > width for line in lines)
        pitch = 13 if small else 16
        first = y + height / 2 + 5 - pitch * (len(lines) - 1) / 2
        for i, line in enumerate(lines):
            self.text(x + width / 2, first + i * pitch, line, "text small" if small else "text")

    def arrow(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Draw a line with a head at its end."""
        length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
        ux, uy = (to_x - x) / length, (to_y - y) / length
        back_x, back_y = to_x - 9 * ux, to_y - 9 * uy
        self.parts.append(f'<path class="line" d="M{x:.4g} {y:.4g}L{back_x:.4g} {back_y:.4g}"/>')
        corners = f"{to_x:.4g},{to_y:.4g} {back_x - 4 * uy:.4g},{back_y + 4 * ux:.4g} "
        self.parts.append(
            f'<polygon class="head" points="{corners}{back_x + 4 * uy:.4g},{back_y - 4 * ux:.4g}"/>'
        )

    def grid(
        self, x: float, y: float, rows: int, columns: int, size: float, title: str,
        cell: Callable[[int, int], tuple[list[str], str]],
    ) -> None:  # fmt: skip
        """Draw cells under a title."""
        self.text(x + columns * size / 2, y - 12, title)
        for i, j in product(range(rows), range(columns)):
            self.cell(x + j * size, y + i * size, size, size, *cell(i, j))

    def svg(self, label: str, style: str = STYLE) -> str:
        """Return the file."""
        width, height = round(self.right + 20), round(self.bottom + 16)
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">\n'
        head += f"<style>{style}</style>\n"
        ground = f'<rect class="ground" width="{width}" height="{height}" rx="6"/>\n'
        return head + ground + "\n".join(self.parts) + "\n</svg>\n"


def letters(indices: list[int], per_line: int = 2) -> list[str]:
    """Write a sum of elements of gradOutput, the first being a."""
    names = [string.ascii_lowercase[i] for i in indices]
    lines = [" + ".join(names[i : i + per_line]) for i in range(0, len(names), per_line)]
    return [line + " +" for line in lines[:-1]] + lines[-1:] or ["0"]


def draw_avg_pool2d() -> str:
    """Three by three windows of three by three, by two, over five by five."""
    p, feeds = Picture(), avg_pool2d()
    p.grid(20, 128, 3, 3, 50, "gradOutput", lambda i, j: ([string.ascii_lowercase[3 * i + j]],
                                                        {0: "c0", 4: "c1"}.get(3 * i + j, "cell")))  # fmt: skip
    p.arrow(185, 203, 245, 203)
    x, y, size = 318, 100, 58
    for i, j in product(range(7), range(7)):
        if i in (0, 6) or j in (0, 6):
            p.box(x + (j - 1) * size, y + (i - 1) * size, size, size, "padding")
    p.grid(x, y, 5, 5, size, "", lambda i, j: (letters(feeds[i, j]), "cell"))
    p.text(x + 2.5 * size, y - size - 14, "gradInput * 9")
    p.box(x - size, y - size, 3 * size, 3 * size, "window2")
    p.box(x + size, y + size, 3 * size, 3 * size, "window")
    p.text(x + 2.5 * size, y + 6 * size + 22, "kernel 3, stride 2, padding 1", "faint")
    return p.svg("avg_pool2d_backward: each input element sums the gradients of the windows that hold it")


def draw_max_pool2d() -> str:
    """The maxima of windows of two by two over three by three."""
    p, feeds = Picture(), max_pool2d()
    fed = {place: i for i, place in enumerate(place for place in feeds if feeds[place])}
    kind = lambda i, j: f"c{fed[i, j]}" if (i, j) in fed else "cell"  # noqa: E731
    of = {o: place for place, outputs in feeds.items() for o in outputs}
    p.grid(20, 50, 3, 3, 54, "self", lambda i, j: ([str(MAX_INPUT[i][j])], kind(i, j)))
    p.grid(252, 77, 2, 2, 54, "gradOutput",
           lambda i, j: ([string.ascii_lowercase[2 * i + j]], kind(*of[2 * i + j])))  # fmt: skip
    p.arrow(375, 131, 427, 131)
    p.grid(440, 50, 3, 3, 54, "gradInput", lambda i, j: (letters(feeds[i, j]), kind(i, j)))
    p.text(20, 240, "kernel 2, stride 1", "faint", "start")
    return p.svg("max_pool2d_with_mask_backward: each gradient goes to the maximum of its window")


def draw_im2col() -> str:
    """Four columns of four fold back to three by three."""
    p, feeds = Picture(), im2col()
    kernel = list(product(range(2), range(2)))
    in_window = {(lh + kh, lw + kw): "c1" for kh, kw in kernel for lh, lw in [(1, 1)]}
    x, y, size = 118, 78, 50
    p.grid(x, y, 4, 4, size, "", lambda i, j: ([string.ascii_lowercase[4 * i + j]], "c1" if j == 3 else "cell"))
    p.text(x + 2 * size, 24, "gradOutput (C*kH*kW, L)")
    for i, (h, w) in enumerate(kernel):
        p.text(x + (i + 0.5) * size, y - 10, f"{h},{w}", "faint small")
        p.text(x - 10, y + (i + 0.5) * size + 4, f"kh,kw = {h},{w}", "faint small", "end")
    p.text(x - 10, y - 10, "lh,lw =", "faint small", "end")
    p.arrow(x + 4 * size + 16, y + 2 * size, x + 4 * size + 74, y + 2 * size)
    right = x + 4 * size + 88
    p.grid(right, y + 10, 3, 3, 60, "out (C, H, W)", lambda i, j: (letters(feeds[i, j]), in_window.get((i, j), "cell")))
    p.box(right + 60, y + 70, 120, 120, "window")
    p.text(right + 90, y + 222, "kernel 2, stride 1", "faint")
    return p.svg("im2col_backward: each column folds back to its window")


def draw_replication_pad2d() -> str:
    """The padded image folds back to the image."""
    p, feeds = Picture(), replication_pad2d()
    kind = {o: f"c{3 * i + j}" for (i, j), outputs in feeds.items() for o in outputs}
    x, y, size = 20, 50, 46
    p.grid(x, y, 4, 6, size, "gradOutput",
           lambda i, j: ([string.ascii_lowercase[6 * i + j]], kind[6 * i + j]))  # fmt: skip
    p.box(x + size, y + size, 3 * size, 3 * size, "window")
    p.arrow(x + 6 * size + 14, y + 2 * size, x + 6 * size + 70, y + 2 * size)
    p.grid(x + 6 * size + 84, y - 6, 3, 3, 84, "gradInput",
           lambda i, j: (letters(feeds[i, j], 2 if len(feeds[i, j]) == 4 else 3), f"c{3 * i + j}"))  # fmt: skip
    p.text(x, y + 4 * size + 90, "padding [left, right, top, bottom] = [1, 2, 1, 0]", "faint", "start")
    return p.svg("replication_pad2d_backward: each element of the border goes to the nearest one of the image")


def draw_upsample_nearest_exact1d() -> str:
    """Five outputs come from three inputs."""
    p, feeds = Picture(), upsample_nearest_exact1d()
    x, size = 130, 70
    p.text(x - 14, 46, "gradOutput", anchor="end")
    p.text(x - 14, 166, "out", anchor="end")
    of = {j: i for (i,), sources in feeds.items() for j in sources}
    for j, i in of.items():
        p.cell(x + j * size, 20, size, 42, [string.ascii_lowercase[j]], f"c{i}")
        p.text(x + (j + 0.5) * size, 80, f"{(j + 0.5) * 3 / 5:.1f}", "faint small")
    wide = 5 * size / 3
    for i in range(3):
        p.cell(x + i * wide, 140, wide, 42, letters(feeds[i,]), f"c{i}")
        p.text(x + (i + 0.5) * wide, 198, f"[{i}, {i + 1})", "faint small")
    for j in of:
        middle = x + (j + 0.5) * size  # the same place on both scales
        p.arrow(middle, 86, middle, 137)
    p.text(x - 14, 80, "(j+0.5)*Li/Lo", "faint small", "end")
    p.text(x, 222, "Lo = 5, Li = 3", "faint", "start")
    return p.svg("upsample_nearest_exact1d_backward: output j goes to input floor((j + 0.5) * Li / Lo)")


def zoom(p: Picture, left: float, right: float, y: float, to_left: float, to_right: float, to_y: float) -> None:
    """Join a part to its enlargement."""
    lines = f"M{left:g} {y:g}L{to_left:g} {to_y:g}M{right:g} {y:g}L{to_right:g} {to_y:g}"
    p.parts.append(f'<path class="padding" d="{lines}"/>')


def draw_bitmask() -> str:
    """The words of the container, then those of a group of 16 channels, then the bits of one."""
    p = Picture()
    x, y, width = 96, 42, 640
    p.text(x, y - 14, "indices: [N,] C, K, (B+1)*32;  K = kH*kW,  B = ceil(Ho*Wo/16),  G = ceil(C/16)", "text", "start")
    blocks = ["n=0 g=0", "n=0 g=1", "...", "n=N-1 g=G-1"]
    for i, label in enumerate(blocks):
        p.cell(x + i * 120, y, 120, 34, [label], "c0" if i == 1 else "cell")
    p.cell(x + 480, y, 160, 34, ["0"], "zero")
    p.text(x - 8, y + 22, "byte 0", "faint small", "end")
    p.text(x + 480, y + 50, "N*G*K*(B+1)*32", "faint small")

    top = 142
    zoom(p, x + 120, x + 240, y + 34, x, x + width, top - 22)
    names = [("p=0", 64), ("p=1", 64), ("p=2", 64), ("...", 64), ("Ho*Wo-1", 96)]
    names += [("... B*16-1", 144), ("... B*16+15", 144)]
    rows = ["k=0", "k=1", "...", "k=K-1"]
    for i, row in enumerate(rows):
        p.text(x - 8, top + i * 34 + 22, row, "faint", "end")
        left = x
        for j, (column, size) in enumerate(names):
            if i == 0:
                p.text(left + size / 2, top - 8, column, "faint small")
            word = "word" if j < 5 else "0"
            kind = "c1" if (i, j) == (1, 2) else "cell" if j < 5 else "zero"
            p.cell(left, top + i * 34, size, 34, ["..." if row == "..." or column == "..." else word], kind)
            left += size
    bits = top + 4 * 34 + 62
    zoom(p, x + 128, x + 192, top + 68, x, x + width, bits - 20)
    for j in range(16):
        p.text(x + (15 - j) * 40 + 20, bits - 6, str(j), "faint small")
        p.cell(x + (15 - j) * 40, bits, 40, 34, [f"+{j}" if j else "16g"], "c1")
    p.text(x - 8, bits - 6, "bit", "faint small", "end")
    p.text(x - 8, bits + 22, "c", "faint", "end")
    p.text(x, bits + 62, "k = kh*kW + kw,  p = oh*Wo + ow,  word = ((n*G + g)*K + k)*(B+1)*16 + p", "text", "start")
    return p.svg("the bit mask: words of 16 channels, by image, group, kernel position and output position")


def draw_argmax() -> str:
    """The integers of the container, and what they say of one plane."""
    p = Picture()
    x, y = 20, 40
    p.text(x, y - 14, "indices: int32 [N, C, Ho, Wo], 0 ...", "text", "start")
    for i, label in enumerate(["5", "7", "13", "15", "..."]):
        p.cell(x + i * 62, y, 62, 34, [label], f"c{i}" if i < 4 else "cell")
    p.cell(x + 5 * 62, y, 150, 34, ["0"], "zero")
    p.text(x + 5 * 62, y + 50, "4*N*C*Ho*Wo", "faint small")
    maxima = {5: 0, 7: 1, 13: 2, 15: 3}
    p.grid(x, y + 92, 4, 4, 46, "ih*W + iw", lambda i, j: ([str(4 * i + j)],
           f"c{maxima[4 * i + j]}" if 4 * i + j in maxima else "cell"))  # fmt: skip
    for i, j in product(range(2), range(2)):
        p.box(x + j * 92, y + 92 + i * 92, 92, 92, "window2")
    p.text(x + 210, y + 180, "kernel 2, stride 2", "faint", "start")
    return p.svg("the layout argmax: for each window the place of its maximum in the plane")


# Of the cases in the first table of docs/performance.md those that the README shows, by the words of the chart.
SPEED = {
    "max 32x64x112x112 k3 s2 p1 argmax": "max pool, argmax",
    "max 32x64x112x112 k3 s2 p1 bitmask": "max pool, bit mask",
    "pad 8x64x128x128 p1": "replication padding",
    "upsample 8x256x4096 -> 8192": "upsampling by 2",
    "im2col 8x64x56x56 k3 s1 p1": "im2col",
    "avg 8x64x112x112 k3 s2 p1": "average pool",
}
# Letters that are still legible where a phone shows the chart at half its size.
LARGE = """
svg{font:26px system-ui,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif}
.title{font-size:28px;font-weight:600}.text.ours{font-weight:600}
.ours{fill:#1f5fbf}.theirs{stroke:#1d2433;stroke-width:3}
"""
LARGE_DARK = """
.ours{fill:#6fa8ff}.theirs{stroke:#eef1f7}
"""


def measured(case: str) -> tuple[str, str]:
    """Our time in float32 and PyTorch's over it, as the table has them."""
    text = (Path(__file__).parent.parent / "performance.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(case)} \| ([\d.]+ .s) \| ([\d.]+) \|", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"docs/performance.md has no row '{case}'")
    return found.group(1), found.group(2)


def draw_speed(style: str) -> str:
    """A bar for each case: how many times as long as ours PyTorch takes."""
    p = Picture()
    x, y, unit, pitch, height = 24, 56, 51, 76, 30
    p.parts.append(f'<text class="text title" x="{x}" y="{y - 8}">Gradients: PyTorch\'s time over ours</text>')
    p.parts.append(f'<text class="faint" x="{x}" y="{y + 28}">float32, 2 threads; mark: as fast as PyTorch</text>')
    top = y + 52
    for i, (case, words) in enumerate(SPEED.items()):
        ratio = measured(case)[1]
        row, end = top + i * pitch, x + float(ratio) * unit
        p.parts.append(f'<text class="text" x="{x}" y="{row + 26}">{words}</text>')
        p.box(x, row + 36, float(ratio) * unit, height, "ours")
        p.parts.append(f'<path class="theirs" d="M{x + unit} {row + 31}v{height + 10}"/>')
        p.parts.append(f'<text class="text ours" x="{end + 10:g}" y="{row + 60}">{ratio}</text>')
    p.grow(660, top + len(SPEED) * pitch)
    said = ", ".join(f"{words} {measured(case)[1]}" for case, words in SPEED.items())
    return p.svg(f"PyTorch's time over ours: {said}", style)


def draw_speed_light() -> str:
    """For a light page."""
    return draw_speed(LIGHT + LARGE)


def draw_speed_dark() -> str:
    """For a dark page."""
    return draw_speed(LIGHT + DARK + LARGE + LARGE_DARK)


PICTURES = {
    "speed_light": draw_speed_light,
    "speed_dark": draw_speed_dark,
    "avg_pool2d": draw_avg_pool2d,
    "max_pool2d": draw_max_pool2d,
    "max_pool2d_bitmask": draw_bitmask,
    "max_pool2d_argmax": draw_argmax,
    "im2col": draw_im2col,
    "replication_pad2d": draw_replication_pad2d,
    "upsample_nearest_exact1d": draw_upsample_nearest_exact1d,
}


def drawn() -> Iterator[tuple[Path, str]]:
    """Give each file and what belongs in it."""
    for name, draw in PICTURES.items():
        yield Path(__file__).parent / f"{name}.svg", draw()


if __name__ == "__main__":
    for path, content in drawn():
        path.write_text(content, encoding="utf-8")
