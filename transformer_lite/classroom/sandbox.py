"""Runs a program where it can do no harm: without network, on files that it is given, within limits, to be stopped at any time.

It is bubblewrap's sandbox: a file tree of its own (Python, the libraries and the course for reading; one folder for reading and
writing), processes of its own, no network, no privileges.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import transformer_lite
from transformer_lite import content

INSIDE = "/course"  # where the folder that may be written lies
HOME = ".transformer_lite"  # in that folder
MEMORY, FILE, PROCESSES, OPEN = 4 * 2**30, 200 * 2**20, 256, 512
ADDRESSES = 32 * 2**30  # of libraries, too: those of PyTorch for CUDA take several GB of them, and hardly any memory
DISK, ENTRIES, DEEPEST = 2**30, 50_000, 3_000  # what the folder may hold: bytes, files and folders, characters of a path
TEMPORARY = {"/tmp": 2**29, "/run": 2**24, "/dev/shm": 2**28}  # in memory, and gone afterwards: bytes
# Root, even without privileges, may write these on the machine itself.
MACHINE = tuple(f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "mtrr"))
LIBRARIES = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM = (*LIBRARIES, "/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
LIMITS = """\
import ctypes, os, resource, runpy, sys
if sys.platform.startswith("linux"):  # PR_SET_DUMPABLE: what this starts cannot look into it, nor at its open files
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
addresses, memory, size, processes, opened, seconds = map(int, sys.argv.pop(1).split(","))
sizes = (("AS", addresses), ("DATA", memory), ("FSIZE", size), ("CORE", 0))
for what, most in (*sizes, ("NPROC", processes), ("NOFILE", opened), ("CPU", seconds)):
    kind = getattr(resource, "RLIMIT_" + what)
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))
module = sys.argv.pop(1)
sys.argv[0] = module
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
MOST_OUTPUT = 2_000_000
EVERY, EVERY_FOLDER = 0.2, 1.0  # seconds between two looks at what runs, and at what it has written
stopping = threading.Event()  # set: everything that runs is ended


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code, or None and what it was stopped for ("time", "processes", "memory", "disk").

    And what it wrote, up to a limit.
    """

    code: int | None
    output: str
    errors: str
    seconds: float
    stopped: str | None = None


@cache
def trouble() -> str | None:
    """Why there is no sandbox on this machine; None if there is one."""
    if not sys.platform.startswith("linux") or (program := shutil.which("bwrap")) is None:
        return "no bwrap"
    command = [program, *_walls(None, {}), "--", sys.executable, "-I", "-c", "print('in')"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if tried.returncode == 0 and tried.stdout == "in\n" else (tried.stderr.strip() or "bwrap failed")[:300]


def run(
    module: str,
    arguments: Sequence[str],
    folder: Path,
    *,
    seconds: float,
    trusted: bool = False,
    environment: Mapping[str, str] = {},
    told: bytes = b"",
) -> Ended:
    """Run ``python -m module`` with ``folder`` as its home.

    Args:
        module, arguments: what to run. Inside, ``folder`` is `INSIDE`.
        folder: what it may read and write.
        seconds: after which it is killed with everything that it started.
        trusted: run it without a sandbox, with the limits alone; then ``folder`` has its own name.
        environment: variables besides the few that it has.
        told: what it reads from its standard input.
    """
    inside = str(folder) if trusted else INSIDE
    variables = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "HOME": inside,
        "TMPDIR": f"{inside}/tmp" if trusted else "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "JUPYTER_RUNTIME_DIR": f"{inside}/.runtime",
        "JUPYTER_PLATFORM_DIRS": "1",
        "IPYTHONDIR": f"{inside}/.ipython",
        "MPLCONFIGDIR": f"{inside}/.matplotlib",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PIP_RETRIES": "0",  # a cell that installs something learns at once that there is no network
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TRANSFORMER_LITE_STATIC": "1",
        "TRANSFORMER_LITE_RECORD": "0",
        "TRANSFORMER_LITE_HOME": f"{inside}/{HOME}",
        **environment,
    }
    if trusted:
        (folder / "tmp").mkdir(exist_ok=True)
    processes, busy = PROCESSES if not trusted else 4096, min(int(2 * seconds) + 5, 2**31 - 1)
    limits = ",".join(map(str, (ADDRESSES, MEMORY, FILE, processes, OPEN, busy)))
    program = [sys.executable, "-P", "-c", LIMITS, limits, module, *arguments]
    walls = [] if trusted else [shutil.which("bwrap") or "bwrap", *_walls(folder, variables), "--"]
    return _ended([*walls, *program], folder, variables, seconds, told)


@contextmanager
def emptied_afterwards(prefix: str) -> Iterator[Path]:
    """A new folder in which programs may write. Afterwards it is gone, whatever they left in it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """Delete ``folder``: also one that is too deep for any path, or whose folders nobody may enter. No link is followed.

    What cannot be deleted stays, and is no error.
    """
    mark = f".{secrets.token_hex(8)}-"
    pending = [(str(folder), False)]
    while pending:
        here, emptied = pending.pop()
        with suppress(OSError):
            if emptied:
                os.rmdir(here)
                continue
            os.chmod(here, 0o700)
            if len(here) > DEEPEST:  # up to the top, so that no path is too long
                upper = str(folder / f"{mark}{len(pending)}")
                os.rename(here, upper)
                here = upper
            pending.append((here, True))
            for entry in list(os.scandir(here)):
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, False))
                else:
                    os.unlink(entry.path)


def _walls(folder: Path | None, variables: Mapping[str, str]) -> list[str]:
    walls = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv"]
    if "--disable-userns" in _options():  # of its own kind it could make another sandbox, where limits do not reach
        walls += ["--unshare-user", "--disable-userns"]
    for system in SYSTEM:
        walls += ["--ro-bind-try", system, system]
    walls += ["--proc", "/proc", "--dev", "/dev"]
    for path in MACHINE:
        walls += ["--ro-bind-try", path, path]
    for path, size in TEMPORARY.items():
        walls += [*(("--size", str(size)) if "--size" in _options() else ()), "--tmpfs", path]
    for path in _readable():
        walls += ["--ro-bind", path, path]
    if folder is not None:
        walls += ["--bind", str(folder), INSIDE, "--chdir", INSIDE]
    for name, value in variables.items():
        walls += ["--setenv", name, value]
    return [*walls, "--remount-ro", "/dev", "--remount-ro", "/"]


@cache
def _options() -> frozenset[str]:
    """Options that bubblewrap has on this machine: older ones lack some, and in many containers one of them does not work."""
    program = shutil.which("bwrap") or "bwrap"
    told = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=30)
    there = {word for word in (told.stdout + told.stderr).split() if word.startswith("--")}
    walls = ["--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "--proc", "/proc"]
    if subprocess.run([program, *walls, "--", sys.executable, "-V"], capture_output=True, timeout=30).returncode:
        there.discard("--disable-userns")
    return frozenset(there)


@cache
def _readable() -> tuple[str, ...]:
    """Python itself, its libraries, the package, and of the course what learners have; the sources hold the solutions."""
    package = Path(transformer_lite.__file__).resolve().parent
    places = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent, package}
    places |= {Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib")}
    places |= {content.quizzes_dir(), content.notebooks_dir("ja"), content.notebooks_dir("en")}
    places.add(package.parent / "pyproject.toml")  # by which a checkout is known
    both = {path for place in places for path in (place.absolute(), place.resolve())}
    resolved = {str(path) for path in both if path.exists() and path != Path("/")}
    covered = tuple(f"{system}/" for system in SYSTEM)
    outside = sorted(path for path in resolved if not f"{path}/".startswith(covered))
    return tuple(path for path in outside if not any(path != other and path.startswith(f"{other}/") for other in outside))


def _ended(command: list[str], folder: Path, variables: Mapping[str, str], seconds: float, told: bytes = b"") -> Ended:
    """Run ``command`` in a process group of its own, read what it writes up to a limit, and end all of it when its time is up."""
    started = looked = time.monotonic()
    process = subprocess.Popen(
        command, cwd=folder, env=dict(variables), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    texts: list[bytearray] = [bytearray(), bytearray()]
    readers = [
        threading.Thread(target=_drain, args=(stream, text), daemon=True)
        for stream, text in zip((process.stdout, process.stderr), texts, strict=True)
    ]
    for reader in readers:
        reader.start()
    code: int | None = None
    why: str | None = None
    try:
        with suppress(OSError), process.stdin:  # type: ignore[union-attr]
            process.stdin.write(told)  # type: ignore[union-attr]
        while code is None and why is None and not stopping.is_set():
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(EVERY)
            if code is None:
                why = "time" if time.monotonic() - started > seconds else _too_much(process.pid)
            if code is None and why is None and time.monotonic() - looked > EVERY_FOLDER:
                why, looked = _too_full(folder), time.monotonic()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if stopping.is_set():
        raise InterruptedError("the grading was stopped")
    for reader in readers:
        reader.join(5)
    output, errors = (bytes(text).decode("utf-8", "replace") for text in texts)
    return Ended(code, output, errors, time.monotonic() - started, why)


def _too_much(pid: int) -> str | None:
    """What the program begun as ``pid`` and all that it has started use too much of: the kernel's own limits do not bind root, or
    count a process each.
    """
    below: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if entry.isdecimal():
            with suppress(OSError, ValueError, IndexError):  # it may have ended meanwhile
                after_name = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
                below.setdefault(int(after_name[1]), []).append(int(entry))
    processes = pages = 0
    pending = [pid]
    while pending:
        children = below.get(pending.pop(), [])
        pending += children
        processes += len(children)
        for child in children:
            with suppress(OSError, ValueError, IndexError):
                pages += int(Path(f"/proc/{child}/statm").read_text().split()[1])
    if processes > PROCESSES:
        return "processes"
    return "memory" if pages * os.sysconf("SC_PAGE_SIZE") > MEMORY else None


def _too_full(folder: Path) -> str | None:
    """ "disk" if a folder holds too much."""
    size = entries = 0
    pending = [str(folder)]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as found:  # what it writes comes and goes
            for entry in found:
                entries += 1
                size += 512 * getattr(entry.stat(follow_symlinks=False), "st_blocks", 0)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                if size > DISK or entries > ENTRIES or len(entry.path) > DEEPEST:
                    return "disk"
    return None


def _drain(stream: object, text: bytearray) -> None:
    while block := stream.read1(65_536):  # type: ignore[attr-defined]
        if len(text) < MOST_OUTPUT:
            text += block
