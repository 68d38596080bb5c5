"""Letters, the text form, explanations, stored notebooks; and that no renderer obeys or gives away what it should not."""

import html
import json
import re
import subprocess
import sys
from collections import Counter

import pytest

from transformer_lite import content, language, quiz
from transformer_lite.content import schema
from transformer_lite.quiz.sections import headings
from transformer_lite.quiz.text import as_html, prediction_as_html

PAYLOAD = '<img src=x onerror="window.attacked=1">'


def test_letters_depend_on_question_and_seed_only(questions):
    for question in questions:
        assert quiz.Paper([question]).letters(question) == quiz.Paper(reversed(questions)).letters(question)
    orders = {tuple(quiz.Paper(questions, seed).letters(questions[0]).values()) for seed in range(50)}
    assert len(orders) > 10


def test_the_right_option_stands_everywhere_equally_often(single):
    places = Counter(
        quiz.Paper([single.model_copy(update={"id": f"t.q{i}"})]).letter(single.model_copy(update={"id": f"t.q{i}"}), "a")
        for i in range(400)
    )
    assert set(places) == set("ABCD") and min(places.values()) > 70


def test_shuffling_can_be_switched_off(single):
    fixed = single.model_copy(update={"shuffle": False})
    assert list(quiz.Paper([fixed], seed=3).letters(fixed).values()) == ["a", "b", "c", "d"]


def test_ordering_never_starts_right(ordering):
    for seed in range(60):
        assert list(quiz.Paper([ordering], seed).letters(ordering).values()) != ["a", "b", "c"]


def test_letters_and_keys_are_each_others_inverse(questions):
    paper = quiz.Paper(questions, seed=1)
    for question in questions:
        for letter, key in paper.letters(question).items():
            assert paper.key(question, letter.lower()) == key and paper.letter(question, key) == letter


def test_a_question_is_found_by_number_or_id_and_otherwise_its_neighbours_are_named(questions):
    paper = quiz.Paper(questions)
    assert paper.find(3) is questions[2] and paper.find("3") is questions[2] and paper.find("t.recall") is questions[5]
    for wrong in (0, 7, -1, "t.singel"):
        with pytest.raises(content.Unknown) as unknown:
            paper.find(wrong)
        assert unknown.value.nearest
    with pytest.raises(ValueError, match="twice"):
        quiz.Paper([questions[0], questions[0]])


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_text_form_shows_each_question_and_how_to_answer_it_and_gives_nothing_away(questions, lang):
    shown = quiz.as_text(questions, lang)
    for place, question in enumerate(questions, 1):
        assert f"{place} / 6  [{question.id}]" in shown and question.stem(lang) in shown
        assert f'lab.answer("{question.id}", ' in shown
    gives_away(questions, shown)


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_call_shown_can_be_read(questions, lang):
    for question in questions:
        call = re.search(r"lab\.answer\((.*)\)", quiz.as_text([question], lang))
        _, value = json.loads(f"[{call[1]}]")
        quiz.grade(question, value)


def gives_away(questions, shown):
    for question in questions:
        for part in [*getattr(question, "options", []), *getattr(question, "steps", []), *getattr(question, "rows", [])]:
            assert part.why.ja not in shown and part.why.en not in shown
    for secret in ("AT1", "AT2", "AT3", "MC08", "0.125", "0.015625", "√64 は 8", "分散を 1 に戻す", '"correct": true', 'asks"'):
        assert secret not in shown


def test_tex_is_left_out(single):
    tex = schema.Single.model_validate(
        single.model_dump()
        | {"stem": {"ja": "$\\sqrt{d_k}$ は", "en": "$\\sqrt{d_k}$ is"}, "plain": {"ja": "√d_k は", "en": "√d_k is"}}
    )
    for shown in (quiz.as_text([tex], "ja"), as_html([tex], "ja")):
        assert "√d_k は" in shown and "$" not in shown


def test_a_wrong_answer_is_explained_verdict_first_then_the_chosen_option_then_the_right_one(single):
    letter = quiz.Paper([single]).letter(single, "b")
    shown = quiz.explain_text(single, quiz.grade(single, letter), "en")
    assert shown.startswith(f"Not correct  (your answer: {letter})\nYou chose {letter}. d_k\n  reason-b\nThe right answer is")
    assert shown.index("reason-b") < shown.index("reason-a") < shown.index("[AT3]") < shown.index("reason-c")
    assert "Read again: scaling" in shown
    assert "Read again: 1. Scaling" in quiz.explain_text(
        single, quiz.grade(single, letter), "en", sections={"scaling": "1. Scaling"}
    )
    assert quiz.explain_text(single, quiz.grade(single, letter), "ja").startswith("不正解")


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_section_to_read_again_has_its_heading(lang):
    asked = content.questions("scaled-dot-product-attention")
    found = headings("scaled-dot-product-attention", lang)
    assert asked and {question.anchor for question in asked} <= set(found)
    assert not any(set(heading) & set("$\\*`") for heading in found.values())
    assert headings("no-such-chapter", lang) == {}


def test_right_answers_start_with_the_word_and_name_no_trap(questions):
    right = {
        "t.single": "a",
        "t.multiple": ["a", "c"],
        "t.numeric": 0.125,
        "t.ordering": list("abc"),
        "t.matching": {"q": "asks", "v": "holds"},
    }
    for question in questions[:5]:
        graded = quiz.judge(question, right[question.id])
        assert graded.correct
        for lang, word in (("ja", "正解"), ("en", "Correct")):
            shown = quiz.explain_text(question, graded, lang)
            assert shown.startswith(word) and "[" not in shown


def test_the_order_is_explained_from_its_first_wrong_place(ordering):
    shown = quiz.explain_text(ordering, quiz.judge(ordering, ["a", "c", "b"]), "en")
    assert "The first difference is at place 2, where this belongs: divide" in shown
    assert "1. dot products\n  2. divide\n  3. softmax" in shown


def test_recall_shows_the_model_answer_and_how_to_mark(recall):
    shown = quiz.explain_text(recall, quiz.grade(recall, "分散"), "ja")
    assert "分散を 1 に戻すためです。" in shown and "飽和" in shown and 'lab.answer("t.recall", 2)' in shown
    marked = quiz.explain_text(recall, quiz.grade(recall, 1), "en")
    assert marked.startswith("You marked: some of it") and "lab.answer" not in marked


@pytest.mark.parametrize("encoding", ["cp932", "ascii"])
def test_the_text_form_fits_a_narrow_terminal_encoding(questions, encoding):
    texts = [quiz.as_text(questions, lang) for lang in ("ja", "en")]
    texts += [quiz.explain_text(questions[0], quiz.grade(questions[0], "a"), lang) for lang in ("ja", "en")]
    for shown in texts:
        language.printable(shown, encoding).encode(encoding)
    assert "?" not in language.printable(texts[0].replace("?", ""), "cp932")


def attacked(value):
    """The same data with the payload in every text."""
    if isinstance(value, dict):
        if set(value) == {"ja", "en"}:
            return {lang: f"{PAYLOAD} {text} \x1b[2J" for lang, text in value.items()}
        return {key: attacked(item) for key, item in value.items()}
    return [attacked(item) for item in value] if isinstance(value, list) else value


def test_no_renderer_obeys_the_bank(questions, prediction):
    for question in questions:
        data = attacked(question.model_dump()) | {"code": PAYLOAD + "\x1b[2J", "picture": PAYLOAD, "anchor": PAYLOAD}
        evil = type(question).model_validate(data)
        answer = {"numeric": "1/64", "matching": "1a 2a", "recall": "x", "ordering": "a,b,c"}.get(evil.kind, "a")
        told = quiz.explain_text(evil, quiz.grade(evil, answer), "en", sections={evil.anchor: PAYLOAD})
        assert "\x1b" not in told + quiz.as_text([evil], "ja")
        page = as_html([evil], "ja")
        assert "<img" not in page and "\x1b" not in page and html.escape(PAYLOAD) in page
    evil = schema.Prediction.model_validate(attacked(prediction.model_dump()))
    assert "<img" not in prediction_as_html(evil, "en") and "\x1b" not in quiz.prediction_text(evil, "en")


def test_a_stored_notebook_gets_html_and_text_without_answers_or_widget(questions, prediction, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LITE_STATIC", "1")
    for shown, asked in ((quiz.form(questions, None, "en"), questions), (quiz.prediction_form(prediction, None, "en"), [])):
        bundle = shown._repr_mimebundle_()
        assert set(bundle) == {"text/html", "text/plain"}
        gives_away(asked, bundle["text/html"] + bundle["text/plain"])
    assert quiz.form(questions, None, "en").html == quiz.form(questions, None, "en").html


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_a_stored_notebook_asks_the_g_exams_questions_first(many, lang):
    shown = quiz.static_form(reversed(many), lang)
    for text in (shown.html, shown.text):
        places = [re.search(rf"{re.escape(question.stem(lang))}(?!\d)", text).start() for question in many]
        counts = {"for_g": 14, "for_e": 10}
        titles = [text.index(language.message(f"quiz.text.{name}", lang, count=count)) for name, count in counts.items()]
        assert titles[0] < min(places[:14]) and max(places[:14]) < titles[1] < min(places[14:])
    assert shown.html.count("<ol") == shown.html.count("</ol>") == 2 and '<ol start="15">' in shown.html
    gives_away(many, shown.html + shown.text)


def test_a_stored_notebook_shows_one_exam_where_one_was_asked_for(many, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LITE_STATIC", "1")
    shown = quiz.form(many, None, "en", exam="e-shikaku")
    assert "No. 13." in shown.text and "No. 12." not in shown.text


def test_nothing_to_ask_is_said(monkeypatch):
    assert quiz.form([], None, "en").text == quiz.as_text([], "en") == "There are no questions."


def test_the_room_opens_without_widgets_or_pydantic():
    heavy = "'torch', 'matplotlib', 'IPython', 'ipywidgets', 'pydantic'"
    code = f"import sys, transformer_lite.quiz; print([name for name in ({heavy}) if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_messages_name_the_same_parameters_in_both_languages():
    ours = {key: text for key, text in language.catalogue().items() if key.startswith("quiz.")}
    assert len(ours) > 50
    for key, text in ours.items():
        assert set(re.findall(r"\{\w+\}", text.ja)) == set(re.findall(r"\{\w+\}", text.en)), key
