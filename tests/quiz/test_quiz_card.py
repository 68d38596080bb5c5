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
    assert told["reasons"][0] == [f"選んだ答え　{letter}. d_k", "理由b"] and told["reasons"][1][1] == "理由a"
    assert "[AT3]" in told["traps"][0] and len(told["others"]) == 2
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
    letter = quiz.Paper([single]).letter(single, "b")
    assert card.results["0"]["last"] == f"前回の解答: {letter}(不正解)" and card.results["0"]["draft"] == letter
    assert card.results["1"]["right"] and card.results["5"]["last"] == "自己採点: 一部は言えた"
    assert "3" not in card.results  # that question's steps have changed since
    assert card.index == 2


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
