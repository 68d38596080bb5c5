"""The pages of a report: the class's for its instructor, and one for each student with traps and hints but no hidden test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from transformer_lite import content, course, practice
from transformer_lite.classroom import testing
from transformer_lite.classroom.hypertext import Html, bar, foreign, joined, page, table, tag
from transformer_lite.classroom.results import STATUSES, Note, Row
from transformer_lite.classroom.tallying import (
    LOOK,
    UNSEEN,
    Report,
    TestCount,
    TrapCount,
    answered,
    average,
    counted,
    distribution,
    lesson,
    lost_questions,
    mistakes,
    points,
    share,
    test_counts,
    trap_title,
)
from transformer_lite.language import LANGUAGES, catalogue, message

FEEDBACK = "feedback"
# What a student may read of the notes; the others hold logs of the grading.
TOLD = ("duplicate", "restored", "edited_tests", "solution_deleted", "names_lost", "renamed", "several", "bom", "kernel", "link",
        "special", "unopened", "too_large", "no_answers", "answers_large", "answers_strange", "answers_unreadable")  # fmt: skip
LONGEST = 600  # characters of a student's error that are shown
MARKS = {"graded": "✓", "blank": "○", "missing": "–", "tampered": "!", "by_hand": "!"}  # any other status: ✗


def class_page(found: Report, lang: str, when: str) -> Html:
    """The class report in ``lang``. ``when`` is the time it was made at."""
    parts = dict(_class_parts(found, lang))
    title = _say("title", lang)
    links = [tag("li", tag("a", _say(f"{name}.title", lang), href=f"#{name}")) for name in parts]
    heading = tag("h1", title)
    made = tag("p", _say("made", lang, course=found.course.resolve().name, when=when), class_="made")
    sections = [
        tag("section", tag("h2", _say(f"{name}.title", lang), id=f"{name}-title"), body, id=name, aria_labelledby=f"{name}-title")
        for name, body in parts.items()
    ]
    contents = tag("nav", tag("ul", *links), aria_label=_say("contents", lang)) if links else None
    main = tag("main", *_warnings(found, lang), *sections, id="main", tabindex="-1")
    return page(
        lang, f"{title} - {found.course.resolve().name}", _say("skip", lang), tag("header", heading, made, contents), main
    )


def _say(key: str, lang: str, /, **details: object) -> str:
    return message(f"classroom.report.{key}", lang, **details)


def _warnings(found: Report, lang: str) -> Iterator[Html]:
    if not found.rows:
        yield tag("p", _say("none_yet", lang), class_="warning")
    if found.unread:
        files = _say("comma", lang).join(f"{path.parent.parent.name}/{path.stem}" for path in found.unread)
        yield tag("p", _say("unread", lang, count=len(found.unread), files=files), class_="warning")


def _class_parts(found: Report, lang: str) -> Iterator[tuple[str, Html]]:
    """The parts of the class report, by the names of their titles: what to do comes first."""
    if not found.rows:
        return
    yield "overview", _overview(found, lang)
    yield "again_part", _lessons(found, lang)
    if found.traps:
        yield "traps_part", _traps(found, lang)
    yield "look_part", _look(found, lang)
    matrix = _matrix(found, lang) if len(found.assignments) > 1 else None
    yield "rows_part", joined([matrix, *(_submissions(found, name, rows, lang) for name, rows in found.assignments.items())])
    yield "tests_part", joined(_tests(found, lang))
    yield "scores_part", joined(_scores(name, rows, lang) for name, rows in found.assignments.items())


def assignment_title(name: str, lang: str) -> str:
    """An assignment by its chapter's number and title; by its name where the course has no such chapter."""
    try:
        chapter = course.chapter(name)
    except (course.CourseError, course.UnknownChapter):
        return name
    return _say("lesson_chapter", lang, number=chapter.number, title=chapter.title(lang))


# --- the class: what to teach -------------------------------------------------------------------------------------------


def _overview(found: Report, lang: str) -> Html:
    columns = ("assignment", "language", "submissions", "mean", "median", "full", "statuses")
    rows = [_assignment_row(name, rows, lang) for name, rows in found.assignments.items()]
    parts = [table(_say("overview.caption", lang), [_say(column, lang) for column in columns], rows, numbers=(2, 3, 4, 5))]
    failed = len(found.rows) - len(counted(found.rows))
    if failed:
        parts.append(tag("p", _say("overview.left_out", lang, count=failed)))
    return joined(parts)


def _assignment_row(name: str, rows: Sequence[Row], lang: str) -> list[str | Html]:
    mean, median = average(rows) or (None, None)
    most = max(row.max_score for row in rows)
    nothing = _say("nothing", lang)
    of = [nothing if value is None else f"{points(value)} / {points(most)}" for value in (mean, median)]
    statuses = [row.status for row in rows]
    kinds = [f"{status_title(status, lang)} {statuses.count(status)}" for status in dict.fromkeys(sorted(statuses, key=_gravity))]
    full = sum(share(row) == 1 for row in rows)
    return [assignment_title(name, lang), _languages(rows, lang), str(len(rows)), *of, str(full), _say("comma", lang).join(kinds)]


def _languages(rows: Sequence[Row], lang: str) -> Html:
    known = sorted({row.lang for row in rows} & set(LANGUAGES))
    return joined((tag("span", _say(f"in_{each}", lang), class_="short") for each in known), _say("comma", lang))


def _gravity(status: str) -> int:
    return STATUSES.index(status)


def _matrix(found: Report, lang: str) -> Html:
    """Who has how many points in which assignment."""
    by_place = {(row.student, row.assignment): row for row in found.rows}
    rows = []
    for student in found.students:
        own = [by_place.get((student, name)) for name in found.assignments]
        there = [row for row in own if row is not None]
        cells = [_say("nothing", lang) if row is None else _of(row) for row in own]
        total = f"{points(sum(row.score for row in there))} / {points(sum(row.max_score for row in there))}"
        rows.append([_who(found, student), *cells, total])
    header = [_say("student", lang), *(assignment_title(name, lang) for name in found.assignments), _say("total", lang)]
    caption = _say("rows_part.matrix", lang)
    shown = table(caption, header, rows, numbers=range(1, len(header)))
    return tag("div", shown, class_="wide", role="region", aria_label=caption, tabindex="0")


def _of(row: Row) -> str:
    return f"{points(row.score)} / {points(row.max_score)}"


def _who(found: Report, student: str, address: str | None = None) -> Html:
    shown, name = foreign(student), found.name(student)
    linked = tag("a", shown, href=address) if address else shown
    return joined([linked, tag("br"), tag("small", foreign(name))]) if name else linked


def _lessons(found: Report, lang: str) -> Html:
    if not found.lessons:
        return tag("p", _say("again_part.none", lang))
    rows = [
        [each.lesson.text(lang), _share_of(len(each.students), found.seen_in(each.assignments), lang), _list(each.traps, lang)]
        for each in found.lessons
    ]
    header = [_say(column, lang) for column in ("section", "students", "traps_title")]
    return table(_say("again_part.caption", lang), header, rows)


def _list(keys: Sequence[str], lang: str) -> Html:
    return tag("ul", *(tag("li", trap_title(key, lang)) for key in keys), class_="plain")


def _share_of(count: int, of: int, lang: str) -> Html:
    return joined([bar(count, of), tag("span", _say("count_of", lang, count=count, of=of), class_="beside")])


def _traps(found: Report, lang: str) -> Html:
    rows = []
    for trap in found.traps:
        place = trap.lesson
        who = tag(
            "details",
            tag("summary", _say("who", lang)),
            tag("ul", *(tag("li", _who_line(found, each)) for each in trap.students)),
        )
        number = joined([_share_of(len(trap.students), found.seen_in(trap.assignments), lang), who])
        where = joined(_where(trap, lang), _say("comma", lang))
        rows.append([trap.title(lang), number, where, place.text(lang) if place else _say("nothing", lang)])
    header = [_say(column, lang) for column in ("traps_title", "students", "where", "again")]
    return joined([tag("p", _say("traps_part.about", lang)), table(_say("traps_part.caption", lang), header, rows)])


def _who_line(found: Report, student: str) -> Html:
    name = found.name(student)
    return joined([foreign(student), " ", tag("small", foreign(name))]) if name else foreign(student)


def _where(trap: TrapCount, lang: str) -> Iterator[str | Html]:
    yield from (tag("code", each) for each in trap.exercises)
    yield from (_say("tests_part.question", lang, question=each) for each in trap.questions)


# --- the class: submissions and tests -----------------------------------------------------------------------------------


def _look(found: Report, lang: str) -> Html:
    rows = [
        [
            _who(found, row.student),
            assignment_title(row.assignment, lang),
            _status(row.status, lang),
            _say(f"to_instructor.{row.status}", lang),
        ]
        for row in sorted(found.rows, key=lambda row: -_gravity(row.status))
        if row.status in LOOK
    ]
    if not rows:
        return tag("p", _say("look_part.none", lang))
    header = [_say(column, lang) for column in ("student", "assignment", "status_title", "what_to_do")]
    return table(_say("look_part.caption", lang), header, rows)


def status_title(status: str, lang: str) -> str:
    """A status as it is written at the beginning of a cell."""
    words = message(f"classroom.status.{status}", lang)
    return words[:1].upper() + words[1:]


def _status(status: str, lang: str) -> Html:
    """A status in words; the mark before it only repeats them."""
    mark = tag("span", MARKS.get(status, "✗"), class_="mark", aria_hidden="true")
    return tag("span", mark, status_title(status, lang), class_=f"status {'fine' if status == 'graded' else 'grave'}")


def _submissions(found: Report, name: str, rows: Sequence[Row], lang: str) -> Html:
    noted = any(row.notes for row in rows)
    columns = ("student", "score", "status_title", "traps_title", *(("notes",) if noted else ()))
    body = []
    for row in rows:
        score = joined([bar(row.score, row.max_score), tag("span", _of(row), class_="beside")])
        traps = _list(mistakes(row), lang) if mistakes(row) else ""
        notes = tag("ul", *(tag("li", note_text(note, lang)) for note in row.notes), class_="plain") if row.notes else ""
        middle = [score, _status(row.status, lang), traps, *([notes] if noted else [])]
        body.append([_who(found, row.student, _address(row, lang)), *middle])
    caption = _say("rows_part.caption", lang, assignment=assignment_title(name, lang))
    return table(caption, [_say(column, lang) for column in columns], body)


def _address(row: Row, lang: str) -> str:
    """Of the student's page, from the class's."""
    return f"../{FEEDBACK}/{_quoted(row.student)}/{_quoted(row.assignment)}.{lang}.html"


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="replace")


def note_text(note: Note, lang: str) -> str:
    """A note of the grading in words; its code where there are none, or where its details do not fit them."""
    key = f"classroom.note.{note.code}"
    if key in catalogue():
        try:
            return message(key, lang, **note.details)
        except (KeyError, IndexError, ValueError, TypeError):
            pass
    return _say("note.unknown", lang, code=note.code)


def _tests(found: Report, lang: str) -> Iterator[Html]:
    yield tag("p", _say("tests_part.about", lang))
    header = [_say(column, lang) for column in ("test", "full_points", "mean_points", "for_traps")]
    for name, rows in found.assignments.items():
        tests = test_counts(rows)
        if not tests:
            continue
        lowest = min(test.full / test.of for test in tests)
        body = [_test_row(test, lowest < 1 and test.full / test.of == lowest, lang) for test in tests]
        yield table(_say("tests_part.caption", lang, assignment=assignment_title(name, lang)), header, body, numbers=(2,))


def _test_row(test: TestCount, lost_most: bool, lang: str) -> list[str | Html]:
    score = test.score
    if score.question is not None:
        name: Html | str = _say("tests_part.question", lang, question=score.question)
    else:
        name = joined([tag("code", score.exercise or ""), tag("br"), part_title(score.part or "", lang)])
    share_of = [_share_of(test.full, test.of, lang), tag("strong", _say("most_lost", lang), class_="most") if lost_most else None]
    mean = f"{points(test.mean)} / {points(score.max_points)}"
    return [name, joined(share_of), mean, _list(_traps_of(score.exercise, score.part), lang)]


def part_title(part: str, lang: str) -> str:
    """A part of an exercise's tests in words, for the instructor."""
    if part in (testing.FORM, testing.VALUES):
        return _say(f"tests_part.{part}", lang)
    return _say("tests_part.hidden", lang, part=part)


def _traps_of(exercise: str | None, part: str | None) -> list[str]:
    """The traps that lose a part of an exercise's tests."""
    if exercise not in practice.exercises():
        return []
    return [key for key, lost in testing.knobs(exercise).items() if lost == part]


def _scores(name: str, rows: Sequence[Row], lang: str) -> Html:
    counts = distribution(rows)
    caption = _say("scores_part.caption", lang, assignment=assignment_title(name, lang))
    header = [_say("range", lang), _say("submissions_count", lang)]
    numbers = table(caption, header, [[label, str(count)] for label, count in counts], numbers=(0, 1))
    return tag("div", _histogram(counts, _say("scores_part.picture", lang)), numbers, class_="scores")


def _histogram(counts: Sequence[tuple[str, int]], words: str) -> Html:
    """A bar for each share of the points, with its number over it: (label, count)."""
    high, wide, tall = max(1, *(count for _, count in counts)), 40, 150
    drawn = []
    for place, (label, count) in enumerate(counts):
        height = tall * count / high
        middle = place * wide + wide / 2
        drawn.append(
            tag(
                "rect",
                x=f"{place * wide + 4}",
                y=f"{20 + tall - height:.1f}",
                width=f"{wide - 8}",
                height=f"{height:.1f}",
                class_="filled",
            )
        )
        if count:
            drawn.append(tag("text", str(count), x=f"{middle}", y=f"{14 + tall - height:.1f}"))
        drawn.append(tag("text", label, x=f"{middle}", y=f"{tall + 38}", class_="label"))
    width = wide * len(counts)
    drawn.append(tag("line", x1="0", y1=f"{20 + tall}", x2=f"{width}", y2=f"{20 + tall}"))
    return tag(
        "svg", tag("title", words), *drawn, class_="histogram", viewBox=f"0 0 {width} {tall + 46}", role="img", aria_label=words
    )


# --- a student's page ---------------------------------------------------------------------------------------------------


def feedback_page(row: Row, name: str, lang: str) -> Html:
    """What the student of ``row`` gets back: points, traps with their hints, and the sections to read again."""
    title = _tell("title", lang, assignment=assignment_title(row.assignment, lang))
    who = [foreign(row.student), *((" ", foreign(name)) if name else ())]
    if row.submitted:
        who += ["　" if lang == "ja" else ". ", _tell("submitted", lang, when=row.submitted)]
    header = tag("header", tag("h1", title), tag("p", *who, class_="made"))
    main = tag("main", *_feedback_parts(row, lang), id="main", tabindex="-1")
    return page(lang, title, _tell("skip", lang), header, main, tag("footer", tag("p", _tell("about", lang))))


def _tell(key: str, lang: str, /, **details: object) -> str:
    return message(f"classroom.report.feedback.{key}", lang, **details)


def _feedback_parts(row: Row, lang: str) -> Iterator[Html]:
    if row.status != "failed":
        score = _tell("out_of", lang, score=points(row.score), max=points(row.max_score))
        yield tag("p", f"{_tell('score', lang)}: ", tag("strong", score), bar(row.score, row.max_score), class_="total")
    todo = "all_right" if row.status == "graded" and row.max_score > 0 and row.score >= row.max_score else row.status
    yield tag("p", _status(row.status, lang), " ", _tell(f"to_student.{todo}", lang), class_="todo")
    notes = dict.fromkeys(note_text(note, lang) for note in row.notes if note.code in TOLD)
    if notes:
        yield tag("aside", tag("h2", _tell("notes", lang)), tag("ul", *(tag("li", note) for note in notes)))
    if row.status in UNSEEN and not answered(row):
        return
    exercises = dict.fromkeys(test.exercise for test in row.tests if test.exercise is not None)
    if exercises and row.status not in UNSEEN:
        yield tag("section", tag("h2", _tell("exercises", lang)), *_exercises(row, list(exercises), lang))
    if any(test.question is not None for test in row.tests):
        yield tag("section", tag("h2", _tell("questions", lang)), *_questions(row, lang))


def _exercises(row: Row, exercises: Sequence[str], lang: str) -> Iterator[Html]:
    verdicts = {verdict["exercise"]: verdict for verdict in row.verdicts}
    body = []
    for exercise in exercises:
        tests = [test for test in row.tests if test.exercise == exercise]
        score, most = sum(test.points for test in tests), sum(test.max_points for test in tests)
        status = verdicts[exercise]["status"] if exercise in verdicts else "grader_problem"
        shown = joined([bar(score, most), tag("span", f"{points(score)} / {points(most)}", class_="beside")])
        body.append([_exercise_name(exercise, lang), shown, _verdict(status, lang)])
    header = [_say("exercise", lang), _tell("score", lang), _tell("result", lang)]
    yield table(_tell("exercises_caption", lang), header, body)
    for exercise in exercises:
        verdict = verdicts.get(exercise)
        if verdict is None or verdict["status"] != "pass":
            told = [tag("p", _tell("not_judged", lang))] if verdict is None else list(_told(verdict, lang))
            yield tag("article", tag("h3", _exercise_name(exercise, lang)), *told)


def _exercise_name(exercise: str, lang: str) -> Html:
    title = f"practice.exercise.{exercise}.title"
    words = f" {message(title, lang)}" if title in catalogue() else None
    return joined([tag("code", exercise), words])


def _verdict(status: str, lang: str) -> Html:
    fine = status in ("pass", "variant")
    mark = tag("span", "✓" if fine else "○" if status == "unsolved" else "✗", class_="mark", aria_hidden="true")
    return tag("span", mark, _tell(f"verdict.{status}", lang), class_=f"status {'fine' if fine else 'grave'}")


def _told(verdict: dict[str, Any], lang: str) -> Iterator[Html]:
    """What a verdict says to the student: of traps all that helps, of hidden tests nothing."""
    status, exercise, traps = verdict["status"], verdict["exercise"], verdict["traps"]
    if len(traps) > 1 and status != "variant":
        yield tag("p", _tell("several", lang, count=len(traps)))
    found = "found_variant" if status == "variant" else "found_closest" if verdict["certainty"] == "closest" else "found"
    for key in traps:
        yield from _trap(key, found, lang)
    if not traps:
        for line in _words(verdict, lang):
            yield tag("p", line, class_="words")
    if status not in ("variant", "grader_problem", "unsolved"):
        yield tag("p", _tell("check_again", lang, exercise=exercise))


def _words(verdict: dict[str, Any], lang: str) -> list[str]:
    """A verdict without a trap in words. What only a hidden test shows (which value differs) is not among them."""
    status, evidence = verdict["status"], verdict.get("evidence", {})
    if status == "error" and evidence.get("problem") == "died":
        return [_tell("died", lang)]
    if status in ("unsolved", "timeout", "grader_problem"):
        return [_tell(status, lang, exercise=verdict["exercise"])]
    if status in ("error", "uses_reference") or (status == "wrong" and verdict.get("stage") in testing.EARLY):
        said = _checker_words(verdict, lang)
        if said:
            return [line if len(line) <= LONGEST else line[:LONGEST] + _say("and_more", lang) for line in said]
    return [_tell("wrong" if status == "wrong" else f"verdict.{status}", lang)]


def _checker_words(verdict: dict[str, Any], lang: str) -> list[str]:
    """The checker's own lines, without its first (the status) and its last (what to type); none if they cannot be made."""
    about = {key: verdict.get(key) for key in ("exercise", "version", "status", "stage")}
    try:
        result = practice.CheckResult(**about, evidence=dict(verdict["evidence"]))
        return [line.strip() for line in result.text(lang).splitlines()[1:-1] if line.strip()]
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):  # kept by another version, or not ours at all
        return []


def _trap(key: str, found: str, lang: str) -> Iterator[Html]:
    """A trap as its card says it: what is right, what the mistake does, hints one after the other, where to read again."""
    trap, place = content.traps().get(key), lesson(key)
    yield tag("h4", _tell(found, lang, trap=trap_title(key, lang)))
    if trap is None:
        return
    yield tag(
        "dl",
        *(tag("dt", _tell("rule", lang)), tag("dd", trap.rule(lang))),
        *(tag("dt", _tell("line", lang)), tag("dd", trap.line(lang))),
    )
    for number, hint in enumerate(trap.hints, 1):
        if number == 1:
            yield tag("p", tag("strong", _tell("hint", lang, number=1)), " ", hint(lang), class_="hint")
        else:
            yield tag("details", tag("summary", _tell("hint", lang, number=number)), tag("p", hint(lang)), class_="hint")
    if place is not None:
        yield tag("p", _tell("read_again", lang, section=place.text(lang)), class_="again")


def _questions(row: Row, lang: str) -> Iterator[Html]:
    tests = [test for test in row.tests if test.question is not None]
    body = [
        [
            joined([_tell("question", lang, number=number), " ", tag("code", test.question)]),
            f"{points(test.points)} / {points(test.max_points)}",
            _answered(test.points >= test.max_points, lang),
        ]
        for number, test in enumerate(tests, 1)
    ]
    header = [_tell("questions", lang), _tell("score", lang), _tell("result", lang)]
    yield table(_tell("questions_caption", lang), header, body, numbers=(1,))
    in_code = {key for verdict in row.verdicts for key in verdict["traps"]}
    pointed = [key for key in row.traps if key not in in_code]
    if pointed and lost_questions(row):
        yield tag(
            "article", tag("h3", _tell("question_traps", lang)), *(part for key in pointed for part in _trap(key, "found", lang))
        )


def _answered(right: bool, lang: str) -> Html:
    mark = tag("span", "✓" if right else "✗", class_="mark", aria_hidden="true")
    return tag("span", mark, _tell("right" if right else "not_right", lang), class_=f"status {'fine' if right else 'grave'}")
