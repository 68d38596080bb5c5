"""What a quiz takes from the session and the journal: the exam chosen last, the order, and which question a number means."""

import pytest

from transformer_lite import content, journal, lab, language
from transformer_lite.lab import quizzes
from transformer_lite.quiz import Paper

CHAPTER = "scaled-dot-product-attention"


@pytest.fixture(autouse=True)
def _a_learner_in_a_notebook(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    monkeypatch.setattr(quizzes, "in_notebook", lambda: True)
    monkeypatch.setattr(quizzes, "_exam", None)
    language.use("en")


def asked():
    return [question for question in content.questions(CHAPTER) if question.kind != "recall"]


def single(number):
    return [question for question in asked() if question.kind == "single"][number]


def answer(question, right):
    key = next(option.key for option in question.options if option.correct is right)
    return lab.answer(question.id, Paper([question]).letter(question, key))


def test_the_next_quiz_starts_where_the_switch_was_left():
    card = lab.quiz(CHAPTER)
    assert card.asking["exam"] == "both" and card.asking["total"] == len(asked())
    card.receive({"do": "exam", "card": 0, "answer": "g-kentei"})
    assert lab.quiz(CHAPTER).asking["exam"] == "g-kentei"
    assert lab.quiz(CHAPTER, exam="e-shikaku").asking["exam"] == "e-shikaku"
    assert lab.quiz(CHAPTER).asking["exam"] == "g-kentei"  # what a cell asks for is not a choice of the learner's
    card.receive({"do": "exam", "card": 0, "answer": "both"})
    assert lab.quiz(CHAPTER).asking["exam"] == "both"


def test_the_exam_asked_for_is_the_switchs_first_state():
    card = lab.quiz(CHAPTER, exam="g-kentei")
    assert card.asking["exam"] == "g-kentei" and all("g-kentei" in question.exams for question in card.asked)
    card.receive({"do": "exam", "card": 0, "answer": "both"})
    assert card.asking["total"] == len(asked())


def test_mistakes_come_first_then_what_was_never_asked_and_last_what_was_right():
    right, wrong, earlier = single(0), single(5), single(1)
    answer(earlier, True)
    answer(right, True)
    answer(wrong, False)
    order = lab.quiz(CHAPTER).paper.questions
    assert order[0] == wrong and order[-2:] == (earlier, right)
    never = [question for question in asked() if question not in (right, wrong, earlier)]
    assert list(order[1:-2]) == never
    answer(wrong, True)
    assert lab.quiz(CHAPTER).paper.questions[0] == never[0]


def test_the_text_form_asks_in_the_same_order(capsys):
    wrong = single(5)
    answer(wrong, False)
    capsys.readouterr()
    lab.quiz(CHAPTER, form="text")
    assert f"1 / {len(asked())}  [{wrong.id}]" in capsys.readouterr().out


def test_recall_is_not_in_the_quiz():
    assert all(question.kind != "recall" for question in lab.quiz(CHAPTER).paper.questions)
    assert all(question.kind == "recall" for question in lab.recall(CHAPTER).paper.questions)


def test_a_number_means_the_question_that_the_card_shows_under_it():
    card = lab.quiz(CHAPTER)
    card.receive({"do": "session", "card": 0})
    place = next(place for place, question in enumerate(card.asked, 1) if question.kind == "single")
    lab.answer(place, "a")
    assert journal.default().events("answer")[-1].subject == card.asked[place - 1].id
    with pytest.raises(lab.LabError, match="1 to 10"):
        lab.answer(11, "a")


def test_a_stored_notebook_asks_for_both_exams_whatever_was_chosen(monkeypatch):
    lab.quiz(CHAPTER).receive({"do": "exam", "card": 0, "answer": "g-kentei"})
    monkeypatch.setenv("TRANSFORMER_LITE_STATIC", "1")
    shown = lab.quiz(CHAPTER).text
    assert all(f"[{question.id}]" in shown for question in asked())
