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


def lens_texts(page):
    """What the page says of the G検定, and of the E資格."""
    general, engineer = (part.text() for part in page.tables)
    return general, engineer


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_exam_view_shows_every_trap_once_and_says_unofficial(lang):
    language.use(lang)
    page = lab.exam_view(CHAPTER)
    text = page.text()
    ideas = [trap for trap in content.traps().values() if trap.chapter == CHAPTER and trap.family == "idea"]
    known = {trap.key for trap in ideas}
    alone = [trap for trap in content.traps().values() if trap.chapter == CHAPTER and not known & {trap.key, *trap.ideas}]
    assert len(ideas) >= 8 and len(alone) >= 3
    assert [trap.key for trap in [*ideas, *alone] if text.count(f"{trap.title(lang)} [") != 1] == []
    assert ("非公式" if lang == "ja" else "unofficial") in page.title
    assert ("非公式" if lang == "ja" else "Unofficial") in page.note


def test_a_misconception_and_its_code_are_one_card_and_code_is_for_the_e_exam_only():
    general, engineer = lens_texts(lab.exam_view(CHAPTER))
    codes = [trap.key for trap in content.traps().values() if trap.chapter == CHAPTER and trap.family != "idea"]
    assert [key for key in codes if f"{key}]" in general or f"{key}," in general] == []
    assert "[MC05, AT4, AT5]" in engineer
    only_e = [trap for trap in content.traps().values() if trap.chapter == CHAPTER and "g-kentei" not in trap.exams]
    assert [trap.key for trap in only_e if f"{trap.title('en')} [" in general] == []


def test_the_exam_view_has_at_most_five_cards_an_exam_and_folds_the_rest():
    for part in lab.exam_view(CHAPTER).tables:
        assert 3 <= len(part.cards) <= 5 and part.rest
        html = part.html()
        first = html.index("<details")
        assert all(html.index(card.right().replace("'", "&#x27;")) < first for card in part.cards)
        assert all(card.tempts() for card in part.cards)


def test_the_exam_view_gives_no_question_away():
    text = lab.exam_view(CHAPTER).text()
    questions = content.questions(CHAPTER)
    assert not [question.id for question in questions if (question.plain or question.stem)("en") in text]
    general = [question for question in questions if "g-kentei" in question.exams]
    assert f"Questions of this chapter, {len(general)}:" in text
    assert f"easy {sum(question.difficulty == 1 for question in general)}," in text


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_chapter_that_there_is_has_an_exam_view(lang):
    from transformer_lite import course

    language.use(lang)
    for chapter in course.chapters():
        page = lab.exam_view(chapter.id)
        assert "$" not in page.text() and len(page.tables) == 2


def test_a_chapter_without_explained_traps_still_has_cards():
    from transformer_lite import course
    from transformer_lite.lab.examining import lenses

    first = course.Chapter(1, "why-the-transformer", course.chapter(2).title, course.chapter(2).sections, "01")
    unexplained = [trap for trap in content.traps().values() if trap.chapter == first.id]
    assert len(unexplained) >= 3
    general = lenses(first)[0]
    assert {card.lead.key for card in general.cards} | {card.lead.key for card in general.rest} == {
        trap.key for trap in unexplained if "g-kentei" in trap.exams and trap.family == "idea"
    }
    assert all(card.tempts() for card in general.cards)


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


def test_an_answer_as_the_last_line_of_a_cell_shows_nothing_but_the_explanation():
    from IPython.core.displayhook import DisplayHook
    from IPython.core.interactiveshell import InteractiveShell

    question = first("single")
    option = wrong_option(question)
    grade = lab.answer(question.id, option.key)
    assert repr(grade) == f"Grade(correct=False, traps={grade.traps})" and "chosen" not in repr(grade)
    hook = DisplayHook(shell=InteractiveShell())
    assert hook.compute_format_data(grade) == ({}, {})
    assert hook.compute_format_data("text")[0]


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
