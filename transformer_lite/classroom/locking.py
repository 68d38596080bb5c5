"""Keeps two commands from working in the same course at once: both would write the same releases, rows and gradebook."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformer_lite.classroom import results
from transformer_lite.classroom.assigning import ClassroomError
from transformer_lite.course.files import locked
from transformer_lite.language import message

LOCK = ".lock"  # in the folder of manifests; it stays, and holds nothing


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Work in the course in ``folder`` alone. The lock ends with this process, however that ends.

    Raises:
        ClassroomError: another command is at work there, or the folder cannot be written to.
    """
    try:
        (folder / results.FOLDER).mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / results.FOLDER / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as trouble:
        raise ClassroomError(message("classroom.assign.no_folder", folder=folder, reason=trouble.strerror)) from trouble
    try:
        if not locked(handle):
            raise ClassroomError(message("classroom.at_work", folder=folder))
        yield
    finally:
        os.close(handle)

