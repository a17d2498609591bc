"""Putting the kernels under aten's operators on the CPU, and taking them away."""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from . import _kernels

# Not the forward of the replication pad: it copies, as quickly in PyTorch, and a kernel in Python has its own cost.
OVERRIDES: dict[str, Callable[..., Any]] = {
    "avg_pool2d": _kernels.avg_pool2d,
    "avg_pool2d_backward": _kernels.avg_pool2d_backward,
    "max_pool2d_with_indices": _kernels.max_pool2d_with_indices,
    "max_pool2d_with_indices_backward": _kernels.max_pool2d_with_indices_backward,
    "im2col": _kernels.im2col,
    "col2im": _kernels.col2im,
    "replication_pad2d_backward": _kernels.replication_pad2d_backward,
    "_upsample_nearest_exact1d": _kernels.upsample_nearest_exact1d,
    "_upsample_nearest_exact1d_backward": _kernels.upsample_nearest_exact1d_backward,
}

# Seconds for which kernels outlive their place in the table.
GRACE = 5.0


class _Switch:
    """How many hold the kernels in place, and the registrations while there are any."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.holders = 0
        self.enabled = False
        self.library: Any = None
        self.kernels: list[Any] = []
        self.retired: deque[tuple[float, list[Any]]] = deque()

    def hold(self) -> None:
        """Put the kernels in place unless they are."""
        with self.lock:
            if self.holders == 0:
                self.library = installed()
                self.kernels = references()
            self.holders += 1

    def let_go(self) -> None:
        """Take them away with the last holder."""
        with self.lock:
            self.holders -= 1
            if self.holders == 0:
                self.library._destroy()
                now = time.monotonic()
                self.retired.append((now, self.kernels))
                self.library, self.kernels = None, []
                while now - self.retired[0][0] > GRACE:
                    self.retired.popleft()

    def set_enabled(self, enabled: bool) -> None:
        """Be one holder more, or not."""
        with self.lock:
            if enabled == self.enabled:
                return
            if enabled:
                self.hold()
            else:
                self.let_go()
            self.enabled = enabled


def references() -> list[Any]:
    """Hold the kernels that are in place, where this version of PyTorch lets one.

    Another thread may have looked one up and be waiting for the interpreter: it must not be freed meanwhile.
    """
    get_kernel = getattr(torch.library, "get_kernel", None)
    return [] if get_kernel is None else [get_kernel(f"aten::{name}", "CPU") for name in OVERRIDES]


def installed() -> Any:
    """Put the kernels under aten's operators; returns what holds them there."""
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            # PyTorch warns of an operator that is overridden, which is what is asked for here.
            warnings.simplefilter("ignore")
            for name, kernel in OVERRIDES.items():
                library.impl(name, kernel, "CPU")
    except BaseException:
        library._destroy()
        raise
    return library


_switch = _Switch()


@contextmanager
def accelerate() -> Iterator[None]:
    """Compute PyTorch's own operators by aclnn_bw on the CPU within a `with` block, in every thread of the process.

    Under `aten` these take the kernels of this package: avg_pool2d, max_pool2d_with_indices, im2col, col2im,
    _upsample_nearest_exact1d, the gradients of them, and that of replication_pad2d, so that an unchanged model is
    computed by them, its backward included. Shapes, strides, dtypes and errors stay PyTorch's, values agree within its
    tolerances. What the kernels lack goes to PyTorch's, and so do small pools in channels_last. Blocks nest, and
    threads may enter and leave as they like; the last one to leave restores what was there. PyTorch's table of kernels
    has no lock for those who call: enter and leave while no other thread is in the middle of one of these operators.

    >>> import torch, aclnn_bw.torch
    >>> with aclnn_bw.torch.accelerate():
    ...     torch.nn.functional.avg_pool2d(torch.ones(1, 2, 2), 2)
    tensor([[[1.]]])
    """
    _switch.hold()
    try:
        yield
    finally:
        _switch.let_go()


def enable() -> None:
    """Do what `accelerate` does, until `disable` is called; twice is once.

    >>> import aclnn_bw.torch
    >>> aclnn_bw.torch.enable()
    >>> aclnn_bw.torch.is_enabled()
    True
    >>> aclnn_bw.torch.disable()
    """
    _switch.set_enabled(True)


def disable() -> None:
    """End what `enable` began; blocks of `accelerate` that are open keep the kernels until they end.

    >>> import aclnn_bw.torch
    >>> aclnn_bw.torch.disable()
    >>> aclnn_bw.torch.is_enabled()
    False
    """
    _switch.set_enabled(False)


def is_enabled() -> bool:
    """Return whether PyTorch's operators are computed by aclnn_bw now.

    >>> import aclnn_bw.torch
    >>> with aclnn_bw.torch.accelerate():
    ...     aclnn_bw.torch.is_enabled()
    True
    """
    return _switch.holders > 0
