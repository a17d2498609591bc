"""Streams: in-order queues of runs, each with a thread of its own."""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import weakref
from collections import deque
from typing import Protocol

from aclnn_bw import _native

_RUNTIME_ERROR = 361001
_NULLPTR = 161001
_numbers = itertools.count(1)


class _Runnable(Protocol):
    def execute(self) -> None: ...


class aclrtStream:  # noqa: N801 -- the C name
    """An in-order queue of phase-2 calls, made by aclrtCreateStream.

    The thread starts with the first run. It holds every run, and so its arrays and workspace, until it is done.
    """

    def __init__(self) -> None:
        """Make an empty queue; aclrtCreateStream is the public way."""
        self._number = next(_numbers)
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._queue: deque[_Runnable] = deque()
        self._busy = False
        self._destroyed = False
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        """Show the number and the state."""
        waiting = len(self._queue) + self._busy
        state = "destroyed" if self._destroyed else f"{waiting} pending" if waiting else "idle"
        return f"<aclrtStream {self._number} {state}>"

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            raise _native.refusal(_RUNTIME_ERROR, "stream: was inherited from a parent process; its thread is not here")
        if self._destroyed:
            raise _native.refusal(_RUNTIME_ERROR, "stream: has been destroyed")

    def _submit(self, job: _Runnable) -> None:
        """Append a run; it starts as soon as those before it are done."""
        self._check_usable()
        with self._changed:
            self._check_usable()
            if self._thread is None:
                # A daemon: an idle stream must not keep the interpreter. Exit waits for pending runs by atexit.
                self._thread = threading.Thread(target=self._work, name=f"aclrtStream-{self._number}", daemon=True)
                self._thread.start()
            self._queue.append(job)
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue:
                    if self._destroyed:
                        return
                    self._changed.wait()
                job = self._queue.popleft()
                self._busy = True
            failure: BaseException | None = None
            try:
                job.execute()
            except BaseException as error:  # noqa: BLE001 -- whatever failed belongs to the synchronizing thread
                failure = error
            del job
            with self._changed:
                if self._failure is None:
                    self._failure = failure
                failure = None
                self._busy = False
                if not self._queue:
                    self._changed.notify_all()

    def _drain(self) -> None:
        with self._changed:
            while self._queue or self._busy:
                self._changed.wait()

    def _synchronize(self) -> None:
        self._check_usable()
        self._drain()
        with self._changed:
            failure, self._failure = self._failure, None
        if failure is not None:
            if isinstance(failure, _native.AclnnError):
                _native.refusal(int(failure.status), str(failure))
            raise failure

    def _destroy(self) -> None:
        self._check_usable()
        with self._changed:
            self._destroyed = True
            self._changed.notify_all()
        self._drain()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        _streams.discard(self)


_streams: weakref.WeakSet[aclrtStream] = weakref.WeakSet()


def _checked(stream: aclrtStream | None) -> aclrtStream:
    if stream is None:
        raise _native.refusal(_NULLPTR, "stream = None: must not be null")
    if not isinstance(stream, aclrtStream):
        raise TypeError(f"stream = {stream!r}: must be an aclrtStream, not {type(stream).__name__}")
    return stream


def aclrtCreateStream() -> aclrtStream:
    """Return a new stream: an in-order queue on which phase 2 returns at once.

    >>> import aclnn_bw
    >>> stream = aclnn_bw.aclrtCreateStream()
    >>> aclnn_bw.aclrtSynchronizeStream(stream)
    >>> aclnn_bw.aclrtDestroyStream(stream)
    """
    stream = aclrtStream()
    _streams.add(stream)
    return stream


def aclrtSynchronizeStream(stream: aclrtStream | None) -> None:
    """Wait until the stream's queue is empty; raise the first failure since the last call, and forget it.

    None is the calling thread's own, which has nothing to wait for.
    """
    if stream is not None:
        _checked(stream)._synchronize()


def aclrtDestroyStream(stream: aclrtStream) -> None:
    """Wait until the stream's queue is empty, then end it. Failures that nobody has asked for are forgotten."""
    _checked(stream)._destroy()


def aclrtSynchronizeDevice() -> None:
    """Wait for every stream of this process; raise the first failure found, after all have been waited for."""
    first: BaseException | None = None
    for stream in sorted(_streams, key=lambda one: one._number):
        if stream._process != os.getpid() or stream._destroyed:
            continue
        try:
            stream._synchronize()
        except Exception as error:  # noqa: BLE001 -- raised below, once all streams are idle
            first = first or error
    if first is not None:
        raise first


def _finish_at_exit() -> None:
    for stream in list(_streams):
        if stream._process == os.getpid():
            stream._drain()


atexit.register(_finish_at_exit)
