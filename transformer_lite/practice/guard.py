"""Runs learner code where it can be stopped: in a warm worker process that is killed and replaced at the time limit.

What does not pickle runs in this process instead: on the main thread with an alarm where there is one (not on Windows), else in
a daemon thread that is interrupted and, if it will not stop, left behind. Nothing here ever forks.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import functools
import io
import os
import pickle
import queue
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import transformer_lite
from transformer_lite.practice.running import Call, Outcome, OutOfTime, import_early, run_calls
from transformer_lite.practice.source import PROXIED
from transformer_lite.practice.wire import RESULT_ALLOWED, read_frame, unpack, write_frame

TIME_LIMIT = 2.0  # seconds for all calls of one judgement together: the inputs are tiny, so slow is really slow
LOAD_LIMIT = 30.0  # seconds for importing what the function needs (torch, on a slow disk)
START_LIMIT = 30.0  # seconds for the worker to start


@dataclass
class Run:
    """What happened when a function was called several times.

    Attributes:
        outcomes: one per call that ended.
        ended: "done", "timeout" or "died" (the process ended under the learner's code).
        where: "worker", "main thread" or "thread".
        detail: the exit code of a process that died.
        seconds: how long it took, without loading.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    ended: str = "done"
    where: str = "worker"
    detail: int | None = None
    seconds: float = 0.0


class NotInWorker(Exception):
    """This function cannot be taken to the worker (it does not pickle, or does not load there)."""


class WorkerUnavailable(NotInWorker):
    """No worker could be started."""


def run(
    function: Callable[..., Any],
    calls: list[Call],
    *,
    forbidden: str | None = None,
    names: tuple[str, ...] = ("result",),
    limit: float = TIME_LIMIT,
    pickled: bytes | None = None,
    only_there: bool = False,
) -> Run:
    """Call ``function`` with each of ``calls``, for ``limit`` seconds at most, and report.

    Args:
        function: the learner's.
        calls: arguments; each call gets copies.
        forbidden: the equation that must not be called (it is noticed, and the outcome says so).
        names: the names of the things that the function is to return.
        limit: seconds for all calls together.
        pickled: the function as `dumps` gave it, if it is already known.
        only_there: run nothing in this process, whatever happens.

    Raises:
        NotInWorker: the function does not load in the worker, and ``only_there``.
        KeyboardInterrupt: the learner interrupted; the worker has been ended.
    """
    try:
        return _pool.run(pickled or dumps(function), calls, forbidden, names, limit)
    except NotInWorker:
        if only_there:
            raise
        return _run_here(function, calls, forbidden, names, limit)


def warm() -> None:
    """Start the worker in the background, so that the first judgement does not wait for it."""
    _pool.warm()


def shutdown() -> None:
    """End the worker. The next judgement starts a new one."""
    _pool.shutdown()


# Taking a function to the worker --------------------------------------------------------------------------------------


def dumps(function: Callable[..., Any], modules: Iterable[types.ModuleType] = ()) -> bytes:
    """``function`` as bytes, with what it uses from its notebook or file.

    Args:
        function: the learner's.
        modules: those that the worker has no files of, so that what is used of them is taken along.

    Raises:
        NotInWorker: it cannot be pickled.
    """
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, thing: Any) -> Any:
            # IPython puts these into every notebook; they hold the whole shell, which cannot travel.
            if type(thing).__name__ in ("ExitAutocall", "ZMQExitAutocall"):
                return getattr, (sys, "exit")
            if isinstance(thing, types.MethodType) and thing.__name__ == "get_ipython":
                return _no_shell, ()
            if type(thing) is functools._lru_cache_wrapper and sys.modules.get(thing.__module__) in values:
                return _cached_anew, (thing.__wrapped__, thing.cache_parameters())
            # A function that calls itself by its name means itself, not the one that stands in for it until it is right.
            if isinstance(getattr(type(thing), "active", None), property) and thing.__dict__.get(PROXIED) is function:
                return _itself, (function,)
            return super().reducer_override(thing)

    taken = list({id(module): module for module in (_own_module(function), *modules) if module is not None}.values())
    values = [*taken, sys.modules.get("__main__")]
    stream = io.BytesIO()
    try:
        for module in taken:
            cloudpickle.register_pickle_by_value(module)
        try:
            Pickler(stream).dump(function)
        finally:
            for module in taken:
                cloudpickle.unregister_pickle_by_value(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # pickling runs code of any object: whatever it raises means the same
        raise NotInWorker(f"{type(error).__name__}: {error}") from error
    return stream.getvalue()


def _no_shell() -> Callable[[], None]:
    """What stands for ``get_ipython`` in the worker, where there is no IPython."""
    return type(None)


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _cached_anew(function: Callable[..., Any], parameters: dict[str, Any]) -> Callable[..., Any]:
    """What `functools.cache` or `lru_cache` made, with nothing in it."""
    return functools.lru_cache(**parameters)(function)


def _own_module(function: Any) -> types.ModuleType | None:
    """The module of a function from the learner's own file, which the worker may not be able (and need not) import."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    name = getattr(function, "__module__", None) or type(function).__module__
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None or name == "__main__" or file is None or name.partition(".")[0] == "transformer_lite":
        return None
    installed = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return None if any(path and file.startswith(path + os.sep) for path in installed) else module


# The worker -----------------------------------------------------------------------------------------------------------


class _Worker:
    """One process, and a thread that reads what it says."""

    def __init__(self) -> None:
        if not sys.executable:
            raise WorkerUnavailable("this Python does not know its own program.")
        root = str(Path(transformer_lite.__file__).resolve().parents[1])
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
            "MPLBACKEND": "agg",
            "PYTHONUTF8": "1",
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        windows = {"creationflags": 0x08000000 | 0x00000200} if os.name == "nt" else {"start_new_session": True}
        try:
            self.process = subprocess.Popen(
                # -P: a file named random.py beside the notebook must not stand in for Python's own.
                [sys.executable, "-P", "-m", "transformer_lite.practice.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                **windows,  # type: ignore[call-overload]
            )
        except OSError as error:
            raise WorkerUnavailable(str(error)) from error
        self.owner = os.getpid()
        self.ready = False
        self.messages: queue.SimpleQueue[tuple[dict[str, Any], bytes] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="transformer_lite worker", daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            while (message := read_frame(self.process.stdout, RESULT_ALLOWED)) is not None:
                self.messages.put(message)
        except (OSError, ValueError, MemoryError):
            pass
        self.messages.put(None)

    def usable(self) -> bool:
        return self.owner == os.getpid() and self.process.poll() is None

    def next(self, deadline: float) -> tuple[dict[str, Any], bytes] | None:
        """The next message, None if the process has ended; ``queue.Empty`` at the deadline."""
        return self.messages.get(timeout=max(deadline - time.monotonic(), 0.001))

    def wait_until_ready(self) -> None:
        if self.ready:
            return
        try:
            message = self.next(time.monotonic() + START_LIMIT)
        except queue.Empty:
            message = None
        if message is None or message[0].get("event") != "ready":
            self.kill()
            raise WorkerUnavailable("the worker did not start.")
        self.ready = True

    def send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        write_frame(self.process.stdin, {}, pickle.dumps(request))

    def kill(self) -> None:
        """End the process, and what it has started, at once."""
        if self.owner != os.getpid():
            return
        if os.name != "nt":
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.process.kill()
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1)


class _Pool:
    """The one worker of this process, replaced when it has gone."""

    def __init__(self) -> None:
        self.worker: _Worker | None = None
        self.lock = threading.RLock()
        self.asked = 0

    def warm(self) -> None:
        with self.lock, contextlib.suppress(WorkerUnavailable):
            self._take()

    def shutdown(self) -> None:
        with self.lock:
            if self.worker is not None:
                self.worker.kill()
                self.worker = None

    def _take(self) -> _Worker:
        if self.worker is None or not self.worker.usable():
            self.worker = _Worker()
        return self.worker

    def run(self, function: bytes, calls: list[Call], forbidden: str | None, names: tuple[str, ...], limit: float) -> Run:
        self.asked += 1
        request = {
            "number": self.asked,
            "function": function,
            "calls": calls,
            "forbidden": forbidden,
            "names": names,
            "limit": limit,
            "load_limit": LOAD_LIMIT,
            "path": [entry for entry in sys.path if isinstance(entry, str)],
            "folder": _folder(),
        }
        with self.lock:
            try:
                result, loaded = self._listen(self._send(request), self.asked, limit)
                if result.ended == "died" and not loaded:  # it was ended from outside before the function arrived: once more
                    result, loaded = self._listen(self._send(request), self.asked, limit)
                return result
            except BaseException as error:  # an interrupt, too: the worker may be in the middle of anything
                if not isinstance(error, _StillGood):
                    self.shutdown()
                raise

    def _send(self, request: dict[str, Any]) -> _Worker:
        for attempt in range(2):
            worker = self._take()
            try:
                worker.wait_until_ready()
                worker.send(request)
                return worker
            except (OSError, WorkerUnavailable) as error:  # it ended while nobody looked: one new one is tried
                self.shutdown()
                if attempt:
                    raise WorkerUnavailable(str(error)) from error
        raise WorkerUnavailable("the worker did not start.")

    def _listen(self, worker: _Worker, number: int, limit: float) -> tuple[Run, bool]:
        """What the worker says to request ``number`` until it is done, and whether the function was loaded."""
        result, loaded, spent = Run(), False, False
        deadline = time.monotonic() + LOAD_LIMIT
        started = time.monotonic()
        while True:
            try:
                message = worker.next(deadline)
            except queue.Empty:
                result.ended = "timeout"
                break
            if message is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.process.wait(timeout=0.5)
                result.ended, result.detail = "died", worker.process.returncode
                break
            if message[0].pop("number", number) != number:
                continue  # an answer to an earlier request, from a process that the learner's code had forked
            match message[0]["event"]:
                case "loaded":
                    loaded = True
                    started = time.monotonic()
                    deadline = started + limit
                case "outcome":
                    result.outcomes.append(unpack(*message))
                case "not loaded":
                    raise _StillGood(message[0]["error"])
                case "done":
                    spent = message[0]["busy"]
                    break
        result.seconds = time.monotonic() - started
        if result.ended != "done" or spent:
            worker.kill()
            self.worker = None
            self.warm()
        return result, loaded


class _StillGood(NotInWorker):
    """The function did not load; the worker itself is well."""


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.path.expanduser("~")


_pool = _Pool()
atexit.register(shutdown)


# Without a worker -----------------------------------------------------------------------------------------------------


def _run_here(
    function: Callable[..., Any], calls: list[Call], forbidden: str | None, names: tuple[str, ...], limit: float
) -> Run:
    import_early(function)
    on_main_thread = threading.current_thread() is threading.main_thread()
    if on_main_thread and hasattr(signal, "setitimer"):
        return _run_with_alarm(function, calls, forbidden, names, limit)
    return _run_in_thread(function, calls, forbidden, names, limit)


def _run_with_alarm(
    function: Callable[..., Any], calls: list[Call], forbidden: str | None, names: tuple[str, ...], limit: float
) -> Run:
    result = Run(where="main thread")
    fired = 0

    def stop(_signal: int, frame: types.FrameType | None) -> None:
        # An alarm inside a bare ``except:`` is swallowed. So it comes again, and from the third time on it also strikes at the
        # next line, which in such a loop is one outside the ``try``.
        nonlocal fired
        fired += 1
        if fired > 2 and frame is not None:
            sys.settrace(lambda *_: strike)
            frame.f_trace = strike
        raise OutOfTime

    def strike(_frame: types.FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            raise OutOfTime
        return strike

    def finished(outcome: Outcome) -> None:
        nonlocal fired
        if not fired and time.monotonic() - started > limit:  # the learner's code has turned the alarm off
            fired = 1
            raise OutOfTime
        if not fired:
            result.outcomes.append(outcome)

    trace, handler = sys.gettrace(), signal.signal(signal.SIGALRM, stop)
    started = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, limit, 0.05)
        try:
            run_calls(function, calls, forbidden, names, finished)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except OutOfTime:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        sys.settrace(trace)
    result.ended, result.seconds = ("timeout" if fired else "done"), time.monotonic() - started
    return result


def _run_in_thread(
    function: Callable[..., Any], calls: list[Call], forbidden: str | None, names: tuple[str, ...], limit: float
) -> Run:
    result = Run(where="thread")
    over = threading.Event()

    def finished(outcome: Outcome) -> None:
        if not over.is_set():
            result.outcomes.append(outcome)

    def work() -> None:
        with contextlib.suppress(OutOfTime):
            run_calls(function, calls, forbidden, names, finished)

    thread = threading.Thread(target=work, daemon=True)
    places = [(sys, "stdout"), (sys, "stderr"), (sys, "stdin"), (os, "_exit"), (os, "abort"), (os, "kill"), (builtins, "input")]
    places += [(builtins, "exit"), (warnings, "showwarning"), (warnings, "filters")]
    before = [(module, name, getattr(module, name)) for module, name in places if hasattr(module, name)]
    started = time.monotonic()
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        over.set()
        result.ended = "timeout"
        for _ in range(5):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(OutOfTime))
            thread.join(0.1)
            if not thread.is_alive():
                break
        for module, name, original in before:  # a thread that is left behind puts nothing back
            setattr(module, name, original)
    result.seconds = time.monotonic() - started
    return result
