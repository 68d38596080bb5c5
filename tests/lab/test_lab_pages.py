"""The pages made from data: exam view, summary, progress, tables, doctor; and the verbs of questions in their text form."""

import numpy as np
import pytest

from transformer_lite import content, journal, lab, language

CHAPTER = "scaled-dot-product-attention"


@pytest.fixture(autouse=True)
def _a_learner(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    language.use("en")


def wrong_option(question):
    return next(option for option in question.options if option.trap)


def first(kind):
    return next(question for question in content.questions(CHAPTER) if question.kind == kind)


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_exam_view_shows_each_exam_trap_and_says_unofficial(lang):
    language.use(lang)
    page = lab.exam_view(CHAPTER)
    text = page.text()
    asked = [trap for trap in content.traps().values() if trap.chapter == CHAPTER and trap.asked and trap.tempts]
    assert len(asked) >= 8
    assert all(trap.title(lang) in text for trap in asked)
    assert ("非公式" if lang == "ja" else "Unofficial") in text
    assert "<td" in page.html()


def test_answering_in_text_explains_and_records(capsys):
    question = first("single")
    option = wrong_option(question)
    lab.quiz(CHAPTER, form="text")
    assert question.stem("en") in capsys.readouterr().out
    grade = lab.answer(question.id, option.key)
    said = capsys.readouterr().out
    assert grade.correct is False and option.why("en") in said
    event = journal.default().last("answer", question.id)
    assert event.parameters["correct"] is False and option.trap in event.parameters["traps"]


def test_a_number_refers_to_the_quiz_shown_last(capsys):
    lab.quiz(CHAPTER, form="text")
    with pytest.raises(lab.LabError, match="1 to"):
        lab.answer(999, "a")
    with pytest.raises(lab.LabError):
        lab.quiz(CHAPTER, form="paper")


def test_an_invalid_answer_is_said_and_not_recorded():
    with pytest.raises(lab.LabError):
        lab.answer(first("numeric").id, "eight")
    assert journal.default().events("answer") == []


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_progress_counts_what_was_done(lang):
    language.use(lang)
    question = first("single")
    lab.answer(question.id, wrong_option(question).key)
    page = lab.progress()
    chapter_row = next(row for row in page.tables[0].rows if row[0].startswith("2."))
    assert chapter_row[-1].startswith("0 / 1 / ")
    assert any(f"[{wrong_option(question).trap}]" in row[0] for row in page.tables[1].rows)
    assert page.picture is not None and page.picture.png.startswith(b"\x89PNG")


def test_progress_of_somebody_new_is_empty_not_an_error():
    page = lab.progress()
    assert page.tables[1].rows == [] and all(row[1] == "0" for row in page.tables[0].rows)


def test_the_summary_lists_terms_and_what_was_wrong():
    question = first("single")
    lab.answer(question.id, wrong_option(question).key)
    text = lab.summary(CHAPTER).text()
    assert question.stem("en") in text
    assert all(term.ja in text and term.en in text for term in content.glossary(CHAPTER))


def test_a_table_labels_its_numbers():
    text = lab.table(np.array([[0.5, 0.25], [1.0, 0.0]]), rows=["dog", "cat"], columns=["a", "b"], title="weights").text()
    assert "weights" in text and "0.500" in text and "dog" in text
    with pytest.raises(lab.LabError, match="2"):
        lab.table(np.eye(2), rows=["dog"])


def test_tables_escape_what_they_show():
    html = lab.table(np.eye(1), rows=["<img src=x onerror=alert(1)>"]).html()
    assert "<img" not in html and "&lt;img" in html


def test_a_damaged_journal_is_said_and_set_aside(tmp_path, capsys):
    lab.answer(first("single").id, wrong_option(first("single")).key)
    path = journal.default().path
    path.write_bytes(b"this is no journal" * 500)
    lab.progress()
    said = capsys.readouterr().out
    assert any(file.name != path.name and "damaged" in file.name for file in tmp_path.iterdir()), said


def test_the_doctor_finds_this_set_up_well():
    from transformer_lite.lab.health import findings

    assert [(finding.name, finding.mend) for finding in findings() if not finding.ok] == []


def test_nothing_is_written_when_nothing_is_recorded(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "0")
    lab.answer(first("single").id, wrong_option(first("single")).key)
    assert not any(tmp_path.glob("*.db*")) and not any(tmp_path.glob("*.sqlite*"))


def test_the_device_can_be_chosen(monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LITE_DEVICE", "cpu")
    assert str(lab.device()) == "cpu"


def test_a_guess_can_be_made_in_text_and_is_not_graded(capsys):
    prediction = content.prediction(f"{CHAPTER}.hook")
    assert lab.answer(prediction.id, "a") is None
    assert prediction.after("en") in capsys.readouterr().out
    assert journal.default().last("predict", prediction.id).parameters["chosen"] in {option.key for option in prediction.options}


def test_free_recall_is_recorded_once_marked_and_without_the_words():
    question = first("recall")
    lab.answer(question.id, "the dot products are divided")
    assert journal.default().events("answer") == []
    lab.answer(question.id, 2)
    event = journal.default().last("answer", question.id)
    assert event.parameters["chosen"] == {"mark": 2} and event.parameters["correct"] is True


def test_one_exams_questions_can_be_asked_alone(capsys):
    lab.quiz(CHAPTER, exam="g-kentei", form="text")
    said = capsys.readouterr().out
    only_e = next(question for question in content.questions(CHAPTER) if question.exams == ["e-shikaku"])
    assert first("matching").stem("en") in said and only_e.stem("en") not in said
    with pytest.raises(lab.LabError, match="e-shikaku"):
        lab.quiz(CHAPTER, exam="JLPT")


def test_a_table_shows_words_as_they_are_and_refuses_ragged_rows():
    assert lab.table([["a", None], ["b", 1.0]]).rows == [["a", "None"], ["b", "1.000"]]
    with pytest.raises(lab.LabError, match="same number"):
        lab.table([[1, 2], [3]])
