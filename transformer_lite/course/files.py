"""Writing a file so that a crash, a full disk or a power cut leaves the old one whole."""

from __future__ import annotations

import os
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
