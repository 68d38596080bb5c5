"""Run in the sandbox: nbgrader grades the one submission that lies in the working folder.

    python -m transformer_lite.classroom.inside ASSIGNMENT SECONDS_A_CELL

Its last line says in JSON whether nbgrader came to its end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

STUDENT = "student"  # what every student is called in here


def main(assignment: str, seconds: int) -> None:
    """Grade."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    config = Config()
    config.CourseDirectory.root = str(Path.cwd())
    config.CourseDirectory.course_id = "course"
    config.Application.log_level = 50
    config.Execute.timeout = seconds
    config.Execute.raise_on_iopub_timeout = False
    # exit() in a cell ends the cell and not the kernel: what stands below it is graded, too.
    stay = "--IPKernelApp.exec_lines=get_ipython().ask_exit = lambda: None"
    config.Execute.extra_arguments = ["--log-level=50", "--HistoryManager.enabled=False", stay]
    config.IgnorePattern.enabled = True
    config.IgnorePattern.pattern = ".*"
    config.LimitOutput.max_lines, config.LimitOutput.max_traceback = 200, 50
    done = NbGraderAPI(config=config).autograde(assignment, STUDENT, force=True, create=True)
    text = f"{done.get('log') or ''}\n{done.get('error') or ''}"
    died = "Kernel died" in text or "DeadKernelError" in text
    print("\n" + json.dumps({"success": bool(done["success"]), "died": died, "log": text[-2000:]}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
