"""What the command line is doing, on a line of the terminal that is overwritten; nothing where nobody looks at one."""

from __future__ import annotations

import sys
import time

_WIDTH = 20  # characters of the bar
_PATIENCE = 1.0  # seconds that pass before there is a bar


def duration(seconds: float) -> str:
    """Tell a time with three digits, in a unit that suits it."""
    for unit, size in ("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3):
        if seconds < 999.5 * size:
            return f"{seconds / size:.3g} {unit}"
    if seconds < 99.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """The line; a context, which clears it at the end."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._begin = 0.0

    def __enter__(self) -> Progress:
        """Begin."""
        return self

    def __exit__(self, *error: object) -> None:
        """Clear the line."""
        self._show("")

    def _show(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()

    def tell(self, text: str) -> None:
        """Say what begins now."""
        self._begin = time.monotonic()
        self._show(text)

    def done(self, part: int, whole: int) -> None:
        """Say how much of it is done, and how long the rest will take, once it has taken more than a second."""
        passed = time.monotonic() - self._begin
        if passed > _PATIENCE and 0 < part < whole:
            full = _WIDTH * part // whole
            bar = "#" * full + "." * (_WIDTH - full)
            left = duration(passed * (whole - part) / part)
            self._show(f"computing [{bar}] {100 * part // whole} %, about {left} left")
