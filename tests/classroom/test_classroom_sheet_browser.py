"""The answer sheet in a real browser, by keyboard alone, on a page that stands in for JupyterLab, with Python for the kernel."""

import json
import re
from pathlib import Path

import pytest
from keyboard_support import focused, press, tab_to
from playwright.sync_api import expect
from test_classroom_questions import BANK, PAYLOAD, SEED, attacked

import transformer_lite.classroom
import transformer_lite.quiz
from transformer_lite.classroom import answers, questions, sheet
from transformer_lite.classroom.sheet_widget import AnswerSheet
from transformer_lite.quiz.card import script

SCRIPT = Path(transformer_lite.classroom.__file__).with_name("sheet.js")
STYLE = Path(transformer_lite.quiz.__file__).with_name("card.css")
CHANGING = ["states", "heard", "trouble"]
# A page with JupyterLab's theme variables and its habit of taking keys for itself (here: every key that reaches the document).
PAGE = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: var(--jp-layout-color1); }
body { --jp-layout-color1: #fff; --jp-content-font-color1: rgba(0,0,0,.87); --jp-brand-color1: #1976d2; }
body.dark { --jp-layout-color1: #111; --jp-content-font-color1: #fff; --jp-brand-color1: #2196f3; }
%s</style><body><div id="el"></div></body>"""
START = """async ([source, state, changing]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const heard = {};
  window.stolen = [];
  document.addEventListener("keydown", (e) => window.stolen.push(e.key));
  window.kernel = "alive"; // or "busy": nothing comes back until it is set free; or "gone": sending fails
  window.waiting = [];
  window.sent = [];
  const take = (changed) => {
    const before = { ...state };
    Object.assign(state, changed);
    for (const key of changing) if (JSON.stringify(before[key]) !== JSON.stringify(state[key])) heard["change:" + key]?.();
  };
  const ask = async (content) => take(JSON.parse(await window.python(JSON.stringify(content))));
  window.free = async () => { window.kernel = "alive"; for (const content of window.waiting.splice(0)) await ask(content); };
  window.look = () => ask({ do: "look" });
  const model = {
    get: (key) => state[key],
    on: (event, f) => { heard[event] = f; },
    off: () => {},
    send: (content) => {
      if (window.kernel === "gone") throw new Error("Cannot send");
      window.sent.push(content);
      if (window.kernel === "busy") window.waiting.push(content);
      else ask(content);
    },
  };
  module.default.render({ model, el: document.getElementById("el") });
}"""


@pytest.fixture(scope="module")
def drawn():
    return questions.draw(BANK, None, SEED)


@pytest.fixture
def folder(drawn, tmp_path):
    for lang in ("ja", "en"):
        (tmp_path / f"{lang}.json").write_text(json.dumps(questions.paper(drawn, lang, SEED)), "utf-8")
    return tmp_path


@pytest.fixture
def given(folder):
    """What the file of answers holds now."""
    return lambda: answers.written(folder / "answers.json").answers


@pytest.fixture
def show(browser, folder):
    """Show the sheet on a fresh page, tied to a Python side of its own, as a notebook is to its kernel."""
    contexts = []

    def start(lang="en", dark=False, width=900):
        widget = AnswerSheet(sheet.read(folder / f"{lang}.json"), folder / "answers.json")
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.set_content(PAGE % STYLE.read_text("utf-8"))
        if dark:
            page.evaluate("document.body.className = 'dark'")

        def python(content):
            widget.receive(json.loads(content))
            return json.dumps({name: getattr(widget, name) for name in CHANGING})

        page.expose_function("python", python)
        names = ("lang", "words", "cards", "file", "longest", *CHANGING)
        page.evaluate(START, [script(SCRIPT), {name: getattr(widget, name) for name in names}, CHANGING])
        return page

    yield start
    for context in contexts:
        context.close()


def says(page, text):
    expect(page.locator(".tl-quiz-verdict")).to_contain_text(text)


def counts(page, text):
    expect(page.locator(".tl-quiz-summary")).to_have_text(text)


def test_all_kinds_by_keyboard_alone_and_each_choice_is_in_the_file_at_once(drawn, show, given):
    page = show()
    ids = [question.id for question in drawn]
    counts(page, "0 of 6 answered")
    says(page, "Not answered yet.")

    # single: the arrows choose
    tab_to(page, "A. ")
    page.evaluate("window.stolen = []")  # the keys until here belonged to the page
    press(page, "ArrowDown", "ArrowDown")
    says(page, "Saved in answers.json.")
    assert given() == {ids[0]: "C"} and focused(page).startswith("C. ")
    tab_to(page, "Next question")
    press(page, "Enter")

    # multiple: Space ticks
    assert focused(page).startswith("A. ")
    press(page, "Space", "Tab", "Space", "Tab", "Tab", "Space", "Shift+Tab", "Shift+Tab", "Space")
    counts(page, "2 of 6 answered")
    expect(page.locator("input:checked")).to_have_count(2)
    says(page, "Saved")
    assert given()[ids[1]] == ["A", "D"]
    tab_to(page, "Next question")
    press(page, "Enter")

    # numeric: what is typed is saved without leaving the field, and what is no number is said
    page.keyboard.type("eight")
    says(page, "eight does not read as a number")
    assert given()[ids[2]] == "eight" and page.locator(".tl-quiz-jump option").nth(2).inner_text() == "Q3: not finished"
    counts(page, "2 of 6 answered")
    press(page, "Control+a")
    page.keyboard.type("７.39")
    press(page, "Enter")
    says(page, "Saved")
    assert given()[ids[2]] == "７.39" and page.locator("input[type=text]").input_value() == "７.39"
    tab_to(page, "Next question")
    press(page, "Enter")

    # ordering: the order shown at first is no answer until it is chosen; the focus travels with the step that moves
    says(page, "Not answered yet.")
    tab_to(page, "Answer with this order")
    press(page, "Enter")
    says(page, "Saved")
    assert given()[ids[3]] == ["A", "B", "C", "D"]
    page.locator(".tl-quiz-up").nth(3).focus()
    step = focused(page)
    press(page, "Enter", "Enter")
    assert focused(page) == step
    says(page, "Saved")
    assert given()[ids[3]] == ["A", "D", "B", "C"]
    tab_to(page, "Next question")
    press(page, "Enter")

    # matching: one list a row
    assert focused(page).startswith("1. ")
    press(page, "ArrowDown")
    says(page, "These rows have no choice yet: 2, 3.")
    assert given()[ids[4]] == {"1": "A"}
    press(page, "Tab", "ArrowDown", "ArrowDown", "Tab", "ArrowDown", "ArrowDown", "ArrowDown")
    says(page, "Saved")
    assert given()[ids[4]] == {"1": "A", "2": "B", "3": "C"}
    tab_to(page, "Next question")
    press(page, "Enter")

    press(page, "Space")
    expect(page.locator(".tl-sheet-done")).to_have_text(
        "All 6 questions are answered. Hand in answers.json together with the notebook."
    )
    counts(page, "6 of 6 answered")
    assert page.evaluate("window.stolen") == [] and page.problems == []
    assert page.locator(".tl-sheet").inner_text().count("orrect") == 0  # nothing is marked


def test_an_answer_can_be_cleared(drawn, show, given):
    page = show()
    page.locator("input").nth(1).check()
    says(page, "Saved")
    tab_to(page, "Clear my answer")
    press(page, "Enter")
    says(page, "Not answered yet.")
    counts(page, "0 of 6 answered")
    assert given() == {} and page.locator("input:checked").count() == 0 and focused(page).startswith("A. ")


def test_answers_come_back_after_the_kernel_was_restarted(drawn, folder, show):
    answers.write(folder / "answers.json", drawn[0].id, "D")
    answers.write(folder / "answers.json", drawn[2].id, "7.39")
    page = show("ja")
    counts(page, "6 問中 2 問に解答済み")
    expect(page.locator(".tl-quiz-progress")).to_have_text("問 2 / 6")  # the first that is open
    page.locator(".tl-quiz-jump").select_option("0")
    assert page.locator("input:checked").get_attribute("value") == "D"
    says(page, "answers.json に保存しました。")
    page.locator(".tl-quiz-jump").select_option("2")
    assert page.locator("input").input_value() == "7.39"


def test_two_notebooks_show_the_same_file(drawn, show, given):
    first, second = show(), show()
    first.locator("input").nth(1).check()
    says(first, "Saved")
    second.evaluate("window.look()")  # as when its window gets the focus
    counts(second, "1 of 6 answered")
    assert second.locator("input:checked").get_attribute("value") == "B"
    second.locator("input").nth(2).check()
    says(second, "Saved")
    first.locator(".tl-quiz-jump").select_option("1")
    first.locator("input").first.check()
    says(first, "Saved")
    first.locator(".tl-quiz-jump").select_option("0")
    assert first.locator("input:checked").get_attribute("value") == "C"
    assert given() == {drawn[0].id: "C", drawn[1].id: ["A"]}


def test_what_another_notebook_writes_does_not_disturb_what_is_being_typed(drawn, folder, show, given):
    page = show()
    page.locator(".tl-quiz-jump").select_option("2")
    page.locator("input").focus()
    page.keyboard.type("7.")
    answers.write(folder / "answers.json", drawn[2].id, "1")
    page.evaluate("window.look()")
    page.keyboard.type("39")
    says(page, "Saved")
    assert given()[drawn[2].id] == "7.39" and page.locator("input").input_value() == "7.39"


def test_typed_text_is_sent_when_one_goes_on_at_once(drawn, show, given):
    page = show()
    page.locator(".tl-quiz-jump").select_option("2")
    page.locator("input").focus()
    page.keyboard.type("7.4")
    page.locator(".tl-quiz-forward").press("Enter")
    counts(page, "1 of 6 answered")
    assert given()[drawn[2].id] == "7.4"


def test_a_busy_kernel_is_said_and_what_was_chosen_is_saved_when_it_is_free(drawn, show, given):
    page = show()
    page.evaluate("window.kernel = 'busy'")
    page.locator("input").nth(1).check()
    says(page, "Saving")
    expect(page.locator(".tl-quiz-verdict")).to_contain_text("Not saved yet", timeout=8000)
    counts(page, "0 of 6 answered")
    assert page.locator(".tl-quiz-jump option").first.inner_text() == "Q1: not saved" and given() == {}
    page.evaluate("window.free()")
    says(page, "Saved in answers.json.")
    assert given() == {drawn[0].id: "B"} and page.locator(".tl-sheet-again").count() == 0


def test_a_kernel_that_is_gone_is_said_at_once(show, given):
    page = show("ja")
    page.evaluate("window.kernel = 'gone'")
    page.locator("input").nth(1).check()
    says(page, "カーネルは、もう動いていません")
    says(page, "保存済みの答えは answers.json に残っています")
    counts(page, "6 問中 0 問に解答済み")
    assert given() == {} and page.problems == [] and page.locator(".tl-sheet-again").count() == 0


def test_what_cannot_be_written_can_be_saved_again(drawn, folder, show, given, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    page = show()
    with monkeypatch.context() as patch:
        patch.setattr(answers, "replace", full)
        page.locator("input").nth(1).check()
        says(page, "could not be saved in answers.json (No space left on device)")
        page.locator(".tl-quiz-jump").select_option("1")
        says(page, "No space left on device")  # wherever one goes
    tab_to(page, "Save again", 30)
    press(page, "Enter")
    counts(page, "1 of 6 answered")
    assert given() == {drawn[0].id: "B"}


def test_a_damaged_file_is_said_and_kept(folder, show, given):
    (folder / "answers.json").write_text("half")
    page = show()
    says(page, "cannot be read as answers")
    page.locator("input").first.check()
    says(page, "Saved")
    assert len(given()) == 1 and (folder / "answers.kept-1.json").read_text() == "half"


def test_every_control_has_a_label_and_keeps_jupyterlab_from_its_keys(show):
    page = show("ja")
    for place in range(6):
        page.locator(".tl-quiz-jump").select_option(str(place))
        controls = page.locator(".tl-sheet :is(input, select, button)")
        assert controls.count() > 3 and page.locator(".tl-sheet legend").count() == 1
        bare = (
            "n => n.dataset.lmSuppressShortcuts !== 'true' || !(n.getAttribute('aria-label') || n.labels?.length || n.innerText)"
        )
        assert controls.evaluate_all(f"nodes => nodes.filter({bare}).map(n => n.outerHTML)") == []


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_narrow_window_in_both_themes(drawn, show, dark):
    page = show("en" if dark else "ja", dark=dark, width=360)
    for place in range(6):
        page.locator(".tl-quiz-jump").select_option(str(place))
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    colour = page.locator(".tl-sheet").evaluate("node => getComputedStyle(node).color")
    assert (int(re.search(r"\d+", colour)[0]) > 200) == dark


def test_no_script_of_the_sheet_runs(folder, show):
    path = folder / "ja.json"
    path.write_text(json.dumps(attacked(json.loads(path.read_text("utf-8")))), "utf-8")
    page = show("ja")
    for place in range(6):
        page.locator(".tl-quiz-jump").select_option(str(place))
        assert PAYLOAD in page.locator("legend").inner_text() and page.locator(".tl-sheet img").count() == 0
    assert page.evaluate("window.attacked") is None and page.problems == []
