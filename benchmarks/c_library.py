"""``python -m benchmarks.c_library``: what both phases of a tiny call cost through the C library."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from aclnn_bw._clib import answers

_SOURCE = Path(__file__).with_suffix(".c")


def measure() -> tuple[float, float]:
    """Return ns of both phases: with the arguments of the call before, and with others."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "program"))
        flags = " ".join(answers(["cflags", "libs"])).split()
        subprocess.run(["gcc", "-O2", "-std=c99", str(_SOURCE), *flags, "-o", program], check=True)
        same, other = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    return float(same), float(other)


def main() -> int:
    """Print the figures of three runs."""
    print("1x2x4x4 k2, both phases in C, ns: the arguments of the call before, others")
    for _ in range(3):
        same, other = measure()
        print(f"{same:8.0f} {other:8.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
