"""The worker process: reads functions and inputs from its standard input, runs them, writes what happened to its standard output.

It is started by `transformer_lite.practice.guard` and killed by it when a learner's code does not come back.
Results leave as JSON and npy bytes: nothing that this process writes is ever unpickled.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import math
import os
import pickle
import queue
import random
import signal
import sys
import threading
import time
from typing import Any, BinaryIO

import numpy as np

from transformer_lite.equations import seal
from transformer_lite.practice.running import Outcome, import_early, run_calls
from transformer_lite.practice.wire import pack, read_frame, write_frame

MEMORY_ALLOWED = 6 * 2**30  # bytes beyond what the worker has mapped at its start: torch fits, a 10 GB array does not


def main() -> None:
    """Serve requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    commands, results = _take_over_streams()
    _limit_memory()
    _be_the_first_to_go()
    seal()
    import cloudpickle  # noqa: F401  the functions that arrive were pickled by it

    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(commands, requests), daemon=True).start()
    write_frame(results, {"event": "ready", "pid": os.getpid()})
    builtins.display = _display  # type: ignore[attr-defined]
    originals = {module: dict(vars(module)) for module in (builtins, math, np, np.linalg, np.random, os, random, time)}
    variables = dict(os.environ)
    while True:
        _serve(requests.get(), results)
        for module, names in originals.items():
            _restore(module, names)
        if dict(os.environ) != variables:
            os.environ.clear()
            os.environ.update(variables)


def _display(*things: Any, **_: Any) -> None:
    """What stands for IPython's ``display``, which every notebook has without importing it."""
    print(*things)


def _take_over_streams() -> tuple[BinaryIO, BinaryIO]:
    """Keep the pipes for ourselves: what the learner's code reads or prints, even below Python, goes to the null device."""
    descriptors = os.dup(0), os.dup(1)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in descriptors:
            msvcrt.setmode(descriptor, os.O_BINARY)
    commands, results = os.fdopen(descriptors[0], "rb"), os.fdopen(descriptors[1], "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return commands, results


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm", encoding="ascii") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = mapped + MEMORY_ALLOWED
        resource.setrlimit(resource.RLIMIT_AS, (allowed if hard == resource.RLIM_INFINITY else min(allowed, hard), hard))


def _be_the_first_to_go() -> None:
    """Where the kernel must free memory by ending a process, let it be this one and not the notebook (Linux)."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def _read_requests(commands: BinaryIO, requests: queue.SimpleQueue[dict[str, Any]]) -> None:
    while True:
        message = read_frame(commands)
        if message is None:
            _exit(0)  # the notebook has ended: so do we, even in the middle of a learner's loop
        requests.put(pickle.loads(message[1]))


_exit = os._exit  # the learner's code meets a stand-in under the old name


def _serve(request: dict[str, Any], results: BinaryIO) -> None:
    with contextlib.suppress(OSError):
        os.chdir(request["folder"])
    sys.path[:] = request["path"]
    threads, process = threading.active_count(), os.getpid()

    def say(event: str, body: bytes = b"", **more: Any) -> None:
        if os.getpid() != process:  # a copy of this process, made by the learner's code: it has nothing to say here
            _exit(0)
        write_frame(results, {"event": event, "number": request["number"], **more}, body)

    def send(outcome: Outcome) -> None:
        header, body = pack(outcome)
        say("outcome", body, **header)

    # If the notebook dies without a word, do not run on for ever. This watches from C, so nothing in Python can hold it up.
    with open(os.devnull, "w") as silence:
        faulthandler.dump_traceback_later(request["limit"] + request["load_limit"] + 5, exit=True, file=silence)
        try:
            try:
                function = pickle.loads(request["function"])
                import_early(function)
            except BaseException as error:
                say("not loaded", error=f"{type(error).__name__}: {error}"[:500])
                return
            say("loaded")
            run_calls(
                function,
                request["calls"],
                request["forbidden"],
                request["names"],
                send,
            )
            say("done", busy=threading.active_count() > threads or _has_children())
        finally:
            faulthandler.cancel_dump_traceback_later()


def _has_children() -> bool:
    """True if a process that the learner's code has started is still running."""
    if not hasattr(os, "WNOHANG"):  # Windows
        return False
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except OSError:  # there is none
        return False
    return True


def _restore(module: Any, names: dict[str, Any]) -> None:
    """Undo what the learner's code did to a module that the next judgement relies on."""
    for name, original in names.items():
        if vars(module).get(name) is not original:
            setattr(module, name, original)


if __name__ == "__main__":
    main()
