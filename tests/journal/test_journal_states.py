from datetime import UTC, datetime, timedelta

import pytest

from transformer_lite.journal import (
    Event,
    TrapCount,
    chapter_progress,
    exercise_states,
    question_states,
    trap_counts,
)

START = datetime(2026, 9, 1, tzinfo=UTC)


def told(*steps) -> list[Event]:
    """Events a second apart, from (kind, subject, parameters)."""
    return [
        Event(START + timedelta(seconds=number), kind, subject, parameters[0] if parameters else {})
        for number, (kind, subject, *parameters) in enumerate(steps)
    ]


def check(status, subject="attention", **parameters):
    return "check", subject, {"status": status, **parameters}


HINT, SOLUTION, RESET = ("hint", "attention", {"level": 1}), ("solution", "attention"), ("reset", "attention")


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([check("pass")], "yours"),
        ([check("wrong"), check("error"), check("pass")], "yours"),
        ([check("wrong")], "tried"),
        ([check("error")], "tried"),
        ([check("timeout")], "tried"),
        ([check("variant")], "tried"),
        ([check("uses_reference")], "tried"),
        ([HINT], "tried"),
        ([HINT, check("pass")], "with_help"),
        ([check("pass", hints=2)], "with_help"),
        ([check("pass", hints=0)], "yours"),
        ([check("wrong"), HINT, check("wrong"), check("pass")], "with_help"),
        ([SOLUTION], "seen"),
        ([SOLUTION, check("pass")], "seen"),
        ([HINT, SOLUTION, check("pass")], "seen"),
        # What was reached stays.
        ([check("pass"), HINT, SOLUTION], "yours"),
        ([check("pass"), SOLUTION, check("pass")], "yours"),
        ([check("pass"), check("wrong")], "yours"),
        ([HINT, check("pass"), SOLUTION, check("pass")], "with_help"),
        ([SOLUTION, check("wrong")], "seen"),
        # Begun anew.
        ([SOLUTION, check("pass"), RESET], None),
        ([HINT, SOLUTION, RESET, check("pass")], "yours"),
        # No tries at all.
        ([check("unsolved")], None),
        ([check("grader_problem")], None),
        ([("open", "attention")], None),
    ],
)
def test_what_became_of_an_exercise(steps, state):
    assert exercise_states(told(*steps)) == ({} if state is None else {"attention": state})


def test_exercises_do_not_help_one_another():
    events = told(("hint", "softmax", {"level": 1}), check("pass"), ("solution", "attention_scores"), check("pass", "softmax"))
    assert exercise_states(events) == {"softmax": "with_help", "attention": "yours", "attention_scores": "seen"}


def test_states_follow_time_not_the_order_in_which_events_come():
    events = told(SOLUTION, check("pass"))
    assert exercise_states(reversed(events)) == {"attention": "seen"}


def test_traps_are_counted_in_checks_and_in_wrong_answers_the_most_frequent_first():
    events = told(
        check("wrong", traps=["SM2"], certainty="exact"),
        check("wrong", traps=["AT1", "AT7"], certainty="exact"),
        ("answer", "q1", {"correct": False, "traps": ["AT1"]}),
        ("answer", "q2", {"correct": True, "traps": []}),
        ("predict", "q3", {"chosen": "a", "traps": ["AT1"]}),
    )
    counts = trap_counts(events)
    assert list(counts) == ["AT1", "AT7", "SM2"]
    assert counts["AT1"] == TrapCount(2, START + timedelta(seconds=2), False)
    assert counts["SM2"] == TrapCount(1, START, False)


def test_a_trap_that_a_check_only_resembles_does_not_count():
    assert trap_counts(told(check("wrong", traps=["AT1"], certainty="closest"))) == {}


@pytest.mark.parametrize(
    ("later", "passed"),
    [
        ([check("pass")], True),
        ([("answer", "q1", {"correct": True})], True),  # met there, too
        ([check("pass"), check("wrong", traps=["AT1"])], False),
        ([check("pass"), check("wrong", traps=["AT7"])], True),
        ([check("variant")], False),
        ([check("pass", "softmax")], False),
        ([("answer", "q2", {"correct": True})], False),
        ([("answer", "q1", {"correct": False})], False),
    ],
)
def test_a_trap_is_passed_since_when_one_of_the_places_where_it_was_met_is_passed(later, passed):
    met = [("answer", "q1", {"correct": False, "traps": ["AT1"]}), check("wrong", traps=["AT1"])]
    assert trap_counts(told(*met, *later))["AT1"].passed_since is passed


def test_a_pass_before_the_trap_was_met_is_no_pass_since():
    assert trap_counts(told(check("pass"), check("wrong", traps=["AT1"])))["AT1"].passed_since is False


def test_a_question_shows_its_last_answer_and_how_many_there_were():
    events = told(
        ("answer", "q1", {"correct": False}),
        ("answer", "q1", {"correct": True}),
        ("answer", "q2", {"correct": True}),
        ("answer", "q2", {"correct": False}),
        ("recall", "r1", {"mark": "partly"}),
        ("predict", "p1", {"chosen": "a"}),
    )
    states = question_states(events)
    assert {question: (state.correct, state.times, state.right) for question, state in states.items()} == {
        "q1": (True, 2, 1),
        "q2": (False, 2, 1),
        "r1": (None, 1, 0),
    }
    assert states["q1"].last == START + timedelta(seconds=1)


def test_a_chapters_row_holds_every_exercise_and_question_of_it_touched_or_not():
    events = told(
        ("open", "two", {"lang": "ja"}),
        check("pass", "softmax"),
        check("wrong"),
        ("answer", "q1", {"correct": True}),
        ("answer", "q2", {"correct": False}),
        ("recall", "r1", {"mark": "knew"}),
        ("answer", "elsewhere", {"correct": True}),
    )
    rows = chapter_progress(
        events,
        {"two": ["softmax", "attention_scores", "attention"], "four": ["causal_mask"]},
        {"zero": ["z1"], "two": ["q1", "q2", "q3", "r1"]},
    )
    assert [row.chapter for row in rows] == ["two", "four", "zero"]
    two, four, zero = rows
    assert two.opened and two.exercises == {"softmax": "yours", "attention_scores": "open", "attention": "tried"}
    assert (two.questions, two.answered, two.right, two.wrong) == (4, 3, 1, 1)
    assert [two.count(state) for state in ("yours", "with_help", "seen", "tried", "open")] == [1, 0, 0, 1, 1]
    assert two.last == START + timedelta(seconds=5)
    assert not four.opened and four.exercises == {"causal_mask": "open"} and four.questions == 0 and four.last is None
    assert zero.exercises == {} and (zero.questions, zero.answered) == (1, 0)


def test_no_events_are_no_progress():
    for states in (exercise_states, trap_counts, question_states):
        assert states([]) == {}
    assert chapter_progress([], {}, {}) == []
