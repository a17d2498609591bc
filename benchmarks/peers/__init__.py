"""Whom we are compared with: one module for each framework, each optional and found by importing it.

``base`` says what a peer is; ``formulas`` holds what several of them compute with where they have no operator of their
own, in slices and sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from .base import Peer, in_one_line
from .jax import Jax
from .mindspore import MindSpore
from .onednn import OneDNN, OneDNNBlocked, OneDNNLast
from .paddle import Paddle
from .tensorflow import TensorFlow
from .torch_compile import TorchCompile
from .torch_eager import Torch, TorchLast

__all__ = ["KNOWN", "Peer", "in_one_line", "load"]

KNOWN: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (Torch, TorchLast, OneDNN, OneDNNLast, OneDNNBlocked, TorchCompile, Jax, TensorFlow, Paddle, MindSpore)
}


def load(names: Sequence[str], threads: int) -> tuple[list[Peer], list[str]]:
    """Import the peers named, or else all that are installed, and tell them how many threads to use.

    One that is named or installed and cannot be used is left out, and a line says why. Not all load beside each other,
    and they take memory and start threads: figures are best taken beside one at a time.
    """
    found: list[Peer] = []
    left_out: list[str] = []
    # In one order: oneDNN finds no processor once Paddle is loaded.
    for name in (name for name in KNOWN if not names or name in names):
        try:
            found.append(KNOWN[name](threads))
        except Exception as error:  # whatever a framework raises on its own account must not end the benchmark
            if names or not isinstance(error, ModuleNotFoundError):
                left_out.append(f"{name} is left out: {in_one_line(error)}")
    return found, left_out
