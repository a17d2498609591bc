"""Times of aclnn_bw and its peers on the same data: ``python -m benchmarks --help``.

More programs answer one question each: ``python -m benchmarks.growth`` how the time grows with the size,
``benchmarks.strided`` what the layout of the input costs, ``benchmarks.threads`` how much longer one thread takes,
``benchmarks.ends`` whether it matters what lies behind an array,
``benchmarks.against`` whether another build is slower, ``benchmarks.sweep`` what geometries that nobody chose take,
``benchmarks.busy`` what neighbours and callers at once do, ``benchmarks.first`` what first calls and first touches
cost; ``benchmarks.results`` keeps our times in a file for each CPU.

``cases`` says what is measured, ``problem`` what an operator must tell to take part and a module named after each
operator tells it, ``peers`` says whom we are compared with, ``check`` proves a result before it is timed, ``timing``
measures, ``report`` prints. A new operator is one module, its rows in ``cases`` and one adapter per peer.
"""

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def _prefer_installed_package() -> None:
    """Look for aclnn_bw outside this source tree first, unless it is compiled here.

    ``python -m`` puts the current folder in front of the path; in a checkout the folder aclnn_bw there holds no
    compiled module and would hide the installed package.
    """
    if any((_ROOT / "aclnn_bw" / f"_native{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
        return
    here = [entry for entry in sys.path if Path(entry or ".").resolve() == _ROOT]
    sys.path[:] = [entry for entry in sys.path if entry not in here] + here


_prefer_installed_package()
