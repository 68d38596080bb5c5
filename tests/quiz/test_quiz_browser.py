"""The card in a real browser, by keyboard alone, on a page that stands in for JupyterLab; Python answers as in a kernel."""

import json
from pathlib import Path

import pytest
from test_quiz_text import PAYLOAD, attacked

import transformer_lite.quiz
from transformer_lite import quiz

ROOM = Path(transformer_lite.quiz.__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]

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
      state.results = JSON.parse(await window.python(JSON.stringify(content)));
      heard["change:results"]();
    },
  };
  module.default.render({ model, el: document.getElementById("el") });
}"""
# WCAG contrast of an element's text against the nearest opaque background.
CONTRAST = """(node) => {
  const paint = (colour) => {
    const c = new OffscreenCanvas(1, 1).getContext("2d"); c.fillStyle = colour; c.fillRect(0, 0, 1, 1);
    return [...c.getImageData(0, 0, 1, 1).data];
  };
  let ground = node;
  while (paint(getComputedStyle(ground).backgroundColor)[3] < 255) ground = ground.parentElement;
  const back = paint(getComputedStyle(ground).backgroundColor);
  const c = new OffscreenCanvas(1, 1).getContext("2d");
  for (const colour of [getComputedStyle(ground).backgroundColor, getComputedStyle(node).color]) {
    c.fillStyle = colour; c.fillRect(0, 0, 1, 1);
  }
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light([...c.getImageData(0, 0, 1, 1).data]), light(back)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


@pytest.fixture(scope="module")
def browser(chromium_path):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=FLAGS)
        yield browser
        browser.close()


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
            return json.dumps(card.results)

        page.expose_function("python", python)
        state = {name: getattr(card, name) for name in ("lang", "words", "cards", "results", "index")}
        page.evaluate(START, [(ROOM / "card.js").read_text("utf-8"), state])
        return page

    yield start
    for context in contexts:
        context.close()


def focused(page):
    """The focused element as a screen reader would call it: its label or text."""
    return page.evaluate(
        """() => { const e = document.activeElement;
             return (e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || '').trim(); }"""
    )


def tab_to(page, text, limit=25):
    for _ in range(limit):
        page.keyboard.press("Tab")
        if text in focused(page):
            return
    raise AssertionError(f"Tab never reached {text!r}")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


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
    first = page.locator(".tl-quiz-after .tl-quiz-why").first.inner_text()
    assert first == "reason-b" and "[AT3]" in page.locator(".tl-quiz-after").inner_text()
    assert not page.locator("details").get_attribute("open")
    tab_to(page, "Why not the others")
    press(page, "Enter")
    assert "reason-c" in page.locator("details").inner_text()
    press(page, "Shift+Tab", "Shift+Tab", "Enter")  # past "Try again", back to "Next question"

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
    assert "All 6 questions answered, 5 of them right." in page.locator(".tl-quiz-done").inner_text()

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
    assert "前回の解答" in page.locator(".tl-quiz-last").inner_text()
    assert page.locator("input:checked").count() == 1 and page.locator("input:enabled").count() == 0
    page.get_by_role("button", name="もう一度解く").press("Enter")
    verdict(page, "")
    page.locator("input:enabled").first.wait_for()
    assert page.locator("input:checked").count() == 0 and page.locator(".tl-quiz-last").inner_text() == ""


def test_a_draft_survives_looking_at_another_question(questions, show):
    page = show(quiz.form(questions, None, "ja", answered={}))
    page.locator("input").nth(2).check()
    page.get_by_role("button", name="次へ").press("Enter")
    page.get_by_role("button", name="前へ").press("Enter")
    assert page.locator("input").nth(2).is_checked()


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
    card = quiz.form(questions, None, "ja", answered=answered)
    page = show(card, dark=dark)
    for place in range(len(questions)):
        page.locator(".tl-quiz-jump").select_option(str(place))
        texts = page.locator(
            ".tl-quiz :is(p, legend, label, button, select, input[type=text], textarea, summary, strong, li)"
        ).all()
        assert len(texts) > 5
        for node in texts:
            assert node.evaluate(CONTRAST) >= 4.5, node.evaluate("node => node.outerHTML")
    # The bars that repeat the verdict are no text: 3:1.
    page.locator(".tl-quiz-jump").select_option("0")
    bar = page.locator(".tl-quiz-verdict.tl-quiz-incorrect")
    bar.evaluate("node => { node.style.color = getComputedStyle(node).borderInlineStartColor; }")
    assert bar.evaluate(CONTRAST) >= 3


def test_long_text_wraps_in_a_narrow_window(single, show):
    words = {"ja": "とても長い文です。" * 30, "en": "Averylongword" * 40}
    options = [option.model_copy(update={"text": type(option.text)(ja=words["ja"] + option.key, en=words["en"] + option.key)})
               for option in single.options]  # fmt: skip
    long = single.model_copy(update={"stem": type(single.stem)(**words), "options": options})
    for lang in ("ja", "en"):
        page = show(quiz.form([long], None, lang, answered={"t.single": "b"}), width=360)
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
        page = show(quiz.form(evil, None, "ja", answered=answered, sections={PAYLOAD: PAYLOAD}))
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


def test_a_silent_kernel_is_said(single, show):
    page = show(quiz.form([single], None, "ja"))
    page.clock.install()
    page.evaluate("() => { window.python = () => new Promise(() => {}); }")
    page.locator("input").first.check()
    page.get_by_role("button", name="解答する").click()
    verdict(page, "採点しています")
    page.clock.run_for(5000)
    verdict(page, "このセルをもう一度実行してください")
