"""``python -m aclnn_bw``: the command line, see :mod:`aclnn_bw.cli`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
