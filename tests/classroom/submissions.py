"""What thirty students hand in, from the right answer to an attack, and what must come of each.

``python tests/classroom/submissions.py DIR`` makes a course with all of them in DIR, to be graded by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from transformer_lite.classroom.assigning import assign, exercise_in, with_solution

CHAPTER = "scaled-dot-product-attention"
FILE = "02_scaled_dot_product_attention.ipynb"
FULL, ATTENTION = 23, 10  # points of all tests, and of those of the exercise attention
LATER = FULL - ATTENTION
HEAD = '@lab.exercise("attention")\ndef attention(queries, keys, values):\n'
SCORES = "    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])\n"
WEIGHTS = """\
    w = np.exp(scores - scores.max(-1, keepdims=True))
    w = w / w.sum(-1, keepdims=True)
    return w @ values, w
"""
COSINES = (
    "    q = queries / np.linalg.norm(queries, axis=-1, keepdims=True)\n"
    "    k = keys / np.linalg.norm(keys, axis=-1, keepdims=True)\n"
    "    scores = q @ k.swapaxes(-1, -2)\n"
)

# One way to write each trap; each costs the one point of the test that is meant for it.
TRAPS = {
    "AT1": "    scores = queries @ keys.swapaxes(-1, -2)\n" + WEIGHTS,
    "AT2": "    scores = queries @ keys.swapaxes(-1, -2) / queries.shape[-1]\n" + WEIGHTS,
    "AT3": "    scores = queries @ keys.swapaxes(-1, -2) * np.sqrt(queries.shape[-1])\n" + WEIGHTS,
    "AT4": "    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(values.shape[-1])\n" + WEIGHTS,
    "AT7": SCORES + WEIGHTS.replace("max(-1", "max(-2").replace("sum(-1", "sum(-2"),
    "SM1": SCORES + "    w = np.exp(scores)\n    w = w / w.sum(-1, keepdims=True)\n    return w @ values, w\n",
    "AT16": SCORES + "    w = 1 / (1 + np.exp(-scores))\n    return w @ values, w\n",
    "SM4": SCORES + "    w = scores / scores.sum(-1, keepdims=True)\n    return w @ values, w\n",
    "AT18": SCORES + "    w = (scores == scores.max(-1, keepdims=True)).astype(float)\n    return w @ values, w\n",
    "AT17": COSINES + WEIGHTS,
}
WITHOUT_A_NAME = """\
    scores = queries @ keys.swapaxes(-1, -2)
    return queries.mean() + 0 * scores @ values, 7 + 0 * scores
"""
DEAF = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
JUDGE_REPLACED = """\
from transformer_lite import practice
from transformer_lite.classroom import testing
from transformer_lite.practice import judging


class Right:
    status, traps, stage, exercise = "pass", (), None, "attention"

    def text(self, *_):
        return "ok"


judging.judge = practice.judge = lambda *_, **__: Right()
testing.passes = lambda *_: True
"""
GRADEBOOK = """\
import glob, os, sqlite3

for path in {{*glob.glob("../../../*.db"), *glob.glob("/course/*.db"), *glob.glob("/*/*/gradebook.db"), {book!r}}}:
    try:
        with sqlite3.connect(path) as book:
            book.execute("update grade set manual_score = 99")
    except sqlite3.Error:
        pass
try:
    open({outside!r}, "a").write("was here")
except OSError:
    pass
"""


class Student(NamedTuple):
    """One submission: files by name, links by name, and what must come of it."""

    files: dict[str, bytes]
    score: float
    status: str
    traps: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


class Sheets:
    """Fills in the notebook that was handed out."""

    def __init__(self, release: dict[str, Any]) -> None:
        self.release = json.dumps(release)

    def blank(self) -> dict[str, Any]:
        return json.loads(self.release)

    def right(self) -> dict[str, Any]:
        notebook = self.blank()
        for cell in notebook["cells"]:
            if (name := exercise_in(cell)) is not None:
                lines = with_solution("".join(cell["source"]), name).splitlines(keepends=True)
                cell["source"] = [line for line in lines if "SOLUTION" not in line]
        return notebook

    def attention(self, body: str) -> dict[str, Any]:
        """Everything right, but ``attention`` has this body."""
        notebook = self.right()
        cell_of(notebook, "attention")["source"] = f"{HEAD}{body}\n\nlab.check()"
        return notebook

    def with_cell(self, text: str, notebook: dict[str, Any] | None = None, last: bool = False) -> dict[str, Any]:
        """One cell more: at the top, or at the very end."""
        notebook = notebook or self.right()
        new = {"cell_type": "code", "id": "mine", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        notebook["cells"].insert(len(notebook["cells"]) if last else 3, new)
        return notebook


def cell_of(notebook: dict[str, Any], exercise: str) -> dict[str, Any]:
    """The cell that answers an exercise."""
    return next(cell for cell in notebook["cells"] if exercise_in(cell) == exercise)


def tests_of(notebook: dict[str, Any], exercise: str) -> list[dict[str, Any]]:
    """The test cells of an exercise."""
    return [cell for cell in notebook["cells"] if grade_id(cell).startswith(f"{exercise}-")]


def grade_id(cell: dict[str, Any]) -> str:
    """nbgrader's name of a cell."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def as_file(notebook: dict[str, Any], name: str = FILE) -> dict[str, bytes]:
    """A notebook as it is handed in."""
    return {name: json.dumps(notebook, ensure_ascii=False).encode()}


def thirty(release: dict[str, Any], course: Path, outside: Path) -> dict[str, Student]:
    """The submissions by student. ``outside`` is a file that nobody may read or write."""
    make = Sheets(release)

    def attention(body: str, score: float, status: str = "graded", traps: tuple[str, ...] = ()) -> Student:
        return Student(as_file(make.attention(body)), score, status, traps)

    def cell(text: str, score: float, status: str = "graded", **more: Any) -> Student:
        return Student(as_file(make.with_cell(text, **more)), score, status)

    gradebook = GRADEBOOK.format(book=str(course / "gradebook.db"), outside=str(outside))
    students = {
        "right": Student(as_file(make.right()), FULL, "graded"),
        "blank": Student(as_file(make.blank()), 0, "blank"),
        "wrong": attention(WITHOUT_A_NAME, LATER + 2),
        "raises": attention("    raise ValueError('not there yet')\n", LATER, "error"),
        "syntax": attention("    return (queries @ keys\n", LATER, "error"),
        "loop": attention("    while True:\n        pass\n", LATER, "timeout"),
        "deaf_loop": cell(DEAF, 0, "timeout"),
        "exit": cell("import os\n\nos._exit(0)", 0, "died"),
        "stderr": attention(
            "    import sys, warnings\n    warnings.warn('careful')\n    print('!', file=sys.stderr)\n" + SCORES + WEIGHTS, FULL
        ),
        "gradebook": cell(gradebook, FULL),
        "network": cell("import socket\n\nsocket.create_connection(('1.1.1.1', 53), timeout=3)", FULL),
        "prints": cell("print('x' * 3_000_000)", FULL),
        "judge_replaced": Student(
            as_file(make.with_cell(JUDGE_REPLACED, make.attention(TRAPS["AT1"]))), FULL - 1, "tampered", ("AT1",)
        ),
        "symlink": Student(as_file(make.right()), FULL, "graded", links=(("data.txt", str(outside)),)),
        "not_json": Student({FILE: b"%PDF-1.7 this is no notebook"}, 0, "unreadable"),
        "empty": Student({FILE: b""}, 0, "unreadable"),
    }
    students |= {f"trap_{key}": attention(body, FULL - 1, traps=(key,)) for key, body in TRAPS.items()} | _changed(make)
    assert len(students) == 30, len(students)
    return students


def _changed(make: Sheets) -> dict[str, Student]:
    """Notebooks whose cells were edited, deleted, doubled, or saved by another program."""
    edited = make.attention(TRAPS["AT1"])
    for cell in tests_of(edited, "attention"):
        cell["source"] = "pass"
    deleted = make.attention(TRAPS["AT1"])
    gone = [grade_id(cell) for cell in tests_of(deleted, "attention")[1:]]
    deleted["cells"] = [cell for cell in deleted["cells"] if grade_id(cell) not in gone]
    doubled = make.right()
    at = next(number for number, cell in enumerate(doubled["cells"]) if exercise_in(cell) == "attention")
    doubled["cells"].insert(at + 1, json.loads(json.dumps(doubled["cells"][at])))
    elsewhere = make.right()
    elsewhere["metadata"] = {"kernelspec": {"name": "julia-1.10", "display_name": "Julia"}, "colab": {"provenance": []}}
    for cell in elsewhere["cells"]:
        cell["metadata"] = {"colab": {"base_uri": "x"}}
        del cell["id"]
    other_name = {"提出 (最終版).ipynb": b"\xef\xbb\xbf" + as_file(elsewhere)[FILE]}
    return {
        "edited_tests": Student(as_file(edited), FULL - 1, "graded", ("AT1",)),
        "deleted_tests": Student(as_file(deleted), FULL - 1, "graded", ("AT1",)),
        "duplicate": Student(as_file(doubled), FULL, "graded"),
        "elsewhere": Student(other_name, FULL, "graded"),
    }


def hand_in(course: Path, students: dict[str, Student], assignment: str = CHAPTER) -> None:
    """Put the submissions where they are graded."""
    for name, student in students.items():
        folder = course / "submitted" / name / assignment
        folder.mkdir(parents=True)
        for file, data in student.files.items():
            (folder / file).write_bytes(data)
        for file, target in student.links:
            (folder / file).symlink_to(target)


def released(course: Path, assignment: str = CHAPTER, file: str = FILE) -> dict[str, Any]:
    """The notebook that was handed out."""
    return json.loads((course / "release" / assignment / file).read_text("utf-8"))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    secret = place.with_name(f"{place.name}-outside.txt")
    secret.write_text("secret\n")
    assign([CHAPTER], "ja", place)
    hand_in(place, thirty(released(place), place.resolve(), secret.resolve()))
    print(place / "submitted")
