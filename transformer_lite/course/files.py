"""Files: written so that a crash, a full disk or a power cut leaves the old one whole; read without trust; locked."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def replace(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path`` all at once. Raises `OSError` and leaves what was there if it cannot be written."""
    handle, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes a file that only its owner may read; a notebook is an ordinary file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def ordinary(path: Path, largest: int) -> bytes:
    """Up to ``largest`` bytes of an ordinary file and one more. No link is followed, no pipe waited for.

    Raises:
        OSError: it is no ordinary file, or cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not an ordinary file")
        return file.read(largest + 1)


def locked(handle: int) -> bool:
    """Whether the lock on an open file is ours now, until it is closed; also where there are no locks (some network folders)."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return os.name != "nt"
    return True
