"""The sandbox: what a program inside it can see, reach, use up and leave behind."""

import json
import os
import time
from pathlib import Path

import pytest

from transformer_lite.classroom import sandbox

pytestmark = pytest.mark.usefixtures("walls")


@pytest.fixture
def inside(tmp_path):
    """Runs Python code in the sandbox with a folder of its own."""
    folder = tmp_path / "inside"
    folder.mkdir()

    def run(code, seconds=60, **more):
        (folder / "attempt.py").write_text(code)
        return sandbox.run("attempt", [], folder, seconds=seconds, environment={"PYTHONPATH": sandbox.INSIDE, **more})

    run.folder = folder
    return run


def test_it_reads_python_and_the_course_and_nothing_else_of_the_machine(inside, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    home = Path.home()
    paths = (str(secret), str(home), "/etc/passwd", "/etc/shadow", "/root/.bashrc", "/home")
    code = f"""
import json, os
from transformer_lite import content, equations, practice
seen = {{path: os.path.exists(path) for path in {paths!r}}}
seen["sources"] = content.source_dir() is not None
seen["traps"] = len(content.traps()) > 50
seen["environment"] = sorted(name for name in os.environ if "SECRET" in name or "TOKEN" in name)
seen["processes"] = sum(name.isdigit() for name in os.listdir("/proc"))
print(json.dumps(seen))
"""
    os.environ["A_TOKEN"] = "secret"
    try:
        ran = inside(code)
    finally:
        del os.environ["A_TOKEN"]
    assert ran.code == 0, ran.errors
    seen = json.loads(ran.output)
    processes = seen.pop("processes")
    assert seen.pop("traps") and seen.pop("environment") == [] and processes < 6
    # The home of the one who grades may hold Python itself, whose folder is there then, with nothing else in it.
    python = {str(parent) for place in sandbox._readable() for parent in Path(place).parents}
    assert not any(there for path, there in seen.items() if path not in python), seen


def test_it_writes_into_its_own_folder_only(inside, tmp_path):
    code = f"""
import os
import transformer_lite
tried = [{str(tmp_path / "outside.txt")!r}, transformer_lite.__file__, "/usr/new", os.__file__]
for path in tried:
    try:
        open(path, "a").write("x")
    except OSError:
        print("kept out")
open("here.txt", "w").write("x")
"""
    ran = inside(code)
    assert ran.code == 0 and ran.output.count("kept out") == 4, ran
    assert (inside.folder / "here.txt").read_text() == "x" and not (tmp_path / "outside.txt").exists()


def test_it_has_no_network(inside):
    code = """
import socket
try:
    socket.create_connection(("1.1.1.1", 53), timeout=2)
except OSError:
    print("no network")
print([name for _, name in socket.if_nameindex()])
"""
    assert inside(code).output == "no network\n['lo']\n"


DEAF = """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
"""
PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
time.sleep(100)
"""


@pytest.mark.parametrize("code, seconds", [("while True: pass", 1), (DEAF, 1), (PARENT, 2)])
def test_it_ends_with_all_that_it_started_when_its_time_is_up(inside, code, seconds):
    started = time.monotonic()
    ran = inside(code, seconds)
    assert ran.code is None and time.monotonic() - started < seconds + 10


def test_what_it_left_running_does_not_outlive_it(inside):
    left = "import time\nopen('started', 'w').close()\ntime.sleep(3)\nopen('late', 'w').close()"
    code = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {left!r}], start_new_session=True)
while not os.path.exists("started"):
    time.sleep(0.01)
"""
    ran = inside(code)
    assert ran.code == 0 and (inside.folder / "started").exists()
    time.sleep(4)  # it would have written by now
    assert not (inside.folder / "late").exists()


def test_memory_files_and_processes_are_limited(inside):
    code = """
import os, time
try:
    bytearray(8 * 2**30)
except MemoryError:
    print("memory")
try:
    with open("large", "wb") as file:
        for _ in range(300):
            file.write(bytes(2**20))
except OSError:
    print("file")
"""
    ran = inside(code, 60)
    assert ran.output.split() == ["memory", "file"], ran
    assert (inside.folder / "large").stat().st_size <= sandbox.FILE


@pytest.mark.parametrize(
    "code, why",
    [
        ("import os, time\nfor _ in range(100):\n    if not os.fork():\n        time.sleep(100)\ntime.sleep(100)", "processes"),
        ("import os, time\nfor _ in range(5):\n    if not os.fork():\n        held = b'x' * 10**9\ntime.sleep(100)", "memory"),
    ],
)
def test_processes_together_are_limited(inside, code, why, monkeypatch):
    monkeypatch.setattr(sandbox, "PROCESSES", 40)
    ran = inside(code, 60)
    # Whoever is not root is stopped by the kernel's own limit first.
    assert ran.stopped == why or (why == "processes" and os.getuid() != 0)


def test_endless_output_does_not_fill_the_memory(inside):
    ran = inside("import sys\nwhile True: sys.stdout.write('x' * 65536)", 2)
    assert ran.code is None and len(ran.output) <= sandbox.MOST_OUTPUT + 65_536


def test_stopping_ends_what_runs(inside):
    import threading

    sandbox.stopping.clear()
    timer = threading.Timer(1, sandbox.stopping.set)
    timer.start()
    try:
        with pytest.raises(InterruptedError):
            inside("import time; time.sleep(100)", 60)
    finally:
        sandbox.stopping.clear()


def test_it_says_why_there_is_none(monkeypatch):
    sandbox.trouble.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    assert sandbox.trouble() == "no bwrap"
    monkeypatch.undo()
    sandbox.trouble.cache_clear()
    assert sandbox.trouble() is None
