"""Where the journal is, whether anything is written to it, and what kind of disk that is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_NAME = "journal.db"

_NETWORK_FILE_SYSTEMS = (
    "nfs", "cifs", "smb", "afp", "webdav", "fuse.sshfs", "9p", "afs", "lustre", "gpfs", "beegfs", "glusterfs"
)


def home() -> Path:
    """The folder of this learner's data: ``TRANSFORMER_LITE_HOME``, else the platform's own place. It is not created here."""
    chosen = os.environ.get("TRANSFORMER_LITE_HOME")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("transformer_lite", appauthor=False))


def recording() -> bool:
    """Whether events are written: as ``TRANSFORMER_LITE_RECORD`` (0 or 1) says, else only where a person is at the keyboard.

    A notebook that is run by a builder or a test (nbclient, nbval) cannot be asked anything, a person's can; the same tells a
    terminal from a pipe.
    """
    wanted = os.environ.get("TRANSFORMER_LITE_RECORD", "")
    if wanted in ("0", "1"):
        return wanted == "1"
    ipython = sys.modules.get("IPython")  # not imported here: where it is not loaded, there is no notebook
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        return bool(getattr(kernel, "_allow_stdin", "JPY_SESSION_NAME" in os.environ))
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):  # no standard input at all, or a closed one
        return False


def on_network(folder: Path) -> bool:
    """Whether ``folder`` is on another machine's disk, where processes share no memory and WAL would lose data."""
    folder = folder.resolve()
    if sys.platform == "win32":
        import ctypes

        if folder.drive.startswith("\\\\"):
            return True
        return ctypes.windll.kernel32.GetDriveTypeW(folder.anchor) == 4  # DRIVE_REMOTE
    kinds = dict(_mounts())
    nearest = next((kinds[str(place)] for place in (folder, *folder.parents) if str(place) in kinds), "")
    return nearest.startswith(_NETWORK_FILE_SYSTEMS)


def _mounts() -> Iterator[tuple[str, str]]:
    """(mount point, type of file system), the latest mount on a place last."""
    try:
        if sys.platform == "darwin":
            import re
            import subprocess

            listing = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=5).stdout
            yield from re.findall(r"^.+? on (.+) \((\w+)", listing, re.MULTILINE)
        else:
            for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
                _, place, kind, *_ = line.split()
                yield place.replace("\\040", " "), kind
    except (OSError, ValueError):
        return  # a system without such a list: taken for a local disk
