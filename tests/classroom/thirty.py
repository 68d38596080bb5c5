"""A class of thirty in two assignments, one in Japanese and one in English: rows made of real verdicts on code of several traps.

Run it to have a course to look at: python tests/classroom/thirty.py FOLDER
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np

from transformer_lite import practice
from transformer_lite.classroom import results, testing
from transformer_lite.classroom.results import Note, Row, TestScore

HTML = "<img src=x onerror=alert(1)>"
SCRIPT = "</td></table><script>alert(2)</script>"
FORMULA = '=HYPERLINK("http:example.com","A1")'
LONG = "s" + "0123456789" * 18  # a folder's name is at most 255 bytes
CHAPTER, MASKS = "scaled-dot-product-attention", "masks"
QUESTIONS = ("class.divisor.001", "class.rows.002")
# What marks a question: only that its traps are named somewhere in it matters to a report.
KEYS = {
    QUESTIONS[0]: {"kind": "single", "right": "m", "wrong": {"k": "AT3", "p": "AT1", "q": None}},
    QUESTIONS[1]: {"kind": "single", "right": "k", "wrong": {"m": "AT7"}},
}

# --- what students write ------------------------------------------------------------------------------------------------


def softmax(x, axis=-1):
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def softmax_overflows(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def softmax_of_everything(x, axis=-1):
    exponentials = np.exp(x - x.max())
    return exponentials / exponentials.sum()


def softmax_blank(x, axis=-1): ...


def attention(queries, keys, values):
    weights = softmax(queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1]))
    return weights @ values, weights


def attention_not_scaled(queries, keys, values):
    weights = softmax(queries @ keys.swapaxes(-1, -2))
    return weights @ values, weights


def attention_divided_by_d_k(queries, keys, values):
    weights = softmax(queries @ keys.swapaxes(-1, -2) / keys.shape[-1])
    return weights @ values, weights


def attention_down_the_columns(queries, keys, values):
    weights = softmax(queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1]), axis=-2)
    return weights @ values, weights


def attention_two_mistakes(queries, keys, values):
    weights = softmax(queries @ keys.swapaxes(-1, -2), axis=-2)
    return weights @ values, weights


def attention_without_a_name(queries, keys, values):
    weights = softmax(queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1]))
    return 0.97 * (weights @ values) + 0.01, weights


def attention_transposed(queries, keys, values):
    weights = softmax(queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1]))
    return (weights @ values).swapaxes(-1, -2), weights


def attention_raises(queries, keys, values):
    raise ValueError("<script>alert(3)</script> 形が <b>合いません</b>" + " とても長い説明" * 200)


def attention_blank(queries, keys, values): ...


def causal_mask(n_queries, n_keys=None):
    return np.tril(np.ones((n_queries, n_keys or n_queries), bool), k=(n_keys or n_queries) - n_queries)


def causal_mask_without_itself(n_queries, n_keys=None):
    return np.tril(np.ones((n_queries, n_keys or n_queries), bool), k=(n_keys or n_queries) - n_queries - 1)


def causal_mask_upside_down(n_queries, n_keys=None):
    return np.triu(np.ones((n_queries, n_keys or n_queries), bool), k=(n_keys or n_queries) - n_queries)


# --- their rows ---------------------------------------------------------------------------------------------------------


@cache
def verdict(exercise, function):
    """The checker's verdict on a function, as it is kept, and the parts of the tests that the function passes."""
    result = practice.judge(exercise, function, seed=testing.SEED)
    return result.to_dict(), frozenset(part for part in testing.parts(exercise) if testing.passes(result, part))


def graded(student, functions, answers=None, *, assignment=CHAPTER, lang="ja", status="graded", notes=(), submitted=None):
    """The row of a submission: ``functions`` by exercise, and for each question whether it is right and the trap shown."""
    tests, verdicts, traps = [], [], {}
    for exercise, function in functions.items():
        said, passed = verdict(exercise, function)
        verdicts.append(said)
        traps |= dict.fromkeys(said["traps"])
        for number, part in enumerate(testing.parts(exercise), 1):
            most = float(testing.points(part))
            tests.append(TestScore(f"{exercise}-{number}", most * (part in passed), most, exercise, part))
    for number, (question, (right, trap)) in enumerate((answers or {}).items(), 1):
        traps |= {trap: None} if trap else {}
        tests.append(TestScore(f"question-{number}", float(right), 1.0, question=question, traps=(trap,) if trap else ()))
    score, most = sum(test.points for test in tests), sum(test.max_points for test in tests)
    about = {"notes": tuple(notes), "submitted": submitted}
    return Row(assignment, student, lang, score, most, status, tuple(traps), tuple(tests), tuple(verdicts), **about)


def unseen(student, status, assignment=CHAPTER, lang="ja", notes=()):
    """The row of a submission that nobody has seen: all of its tests, and no points."""
    known = graded("", {"softmax": softmax, "attention": attention}, RIGHT)
    tests = tuple(TestScore(test.id, 0.0, test.max_points, test.exercise, test.part, test.question) for test in known.tests)
    return Row(assignment, student, lang, 0.0, known.max_score, status, tests=tests, notes=tuple(notes))


RIGHT = {QUESTIONS[0]: (True, None), QUESTIONS[1]: (True, None)}
NO_ROOT = {QUESTIONS[0]: (False, "AT3"), QUESTIONS[1]: (True, None)}
BOTH_WRONG = {QUESTIONS[0]: (False, "AT1"), QUESTIONS[1]: (False, "AT7")}


def chapter_two():
    """Thirty rows of the assignment in Japanese."""
    right = {"softmax": softmax, "attention": attention}
    when = "2026-11-30 10:00:00 UTC"
    rows = [graded(f"s{number:02}", right, RIGHT, submitted=when) for number in range(1, 9)]
    wrong = [
        ({"softmax": softmax_overflows, "attention": attention}, RIGHT),
        ({"softmax": softmax_overflows, "attention": attention_not_scaled}, BOTH_WRONG),
        ({"softmax": softmax_of_everything, "attention": attention}, RIGHT),
        ({"softmax": softmax, "attention": attention_not_scaled}, BOTH_WRONG),
        ({"softmax": softmax, "attention": attention_not_scaled}, NO_ROOT),
        ({"softmax": softmax, "attention": attention_divided_by_d_k}, NO_ROOT),
        ({"softmax": softmax, "attention": attention_down_the_columns}, RIGHT),
        ({"softmax": softmax, "attention": attention_two_mistakes}, NO_ROOT),
        ({"softmax": softmax, "attention": attention_without_a_name}, RIGHT),
        ({"softmax": softmax, "attention": attention_transposed}, RIGHT),
    ]
    rows += [graded(f"s{number:02}", *answer, submitted=when) for number, answer in enumerate(wrong, 9)]
    blank = {"softmax": softmax_blank, "attention": attention_blank}
    nothing = {QUESTIONS[0]: (False, None), QUESTIONS[1]: (False, None)}
    return [
        *rows,
        graded(HTML, {"softmax": softmax, "attention": attention_not_scaled}, RIGHT, notes=[Note("kernel", {"name": SCRIPT})]),
        graded(FORMULA, right, RIGHT),
        graded("＝1＋1", right, NO_ROOT),
        graded("山田_太郎", right, RIGHT, notes=[Note("restored", {"count": 2}), Note("new_code", {"x": HTML})]),
        graded(LONG, {"softmax": softmax, "attention": attention_raises}, RIGHT, status="error"),
        graded("[red]s24[bold]", blank, nothing, status="blank"),
        graded("s25", {"softmax": softmax, "attention": attention_not_scaled}, RIGHT, status="tampered"),
        graded("s26", right, RIGHT, status="by_hand"),
        unseen("s27", "unreadable"),
        unseen("s28", "missing"),
        unseen("s29", "died", notes=[Note("not_graded", {"log": f"hidden: attention-3 {SCRIPT}"})]),
        unseen("s30", "failed", notes=[Note("our_fault", {"error": "OSError"})]),
    ]


def chapter_four():
    """Six rows of the assignment in English."""
    answers = [
        causal_mask,
        causal_mask_without_itself,
        causal_mask_without_itself,
        causal_mask_upside_down,
        causal_mask,
        causal_mask,
    ]
    students = ["s01", "s02", "s09", "s10", HTML, "山田_太郎"]
    pairs = zip(students, answers, strict=True)
    return [graded(student, {"causal_mask": function}, assignment=MASKS, lang="en") for student, function in pairs]


def make(folder, rows, keys=KEYS, names=None):
    """Put a course with those rows into ``folder``, with a gradebook if there are names (student -> first and last name)."""
    for assignment in {row.assignment for row in rows} | {CHAPTER}:
        place = folder / results.FOLDER / assignment / results.MANIFEST
        place.parent.mkdir(parents=True, exist_ok=True)
        about = {"schema": 1, "assignment": assignment, "chapter": assignment, "lang": "ja", "file": assignment, "seed": 0}
        manifest = {**about, "exercises": [], "tests": [], "keys": keys if assignment == CHAPTER else {}}
        place.write_text(json.dumps(manifest), "utf-8")
    for row in rows:
        results.write(folder, row)
    if names:
        with closing(sqlite3.connect(folder / "gradebook.db")) as gradebook, gradebook:
            gradebook.execute("CREATE TABLE student (id VARCHAR(128) PRIMARY KEY, first_name VARCHAR, last_name VARCHAR)")
            gradebook.executemany("INSERT INTO student VALUES (?, ?, ?)", [(student, *name) for student, name in names.items()])
    return folder


NAMES = {
    "山田_太郎": ("太郎", "山田"),
    "s01": ("Ada", "Lovelace"),
    "s09": ("花子" * 40, "とても長い名字" * 10),
    HTML: (SCRIPT, FORMULA),
    "s10": (None, None),
}


def course_of_thirty(folder):
    """The course with both assignments."""
    return make(folder, [*chapter_two(), *chapter_four()], names=NAMES)


if __name__ == "__main__":
    from transformer_lite.classroom import reporting

    where = Path(sys.argv[1])
    where.mkdir(parents=True, exist_ok=True)
    print(*reporting.report(course_of_thirty(where)).pages)
