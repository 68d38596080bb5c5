"""The report of a class: what it counts, what it gives to whom, and that no page or sheet obeys what a student wrote."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import thirty
from thirty import CHAPTER, FORMULA, HTML, LONG, MASKS, NAMES, QUESTIONS, RIGHT, graded, make, unseen

from transformer_lite import cli, content, course, language
from transformer_lite.classroom import pages, reporting, results, tallying
from transformer_lite.language import LANGUAGES, catalogue, message

RIGHT_CODE = {"softmax": thirty.softmax, "attention": thirty.attention}
UNSCALED = {"softmax": thirty.softmax, "attention": thirty.attention_not_scaled}


class Seen(HTMLParser):
    """A page as a browser builds it: its elements with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def of(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture(scope="module")
def class_of_thirty(tmp_path_factory):
    """The course of thirty with its report. Only for reading."""
    folder = thirty.course_of_thirty(tmp_path_factory.mktemp("thirty"))
    return reporting.report(folder)


def class_page(report, lang):
    return (report.course / "report" / f"report.{lang}.html").read_text("utf-8")


def feedback(report, student, lang, assignment=CHAPTER):
    return (report.course / "feedback" / student / f"{assignment}.{lang}.html").read_text("utf-8")


def table_rows(report):
    text = (report.course / "report" / "grades.csv").read_bytes()
    assert text.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"), newline="")))


def trap_numbers(report):
    return {trap.key: len(trap.students) for trap in report.traps}


# --- what is counted ----------------------------------------------------------------------------------------------------


def test_thirty_submissions_are_thirty_rows(class_of_thirty):
    assert sum(row.assignment == CHAPTER for row in class_of_thirty.rows) == 30
    assert class_of_thirty.feedback == len(class_of_thirty.rows) == 36


def test_traps_come_by_the_number_of_their_students(class_of_thirty):
    numbers = trap_numbers(class_of_thirty)
    # AT1: s10, s12, s13 and s16 and two more in code, of whom s10 and s12 also in a question; each counts once.
    assert numbers == {"AT1": 6, "AT3": 4, "AT7": 4, "CM1": 2, "SM1": 2, "AT2": 1, "CM2": 1, "SM3": 1}
    assert list(numbers.values()) == sorted(numbers.values(), reverse=True)


def test_a_trap_says_where_it_was_found(class_of_thirty):
    found = {trap.key: trap for trap in class_of_thirty.traps}
    assert found["AT1"].exercises == ("attention",) and found["AT1"].questions == (QUESTIONS[0],)
    assert found["AT3"].exercises == () and found["AT3"].questions == (QUESTIONS[0],)
    assert found["AT7"].questions == (QUESTIONS[1],)
    assert found["CM1"].assignments == (MASKS,) and found["CM1"].students == ("s02", "s09")


def test_a_trap_is_counted_among_those_who_could_have_shown_it(class_of_thirty):
    assert class_of_thirty.seen_in([MASKS]) == 6
    assert class_of_thirty.seen_in([CHAPTER]) == 27  # three submissions nobody has seen
    assert "6 人中 2 人" in Seen(class_page(class_of_thirty, "ja")).text
    assert "2 of 6" in Seen(class_page(class_of_thirty, "en")).text


@pytest.mark.parametrize(
    ("key", "ja", "en"),
    [
        ("AT1", "第 2 章「スケール化内積注意」　6. なぜ √d_k で割るのか",
         "Chapter 2, Scaled dot-product attention: 6. Why divide by √d_k?"),
        ("SM1", "第 2 章「スケール化内積注意」　4. 自分で組み立てる（演習 1 softmax）",
         "Chapter 2, Scaled dot-product attention: 4. Build it (Exercise 1 softmax)"),
    ],
)  # fmt: skip
def test_a_trap_names_the_section_to_teach_again(key, ja, en):
    assert (tallying.lesson(key).text("ja"), tallying.lesson(key).text("en")) == (ja, en)


def test_every_trap_of_the_catalogue_has_a_section_in_both_languages():
    missing = [
        key
        for key in content.traps()
        if (place := tallying.lesson(key)) is None or (content.trap(key).anchor and not place.section)
    ]
    assert len(content.traps()) > 200 and missing == []
    assert tallying.lesson("ZZ9") is None


def test_sections_come_by_the_number_of_students_who_need_them(class_of_thirty):
    first = class_of_thirty.lessons[0]
    assert first.traps == ("AT1", "AT3", "AT2") and first.lesson == tallying.lesson("AT1")
    assert len(first.students) == 8  # fewer than 6 + 4 + 1: s13, s14 and s16 fell into two of them


def test_another_convention_is_no_trap(tmp_path):
    def gelu(x, w1, b1, w2, b2):
        from math import erf

        inside = x @ w1 + b1
        return inside * 0.5 * (1 + np.vectorize(erf)(inside / np.sqrt(2))) @ w2 + b2

    row = graded("s1", {"feed_forward": gelu}, assignment="ffn-residual-layer-norm")
    assert (row.verdicts[0]["status"], row.traps, row.score) == ("variant", ("FF3",), row.max_score)
    found = reporting.report(make(tmp_path, [row]))
    assert found.traps == () and tallying.mistakes(row) == []
    text = Seen(feedback(found, "s1", "en", row.assignment)).text
    assert "A way that others use" in text and "FF3" in text and "Once it is mended" not in text


def test_points_by_test_show_which_test_is_lost(class_of_thirty):
    rows = class_of_thirty.assignments[CHAPTER]
    tests = {(count.score.exercise, count.score.part): count for count in tallying.test_counts(rows)}
    scale = tests["attention", "scale"]
    # 27 seen; lost by 6 × AT1, 1 × AT2, and by the five whose code says nothing of it (no name, shape, error, blank, died).
    assert (scale.full, scale.of) == (27 - 6 - 1 - 5, 27)
    assert scale.mean == pytest.approx(15 / 27)
    assert min(tests.values(), key=lambda count: count.full / count.of) is scale
    assert "いちばん落とした" in Seen(class_page(class_of_thirty, "ja")).text


def test_a_fault_of_ours_is_no_zero_in_the_figures(class_of_thirty):
    rows = class_of_thirty.assignments[CHAPTER]
    without = [row for row in rows if row.status != "failed"]
    assert tallying.average(rows) == tallying.average(without)
    assert sum(count for _, count in tallying.distribution(rows)) == len(without) == 29


def test_the_distribution_puts_every_share_into_its_place():
    def scored(score, most):
        return replace(unseen("s", "graded"), score=score, max_score=most)

    rows = [scored(0, 7), scored(0.7, 7), scored(6.99, 7), scored(7, 7), scored(9, 7), scored(3, 10), scored(0, 0)]
    assert [(label, count) for label, count in tallying.distribution(rows) if count] == [
        ("0–9", 2),
        ("10–19", 1),
        ("30–39", 1),
        ("90–99", 1),
        ("100", 2),
    ]


# --- the class's page ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_class_page_holds_every_student_status_and_trap(class_of_thirty, lang):
    seen = Seen(class_page(class_of_thirty, lang))
    for row in class_of_thirty.rows:
        assert row.student in seen.text
        assert pages.status_title(row.status, lang) in seen.text
    for trap in class_of_thirty.traps:
        assert trap.title(lang) in seen.text and trap.lesson.text(lang) in seen.text
    for status in tallying.LOOK:
        assert message(f"classroom.report.to_instructor.{status}", lang) in seen.text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_page_is_of_one_language(class_of_thirty, lang):
    for page in (class_page(class_of_thirty, lang), feedback(class_of_thirty, "s10", lang)):
        seen = Seen(page)
        assert seen.of("html") == [{"lang": lang}]
        kana = sum("ぁ" <= character <= "ヶ" for character in seen.text.replace("とても", "").replace("い", ""))
        assert kana > 200 if lang == "ja" else kana == 0


def test_names_come_from_the_gradebook(class_of_thirty):
    assert class_of_thirty.name("山田_太郎") == "山田 太郎"
    assert class_of_thirty.name("s01") == "Ada Lovelace"
    assert class_of_thirty.name("s10") == class_of_thirty.name("s30") == ""
    assert "Ada Lovelace" in Seen(class_page(class_of_thirty, "ja")).text
    assert "山田 太郎" in Seen(feedback(class_of_thirty, "山田_太郎", "en")).text


def test_a_note_is_told_in_words_and_an_unknown_one_by_its_code(class_of_thirty):
    text = Seen(class_page(class_of_thirty, "en")).text
    assert message("classroom.note.restored", "en", count=2) in text and "new_code" in text
    assert pages.note_text(results.Note("restored", {"cells": 2}), "en") == "note: restored"  # not the details of its words


@pytest.mark.parametrize("lang", LANGUAGES)
def test_tables_can_be_heard(class_of_thirty, lang):
    for page in (class_page(class_of_thirty, lang), feedback(class_of_thirty, "s10", lang)):
        seen = Seen(page)
        tables = len(seen.of("table"))
        assert tables >= 2 and len(seen.of("caption")) == tables
        headers = seen.of("th")
        assert {header["scope"] for header in headers} == {"col", "row"}
        assert {header["role"] for header in headers} == {"columnheader", "rowheader"}
        assert len(seen.of("h1")) == len(seen.of("main")) == len(seen.of("title")) - len(seen.of("svg")) + _silent(seen) == 1
        assert all("aria-label" in svg or svg.get("aria-hidden") == "true" for svg in seen.of("svg"))
        ids = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert {link["href"][1:] for link in seen.of("a") if link["href"].startswith("#")} <= set(ids)


def _silent(seen):
    return sum(svg.get("aria-hidden") == "true" for svg in seen.of("svg"))


def test_links_lead_to_the_pages_of_the_students(class_of_thirty):
    from urllib.parse import unquote

    links = [link["href"] for link in Seen(class_page(class_of_thirty, "en")).of("a") if not link["href"].startswith("#")]
    assert len(links) == 36
    for link in links:
        assert (class_of_thirty.course / "report" / unquote(link)).is_file(), link


# --- what students see --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
def test_feedback_names_trap_hint_and_section(class_of_thirty, lang):
    page = feedback(class_of_thirty, "s12", lang)
    trap, text = content.trap("AT1"), Seen(page).text
    for said in (trap.title(lang), trap.rule(lang), trap.line(lang), *(hint(lang) for hint in trap.hints)):
        assert said in text
    assert tallying.lesson("AT1").text(lang) in text and 'lab.check("attention")' in text


def test_the_first_hint_is_open_and_the_others_are_folded(class_of_thirty):
    page = feedback(class_of_thirty, "s14", "en")  # AT2 in code, AT3 in a question
    folded = "".join(part.split("</details>")[0] for part in page.split("<details")[1:])
    for key in ("AT2", "AT3"):
        first, *others = (hint.en for hint in content.trap(key).hints)
        assert others
        assert first in Seen(page).text and first not in Seen(folded).text
        assert all(hint in Seen(folded).text for hint in others)
    assert all("open" not in details for details in Seen(page).of("details"))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_page_of_a_student_says_anything_of_hidden_tests_or_keys(tmp_path, lang):
    """Every test, part and key is called by a word that stands nowhere else, for every kind of answer and status."""
    rows = []
    for row in thirty.chapter_two():
        tests = [replace(test, id=f"zzid{number}", part=test.part and f"zzpart{number}") for number, test in enumerate(row.tests)]
        rows.append(replace(row, tests=tuple(tests)))
    keys = {name: {**key, "right": "zzright"} for name, key in thirty.KEYS.items()}
    found = reporting.report(make(tmp_path, rows, keys))
    told = [feedback(found, row.student, lang) for row in rows]
    assert len(told) == 30 and not [page for page in told if "zz" in page]
    assert "zzpart" in class_page(found, lang)  # the instructor may know
    assert not [page for page in told if "hidden:" in page]  # the log of a grading


def test_a_wrong_value_without_a_name_is_not_shown(class_of_thirty):
    row = next(row for row in class_of_thirty.rows if row.student == "s17")
    verdict = next(verdict for verdict in row.verdicts if verdict["exercise"] == "attention")
    assert verdict["evidence"]["problem"] == "differs"
    text = Seen(feedback(class_of_thirty, "s17", "en")).text
    assert "not as any trap with a name" in text and 'lab.check("attention")' in text
    assert "First difference" not in text and str(verdict["evidence"]["right"])[:6] not in text


def test_a_wrong_form_is_told_as_the_visible_test_tells_it(class_of_thirty):
    text = Seen(feedback(class_of_thirty, "s18", "en")).text
    assert "transposed" in text and "lab.hint" not in text
    error = Seen(feedback(class_of_thirty, LONG, "ja")).text
    assert "ValueError" in error and "<b>合いません</b>" in error and "とても長い説明" in error
    assert error.count("とても長い説明") < 100  # of 200


def test_a_long_error_is_cut(class_of_thirty):
    row = next(row for row in class_of_thirty.rows if row.student == LONG)
    (verdict,) = (verdict for verdict in row.verdicts if verdict["exercise"] == "attention")
    longer = {**verdict, "evidence": {**verdict["evidence"], "text": "x" * 100_000}}
    page = pages.feedback_page(replace(row, verdicts=(longer,)), "", "en")
    assert 500 < page.count("x" * 10) * 10 < 1_000 and "(cut here)" in page


def test_no_points_are_shown_for_what_could_not_be_graded(class_of_thirty):
    text = Seen(feedback(class_of_thirty, "s30", "en")).text
    assert "You need do nothing" in text and "0 of" not in text
    for student in ("s27", "s28"):
        assert not Seen(feedback(class_of_thirty, student, "en")).of("article")


def test_an_exercise_that_was_never_judged_says_so(tmp_path):
    row = replace(graded("s1", RIGHT_CODE, RIGHT), verdicts=(), status="died", score=0.0)
    text = Seen(feedback(reporting.report(make(tmp_path, [row])), "s1", "en")).text
    assert text.count("did not run this far") == 2 and "Kernel died" in text


def test_full_marks_are_told_and_nothing_else(class_of_thirty):
    seen = Seen(feedback(class_of_thirty, "s01", "en"))
    assert "Full marks." in seen.text and not seen.of("article")


def test_a_verdict_of_another_version_makes_no_page_fail(tmp_path):
    """Kept by a course of last year: an exercise and a trap that are gone, evidence of another form, a new status of notes."""
    old = {
        "exercise": "gone",
        "version": 9,
        "status": "error",
        "stage": "run",
        "traps": [],
        "certainty": "none",
        "evidence": {"x": 1},
    }
    other = {**old, "exercise": "softmax", "status": "wrong", "stage": "shape", "evidence": {"problem": "no_such_problem"}}
    trapped = {**old, "exercise": "attention", "status": "wrong", "stage": "value", "traps": ["ZZ9"]}
    tests = tuple(results.TestScore(name, 0.0, 1.0, name, "form") for name in ("gone", "softmax", "attention"))
    row = results.Row("no-such-chapter", "s1", "ja", 0.0, 3.0, "graded", ("ZZ9",), tests, (old, other, trapped))
    found = reporting.report(make(tmp_path, [row]))
    assert trap_numbers(found) == {"ZZ9": 1} and "no-such-chapter" in Seen(class_page(found, "en")).text
    text = Seen(feedback(found, "s1", "en", "no-such-chapter")).text
    assert "gone" in text and "The trap: ZZ9" in text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_there_are_words_for_every_status(lang):
    known = catalogue()
    assert [status for status in results.STATUSES if f"classroom.report.feedback.to_student.{status}" not in known] == []
    assert [status for status in results.STATUSES if f"classroom.status.{status}" not in known] == []
    assert [code for code in pages.TOLD if f"classroom.note.{code}" not in known] == []
    verdicts = [key.rpartition(".")[2] for key in known if key.startswith("practice.status.")]
    assert len(verdicts) == 8 and all(f"classroom.report.feedback.verdict.{status}" in known for status in verdicts)


# --- nothing of a student's is obeyed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_text_of_a_student_becomes_markup(class_of_thirty, lang):
    written = [
        class_page(class_of_thirty, lang),
        *(feedback(class_of_thirty, student, lang) for student in (HTML, LONG, FORMULA, "s29")),
    ]
    for page in written:
        seen = Seen(page)
        assert not {name for name, _ in seen.tags} & {"script", "img", "b", "iframe", "object", "link", "form"}
        assert not [key for _, attributes in seen.tags for key in attributes if key.startswith("on")]
        assert not [
            value for _, attributes in seen.tags for value in attributes.values() if str(value).startswith(("http", "//"))
        ]
        assert any("Content-Security-Policy" in meta.values() for meta in seen.of("meta"))
        assert "url(" not in page and "@import" not in page
    assert HTML in Seen(written[0]).text and NAMES[HTML][0] in Seen(written[0]).text


@pytest.mark.parametrize("nasty", ["a\x00b\x1b[31m", "\ud800", "\u202eevil", "\x7f\x9b", "a\nb"])
def test_characters_that_no_page_can_hold_are_shown_as_what_they_are_not(nasty):
    page = pages.feedback_page(replace(graded("s", RIGHT_CODE), student=nasty), nasty, "en")
    text = page.encode().decode()
    assert not set(text) & {"\x00", "\x1b", "\x7f", "\x9b", "\ud800"}
    assert "<bdi>" in page


@pytest.mark.parametrize(
    "cell", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x", " =1", "\u3000＝1", "\x0b=1", "\x01=1"]
)
def test_no_cell_is_a_formula(cell):
    assert reporting.harmless(cell).startswith("'") and reporting.harmless(cell)[1:].strip("\x01\x0b") in (cell, cell[1:])


@pytest.mark.parametrize("cell", ["s01", "山田_太郎", "1-1", "a=b", "19", "2.5", ""])
def test_other_cells_stay_as_they_are(cell):
    assert reporting.harmless(cell) == cell


def test_the_table_of_points_is_read_back_as_it_was(class_of_thirty):
    read = table_rows(class_of_thirty)
    assert list(read[0]) == ["student", "assignment", "score", "max_score", "status", "traps"]
    assert len(read) == 36
    for cells, row in zip(read, class_of_thirty.rows, strict=True):
        assert cells["student"].removeprefix("'") == row.student
        assert (float(cells["score"]), float(cells["max_score"])) == (row.score, row.max_score)
        assert (cells["assignment"], cells["status"], cells["traps"].split()) == (row.assignment, row.status, list(row.traps))
    assert sum(cells["student"].startswith("'") for cells in read) == 2


# --- courses of other kinds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_course_that_nobody_has_graded_says_what_to_do(tmp_path, lang):
    found = reporting.report(make(tmp_path, []), [lang])
    assert message("classroom.report.none_yet", lang) in Seen(class_page(found, lang)).text
    assert found.rows == found.traps == () and table_rows(found) == []
    assert found.pages == (tmp_path / "report" / f"report.{lang}.html",) and not (tmp_path / "feedback").exists()


def test_a_course_of_nothing_but_failures_has_a_report(tmp_path):
    rows = [unseen(f"s{number}", status) for number, status in enumerate(["failed", "unreadable", "missing"] * 3)]
    found = reporting.report(make(tmp_path, rows))
    for lang in LANGUAGES:
        text = Seen(class_page(found, lang)).text
        assert message("classroom.report.again_part.none", lang) in text
        assert text.count(message("classroom.report.to_instructor.failed", lang)) == 3
    only = reporting.report(make(tmp_path / "only", [unseen("s1", "failed")]))
    assert "–" in Seen(class_page(only, "en")).text  # no mean of nothing


def test_one_assignment_has_no_table_of_all(tmp_path, class_of_thirty):
    caption = message("classroom.report.rows_part.matrix", "en")
    assert caption in Seen(class_page(class_of_thirty, "en")).text
    found = reporting.report(make(tmp_path, [graded("s1", RIGHT_CODE)]))
    assert caption not in Seen(class_page(found, "en")).text


def test_a_second_report_replaces_the_first(tmp_path):
    folder = make(tmp_path, [graded("s1", UNSCALED)])
    (folder / "submitted" / "s1").mkdir(parents=True)
    (folder / "submitted" / "s1" / "x.ipynb").write_text("{}")
    reporting.report(folder)
    results.write(folder, graded("s1", RIGHT_CODE))
    found = reporting.report(folder)
    assert found.traps == () and "AT1" not in feedback(found, "s1", "en")
    made = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert made == [
        f"feedback/s1/{CHAPTER}.en.html",
        f"feedback/s1/{CHAPTER}.ja.html",
        f"grading/{CHAPTER}/assignment.json",
        f"grading/{CHAPTER}/rows/s1.json",
        "report/grades.csv",
        "report/report.en.html",
        "report/report.ja.html",
        "submitted/s1/x.ipynb",
    ]


def test_a_folder_that_is_no_course_is_said_so(tmp_path):
    with pytest.raises(course.CourseError, match="assign"):
        reporting.report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_definition_is_said_so(tmp_path):
    make(tmp_path, [])
    (tmp_path / "grading" / CHAPTER / "assignment.json").write_text("{", "utf-8")
    language.use("en")
    with pytest.raises(course.CourseError, match="cannot be read"):
        reporting.report(tmp_path)


def test_a_record_that_cannot_be_read_is_named(tmp_path):
    folder = make(tmp_path, [graded("s1", RIGHT_CODE)])
    (folder / "grading" / CHAPTER / "rows" / "s2.json").write_text("{", "utf-8")
    found = reporting.report(folder)
    assert [path.stem for path in found.unread] == ["s2"] and len(found.rows) == 1
    assert f"{CHAPTER}/s2" in Seen(class_page(found, "ja")).text


@pytest.mark.parametrize("data", [b"no database", b""])
def test_a_gradebook_that_cannot_be_read_costs_the_names_only(tmp_path, data):
    folder = make(tmp_path, [graded("s1", RIGHT_CODE)])
    (folder / "gradebook.db").write_bytes(data)
    found = reporting.report(folder)
    assert found.names == {} and (folder / "gradebook.db").read_bytes() == data


def test_the_names_are_read_from_a_gradebook_of_nbgrader(tmp_path):
    from nbgrader.api import Gradebook

    folder = make(tmp_path, [graded("s1", RIGHT_CODE)])
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        gradebook.add_student("s1", first_name="太郎", last_name="山田")
    before = (folder / "gradebook.db").read_bytes()
    assert reporting.report(folder).name("s1") == "山田 太郎"
    assert (folder / "gradebook.db").read_bytes() == before


@pytest.mark.parametrize("student", ["../s2", "..", "/tmp/s2", ""])
def test_a_name_that_leads_elsewhere_gets_no_page(tmp_path, student):
    folder = make(tmp_path / "course", [graded("s1", RIGHT_CODE)])
    kept = folder / "grading" / CHAPTER / "rows" / "s1.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text("utf-8")), "student": student}), "utf-8")
    found = reporting.report(folder)
    assert (found.unnamed, found.feedback) == ((student,), 0)
    assert not (folder / "feedback").exists() and [path.name for path in tmp_path.iterdir()] == ["course"]


def test_a_link_out_of_the_course_is_not_followed(tmp_path):
    folder = make(tmp_path / "course", [graded("s1", RIGHT_CODE)])
    (tmp_path / "outside").mkdir()
    (folder / "feedback").symlink_to(tmp_path / "outside", target_is_directory=True)
    with pytest.raises(course.CourseError, match="feedback"):
        reporting.report(folder)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_said_so(tmp_path):
    folder = make(tmp_path, [])
    (folder / "report").write_text("a file", "utf-8")
    language.use("en")
    with pytest.raises(course.CourseError, match="Cannot write"):
        reporting.report(folder)


# --- the command --------------------------------------------------------------------------------------------------------


def test_the_command_prints_rows_traps_and_where_the_pages_are(class_of_thirty, tmp_path, capsys):
    folder = shutil.copytree(class_of_thirty.course, tmp_path / "course")
    assert cli.main(["report", str(folder), "--lang", "en"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert [line for line in lines if "[red]s24[bold]" in line and "0/19" in line]
    assert [line for line in lines if line.startswith(CHAPTER) and "s10" in line and line.endswith("SM1 AT1 AT7")]
    assert [line for line in lines if "No division by √d_k [AT1]" in line and "6 of 27" in line and "6. Why divide" in line]
    assert str(folder / "report" / "report.ja.html") in said and str(folder / "report" / "grades.csv") in said
    assert "36" in lines[-1] and str(folder / "feedback") in lines[-1]


def test_the_command_gives_its_findings_as_json(class_of_thirty, tmp_path, capsys):
    folder = shutil.copytree(class_of_thirty.course, tmp_path / "course")
    assert cli.main(["report", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["rows"]) == 36 and set(said["rows"][0]) == {"assignment", "student", "score", "max_score", "status", "traps"}
    first = said["traps"][0]
    assert (first["trap"], first["students"], first["of"], first["exercises"]) == ("AT1", 6, 27, ["attention"])
    assert said["feedback"] == 36 and len(said["pages"]) == 2


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_command_ends_with_1_where_nothing_is_graded_and_3_where_there_is_no_course(tmp_path, capsys, lang):
    make(tmp_path / "course", [])
    assert cli.main(["report", str(tmp_path / "course"), "--lang", lang]) == 1
    assert message("classroom.report.none_yet", lang) in capsys.readouterr().err
    assert cli.main(["report", str(tmp_path / "nothing"), "--lang", lang]) == 3
    assert "nothing" in capsys.readouterr().err
    assert cli.main(["report"]) == 2


def test_nothing_of_a_student_reaches_the_terminal_as_a_command_to_it(tmp_path, capsys):
    folder = make(tmp_path, [graded("s1", RIGHT_CODE)])
    kept = folder / "grading" / CHAPTER / "rows" / "s1.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text("utf-8")), "student": "\x1b]0;title\x07s1"}), "utf-8")
    assert cli.main(["report", str(folder)]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err and "s1" in said.out


# --- in a browser -------------------------------------------------------------------------------------------------------

# The smallest contrast of any text against the ground under it.
CONTRAST = """() => {
  const paint = (colour) => { // [red, green, blue, opacity]
    const c = new OffscreenCanvas(1, 1).getContext("2d"); c.fillStyle = colour; c.fillRect(0, 0, 1, 1);
    return [...c.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parts = [0.2126, 0.7152, 0.0722];
  const light = (colour) => paint(colour).slice(0, 3).reduce((sum, v, i) => sum + parts[i] * linear(v / 255), 0);
  const back = (node) => getComputedStyle(node).backgroundColor;
  const ground = (node) => paint(back(node))[3] === 255 ? back(node) : ground(node.parentElement);
  const known = new Map(); // a page has few pairs of colours
  const contrast = (front, under) => {
    const key = front + under;
    if (!known.has(key)) {
      const [a, b] = [light(front), light(under)].sort((x, y) => y - x);
      known.set(key, (a + 0.05) / (b + 0.05));
    }
    return known.get(key);
  };
  const least = [Infinity, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const found = contrast(node.namespaceURI.endsWith("svg") ? style.fill : style.color, ground(node));
    if (found < least[0]) least.splice(0, 2, found, node.outerHTML.slice(0, 200));
  }
  return least;
}"""


@pytest.fixture
def opened(browser):
    """Open a file as people do; the page keeps what it complained of and what it asked for."""
    contexts = []

    def start(path, width=1000, scheme="light", media="screen"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.emulate_media(media=media, color_scheme=scheme)
        page.problems = []
        page.on("console", lambda said: page.problems.append(said.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("dialog", lambda dialog: (page.problems.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda asked: page.problems.append(asked.url) if asked.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield start
    for context in contexts:
        context.close()


def written(report):
    folder = report.course
    kept = [folder / "feedback" / student / f"{CHAPTER}.en.html" for student in (HTML, LONG, "s10", "s30")]
    return [*report.pages, *kept, folder / "feedback" / "s10" / f"{CHAPTER}.ja.html"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_legible_ask_for_nothing_and_run_nothing(class_of_thirty, opened, scheme):
    for path in written(class_of_thirty):
        page = opened(path, scheme=scheme)
        least, where = page.evaluate(CONTRAST)
        assert least >= 4.5, where
        assert page.problems == []
        dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert dark == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 28)")


@pytest.mark.parametrize("width", [380, 720, 1400])
def test_nothing_is_cut_off_at_any_width(class_of_thirty, opened, width):
    for path in written(class_of_thirty):
        page = opened(path, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        cells = "[...document.querySelectorAll('th, td, p, li')]"
        wide = f"{cells}.filter((each) => each.getBoundingClientRect().right > innerWidth + 1).length"
        assert page.evaluate(wide) == 0, path


def test_tables_stay_tables_for_those_who_hear_them_on_a_narrow_screen(class_of_thirty, opened):
    page = opened(class_of_thirty.pages[1], width=380)
    assert page.get_by_role("table", name="Each assignment in one row").get_by_role("rowheader").count() == 2
    cell = page.get_by_role("table", name="What could not be settled without you, and what to do").get_by_role("cell").first
    assert cell.is_visible()
    assert page.get_by_role("columnheader", name="Why, and what to do").count() == 1


def test_pages_work_by_keyboard(class_of_thirty, opened):
    page = opened(class_of_thirty.course / "feedback" / "s12" / f"{CHAPTER}.en.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Hint 2"
    second = content.trap("AT1").hints[1].en
    assert not page.get_by_text(second).is_visible()
    page.keyboard.press("Enter")
    assert page.get_by_text(second).is_visible()


def test_pages_print_on_a4_black_on_white_with_every_hint(class_of_thirty, opened):
    for path in (class_of_thirty.pages[0], class_of_thirty.course / "feedback" / "s12" / f"{CHAPTER}.en.html"):
        page = opened(path, width=688, scheme="dark", media="print")  # A4 without its margins
        assert page.evaluate("document.documentElement.scrollWidth") <= 688
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.querySelector('td')).display") == "table-cell"
        printed = page.pdf(prefer_css_page_size=True)
        assert b"/MediaBox [0 0 594.9" in printed or b"/MediaBox [0 0 595" in printed
    second = page.get_by_text(content.trap("AT1").hints[1].en)
    assert second.bounding_box()["height"] > 0


def test_answers_that_came_without_a_notebook_count_and_are_told(tmp_path):
    alone = graded("s1", {}, thirty.BOTH_WRONG, status="missing", notes=(results.Note("no_answers", {"file": "answers.json"}),))
    found = reporting.report(make(tmp_path, [alone, graded("s2", {}, status="missing")]))
    assert found.seen_in([CHAPTER]) == 1 and set(trap_numbers(found).values()) == {1}
    page = reporting.feedback_place(found.course, alone, "en").read_text("utf-8")
    assert "answers.json" in page and QUESTIONS[0] in page
