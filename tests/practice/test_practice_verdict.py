"""The words of a verdict: the status first, both languages, nothing missing; and its picture."""

import re
from pathlib import Path

import numpy as np
import practice_answers as answers
import pytest

from transformer_lite import equations, language, practice
from transformer_lite.practice import diagnosis, judging, registry, verdict

STATUS_WORDS = {
    "pass": ("CORRECT", "正解"),
    "wrong": ("NOT YET", "まだ正解ではありません"),
    "unsolved": ("UNSOLVED", "未解答"),
    "error": ("ERROR", "エラー"),
    "timeout": ("TIME LIMIT", "時間切れ"),
    "uses_reference": ("USES THE COMPANION", "付属の関数を使用"),
    "grader_problem": ("NOT JUDGED", "判定できません"),
}
LAYOUT = """\
NOT YET   attention   Scaled dot-product attention
Recognised: {title}
  Your weights came out just as this mistake gives it, on all 6 tests that show it (largest difference {difference}).
  From the correct values it differs by up to {far}.
  Check: multiply the queries by 1/√d_k = 0.333 (d_k = 9) first, and it comes out right.
Next: lab.hint("attention")    lab.check("attention", verbose=True)"""


def test_the_first_word_is_the_status_and_the_last_line_what_to_type():
    assert set(STATUS_WORDS) | {"variant"} == {
        key.rpartition(".")[2] for key in language.catalogue() if key.startswith("practice.status.")
    }
    for status, (english, japanese) in STATUS_WORDS.items():
        evidence = {"limit": 2.0, "shapes": "", "problem": "not_callable", "type": "int", "code": "x"}
        if status == "wrong":
            evidence = {"problem": "none", "wanted": "result"}
        result = practice.CheckResult("softmax", 1, status, evidence=evidence)
        assert result.text("en").startswith(english + "   softmax   Softmax")
        assert result.text("ja").startswith(japanese + "   softmax   ")
        assert "lab." in result.text("en").splitlines()[-1]
        assert result.text("ja").splitlines()[-1].startswith("次の一手:")


def test_a_named_trap_is_laid_out_as_designed():
    text = practice.judge("attention", answers.at1).text("en")
    pattern = re.escape(LAYOUT)
    for hole, what in (("title", r".*\[AT1\]"), ("difference", r"[\d.e-]+"), ("far", r"0\.\d+")):
        pattern = pattern.replace(re.escape("{" + hole + "}"), what)
    assert re.fullmatch(pattern, text), text


def test_a_title_that_cannot_be_read_leaves_the_code(monkeypatch):
    from transformer_lite import content

    def broken(key):
        raise OSError("no catalogue")

    monkeypatch.setattr(content, "trap", broken)
    assert "Recognised: [AT1]" in practice.judge("attention", answers.at1).text("en")


def test_verbose_shows_the_smallest_input_in_full():
    text = practice.judge("attention", answers.at1).text("en", verbose=True)
    assert "your weights" in text and "the right weights" in text and "queries =" in text


def test_the_same_verdict_reads_in_both_languages_without_leftovers():
    for exercise, versions in answers.WRONG.items():
        for _, function in versions[:6]:
            result = practice.judge(exercise, function)
            japanese, english = result.text("ja"), result.text("en")
            assert not re.search("[ぁ-ん]", english) and re.search("[ぁ-ん]", japanese)
            assert "{" not in japanese + english
            assert language.printable(japanese, "cp932").encode("cp932")
            assert language.printable(english, "ascii").encode("ascii")


def test_every_code_has_its_words():
    keys = set(language.catalogue())
    source = Path(judging.__file__).read_text(encoding="utf-8")
    problems = set(re.findall(r'Problem\(\s*"\w+",\s*"\w+",\s*"(\w+)"', source)) | set(
        re.findall(r'(?:code = |return )"(\w+)"', source)
    )
    problems -= {"no_result", "called", "not_implemented", "boolean"}
    assert len(problems) > 15
    assert {f"practice.problem.{code}" for code in problems - {"raised"}} <= keys
    assert {f"practice.note_of.{code}" for code in re.findall(r'Note\("(\w+)"', source)} <= keys
    laws = set(re.findall(r'"law": "(\w+)"', Path(diagnosis.__file__).read_text(encoding="utf-8")))
    assert len(laws) > 10 and {f"practice.law.{law}" for law in laws} <= keys
    assert {f"practice.gloss.{gloss}" for _, _, gloss in verdict._GLOSSES} <= keys


def test_every_input_has_a_name_in_both_languages():
    from transformer_lite.practice.fixtures import fixtures

    for exercise in practice.exercises():
        for fixture in fixtures(exercise, 0):
            assert f"practice.test.{verdict._slug(fixture.name)}" in language.catalogue()


def test_every_exercise_is_complete_and_its_solution_passes():
    # Every equation of the paper is an exercise, and attention without a mask is one more.
    tools = {"Attention", "AttentionCost", "DecoderParameters", "EncoderParameters", "LayerCost", "Projections"}
    tools |= {"ReferenceUsed", "forbid", "seal", "blocked_attention"}  # blocks: the same equation, read in chapter 11
    assert set(practice.exercises()) == set(equations.__all__) - tools | {"attention"}
    for name, exercise in practice.exercises().items():
        assert exercise is practice.exercise(name)
        assert 3 <= len(exercise.hints) <= 4
        for text in (exercise.title, exercise.contract, *exercise.hints):
            assert text("ja") != text("en")
        assert exercise.minutes > 0 and 1 <= exercise.difficulty <= 3 and 1 <= exercise.importance <= 3 and exercise.exams
        scope = {"np": np}
        exec(exercise.solution, scope)
        assert practice.judge(name, scope[name]).status == "pass"
    assert isinstance(registry.exercise("softmax").reference([0.0, 0.0]), np.ndarray)


@pytest.mark.parametrize(
    ("exercise", "function"),
    [
        ("attention", answers.at7_zero),
        ("scaled_dot_product_attention", answers.at20_no_parameter_used),
        ("causal_mask", answers.cm3),
        ("softmax", answers.sm2_zero),
        ("attention_scores", answers.as1),
        ("attention", answers.attention_plain),
        ("attention", answers.at7_one_in_a_batch),
        ("softmax", answers.sm1_plain),
        ("attention", lambda queries, keys, values: None),
        ("softmax", lambda x, axis=-1: ...),
    ],
)
def test_the_picture_holds_both_matrices_and_both_influences(exercise, function):
    result = practice.judge(exercise, function)
    picture = result.show("ja")
    assert picture.png.startswith(b"\x89PNG") and len(picture.table) > 3 and picture.text
    cells = " ".join(cell for row in picture.table for cell in row)
    assert "影響行列 (正しい関数)" in cells
    if result.cases and result.cases[0].yours is not None:
        assert "影響行列 (この関数)" in cells


def test_the_influence_of_a_mask_that_is_ignored_is_full():
    ignored = practice.judge("scaled_dot_product_attention", answers.at20_no_parameter_used).show("en")
    right = practice.judge("scaled_dot_product_attention", answers.masked_infinity).show("en")
    assert ignored.table != right.table


def test_a_verdict_is_short_true_or_false_and_keeps_no_functions_when_written_down():
    result = practice.judge("attention", answers.attention_plain)
    assert result and repr(result) == "<CheckResult attention: pass>" and str(result) == result.text()
    assert set(result.to_dict()) == {
        "schema", "exercise", "version", "status", "stage", "traps", "certainty", "evidence", "notes", "seconds"
    }  # fmt: skip
