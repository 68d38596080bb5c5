"""The card's Python side: what it sends to the browser, and what it makes of what the browser sends."""

import json

import pytest
from test_quiz_text import gives_away

from transformer_lite import quiz


def sent(card):
    """Everything that the browser is given."""
    return json.dumps({key: value for key, value in card.get_state().items() if not key.startswith("_")}, ensure_ascii=False)


@pytest.fixture
def heard():
    return []


@pytest.fixture
def card(questions, heard):
    return quiz.form(questions, lambda question, grade: heard.append((question.id, grade)), "ja")


def answer(card, place, value):
    card.receive({"do": "answer", "card": place, "answer": value})
    return card.results.get(str(place))


def test_the_browser_learns_no_answer_before_it_is_given(card, questions):
    gives_away(questions, sent(card))
    bundle, _ = card._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle and "text/html" in bundle
    gives_away(questions, bundle["text/html"] + bundle["text/plain"])


def test_an_answer_is_graded_told_and_reported_once(card, single, heard):
    letter = quiz.Paper([single]).letter(single, "b")
    told = answer(card, 0, letter)
    assert told["verdict"] == "不正解" and told["answer"] == f"解答: {letter}" and told["draft"] == letter
    row = told["rows"][letter]
    assert row["why"] == "理由b" and row["open"] and not row["right"] and row["traps"][0][1] == "AT3"
    right = told["rows"][quiz.Paper([single]).letter(single, "a")]
    assert right["right"] and not right["open"] and right["why"] == "理由a" and right["traps"] == []
    assert len(told["rows"]) == 4 and told["reasons"] == told["others"] == told["traps"] == []
    assert [(name, grade.correct) for name, grade in heard] == [("t.single", False)]
    assert "理由c" in sent(card) and "理由q" not in sent(card)


def test_an_answer_that_cannot_be_read_is_said_and_not_reported(card, heard):
    for place, value in ((0, None), (1, []), (2, "八"), (3, ["A"]), (4, {"1": "A"}), (5, "")):
        first = answer(card, place, value)
        assert first["status"] == "invalid" and first["verdict"]
        assert answer(card, place, value)["count"] > first["count"]  # so that the browser notices the second try
    assert heard == []


def test_recall_is_reported_when_marked(card, heard):
    told = answer(card, 5, "分散を戻すため")
    assert told["status"] == "unmarked" and heard == [] and told["reasons"][0][1] == "分散を 1 に戻すためです。"
    told = answer(card, 5, {"text": told["draft"], "mark": 2})
    assert told["status"] == "marked" and told["right"] and heard[0][1].chosen == {"text": "分散を戻すため", "mark": 2}


def test_try_again_clears_and_asks_again(card, heard):
    answer(card, 2, "1/8")
    card.receive({"do": "again", "card": 2})
    assert card.results == {}
    assert answer(card, 2, "1/8")["right"] and len(heard) == 2


@pytest.mark.parametrize(
    "content",
    [None, 3, [], {}, {"do": "answer"}, {"do": "answer", "card": 99}, {"do": "answer", "card": True}, {"do": "x", "card": 0}],
)
def test_messages_that_are_none_are_ignored(card, heard, content):
    card.receive(content)
    assert card.results == {} and heard == []


def test_trouble_with_recording_does_not_cost_the_explanation(questions):
    def broken(question, grade):
        raise OSError("disk full")

    told = answer(quiz.form(questions, broken, "en"), 2, "1/8")
    assert told["verdict"] == "Correct" and "could not be recorded (OSError)" in told["note"]


def test_earlier_answers_come_back_and_the_next_open_question_is_shown(questions, single):
    earlier = {"t.single": "b", "t.multiple": ["a", "c"], "t.recall": 1, "t.ordering": ["gone"], "t.unknown": "a"}
    card = quiz.form(questions, None, "ja", answered=earlier)
    # Each is asked again; the browser is told how it went, not what was chosen, nor why that is wrong.
    assert card.results == {} and card.index == 0
    gives_away(questions, sent(card))
    assert card.lasts == {
        "0": {"right": False, "line": "前回の結果: 不正解"},
        "1": {"right": True, "line": "前回の結果: 正解"},
        "5": {"right": False, "line": "前回の結果: 自己採点: 一部は言えた"},
    }  # without "3": that question's steps have changed since
    card.receive({"do": "last", "card": 3})
    assert card.results == {}
    card.receive({"do": "last", "card": 0})
    assert card.results["0"]["draft"] == quiz.Paper([single]).letter(single, "b")
    assert card.lasts["0"] == {"right": False, "line": ""}


def test_a_session_holds_ten_questions_of_the_exam(many):
    heard = []
    card = quiz.form(many, None, "ja", exam="g-kentei", on_exam=heard.append)
    assert card.asking["session"] == list(range(10)) and card.asking["left"] == 4 and card.asking["total"] == 14
    assert card.asking["counts"] == {"g-kentei": 14, "e-shikaku": 12, "both": 24}
    assert [question.id for question in card.asked[:2]] == ["t.q1", "t.q2"]
    card.receive({"do": "session", "card": 0})
    assert card.asking["session"] == [10, 11, 12, 13] and card.asking["left"] == 0
    card.receive({"do": "exam", "card": 0, "answer": "e-shikaku"})
    assert card.asking["session"] == list(range(12, 22)) and card.asking["left"] == 2 and heard == ["e-shikaku"]
    card.receive({"do": "exam", "card": 0, "answer": "both"})
    assert card.asking["session"] == list(range(10)) and heard == ["e-shikaku", None]


@pytest.mark.parametrize("exam", [None, "JLPT", ["g-kentei"], 3])
def test_an_exam_that_is_none_is_ignored(many, exam):
    card = quiz.form(many, None, "ja", exam="g-kentei", on_exam=lambda exam: 1 / 0)
    before = card.asking
    card.receive({"do": "exam", "card": 0, "answer": exam})
    assert card.asking == before


def test_an_exam_without_questions_leaves_all(questions):
    card = quiz.form(questions, None, "ja", exam="g-kentei")
    assert len(card.asking["session"]) == 6 and card.asking["counts"] == {}


def test_what_was_answered_stays_answered_and_comes_last_when_the_switch_moves(many, single):
    card = quiz.form(many, None, "ja")
    letter = quiz.Paper([many[12]]).letter(many[12], "a")
    answer(card, 12, letter)
    card.receive({"do": "exam", "card": 0, "answer": "e-shikaku"})
    assert 12 not in card.asking["session"] and card.results["12"]["right"]
    card.receive({"do": "session", "card": 0})
    assert card.asking["session"] == [23, 12] and card.index == 23


def test_after_the_last_question_all_are_asked_again_mistakes_first(many):
    card = quiz.form(many[:12], None, "ja", answered={"t.q3": "a"})
    for place in range(12):
        answer(card, place, quiz.Paper([many[place]]).letter(many[place], "b" if place in (4, 11) else "a"))
    card.receive({"do": "session", "card": 0})
    card.receive({"do": "session", "card": 0})
    assert card.asking["session"][:3] == [4, 11, 0] and card.results == {} and card.index == 4


def test_a_prediction_keeps_the_choice_and_says_what_follows(prediction):
    heard = []
    card = quiz.prediction_form(prediction, lambda guess, key: heard.append((guess.id, key)), "en")
    assert "Section 2" not in sent(card) and 'correct": true' not in sent(card)
    told = answer(card, 0, "B")
    assert told["verdict"] == "Your guess: B. dot product" and told["after"] == "Section 2 has the answer."
    assert heard == [("t.guess", "b")]
    again = quiz.prediction_form(prediction, None, "en", answered="b")
    assert again.results["0"]["draft"] == "B"
    assert quiz.prediction_form(prediction, None, "en", answered="gone").results == {}


def test_a_picture_travels_with_its_text(single):
    class Picture:
        png, text = b"\x89PNG", "three bars"

    asked = single.model_copy(update={"picture": "bars"})
    assert quiz.form([asked], None, "en", pictures=lambda name: Picture).cards[0]["picture"] == {
        "alt": "three bars",
        "png": "iVBORw==",
    }
    assert quiz.form([asked], None, "en").cards[0]["picture"] == {"alt": "(Picture: bars)"}
