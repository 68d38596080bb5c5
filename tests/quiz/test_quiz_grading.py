"""Reading answers as people type them, and grading them."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer_lite.quiz import InvalidAnswer, Paper, grade, judge, predicted, read
from transformer_lite.quiz.grading import number


def letter(question, key):
    return Paper([question]).letter(question, key)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.125", 0.125),
        ("０．１２５", 0.125),
        (".5", 0.5),
        ("5.", 5),
        ("1/8", 0.125),
        ("１／８", 0.125),
        ("½", 0.5),
        ("2½", 2.5),
        ("−½", -0.5),
        ("-1/2", -0.5),
        ("−1", -1),
        ("－1", -1),
        ("‐1", -1),
        ("ー1", -1),
        ("+3", 3),
        ("1e-3", 1e-3),
        ("1e－3", 1e-3),
        ("1e−3", 1e-3),
        ("1,000", 1000),
        ("１，０００", 1000),
        ("1,234,567.5", 1234567.5),
        ("-1,000", -1000),
        (" 8 ", 8),
        ("　8　", 8),
        ("1 / 8", 0.125),
        ("- 3", -3),
        (3, 3),
        (0.5, 0.5),
        (Fraction(1, 8), 0.125),
        ("-0", 0),
    ],
)
def test_numbers_are_read_as_people_write_them(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("nan", "finite"),
        ("inf", "finite"),
        ("-inf", "finite"),
        ("Infinity", "finite"),
        ("1e999", "finite"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        (10**400, "finite"),
        ("1_000", "number"),
        ("八", "number"),
        ("٣", "number"),
        ("0x10", "number"),
        ("1 2", "number"),
        ("abc", "number"),
        ("--1", "number"),
        ("1/2/3", "number"),
        (True, "number"),
        (None, "number"),
        ([1], "number"),
        ("0,125", "comma"),
        ("1,00", "comma"),
        ("1,0000", "comma"),
        ("1/0", "zero"),
        ("9" * 101, "long"),
    ],
)
def test_what_is_no_number_is_refused_with_a_reason(text, key):
    with pytest.raises(InvalidAnswer) as problem:
        number(text)
    assert problem.value.key == f"quiz.invalid.{key}"
    for lang in ("ja", "en"):
        assert "{" not in problem.value.text(lang)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_survives_being_written(value):
    assert number(repr(value)) == value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the questions are frozen
@given(
    answer=st.one_of(
        st.text(max_size=30),
        st.text("abcABC123,. =ー-/", max_size=8),
        st.integers(),
        st.booleans(),
        st.none(),
        st.lists(st.text("abc1", max_size=2), max_size=4),
        st.dictionaries(st.text("12qv", max_size=1), st.text("ab", max_size=1)),
    )
)
def test_any_input_is_graded_or_refused_but_never_crashes(questions, answer):
    for question in questions:
        try:
            result = grade(question, answer)
        except InvalidAnswer as problem:
            assert problem.text("ja") and problem.text("en")
        else:
            assert judge(question, json.loads(json.dumps(result.chosen))) == result


def test_a_unit_may_follow_the_number(numeric):
    assert grade(numeric, "0.125 points").correct
    assert grade(numeric, "０．１２５点").correct


@pytest.mark.parametrize("form", ["{}", "{}.", "({})", " {} "])
def test_single_by_letter_or_number(single, form):
    right = letter(single, "a")
    place = str("ABCD".index(right) + 1)
    for shown in (right, right.lower(), place, chr(ord(right) + 0xFEE0)):
        assert grade(single, form.format(shown)).correct is True
    assert grade(single, int(place)).correct is True


def test_single_wrong_tells_the_chosen_option_first_then_the_right_one(single):
    result = grade(single, letter(single, "b"))
    assert result.correct is False
    assert result.chosen == "b" and result.right == "a" and result.traps == ("AT3",)
    assert [(item.part, item.verdict) for item in result.feedback] == [
        ("b", "chosen_wrong"),
        ("a", "missed"),
        ("c", "left"),
        ("d", "left"),
    ]
    assert result.feedback[0].why("en") == "reason-b"


@pytest.mark.parametrize("answer", ["e", "5", 0, -1, "ab", "あ", True, 1.5, ["a"], {"a": 1}, "", "  ", None])
def test_single_refuses_what_is_no_option(single, answer):
    with pytest.raises(InvalidAnswer):
        grade(single, answer)


def test_multiple_takes_text_lists_and_numbers(multiple):
    a, c = letter(multiple, "a"), letter(multiple, "c")
    for answer in (f"{a},{c}", f"{c}{a}", f"{a}、{c}", [a, c], {c.lower(), a}, ["ABC".index(a) + 1, c], (a, c, a)):
        result = grade(multiple, answer)
        assert result.correct is True and result.chosen == ["a", "c"] and result.traps == ()
    with pytest.raises(InvalidAnswer):
        grade(multiple, [])


def test_multiple_names_the_trap_of_each_wrong_choice_only(multiple):
    result = grade(multiple, "".join(letter(multiple, key) for key in "ab"))
    assert result.correct is False and result.traps == ("AT3",)
    assert [(item.part, item.verdict) for item in result.feedback] == [
        ("b", "chosen_wrong"),
        ("c", "missed"),
        ("a", "chosen_right"),
    ]


def test_numeric_right_near_and_far(numeric):
    assert grade(numeric, "1/8").correct is True
    near = grade(numeric, "1/64")
    assert near.correct is False and near.traps == ("AT2",)
    assert [item.verdict for item in near.feedback] == ["chosen_wrong", "missed"]
    assert grade(numeric, "0.0156").traps == ("AT2",)  # rounded, still that number
    far = grade(numeric, 7)
    assert far.correct is False and far.traps == ()
    assert [item.verdict for item in far.feedback] == ["missed", "left"]


def test_tolerance_holds_at_its_edge(numeric):
    loose = numeric.model_copy(update={"answer": 0.3, "tolerance": 0.05})
    assert grade(loose, "0.35").correct and grade(loose, "0.25").correct
    assert not grade(loose, "0.351").correct


def test_ordering_says_the_first_wrong_place(ordering):
    shown = {key: letter(ordering, key) for key in "abc"}
    assert grade(ordering, [shown["a"], shown["b"], shown["c"]]).correct is True
    result = grade(ordering, f"{shown['a']},{shown['c']},{shown['b']}")
    assert result.correct is False and result.place == 2 and result.traps == ("AT12",)
    assert result.feedback[0].part == "b"
    assert result.chosen == ["a", "c", "b"] and result.right == ["a", "b", "c"]
    for wrong in ("a,b", "a,a,b", "a,b,c,a", "a,b,x"):
        with pytest.raises(InvalidAnswer):
            grade(ordering, wrong)


def test_matching_by_numbers_and_letters(matching):
    asks, holds = letter(matching, "asks"), letter(matching, "holds")
    right = (
        {1: asks, 2: holds},
        {"1": asks, "２": holds},
        f"1{asks} 2{holds}",
        f"1={asks}, 2={holds}",
        [asks, holds],
        f"{asks}{holds}",
        {"q": "asks", "v": "holds"},
    )
    for answer in right:
        assert grade(matching, answer).correct is True, answer
    result = grade(matching, {1: holds, 2: holds})
    assert result.correct is False and result.traps == ("MC08",) and result.chosen == {"q": "holds", "v": "holds"}
    assert result.feedback[0][:2] == ("q", "chosen_wrong")


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ({1: "a"}, "rows"),
        ({1: "a", 2: ""}, "rows"),
        ("1a", "rows"),
        ({3: "a", 1: "a"}, "row"),
        ({1: "z", 2: "a"}, "letter"),
        ("1a 2b !", "pairs"),
        (3.5, "pairs"),
    ],
)
def test_matching_refuses_what_is_incomplete(matching, answer, key):
    with pytest.raises(InvalidAnswer) as problem:
        grade(matching, answer)
    assert problem.value.key == f"quiz.invalid.{key}"


def test_recall_is_right_only_once_marked(recall):
    unmarked = grade(recall, "分散が大きくなるから")
    assert unmarked.correct is None and unmarked.chosen == {"text": "分散が大きくなるから", "mark": None}
    assert [item.verdict for item in unmarked.feedback] == ["model", "point", "point"]
    assert [grade(recall, mark).correct for mark in (0, 1, 2)] == [False, False, True]
    for wrong in (3, -1, True, [1], {"text": 1}, "x" * 10_001, {"mark": "2"}):
        with pytest.raises(InvalidAnswer):
            grade(recall, wrong)


def test_a_journals_form_is_graded_by_keys_whatever_the_letters(questions):
    for question in questions:
        answer = {"numeric": 0.125, "recall": 2}.get(question.kind)
        if answer is None:
            answer = {1: "a", 2: "b"} if question.kind == "matching" else "a" if question.kind != "ordering" else "b,a,c"
        chosen = read(question, answer, seed=5)
        assert judge(question, json.loads(json.dumps(chosen))) == grade(question, answer, seed=5)


@pytest.mark.parametrize("chosen", ["z", 7, None, ["z"], [], {"q": "asks"}, {"q": ["x"], "v": {}}, [["a"]], "nan"])
def test_a_journals_form_that_no_longer_fits_is_refused(questions, chosen):
    for question in questions:
        if (question.kind, chosen) in (("numeric", 7), ("recall", "z"), ("recall", "nan")):
            continue  # these do fit
        with pytest.raises(InvalidAnswer):
            judge(question, chosen)


def test_a_prediction_keeps_the_order_of_the_file(prediction):
    assert predicted(prediction, "a") == "a" and predicted(prediction, 2) == "b"
    with pytest.raises(InvalidAnswer):
        predicted(prediction, "c")
