"""What the figures depend on besides the code: the machine, and the versions of what runs on it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import aclnn_bw

from .peers import Peer

_BUSY = "THE MACHINE IS BUSY with other work: threads wait for cores, and these figures mean little.\n"
_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def environment(peers: Sequence[Peer], threads: int) -> dict[str, Any]:
    """Give it all in a form that JSON can hold."""
    config = aclnn_bw.show_config(mode="dict")
    return {
        "aclnn_bw": config["version"],
        "isa": config["isa"],
        "openmp": config["openmp"],
        "compiler": config["compiler"],
        "threads": threads,
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "caches": caches(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "peers": {peer.name: peer.version for peer in peers},
    }


def caches(folder: Path = _CACHES) -> dict[str, int]:
    """Bytes of each data cache of the first core, the nearest first; empty where Linux does not tell."""
    found: dict[int, int] = {}
    for cache in folder.glob("index*"):
        try:
            level, kind, size = ((cache / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            number = size.rstrip("KMG")
            found[int(level)] = int(number) * _UNITS[size[len(number) :]]
    return {f"L{level}": found[level] for level in sorted(found)}


def free_memory(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Bytes that new arrays can have without swapping; None where Linux does not tell."""
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)


def summary(env: Mapping[str, Any]) -> str:
    """Tell the same to a reader, and whether the machine was busy."""
    peers = ", ".join(f"{name} {version}" for name, version in env["peers"].items()) or "no peer installed"
    load = "" if env["load"] is None else f", load average {env['load']:.2f} at the start"
    return (
        f"aclnn_bw {env['aclnn_bw']}, instruction set {env['isa']}, {'OpenMP' if env['openmp'] else 'serial build'}, "
        f"compiled by {env['compiler']}\n"
        f"{env['threads']} thread{'s' * (env['threads'] != 1)} for everybody on {env['cpu']}, "
        f"{env['cores']} cores available{load}\n"
        f"Python {env['python']}, NumPy {env['numpy']}, {peers}; {env['system']}\n"
        f"{busy(env)}"
    )


def busy(env: Mapping[str, Any]) -> str:
    """Say so if others had work for the machine when this began."""
    return _BUSY if env["load"] is not None and env["load"] > env["cores"] / 2 else ""


def cpu_model(cpuinfo: Path = _CPUINFO) -> str:
    """Name the processor; a name without a number, as virtual machines have, is followed by family and model."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    except OSError:
        lines = []  # not Linux
    told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = told.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in told and "model" in told and not any(map(str.isdigit, name.partition("@")[0])):
        name += f", family {told['cpu family']}, model {told['model']}"
    return name
