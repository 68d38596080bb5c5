"""Runaway code never takes the notebook down: each stops in time, is called what it is, and the next judgement works."""

import dataclasses
import functools
import importlib
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import practice_answers as answers
import psutil
import pytest

from transformer_lite import practice
from transformer_lite.practice import guard, registry
from transformer_lite.practice.running import Call

IN_TIME = guard.TIME_LIMIT + 1.0
X = np.arange(3.0)


@pytest.fixture(autouse=True, scope="module")
def warmed_up():
    practice.judge("softmax", answers.softmax_plain)


@pytest.fixture
def short_limit(monkeypatch):
    """A fifth of the time: the limit itself has its own test."""
    short = dataclasses.replace(practice.exercise("softmax"), limit=0.4)
    monkeypatch.setitem(registry._every(), "softmax", short)


def one_line_loop(x, axis=-1):
    while True: pass  # fmt: skip  # noqa: E701


def bare_except(x, axis=-1):
    while True:
        try:
            while True:
                pass
        except:  # noqa: E722
            pass


def sleeps(x, axis=-1):
    time.sleep(60)


def long_call_in_c(x, axis=-1):
    return sum(range(10**11))


def prints_for_ever(x, axis=-1):
    while True:
        print("line " * 100)


def starts_a_process(x, axis=-1):
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], check=False)


def deep_recursion(x, axis=-1):
    sys.setrecursionlimit(10**9)
    return deep_recursion(x)


def test_an_endless_loop_is_stopped_at_the_limit():
    started = time.monotonic()
    result = practice.judge("softmax", one_line_loop)
    assert guard.TIME_LIMIT <= time.monotonic() - started < IN_TIME
    assert result.status == "timeout" and "No result after 2 s" in result.text("en")
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"


RUNAWAYS = [one_line_loop, bare_except, sleeps, long_call_in_c, prints_for_ever, starts_a_process]


@pytest.mark.parametrize("function", RUNAWAYS, ids=lambda function: function.__name__)
def test_what_does_not_come_back_is_stopped_and_remembered(function, short_limit):
    started = time.monotonic()
    result = practice.judge("softmax", function)
    assert time.monotonic() - started < 1.4
    assert result.status == "timeout"
    started = time.monotonic()
    assert practice.judge("softmax", function) is result  # a definition and a check do not wait twice
    assert time.monotonic() - started < 0.3
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"


def test_a_judged_helper_that_was_mended_is_not_taken_from_memory(short_limit):
    scope = {"time": time, "np": np}
    exec("def helper(x):\n    time.sleep(5)\ndef softmax(x, axis=-1):\n    return helper(x)", scope)
    assert practice.judge("softmax", scope["softmax"]).status == "timeout"
    exec("def helper(x):\n    return x", scope)
    assert practice.judge("softmax", scope["softmax"]).status == "wrong"


def exits(x, axis=-1):
    sys.exit(3)


def exits_at_once(x, axis=-1):
    os._exit(4)


def asks(x, axis=-1):
    return float(input("axis? "))


def reads_standard_input(x, axis=-1):
    return sys.stdin.readline()


def recursion(x, axis=-1):
    return recursion(x)


def ten_gigabytes(x, axis=-1):
    return np.ones(10**10 // 8)


def ten_gigabytes_of_bytes(x, axis=-1):
    return bytearray(10**10)


ENDS = [
    (exits, "SystemExit"),
    (exits_at_once, "ProcessExit"),
    (asks, "InputAsked"),
    (reads_standard_input, "InputAsked"),
    (recursion, "RecursionError"),
    (ten_gigabytes, "MemoryError"),
    (ten_gigabytes_of_bytes, "MemoryError"),
]


@pytest.mark.parametrize(("function", "error"), ENDS, ids=lambda value: getattr(value, "__name__", value))
def test_what_would_end_the_kernel_is_an_error_of_the_function(function, error):
    if error == "MemoryError" and not sys.platform.startswith("linux"):
        pytest.skip("memory is limited on Linux only")
    started = time.monotonic()
    result = practice.judge("softmax", function)
    assert time.monotonic() - started < IN_TIME
    assert (result.status, result.stage) == ("error", "run")
    names = [result.evidence["type"], *result.evidence["bases"]]
    assert error in names or "_ArrayMemoryError" in names
    assert len(result.text("ja").splitlines()) >= 4
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"


def test_recursion_without_a_limit_harms_only_the_worker(short_limit):
    started = time.monotonic()
    assert practice.judge("softmax", deep_recursion).status in ("error", "timeout")
    assert time.monotonic() - started < IN_TIME
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"


def crashes(x, axis=-1):
    import ctypes

    ctypes.string_at(0)


def test_a_crash_below_python_is_reported_and_the_worker_replaced():
    result = practice.judge("softmax", crashes)
    assert result.status == "error" and result.evidence["problem"] == "died"
    assert "The process ended" in result.text("en")
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"


def test_a_worker_that_was_killed_from_outside_is_replaced():
    os.kill(guard._pool.worker.process.pid, 9)
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"


def test_an_interrupt_ends_the_worker_and_is_passed_on(monkeypatch):
    pid = guard._pool.worker.process.pid

    def interrupted(self, deadline):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(guard._Worker, "next", interrupted)
        with pytest.raises(KeyboardInterrupt):
            practice.judge("softmax", lambda x, axis=-1: answers.soft(x, axis))
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"


LOCK = threading.Lock()


def with_a_lock(x, axis=-1, lock=LOCK):
    return answers.soft(x, axis)


def loop_with_a_lock(x, axis=-1, lock=LOCK):
    while True:
        pass


def bare_except_with_a_lock(x, axis=-1, lock=LOCK):
    while True:
        try:
            x = x + 1
        except:  # noqa: E722
            continue


def exits_at_once_with_a_lock(x, axis=-1, lock=LOCK):
    os._exit(4)


def test_what_cannot_travel_is_judged_here_and_says_so():
    result = practice.judge("softmax", with_a_lock)
    assert result.status == "pass"
    assert [note.code for note in result.notes] == ["in_notebook"]
    exit_here = practice.judge("softmax", exits_at_once_with_a_lock)
    assert (exit_here.status, exit_here.evidence["type"]) == ("error", "ProcessExit")


@pytest.mark.parametrize("function", [loop_with_a_lock, bare_except_with_a_lock], ids=lambda f: f.__name__)
def test_what_cannot_travel_is_stopped_by_the_alarm(function):
    if not hasattr(guard.signal, "setitimer"):
        pytest.skip("no alarm on this system")
    started = time.monotonic()
    ran = guard.run(function, [Call((X,))], limit=0.3)
    assert (ran.ended, ran.where) == ("timeout", "main thread") and time.monotonic() - started < 1.3


def test_off_the_main_thread_it_is_a_thread_and_nothing_stays_redirected():
    streams, results = (sys.stdout, sys.stderr, sys.stdin, input, os._exit), []
    thread = threading.Thread(target=lambda: results.append(guard.run(bare_except_with_a_lock, [Call((X,))], limit=0.3)))
    thread.start()
    thread.join(3)
    assert (results[0].ended, results[0].where) == ("timeout", "thread")
    assert (sys.stdout, sys.stderr, sys.stdin, input, os._exit) == streams


@pytest.fixture
def windows(monkeypatch):
    """A system without SIGALRM and without fork, as Windows is; macOS, too, starts processes only anew."""
    monkeypatch.delattr(guard.signal, "setitimer")
    monkeypatch.delattr(guard.signal, "SIGALRM")
    monkeypatch.delattr(os, "fork", raising=False)
    practice.shutdown()  # the next worker is started under these conditions


def test_without_alarm_and_fork_a_worker_judges_and_is_replaced(windows, short_limit):
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"
    started = time.monotonic()
    result = practice.judge("softmax", bare_except)
    assert result.status == "timeout" and time.monotonic() - started < 1.4
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"


def test_without_alarm_what_cannot_travel_runs_in_a_thread(windows):
    assert practice.judge("softmax", with_a_lock).status == "pass"
    started = time.monotonic()
    ran = guard.run(loop_with_a_lock, [Call((X,))], limit=0.3)
    assert (ran.ended, ran.where) == ("timeout", "thread") and time.monotonic() - started < 1.3


def test_it_works_off_the_main_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(practice.judge("softmax", answers.softmax_plain)))
    thread.start()
    thread.join(10)
    assert results[0].status == "pass"


def replaces_exp(x, axis=-1):
    np.exp = np.square
    np.seterr(all="raise")
    os.chdir("/")
    return x


def test_what_the_code_does_to_numpy_is_gone_for_the_next():
    practice.judge("softmax", replaces_exp)
    assert practice.judge("softmax", answers.softmax_plain).status == "pass"
    assert np.exp(0.0) == 1.0


SCRIPT = textwrap.dedent(
    """
    import numpy as np
    from transformer_lite import practice

    def helper(x, axis):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    def softmax(x, axis=-1):
        return helper(x, axis)

    print(practice.judge("softmax", softmax).status)
    from transformer_lite.practice import guard, registry
    print(guard._pool.worker.process.pid)
    """
)


@pytest.mark.parametrize("way", ["-c", "file", "stdin"])
def test_it_works_in_a_plain_script_and_leaves_no_process_behind(way, tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    # A learner's own random.py beside the script must not stand in for Python's.
    (tmp_path / "random.py" if way == "-c" else tmp_path / "unused.py").write_text("")
    arguments = {"-c": ["-P", "-c", SCRIPT], "file": [str(file)], "stdin": ["-"]}[way]
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        input=SCRIPT if way == "stdin" else "",
    )
    assert ran.returncode == 0 and not ran.stderr, ran.stderr
    status, pid = ran.stdout.split()
    assert status == "pass" and not psutil.pid_exists(int(pid))


def test_a_kernel_that_is_killed_takes_its_worker_with_it():
    code = "import time\nfrom transformer_lite import practice\nfrom transformer_lite.practice import guard\n" + textwrap.dedent(
        """
        practice.warm()
        guard._pool.worker.wait_until_ready()
        print(guard._pool.worker.process.pid, flush=True)
        time.sleep(60)
        """
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait()
        worker.wait(timeout=10)
    assert not worker.is_running()


def test_it_works_in_a_real_kernel(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cells = [
        "import numpy as np\nfrom transformer_lite import practice",
        "def soft(x, axis):\n    e = np.exp(x - x.max(axis=axis, keepdims=True))\n    return e / e.sum(axis=axis, keepdims=True)",
        "def softmax(x, axis=-1):\n    return soft(x, axis)\npractice.judge('softmax', softmax).status",
        "def softmax(x, axis=-1):\n    y = x\n    return y + no_such_name\nprint(practice.judge('softmax', softmax).text('en'))",
        "def softmax(x, axis=-1):\n    exit()\npractice.judge('softmax', softmax).status",
        "def softmax(x, axis=-1):\n    get_ipython()\n    while True: pass\npractice.judge('softmax', softmax).status",
        "soft(np.array([1.0, 1.0]), -1)[0]",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    plain = [cell.outputs[0].get("text") or cell.outputs[0]["data"]["text/plain"] for cell in notebook.cells[2:]]
    assert plain[0] == "'pass'"
    assert "At line 3, in softmax:    return y + no_such_name" in plain[1]
    assert plain[2:4] == ["'error'", "'timeout'"]
    assert "0.5" in plain[4]


@functools.lru_cache
def scale(d):
    return 1.0 if d < 2 else scale(d - 1)


def uses_a_cache(x, axis=-1):
    return answers.softmax_plain(x / scale(x.shape[-1]), axis)


def test_a_helper_with_a_cache_travels():
    result = practice.judge("softmax", uses_a_cache, pickled=guard.dumps(uses_a_cache))
    assert result.status == "pass"


def test_modules_that_the_worker_has_not_are_taken_along(tmp_path, monkeypatch):
    (tmp_path / "softly.py").write_text("import numpy as np\ndef soft(e):\n    return e / e.sum(-1, keepdims=True)\n")
    (tmp_path / "written.py").write_text("import numpy as np\nimport softly\n\ndef f(x):\n    return softly.soft(np.exp(x))\n")
    monkeypatch.syspath_prepend(tmp_path)
    written = importlib.import_module("written")
    alone, pickled = guard.dumps(written.f), guard.dumps(written.f, [sys.modules["softly"]])
    monkeypatch.undo()
    for name in ("written", "softly"):
        del sys.modules[name]
    with pytest.raises(guard.NotInWorker):
        guard.run(None, [Call((X,))], pickled=alone, only_there=True)
    ran = guard.run(None, [Call((X,))], pickled=pickled, only_there=True)
    assert ran.outcomes[0].error is None and ran.outcomes[0].values[0].array.sum() == pytest.approx(1)
