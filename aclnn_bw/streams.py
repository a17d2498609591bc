"""Streams: in-order queues of runs, each with a thread of its own."""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import weakref
from _thread import start_new_thread
from queue import SimpleQueue
from types import TracebackType
from typing import NoReturn, Protocol

from aclnn_bw import _native

_RUNTIME_ERROR = 361001
_NULLPTR = 161001
_numbers = itertools.count(1)


class _Runnable(Protocol):
    def execute(self) -> None: ...


class _Fence:
    """Stands in a queue behind the jobs that somebody waits for."""

    def __init__(self) -> None:
        self.passed = threading.Lock()
        self.passed.acquire()

    def execute(self) -> None:
        self.passed.release()


class _Queue:
    """The jobs of one stream and the thread that runs them.

    Apart from the stream's handle, so that the thread does not keep a forgotten handle alive: when the handle goes,
    the queue is closed, and the thread ends once the last job is done.

    A signal's handler may raise between any two lines of Python in the main thread, Ctrl-C for one. So nothing but
    the interpreter's own C code waits, queues or locks here: a threading.Condition would be left half done. The lock
    is reentrant because the garbage collector may close a queue of a forgotten handle while its thread holds it.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.jobs: SimpleQueue[_Runnable | None] = SimpleQueue()  # None wakes the thread
        self.pending = 0
        self.closed = False
        self.ended = False
        self.failure: BaseException | None = None
        self.thread: int | None = None

    def check_usable(self) -> None:
        if self.process != os.getpid():
            raise _native.refusal(_RUNTIME_ERROR, "stream: was inherited from a parent process, its thread is not "
                                  "here; make another one")
        if self.closed:
            raise _native.refusal(_RUNTIME_ERROR, "stream: has been destroyed; make another one")

    def submit(self, job: _Runnable) -> None:
        """Append a job. If this raises, it may be queued nevertheless: the job knows whether it still has to run."""
        self.check_usable()
        with self.lock:
            self.check_usable()
            if self.thread is None:
                # No threading.Thread: its start() waits in Python. Nothing keeps the interpreter for it, as for a
                # daemon; exit waits for pending jobs by atexit. If the call is interrupted although the thread has
                # started, then that one finds itself dismissed.
                self.thread = start_new_thread(self.work, ())
            self.pending += 1
            self.jobs.put(job)

    def work(self) -> None:
        with self.lock:
            if self.thread != threading.get_ident():
                return
        while (job := self.next()) is not None:
            failure: BaseException | None = None
            try:
                job.execute()
            except BaseException as error:  # whatever failed belongs to the thread that synchronizes
                failure = error
            counts = type(job) is not _Fence
            del job  # its arrays may go before the queue counts as idle
            with self.lock:
                self.pending -= counts
                if self.failure is None:
                    self.failure = failure
                failure = None

    def next(self) -> _Runnable | None:
        """The next job; None when the queue is closed and empty, which ends the thread."""
        while True:
            job = None
            if not self.closed:
                job = self.jobs.get()
            else:
                with self.lock:
                    if self.jobs.empty():
                        self.ended = True
                        return None
                    job = self.jobs.get()
            if job is not None:
                return job

    def drain(self) -> None:
        """Wait until what is queued or running now is done."""
        if threading.get_ident() == self.thread and not self.ended:
            raise _native.refusal(_RUNTIME_ERROR, "stream: cannot be waited for on its own thread")
        fence = _Fence()
        with self.lock:
            if self.thread is None or self.ended:
                return
            self.jobs.put(fence)
        fence.passed.acquire()

    def take_failure(self) -> BaseException | None:
        """Drain, then return the first failure since the last call."""
        self.drain()
        with self.lock:
            failure, self.failure = self.failure, None
        return failure

    def close(self) -> None:
        """Take no more jobs; the thread ends after the last one."""
        with self.lock:
            self.closed = True
            self.jobs.put(None)


class aclrtStream:
    """An in-order queue of phase-2 calls, made by aclrtCreateStream.

    Its thread starts with the first run and holds every run, and so its arrays and workspace, until it is done.
    """

    def __init__(self) -> None:
        """Make an empty queue; aclrtCreateStream is the public way."""
        self._number = next(_numbers)
        self._queue = _Queue(self._number)
        with _registry_lock:
            _queues[self._number] = self._queue
        self._finalizer = weakref.finalize(self, _forget, self._queue)
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        """Show the number and the state."""
        queue = self._queue
        state = "destroyed" if queue.closed else f"{queue.pending} pending" if queue.pending else "idle"
        if queue.failure is not None and not queue.closed:
            state += ", failed"
        return f"<aclrtStream {self._number} {state}>"

    def __enter__(self) -> aclrtStream:
        """Serve as `with aclrtCreateStream() as stream:`, whose end waits for the runs and destroys the stream."""
        self._queue.check_usable()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        """Drain and destroy the stream, if nobody has yet, and raise the first failure of its runs.

        An exception of the body goes on instead; a failure of the runs is then a note to it (from Python 3.11 on).
        """
        if self._queue.closed or self._queue.process != os.getpid():
            return
        try:
            failure = self._queue.take_failure()
        finally:
            aclrtDestroyStream(self)
        if failure is None:
            return
        if error is None:
            _raise(failure)
        if hasattr(error, "add_note"):
            error.add_note(f"{self!r} has failed too: {failure}")

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a queue is one."""
        raise TypeError("aclrtStream: cannot be copied or pickled; it is a handle of this process")

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        """Refuse to be wrapped in an array of objects."""
        raise TypeError("aclrtStream: is no array")

    def _submit(self, job: _Runnable) -> None:
        """Append a run; it starts as soon as those before it are done."""
        self._queue.submit(job)


# Reentrant: the garbage collector may end a forgotten handle, and so call _forget, while this thread holds the lock.
_registry_lock = threading.RLock()
_queues: dict[int, _Queue] = {}


def _forget(queue: _Queue) -> None:
    """End the queue of a handle that is gone or destroyed; what is pending still runs, and exit still waits for it."""
    if queue.process == os.getpid():
        queue.close()
        _drop_idle()


def _drop_idle() -> None:
    with _registry_lock:
        for number, queue in list(_queues.items()):
            if queue.closed and not queue.pending:
                _queues.pop(number, None)


def _own_queues() -> list[_Queue]:
    """The queues of this process, in the order of their making."""
    with _registry_lock:
        return [queue for _, queue in sorted(_queues.items()) if queue.process == os.getpid()]


def _raise(failure: BaseException) -> NoReturn:
    """Raise a failure of another thread in this one, where aclGetRecentErrMsg will tell it too."""
    if isinstance(failure, _native.AclnnError):
        _native.refusal(int(failure.status), str(failure))
    raise failure


def _checked(stream: aclrtStream | None) -> _Queue:
    if stream is None:
        raise _native.refusal(_NULLPTR, "stream = None: must not be null")
    if not isinstance(stream, aclrtStream):
        raise TypeError(f"stream = {stream!r}: must be an aclrtStream, not {type(stream).__name__}")
    stream._queue.check_usable()
    return stream._queue


def aclrtCreateStream() -> aclrtStream:
    """Return a new stream: an in-order queue on which phase 2 returns at once.

    >>> import aclnn_bw
    >>> stream = aclnn_bw.aclrtCreateStream()
    >>> aclnn_bw.aclrtSynchronizeStream(stream)
    >>> aclnn_bw.aclrtDestroyStream(stream)
    """
    return aclrtStream()


def aclrtSynchronizeStream(stream: aclrtStream | None) -> None:
    """Wait until the stream's queue is empty; raise the first failure since the last call, and forget it.

    None is the calling thread's own, which has nothing to wait for.
    """
    if stream is None:
        return
    failure = _checked(stream).take_failure()
    if failure is not None:
        _raise(failure)


def aclrtDestroyStream(stream: aclrtStream) -> None:
    """Wait until the stream's queue is empty, then end it. Failures that nobody has asked for are forgotten."""
    queue = _checked(stream)
    queue.close()
    queue.drain()
    _drop_idle()


def aclrtSynchronizeDevice() -> None:
    """Wait for every stream of this process; raise the first failure found, after all have been waited for."""
    first: BaseException | None = None
    for queue in _own_queues():
        failure = queue.take_failure()
        first = first or failure
    if first is not None:
        _raise(first)


def _finish_at_exit() -> None:
    for queue in _own_queues():
        queue.drain()


def _forget_inherited() -> None:
    """In a forked child: the locks may be held by threads that are not here."""
    global _registry_lock
    _registry_lock = threading.RLock()
    _queues.clear()


atexit.register(_finish_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_inherited)
