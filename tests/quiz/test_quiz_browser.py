"""The card in a real browser, by keyboard alone, on a page that stands in for JupyterLab; Python answers as in a kernel."""

import json
from pathlib import Path

import pytest
from keyboard_support import focused, press, tab_to
from test_quiz_text import PAYLOAD, attacked

import transformer_lite.quiz
from transformer_lite import quiz
from transformer_lite.quiz.card import script

CHANGING = ("results", "lasts", "asking", "index")
ROOM = Path(transformer_lite.quiz.__file__).parent
# A page with JupyterLab's theme variables and its habit of taking keys for itself (here: every key that reaches the document).
PAGE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: var(--jp-layout-color1); }
body { --jp-layout-color1: #fff; --jp-content-font-color1: rgba(0,0,0,.87); --jp-brand-color1: #1976d2; }
body.dark { --jp-layout-color1: #111; --jp-content-font-color1: #fff; --jp-brand-color1: #2196f3; }
%s</style><body><h2 id="scaling">Scaling</h2><div id="el"></div></body>"""
START = """async ([source, state]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const heard = {};
  window.stolen = [];
  document.addEventListener("keydown", (e) => window.stolen.push(e.key));
  window.sent = [];
  const model = {
    get: (key) => state[key],
    set: (key, value) => { state[key] = value; },
    save_changes: () => {},
    on: (event, f) => { heard[event] = f; },
    off: () => {},
    send: async (content) => {
      window.sent.push(content);
      // As Backbone does: all that one message brings is set before anything is told of it.
      const before = { ...state };
      Object.assign(state, JSON.parse(await window.python(JSON.stringify(content))));
      for (const key of ["results", "lasts", "asking", "index"]) {
        if (JSON.stringify(before[key]) !== JSON.stringify(state[key])) heard["change:" + key]?.();
      }
    },
  };
  module.default.render({ model, el: document.getElementById("el") });
}"""
# WCAG contrast of an element's text against its background.
CONTRAST = """(node) => {
  const paint = (colour) => {
    const c = new OffscreenCanvas(1, 1).getContext("2d"); c.fillStyle = colour; c.fillRect(0, 0, 1, 1);
    return [...c.getImageData(0, 0, 1, 1).data];
  };
  const grounds = []; // from the nearest opaque one up to the element: what is half transparent shows what is under it
  for (let ground = node; !grounds.length || paint(grounds[0])[3] < 255; ground = ground.parentElement) {
    grounds.unshift(getComputedStyle(ground).backgroundColor);
  }
  const c = new OffscreenCanvas(1, 1).getContext("2d");
  const fill = (colour) => { c.fillStyle = colour; c.fillRect(0, 0, 1, 1); };
  grounds.forEach(fill);
  const back = [...c.getImageData(0, 0, 1, 1).data];
  fill(getComputedStyle(node).color);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light([...c.getImageData(0, 0, 1, 1).data]), light(back)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


@pytest.fixture
def show(browser):
    """Show a widget on a fresh page, tied to its Python side."""
    contexts = []

    def start(card, dark=False, width=900):
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.set_content(PAGE % (ROOM / "card.css").read_text("utf-8"))
        if dark:
            page.evaluate("document.body.className = 'dark'")

        def python(content):
            card.receive(json.loads(content))
            return json.dumps({name: getattr(card, name) for name in CHANGING})

        page.expose_function("python", python)
        state = {name: getattr(card, name) for name in ("lang", "words", "cards", *CHANGING)}
        page.evaluate(START, [script(ROOM / "card.js"), state])
        return page

    yield start
    for context in contexts:
        context.close()


def verdict(page, text):
    from playwright.sync_api import expect

    expect(page.locator(".tl-quiz-verdict")).to_contain_text(text)


def test_all_six_kinds_by_keyboard_alone(questions, show):
    heard = []
    card = quiz.form(questions, lambda question, grade: heard.append((question.kind, grade)), "en")
    page = show(card)
    paper = card.paper
    shown = {question.kind: list(paper.letters(question).values()) for question in questions}

    # single: the arrows choose, Enter checks, and the explanation of what was chosen comes first
    tab_to(page, "A. ")
    page.evaluate("window.stolen = []")  # the keys until here belonged to the page
    press(page, *["ArrowDown"] * shown["single"].index("b"), *([] if shown["single"].index("b") else ["Space"]), "Enter")
    verdict(page, "Not correct")
    assert "Not correct" in focused(page)
    assert page.locator("details[open] .tl-quiz-why").all_inner_texts() == ["reason-b"]
    tab_to(page, "Next question")
    press(page, "Shift+Tab", "Shift+Tab")  # over the link to the section: the reasons stand in the rows above
    last = page.locator("details").last
    assert focused(page) == last.locator("summary").inner_text() and not last.evaluate("node => node.open")
    press(page, "Enter")
    assert last.evaluate("node => node.open") and "reason-" in last.inner_text()
    tab_to(page, "Next question")
    press(page, "Enter")

    # multiple: Space ticks
    assert focused(page).startswith("A. ")
    for place, key in enumerate(shown["multiple"]):
        if key != "b":
            press(page, "Space")
        if place < 2:
            press(page, "Tab")
    press(page, "Enter")
    verdict(page, "Correct")
    tab_to(page, "Next question")
    press(page, "Enter")

    # numeric: a wrong reading keeps what was typed
    page.keyboard.type("eight")
    press(page, "Enter")
    verdict(page, "does not read as a number")
    assert page.locator("input[type=text]").input_value() == "eight"
    page.locator("input[type=text]").focus()
    press(page, "Control+a")
    page.keyboard.type("１/８")
    press(page, "Enter")
    verdict(page, "Correct")
    tab_to(page, "Next question")
    press(page, "Enter")

    # ordering: the focus travels with the step that moves
    order = list(shown["ordering"])
    texts = {"a": "dot products", "b": "divide", "c": "softmax"}
    for place, key in enumerate("abc"):
        for _ in range(order.index(key) - place):
            if focused(page) != f"Up: {texts[key]}":
                tab_to(page, f"Up: {texts[key]}")
            press(page, "Enter")
            assert focused(page) == f"Up: {texts[key]}"
        order.remove(key)
        order.insert(place, key)
        page.locator(".tl-quiz-order button").first.focus()
    tab_to(page, "Check my answer")
    press(page, "Enter")
    verdict(page, "Correct")
    tab_to(page, "Next question")
    press(page, "Enter")

    # matching: one list a row
    for row, key in (("1. query", "asks"), ("2. value", "holds")):
        assert focused(page) == row
        press(page, *["ArrowDown"] * (shown["matching"].index(key) + 1), "Tab")
    press(page, "Enter")
    verdict(page, "Correct")
    tab_to(page, "Next question")
    press(page, "Enter")

    # recall: write, compare, mark
    page.keyboard.type("so that the variance stays 1")
    press(page, "Tab", "Enter")
    verdict(page, "Mark yourself")
    assert "To bring the variance back to 1." in page.locator(".tl-quiz-after").inner_text()
    tab_to(page, "all the points")
    press(page, "Enter")
    verdict(page, "all the points")
    assert "6 questions answered, 5 of them right." in page.locator(".tl-quiz-done").inner_text()

    assert [(kind, grade.correct) for kind, grade in heard] == [
        ("single", False), ("multiple", True), ("numeric", True), ("ordering", True), ("matching", True), ("recall", True),
    ]  # fmt: skip
    assert page.evaluate("window.stolen") == []
    assert page.problems == []


def test_every_control_keeps_jupyterlab_from_its_keys(questions, show):
    page = show(quiz.form(questions, None, "ja"))
    for place in range(len(questions)):
        page.locator(".tl-quiz-jump").select_option(str(place))
        controls = page.locator(".tl-quiz :is(input, select, textarea, button, summary)")
        assert controls.count() > 3
        assert controls.evaluate_all("nodes => nodes.filter(n => n.dataset.lmSuppressShortcuts !== 'true').length") == 0
        assert page.locator(".tl-quiz legend").count() == 1


def test_an_answer_of_last_time_is_shown_and_can_be_tried_again(questions, show):
    card = quiz.form(questions[:2], None, "ja", answered={"t.single": "b", "t.multiple": ["a", "c"]})
    page = show(card)
    # It is asked again, with what came of it last time; the answer itself is one press away.
    assert "前回の結果: 不正解" in page.locator(".tl-quiz-last").inner_text()
    assert page.locator("input:checked").count() == 0 and page.locator(".tl-quiz-verdict").inner_text() == ""
    assert page.locator(".tl-quiz-summary").inner_text() == "正解 1　解答済み 2"
    page.get_by_role("button", name="前回の解答と解説を見る").press("Enter")
    verdict(page, "不正解")
    assert "不正解" in focused(page) and page.locator("details[open] .tl-quiz-why").inner_text() == "理由b"
    assert page.locator("input:checked").count() == 1 and page.locator("input:enabled").count() == 0
    page.get_by_role("button", name="もう一度解く").press("Enter")
    page.locator("input:enabled").first.wait_for()
    assert page.locator("input:checked").count() == 0 and page.locator(".tl-quiz-last").inner_text() == ""
    assert page.locator(".tl-quiz-summary").inner_text() == "正解 1　解答済み 2"


def test_a_draft_survives_looking_at_another_question(questions, show):
    page = show(quiz.form(questions, None, "ja", answered={}))
    page.locator(".tl-quiz-body input").nth(2).check()
    page.get_by_role("button", name="次へ").press("Enter")
    page.get_by_role("button", name="前へ").press("Enter")
    assert page.locator(".tl-quiz-body input").nth(2).is_checked()


def test_a_prediction_by_one_click(prediction, show):
    heard = []
    page = show(quiz.prediction_form(prediction, lambda guess, key: heard.append(key), "en"))
    tab_to(page, "B. dot product")
    press(page, "Enter")
    verdict(page, "Your guess: B. dot product")
    assert "Section 2 has the answer." in page.locator(".tl-quiz-after").inner_text()
    assert page.get_by_role("button", name="B. dot product").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="A. distance").press("Enter")
    assert heard == ["b"] and len(page.evaluate("window.sent")) == 1


def test_the_section_link_leads_to_the_section_where_the_page_has_it(single, show):
    letter = quiz.Paper([single]).letter(single, "b")
    page = show(quiz.form([single], None, "en"))
    page.locator(f"input[value={letter}]").check()
    page.get_by_role("button", name="Check my answer").click()
    verdict(page, "Not correct")
    assert page.get_by_role("link").inner_text() == "Read again: scaling"
    page.evaluate("document.getElementById('scaling').remove()")
    page.get_by_role("button", name="Try again").click()
    page.locator(f"input[value={letter}]").check()
    page.get_by_role("button", name="Check my answer").click()
    verdict(page, "Not correct")
    assert page.get_by_role("link").count() == 0 and "Read again: scaling" in page.locator(".tl-quiz-after").inner_text()


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_both_themes(questions, show, dark):
    answered = {"t.single": "b", "t.numeric": 7, "t.matching": {"q": "holds", "v": "asks"}, "t.recall": 1}
    for_g = questions[0].model_copy(update={"id": "t.g", "exams": ["g-kentei"]})  # so that there is a switch
    card = quiz.form([*questions, for_g], None, "ja", answered=answered)
    for place in (0, 2, 4, 5):
        card.receive({"do": "last", "card": place})
    page = show(card, dark=dark)
    for place in range(len(questions)):
        page.locator(".tl-quiz-jump").select_option(str(place))
        texts = page.locator(
            ".tl-quiz :is(p, legend, label, button, select, input[type=text], textarea, summary, strong, li, span, small)"
            ":not(:is(.tl-quiz-hidden, .tl-quiz-exams label))"
        ).all()
        assert len(texts) > 5
        for node in texts:
            assert node.evaluate(CONTRAST) >= 4.5, node.evaluate("node => node.outerHTML")
    # The bars that repeat the verdict are no text: 3:1.
    page.locator(".tl-quiz-jump").select_option("0")
    bar = page.locator(".tl-quiz-verdict.tl-quiz-incorrect")
    for row in (bar, page.locator(".tl-quiz-told.tl-quiz-wrong"), page.locator(".tl-quiz-told.tl-quiz-right")):
        row.evaluate("node => { node.style.color = getComputedStyle(node).borderInlineStartColor; }")
        assert row.evaluate(CONTRAST) >= 3


def test_long_text_wraps_in_a_narrow_window(single, show):
    words = {"ja": "とても長い文です。" * 30, "en": "Averylongword" * 40}
    options = [option.model_copy(update={"text": type(option.text)(ja=words["ja"] + option.key, en=words["en"] + option.key)})
               for option in single.options]  # fmt: skip
    long = single.model_copy(update={"stem": type(single.stem)(**words), "options": options})
    for lang in ("ja", "en"):
        card = quiz.form([long], None, lang, answered={"t.single": "b"})
        card.receive({"do": "last", "card": 0})
        page = show(card, width=360)
        assert page.locator(".tl-quiz-mark").count() == 4
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator("legend").evaluate("node => node.getBoundingClientRect().height") > 100


def test_no_script_of_the_bank_runs(questions, prediction, show, monkeypatch):
    evil = [
        type(question).model_validate(attacked(question.model_dump()) | {"code": PAYLOAD, "anchor": PAYLOAD})
        for question in questions
    ]
    answers = {"t.single": "b", "t.multiple": ["b"], "t.numeric": 0.015625, "t.ordering": ["b", "a", "c"],
               "t.matching": {"q": "holds", "v": "asks"}, "t.recall": {"text": PAYLOAD, "mark": 1}}  # fmt: skip
    for answered in (None, answers):
        card = quiz.form(evil, None, "ja", answered=answered, sections={PAYLOAD: PAYLOAD})
        for place in range(len(evil) if answered else 0):
            card.receive({"do": "last", "card": place})
        page = show(card)
        for place in range(len(evil)):
            page.locator(".tl-quiz-jump").select_option(str(place))
            page.locator("details").evaluate_all("nodes => nodes.forEach(node => node.open = true)")
            assert PAYLOAD in page.locator("legend").inner_text()
            assert page.locator(".tl-quiz img").count() == 0
        assert page.evaluate("window.attacked") is None and page.problems == []
    from transformer_lite.content import schema

    guess = schema.Prediction.model_validate(attacked(prediction.model_dump()))
    page = show(quiz.prediction_form(guess, None, "en", answered="a"))
    assert PAYLOAD in page.locator(".tl-quiz-after").inner_text() and page.locator(".tl-quiz img").count() == 0
    assert page.evaluate("window.attacked") is None


def choose(page, question, key):
    """Choose an option of the question on the card and send it."""
    page.locator(f".tl-quiz-body input[value={quiz.Paper([question]).letter(question, key)}]").check()
    page.locator(".tl-quiz-body button[type=submit]").press("Enter")
    page.locator(".tl-quiz-verdict strong").wait_for()


def stem_shown(page, text):
    from playwright.sync_api import expect

    expect(page.locator(".tl-quiz legend")).to_have_text(text)


def test_the_switch_chooses_the_exam_by_keyboard_and_is_remembered(many, show):
    heard = []
    page = show(quiz.form(many, None, "ja", on_exam=heard.append))
    group = page.get_by_role("radiogroup", name="どちらの試験の問題を解くか")
    assert group.get_by_role("radio", name="両方").is_checked()
    assert page.locator(".tl-quiz-progress").inner_text() == "1 / 10 · この章に 24 問"
    assert page.locator(".tl-quiz-for").inner_text() == "G検定"  # in a mixture each question says for which exam it is
    tab_to(page, "両方")
    page.evaluate("window.stolen = []")
    press(page, "ArrowLeft")  # to E
    stem_shown(page, "第 13 問")
    assert focused(page) == "E資格" and page.locator(".tl-quiz-progress").inner_text() == "1 / 10 · この章に 12 問"
    assert page.locator(".tl-quiz-for").count() == 0
    press(page, "ArrowLeft")  # to G
    stem_shown(page, "第 1 問")
    assert page.locator(".tl-quiz-progress").inner_text() == "1 / 10 · この章に 14 問"
    press(page, "Tab", "Tab")  # the whole group is one stop
    assert focused(page) == "問題を選ぶ"
    assert heard == ["e-shikaku", "g-kentei"] and page.evaluate("window.stolen") == [] and page.problems == []


def test_the_switch_starts_where_it_is_told_and_is_left_out_where_it_changes_nothing(many, questions, show):
    page = show(quiz.form(many, None, "en", exam="e-shikaku"))
    assert page.get_by_role("radio", name="E exam").is_checked()
    stem_shown(page, "No. 13.")
    assert show(quiz.form(questions, None, "en")).get_by_role("radiogroup").count() == 0


def test_a_draft_survives_the_switch(many, show):
    page = show(quiz.form(many, None, "ja"))
    page.locator(".tl-quiz-body input").nth(2).check()
    page.locator("input[value=e-shikaku]").check()
    stem_shown(page, "第 13 問")
    page.locator("input[value=g-kentei]").check()
    stem_shown(page, "第 1 問")
    assert page.locator(".tl-quiz-body input").nth(2).is_checked()


def test_ten_at_a_time_then_the_next_and_then_the_mistakes_first(many, show):
    page = show(quiz.form(many, None, "ja", exam="g-kentei"))
    for number in range(1, 11):
        stem_shown(page, f"第 {number} 問")
        assert page.locator(".tl-quiz-progress").inner_text() == f"{number} / 10 · この章に 14 問"
        assert page.locator(".tl-quiz-jump option").count() == 10
        choose(page, many[number - 1], "b" if number == 7 else "a")
        if number < 10:
            page.get_by_role("button", name="次の問題へ").press("Enter")
    assert page.locator(".tl-quiz-done").inner_text() == "10 問に答えました。正解は 9 問です。"
    page.get_by_role("button", name="次の 4 問").press("Enter")
    for number in range(11, 15):
        stem_shown(page, f"第 {number} 問")
        assert page.locator(".tl-quiz-progress").inner_text() == f"{number - 10} / 4 · この章に 14 問"
        assert page.evaluate("document.activeElement.matches('.tl-quiz-body input')")  # one can go on by keyboard
        choose(page, many[number - 1], "a")
        if number < 14:
            page.get_by_role("button", name="次の問題へ").press("Enter")
    assert page.locator(".tl-quiz-summary").inner_text() == "正解 13　解答済み 14"
    done = page.locator(".tl-quiz-done").inner_text()
    assert done == "4 問に答えました。正解は 4 問です。 この章のG検定の問題は、これですべてです。"
    page.get_by_role("button", name="もう一度最初から").press("Enter")
    stem_shown(page, "第 7 問")
    assert page.locator(".tl-quiz-body input:checked").count() == 0 and page.locator(".tl-quiz-verdict").inner_text() == ""
    assert page.evaluate("document.activeElement.matches('.tl-quiz-body input')") and page.problems == []


def test_with_ten_or_more_to_come_the_button_says_ten(many, show):
    card = quiz.form(many, None, "en")
    for place in range(10):
        card.receive({"do": "answer", "card": place, "answer": "a"})
    page = show(card)
    page.get_by_role("button", name="Next ten").press("Enter")
    stem_shown(page, "No. 11.")


def test_the_marks_stand_in_the_rows_as_text_and_colour(single, multiple, show):
    page = show(quiz.form([single, multiple], None, "ja"))
    choose(page, single, "b")
    rows = {row.locator("b").inner_text()[0]: row for row in page.locator(".tl-quiz-told").all()}
    letter = quiz.Paper([single]).letter
    words = {key: rows[letter(single, key)].locator(".tl-quiz-mark").inner_text() for key in "abcd"}
    assert words == {"a": "✓ これが正解", "b": "✗ 不正解", "c": "✗ 誤り", "d": "✗ 誤り"}
    colours = {key: rows[letter(single, key)].evaluate("node => getComputedStyle(node).borderInlineStartColor") for key in "abc"}
    assert len(set(colours.values())) == 3
    opened = {key: rows[letter(single, key)].locator("details").evaluate("node => node.open") for key in "abcd"}
    assert opened == {"a": False, "b": True, "c": False, "d": False}
    # The trap by its title, its code small; only where it was chosen.
    trap = rows[letter(single, "b")].locator(".tl-quiz-trap")
    assert page.locator(".tl-quiz-trap").count() == 1 and trap.inner_text().startswith("この誤りの名前: ")
    assert trap.locator("small").inner_text() == "AT3" and "[" not in trap.inner_text()
    size = "node => parseFloat(getComputedStyle(node).fontSize)"
    assert trap.locator("small").evaluate(size) < trap.evaluate(size)
    # A screen reader that stands on the verdict hears the reason of what was chosen.
    described = page.locator(".tl-quiz-verdict").get_attribute("aria-describedby")
    assert page.locator(f"[id='{described}']").inner_text() == "理由b"

    page.get_by_role("button", name="次の問題へ").press("Enter")
    for key in "ab":  # one right, one wrong, one left out
        page.locator(f".tl-quiz-body input[value={quiz.Paper([multiple]).letter(multiple, key)}]").check()
    page.get_by_role("button", name="解答する").press("Enter")
    verdict(page, "不正解")
    marks = sorted(page.locator(".tl-quiz-mark").all_inner_texts())
    assert marks == sorted(["✓ 当てはまる", "✗ 当てはまらない（選んだ）", "✓ 当てはまる（選ばなかった）"])
    assert page.locator("details[open]").count() == 3  # leaving out what applies is an answer, too


def test_matching_shows_whole_texts_before_and_after(matching, show):
    page = show(quiz.form([matching], None, "ja"))
    assert page.locator("select[id] option").all_inner_texts() == ["選んでください", *["探す側", "中身"]] * 2 or (
        page.locator("select[id] option").all_inner_texts() == ["選んでください", *["中身", "探す側"]] * 2
    )
    for select in page.locator("select[id]").all():
        select.select_option(label="中身")
    page.get_by_role("button", name="解答する").press("Enter")
    verdict(page, "不正解")
    assert "A" not in page.locator(".tl-quiz-verdict").inner_text()  # no letters that the card has not shown
    wrong, right = page.locator(".tl-quiz-told").all()
    assert "クエリ" in wrong.inner_text() and wrong.locator(".tl-quiz-mark").inner_text() == "✗ 正しくは「探す側」"
    assert wrong.locator(".tl-quiz-trap small").inner_text() == "MC08"
    assert right.locator(".tl-quiz-chosen").inner_text() == "中身" and right.locator(".tl-quiz-mark").inner_text() == "✓ 正解"
    assert page.locator("details[open] .tl-quiz-why").all_inner_texts() == ["理由q"]


def test_a_choice_too_long_for_its_list_is_written_out_under_it(matching, show):
    long = "とても長い選択肢の文" * 8
    choices = [choice.model_copy(update={"text": type(choice.text)(ja=long + choice.key, en="x")}) for choice in matching.choices]
    page = show(quiz.form([matching.model_copy(update={"choices": choices})], None, "ja"), width=380)
    page.locator("select[id]").first.select_option(index=1)
    assert long in page.locator(".tl-quiz-whole").first.inner_text() and page.locator(".tl-quiz-whole").nth(1).inner_text() == ""
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_the_order_is_marked_step_by_step(ordering, show):
    card = quiz.form([ordering], None, "ja")
    paper = card.paper
    card.receive({"do": "answer", "card": 0, "answer": [paper.letter(ordering, key) for key in "acb"]})
    page = show(card)
    marks = page.locator(".tl-quiz-order li .tl-quiz-mark").all_inner_texts()
    assert marks == ["✓ この位置で正しい", "✗ 正しくは 3 番目", "✗ 正しくは 2 番目"]
    assert page.locator(".tl-quiz-after .tl-quiz-trap small").inner_text() == "AT12"


def test_the_card_is_as_wide_as_the_explorers(single, show):
    css = (ROOM.parent / "explore" / "js" / "explorers.css").read_text("utf-8")
    page = show(quiz.form([single], None, "ja"), width=1400)
    wide = page.locator(".tl-quiz").evaluate("node => node.getBoundingClientRect().width")
    assert f"max-width: {wide:.0f}px" in css


@pytest.mark.parametrize("width", [320, 380])
def test_nothing_is_cut_on_a_narrow_screen(questions, many, show, width):
    card = quiz.form([*questions, *many[:4]], None, "en")
    for place, value in ((0, "b"), (1, ["a"]), (2, "7"), (3, "a,b,c"), (4, {"1": "a", "2": "a"}), (5, "x")):
        card.receive({"do": "answer", "card": place, "answer": value})
    page = show(card, width=width)
    for place in range(len(questions) + 1):
        page.locator(".tl-quiz-jump").select_option(str(place))
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_switch_can_be_seen_in_forced_colours(many, browser, show):
    page = show(quiz.form(many, None, "ja", exam="g-kentei"))
    page.emulate_media(forced_colors="active")
    paint = "node => getComputedStyle(node).backgroundColor"
    chosen, other = (page.locator(f".tl-quiz-exams input[value={exam}] + span").evaluate(paint) for exam in ("g-kentei", "both"))
    assert chosen != other


def test_a_silent_kernel_is_said(single, show):
    page = show(quiz.form([single], None, "ja"))
    page.clock.install()
    page.evaluate("() => { window.python = () => new Promise(() => {}); }")
    page.locator(".tl-quiz-body input").first.check()
    page.get_by_role("button", name="解答する").click()
    verdict(page, "採点しています")
    page.clock.run_for(5000)
    verdict(page, "このセルをもう一度実行してください")


def test_a_silent_kernel_is_said_for_the_switch_too(many, show):
    page = show(quiz.form(many, None, "ja"))
    page.clock.install()
    page.evaluate("() => { window.python = () => new Promise(() => {}); }")
    page.locator("input[value=e-shikaku]").check()
    page.clock.run_for(5000)
    verdict(page, "計算が終われば切り替わります")
