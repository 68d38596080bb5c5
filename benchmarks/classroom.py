"""Grading measured: seconds a submission, in the sandbox with the second judgement, against nbgrader alone on the same files.

    python benchmarks/classroom.py [--chapter 2] [--students 8] [--jobs 2]

nbgrader alone runs every cell of the chapter in the open, one student after the other, as its documentation shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from transformer_lite import course  # noqa: E402
from transformer_lite.classroom import assigning, grading, results  # noqa: E402
from transformer_lite.explore.tables import Table  # noqa: E402


def hand_in(folder: Path, chapter: course.Chapter, students: int) -> None:
    """Everybody hands in the official solution."""
    release = json.loads((folder / "release" / chapter.id / f"{chapter.file}.ipynb").read_text("utf-8"))
    for cell in release["cells"]:
        if (name := assigning.exercise_in(cell)) is not None:
            cell["source"] = assigning.with_solution("".join(cell["source"]), name)
    for number in range(students):
        place = folder / "submitted" / f"s{number:02d}" / chapter.id
        place.mkdir(parents=True)
        (place / f"{chapter.file}.ipynb").write_text(json.dumps(release), "utf-8")


def nbgrader_alone(folder: Path, chapter: course.Chapter) -> float:
    """Seconds that ``nbgrader autograde`` takes for everybody."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "TRANSFORMER_LITE_STATIC": "1", "TRANSFORMER_LITE_RECORD": "0"}
    started = time.monotonic()
    command = [sys.executable, "-m", "nbgrader", "autograde", chapter.id]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.monotonic() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chapter", default="2")
    parser.add_argument("--students", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    chapter = course.chapter(asked.chapter)
    seconds = {}
    with tempfile.TemporaryDirectory() as temporary:
        for way in ("ours", "nbgrader alone"):
            folder = Path(temporary) / way
            assigning.assign([chapter.id], "en", folder)
            hand_in(folder, chapter, asked.students)
            started = time.monotonic()
            if way == "ours":
                rows = grading.grade(folder, jobs=asked.jobs)
                seconds[way] = time.monotonic() - started
                assert all(row.score == row.max_score for row in rows) and len(results.rows(folder)) == asked.students
            else:
                seconds[way] = nbgrader_alone(folder, chapter)
    alone = seconds["nbgrader alone"]
    body = [[way, f"{each / asked.students:.1f}", f"{each / alone:.2f}"] for way, each in seconds.items()]
    title = f"{asked.students} right submissions of chapter {chapter.number}, {asked.jobs} jobs"
    print(Table(title, ["", "s each", "ratio"], body))


if __name__ == "__main__":
    main()
