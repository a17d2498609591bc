"""How many threads a call may use: the setting, its environment, and what the machine leaves."""

from __future__ import annotations

import os
import warnings
from contextvars import Token
from types import TracebackType

from aclnn_bw import _native

_MOST = 65535


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _cgroup_cores() -> int | None:
    """Whole cores of the cgroup's CPU quota (version 2, else 1), at least 1; None without a quota."""
    try:
        quota, period = _text("/sys/fs/cgroup/cpu.max").split()[:2]
    except (OSError, ValueError):
        try:
            quota = _text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
            period = _text("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
        except OSError:
            return None
    try:
        if int(quota) <= 0 or int(period) <= 0:
            return None
        return max(1, int(quota) // int(period))
    except ValueError:      # "max": no quota
        return None


def _available_cores() -> int:
    """Return the cores that affinity and the cgroup's quota leave to this process."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        cores = os.cpu_count() or 1
    return min(cores, _cgroup_cores() or cores)


def _from_environment(cores: int) -> int:
    """ACLNN_BW_NUM_THREADS, else OMP_NUM_THREADS (its first level), else the cores."""
    for variable in ("ACLNN_BW_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(variable, "").strip()
        if not value:
            continue
        first = value.split(",")[0].strip() if variable == "OMP_NUM_THREADS" else value
        if first.isascii() and first.isdigit() and len(first) <= 5 and 1 <= int(first) <= _MOST:
            return int(first)
        warnings.warn(f"{variable}={value!r} is ignored: must be an integer in [1, {_MOST}]", RuntimeWarning,
                      stacklevel=2)
    return min(cores, _MOST)


def _checked(n: int) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"n = {n!r}: must be an int, not {type(n).__name__}")
    if not 1 <= n.__index__() <= _MOST:
        raise ValueError(f"n = {n}: must be in [1, {_MOST}]")
    return n.__index__()


def get_num_threads() -> int:
    """Return the thread count that calls made here may use.

    >>> import aclnn_bw
    >>> with aclnn_bw.num_threads(2):
    ...     aclnn_bw.get_num_threads()
    2
    """
    return _native.current_threads()


def set_num_threads(n: int | None) -> None:
    """Set the thread count of the process, from 1 to 65535; a `num_threads` context wins over it.

    None sets what held at import: ACLNN_BW_NUM_THREADS, else OMP_NUM_THREADS, else the available cores. Every thread
    sees the setting at once. OpenMP's own default is neither read nor set, for other libraries use it: what
    threadpoolctl or omp_set_num_threads changes has no effect here, nor this there.

    Phase 1 fixes an executor's threads. Small work stays on one thread whatever the setting, and a team is never
    larger than max(16, four times the available cores). Without OpenMP, and in a forked child, the setting has no
    effect.
    """
    _native.set_process_threads(_initial if n is None else _checked(n), _cores)


class num_threads:
    """Context manager: the thread count for the current context only.

    Asyncio tasks that are started inside see it. A thread does not, but what `set_num_threads` has set for the process,
    unless it gets the context: `pool.submit(contextvars.copy_context().run, function, *arguments)`, or
    `initializer=num_threads(1).__enter__` for all that a pool does. (Python 3.14 can start threads with the context of
    their makers: `-X thread_inherit_context=1`.)

    >>> import aclnn_bw
    >>> with aclnn_bw.num_threads(1):
    ...     aclnn_bw.get_num_threads()
    1
    """

    def __init__(self, n: int) -> None:
        """Check the count; nothing changes before the context is entered."""
        self._n = _checked(n)
        self._tokens: list[Token[int | None]] = []

    def __repr__(self) -> str:
        """Show how it was made."""
        return f"num_threads({self._n})"

    def __enter__(self) -> num_threads:
        """Make the count hold in this context."""
        self._tokens.append(_native.threads_setting.set(self._n))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        """Restore what held before."""
        _native.threads_setting.reset(self._tokens.pop())


_cores = _available_cores()
_initial = _from_environment(_cores)
_native.set_process_threads(_initial, _cores)
if hasattr(os, "register_at_fork"):
    # libgomp's pool does not survive a fork: a parallel region in the child would wait for ever.
    os.register_at_fork(after_in_child=_native.enter_forked_child)
