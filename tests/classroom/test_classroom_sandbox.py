"""The sandbox: what a program inside it can see, reach, use up and leave behind."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

import transformer_lite
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
    paths = (str(secret), str(home), "/etc/passwd", "/etc/shadow", str(home / ".bashrc"), "/home")
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


def test_the_machine_itself_cannot_be_changed_even_by_root(inside):
    beside = str(Path(transformer_lite.__file__).parents[2] / "new")
    code = f"""
import ctypes, os
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/new", "/dev/new", {beside!r}):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        print("open:", path)
    except OSError:
        pass
print(ctypes.CDLL(None).unshare(0x10000000))
"""
    assert inside(code).output == ("-1\n" if "--disable-userns" in sandbox._options() else "0\n")


def test_what_it_starts_cannot_look_into_it(inside):
    code = """
import os, subprocess, sys
look = '''
import os
for name in ("mem", "environ", "fd/1"):
    try:
        open(f"/proc/{os.getppid()}/{name}", "rb")
        print("open:", name)
    except OSError:
        pass
'''
print(subprocess.run([sys.executable, "-c", look], capture_output=True, text=True).stdout or "shut")
"""
    assert inside(code).output == "shut\n"


def test_it_reads_what_it_is_told(tmp_path):
    (tmp_path / "attempt.py").write_text("import sys\nprint(sys.stdin.buffer.read())")
    asked = {"seconds": 60, "environment": {"PYTHONPATH": sandbox.INSIDE}}
    assert sandbox.run("attempt", [], tmp_path, told=b"a key", **asked).output == "b'a key'\n"
    assert sandbox.run("attempt", [], tmp_path, **asked).output == "b''\n"


def test_folders_in_memory_are_limited(inside):
    if "--size" not in sandbox._options():
        pytest.skip("this bubblewrap limits no folders in memory")
    code = """
import itertools
for folder in ("/tmp", "/dev/shm", "/run"):
    written = 0
    try:
        for number in range(20):
            with open(f"{folder}/{number}", "wb") as file:
                for _ in range(100):
                    written += file.write(bytes(2**20))
    except OSError:
        print(written <= 2**29)
"""
    assert inside(code).output == "True\nTrue\nTrue\n"


FULL = {
    "large": "for n in range(100):\n    open(f'f{n}', 'wb').write(bytes(150 * 2**20))",
    "many": "for n in range(10**7):\n    open(f'f{n}', 'w').close()",
    "deep": "import os\nfor _ in range(10**7):\n    os.mkdir('d')\n    os.chdir('d')",
}


@pytest.mark.parametrize("how", FULL)
def test_its_folder_is_limited(inside, how, monkeypatch):
    monkeypatch.setattr(sandbox, "DISK", 2**28)
    monkeypatch.setattr(sandbox, "ENTRIES", 2_000)
    monkeypatch.setattr(sandbox, "EVERY_FOLDER", 0.1)
    ran = inside(FULL[how] + "\nimport time\ntime.sleep(100)")
    assert ran.stopped == "disk" and ran.seconds < 60
    sandbox.remove(inside.folder)
    assert not inside.folder.exists()


def test_a_folder_is_deleted_whatever_lies_in_it(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o755)
    (kept / "file").write_text("x")
    with sandbox.emptied_afterwards("transformer_lite_test_") as folder:
        here = os.getcwd()
        os.chdir(folder)
        for _ in range(5_000):
            os.mkdir("d")
            os.chdir("d")
        os.symlink(kept, "link")
        os.chdir(here)
        (folder / "shut").mkdir()
        (folder / "shut" / "file").write_text("x")
        (folder / "shut").chmod(0)
        (folder / "link").symlink_to(kept)
        os.mkfifo(folder / "pipe")
    assert not folder.exists()
    assert (kept / "file").read_text() == "x" and kept.stat().st_mode & 0o777 == 0o755


def test_what_is_mapped_of_files_is_no_memory(inside):
    code = """
import mmap
with open("library", "wb") as file:
    file.truncate(150 * 2**20)
with open("library", "rb") as file:
    maps = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for _ in range(40)]
import numpy as np
try:
    np.ones(5 * 2**27)
except MemoryError:
    print("memory")
"""
    ran = inside(code)
    assert ran.output == "memory\n", ran


def test_an_older_bubblewrap_and_one_in_a_container_will_do(tmp_path, monkeypatch):
    real = shutil.which("bwrap")
    older = tmp_path / "bin" / "bwrap"
    older.parent.mkdir()
    refuse = 'case " $* " in *--disable-userns*|*--size*) echo "unknown or read-only" >&2; exit 1;; esac'
    older.write_text(f'#!/bin/sh\n{refuse}\n[ "$1" = --help ] && echo "--tmpfs --proc" && exit 0\nexec {real} "$@"\n')
    older.chmod(0o755)
    monkeypatch.setenv("PATH", f"{older.parent}:{os.environ['PATH']}")
    for forget in (sandbox._options.cache_clear, sandbox.trouble.cache_clear):
        forget()
    try:
        assert sandbox.trouble() is None
        assert not {"--disable-userns", "--size"} & sandbox._options()
    finally:
        monkeypatch.undo()
        sandbox._options.cache_clear()
        sandbox.trouble.cache_clear()
    assert sandbox.trouble() is None
