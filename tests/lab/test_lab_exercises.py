"""The learner's verbs: what they say, what they record, and that they never show a stack trace of ours."""

import numpy as np
import pytest

from transformer_lite import journal, lab, language


@pytest.fixture(autouse=True)
def _a_learner(monkeypatch, tmp_path):
    """A learner with an empty home, whose events are recorded."""
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    language.use("en")


def define_softmax(wrong: bool = False):
    @lab.exercise("softmax")
    def softmax(x, axis=-1):
        e = np.exp(x - np.max(x, axis=0 if wrong else axis, keepdims=True))
        return e / e.sum(axis=0 if wrong else axis, keepdims=True)

    return softmax


def define_blank():
    @lab.exercise("softmax")
    def softmax(x, axis=-1):
        ...

    return softmax


def test_a_blank_exercise_uses_the_companion_says_so_once_and_is_never_solved(capsys):
    softmax = define_blank()
    said = capsys.readouterr().out
    assert said.count("UNSOLVED") == 1
    assert softmax.source == "companion"
    np.testing.assert_allclose(softmax([1.0, 0.0]), [0.731, 0.269], atol=5e-4)
    for _ in range(3):
        assert lab.check().status == "unsolved"
    assert lab.progress is not None
    assert "softmax" not in journal.exercise_states(journal.default().events()) or (
        journal.exercise_states(journal.default().events())["softmax"] == "tried"
    )


def test_a_wrong_answer_is_named_recorded_and_replaced_by_the_companions(capsys):
    softmax = define_softmax(wrong=True)
    result = lab.check()
    said = capsys.readouterr().out
    assert result.status == "wrong" and "SM2" in result.traps
    assert "SM2" in said and said.index("NOT YET") >= 0
    assert softmax.source == "companion"
    assert softmax(np.eye(3)).sum(axis=-1) == pytest.approx(1.0)
    event = journal.default().last("check", "softmax")
    assert event.parameters["status"] == "wrong" and event.parameters["traps"] == ["SM2"]


def test_a_right_answer_is_called_from_then_on_and_counts_as_yours():
    softmax = define_softmax()
    assert softmax.source == "yours"
    assert lab.check().status == "pass"
    assert journal.exercise_states(journal.default().events()) == {"softmax": "yours"}


def test_after_a_hint_it_counts_as_with_help_and_after_the_solution_as_seen(capsys):
    define_softmax()
    lab.hint()
    lab.check()
    assert journal.exercise_states(journal.default().events())["softmax"] == "with_help"
    lab.reset(confirm=True)
    lab.solution()
    assert "def softmax" not in capsys.readouterr().out
    lab.solution(reveal=True)
    assert "def softmax" in capsys.readouterr().out
    define_softmax()
    lab.check()
    assert journal.exercise_states(journal.default().events())["softmax"] == "seen"


def test_hints_can_be_reread_and_do_not_fail_past_the_end(capsys):
    define_blank()
    lab.reset(confirm=True)
    for _ in range(12):
        lab.hint()
    said = capsys.readouterr().out
    assert "Hint 1/" in said and "There are only" in said
    lab.hint(level=1)
    assert "Hint 1/" in capsys.readouterr().out


def test_running_a_check_twice_is_one_attempt():
    define_softmax(wrong=True)
    lab.check()
    lab.check()
    assert len(journal.default().events("check", "softmax")) == 1


@pytest.mark.parametrize("call", [lambda: lab.exercise("sofmax"), lambda: lab.check("sofmax"), lambda: lab.hint("sofmax")])
def test_an_unknown_exercise_names_the_nearest(call):
    with pytest.raises(lab.LabError, match="softmax"):
        call()


def test_unknown_chapter_question_explorer_and_experiment_name_the_nearest():
    with pytest.raises(lab.LabError, match="scaled-dot-product-attention"):
        lab.quiz("scaled-dot-product")
    with pytest.raises(lab.LabError, match="scaled-dot-product-attention"):
        lab.answer("scaled-dot-product-attention.nothing.001", "a")
    with pytest.raises(lab.LabError, match="qkv-bench"):
        lab.explore("qkv")
    with pytest.raises(lab.LabError, match="scaling"):
        lab.experiment("scalin")


def test_errors_reach_a_notebook_without_a_stack_trace():
    with pytest.raises(lab.LabError) as caught:
        lab.check("sofmax")
    shown = caught.value._render_traceback_()
    assert len(shown) == 1 and "Did you mean" in shown[0]


def test_a_language_that_the_course_does_not_speak_is_refused():
    with pytest.raises(lab.LabError, match="fr"):
        lab.start("fr")


def test_use_chooses_whose_function_is_called():
    softmax = define_softmax(wrong=True)
    lab.use("softmax", "mine")
    assert softmax(np.eye(2)).sum(axis=0) == pytest.approx(1.0)
    lab.use("softmax", "companion")
    assert softmax.source == "companion"
    with pytest.raises(lab.LabError, match="companion"):
        lab.use("softmax", "yours")


def test_an_earlier_exercise_travels_into_the_checker():
    """attention written with the notebook's own (exercise) softmax is judged like any other."""
    softmax = define_softmax()

    @lab.exercise("attention")
    def attention(queries, keys, values):
        weights = softmax(queries @ np.swapaxes(keys, -1, -2) / np.sqrt(keys.shape[-1]))
        return weights @ values, weights

    assert lab.check().status == "pass"


def test_start_is_short_and_names_no_file(capsys, tmp_path):
    lab.start("ja")
    assert capsys.readouterr().out == "準備ができました。\n"
    assert lab.start("en") is None and str(tmp_path) not in capsys.readouterr().out


def test_start_says_how_far_the_open_chapter_is(capsys, monkeypatch):
    from transformer_lite import content

    monkeypatch.setenv("JPY_SESSION_NAME", "/x/ja/02_scaled_dot_product_attention.ipynb")
    lab.start("en")
    assert capsys.readouterr().out == "Ready.\n"  # nothing done yet
    define_softmax()
    lab.check()
    question = next(one for one in content.questions("scaled-dot-product-attention") if one.kind == "single")
    lab.answer(question.id, next(option.key for option in question.options if option.correct))
    capsys.readouterr()
    lab.start("en")
    assert "exercises 1 / 3, questions right 1 / " in capsys.readouterr().out


def test_start_says_when_nothing_is_recorded(capsys, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "0")
    lab.start("en")
    assert "Nothing is recorded" in capsys.readouterr().out


def test_failures_of_ours_are_said_and_logged_and_stop_nothing(monkeypatch, capsys):
    define_softmax()

    def broken(*_args, **_kwargs):
        raise RuntimeError("wires crossed")

    monkeypatch.setattr("transformer_lite.lab.exercises.record", broken)
    assert lab.check() is None
    said = capsys.readouterr().out
    assert "NOT JUDGED" in said and "wires crossed" in said
    assert "wires crossed" in (journal.home() / "errors.log").read_text()


def test_a_build_fails_on_a_failure_of_ours(monkeypatch):
    """Otherwise the apology would be stored in a notebook that every reader sees."""
    monkeypatch.setenv("TRANSFORMER_LITE_STATIC", "1")
    define_softmax()
    monkeypatch.setattr("transformer_lite.lab.exercises.record", lambda *_args, **_kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lab.check()


@pytest.mark.parametrize("verb", [lab.experiment, lab.explore, lab.predict, lab.check, lab.hint, lab.summary])
@pytest.mark.parametrize("name", [["softmax"], {}, 3.5, np.zeros(3)], ids=["list", "mapping", "number", "array"])
def test_what_is_no_name_is_unknown_and_not_our_fault(verb, name):
    with pytest.raises(lab.LabError) as caught:
        verb(name)
    assert "Did you mean: ?" not in str(caught.value)


@pytest.mark.parametrize("which", [["a"], {}])
def test_an_answer_to_what_is_no_question_is_refused(which):
    with pytest.raises(lab.LabError):
        lab.answer(which, "a")


@pytest.mark.parametrize("level", ["1", 2.5, [], True])
def test_the_level_of_a_hint_is_a_whole_number(level):
    with pytest.raises(lab.LabError, match="whole number"):
        lab.hint("softmax", level=level)


def test_whose_function_is_one_of_two_words():
    with pytest.raises(lab.LabError, match="companion"):
        lab.use("softmax", np.zeros(3))


def test_an_unknown_exercise_without_a_near_name_lists_them_all():
    with pytest.raises(lab.LabError, match="scaled_dot_product_attention"):
        lab.check("zzzz")


def test_an_answer_may_call_itself():
    @lab.exercise("softmax")
    def softmax(x, axis=-1):
        if axis not in (-1, x.ndim - 1):
            return np.swapaxes(softmax(np.swapaxes(x, axis, -1)), axis, -1)
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    assert lab.check("softmax").status == "pass"
    assert softmax.source == "yours"
