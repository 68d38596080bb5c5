"""How long a quiz of 30 questions takes from its call to the screen, in a real JupyterLab. Run by hand:

    python benchmarks/quiz.py                 # the figures
    python benchmarks/quiz.py --shots FOLDER  # and screenshots of every kind of card, both languages, light and dark

The time runs in the browser, from the command that runs the cell to the first animation frame in which the card has been laid
out: the kernel's work, both ways over the socket and the drawing are in it. "first" is the first quiz of a fresh kernel in which
the course has been started, as a chapter does; it also imports the widgets. Bar: 0.5 s, for each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import nbformat
from explorers import CHROMIUM, FLAGS, IDLE, jupyterlab

BAR = 0.5  # seconds
FRESH, AGAIN = 5, 10  # fresh kernels; quizzes shown again in each of the first

SETUP = "from transformer_lite import content, lab, quiz\nlab.start('{lang}')\nprint('all', 'set')"
QUESTIONS = "content.questions('scaled-dot-product-attention')"
CALL = f"quiz.form({QUESTIONS}[:30], lambda question, grade: None)"
# One card of each kind, for the pictures.
KINDS = f"""kinds = {{}}
for question in {QUESTIONS}:
    kinds.setdefault(question.kind, question)
quiz.form(kinds.values(), lambda question, grade: None)"""
GUESS = "quiz.prediction_form(content.prediction('scaled-dot-product-attention.hook'), lambda prediction, chosen: None)"

CLOCK = """async (i) => {
  const panel = window.jupyterapp.shell.currentWidget;
  const cell = panel.content.widgets[i];
  panel.content.activeCellIndex = i;
  await window.jupyterapp.commands.execute('notebook:clear-cell-output');
  const begin = performance.now();
  window.jupyterapp.commands.execute('notebook:run-cell');
  return await new Promise((done) => {
    const look = () => {
      const card = cell.node.querySelector('.tl-quiz fieldset');
      if (card && card.getBoundingClientRect().height > 0) done((performance.now() - begin) / 1000);
      else if (performance.now() - begin > 20000) done(Infinity);
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
}"""


def write_notebook(folder: Path, name: str, cells: list[str]) -> str:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / name)
    return name


def opened(page: object, address: str, name: str) -> None:
    """Open a notebook and run its first cell, which starts the course."""
    page.goto(f"{address}/lab/tree/{name}?reset")
    page.wait_for_function("() => window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')", timeout=60_000)
    page.wait_for_function(IDLE, timeout=60_000)  # a Run sent earlier is lost
    page.evaluate("""() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0;
                             window.jupyterapp.commands.execute('notebook:run-cell'); }""")
    page.locator(".jp-OutputArea-output", has_text="all set").wait_for(timeout=60_000)
    page.wait_for_function(IDLE, timeout=60_000)


def report(name: str, times: list[float]) -> bool:
    median, worst = statistics.median(times), max(times)
    within = median <= BAR
    print(f"{name:<32} median {median:.3f} s  worst {worst:.3f} s  n {len(times)}  bar {BAR} s  {'kept' if within else 'MISSED'}")
    return within


def screenshots(browser: object, address: str, folder: Path, temporary: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for lang in ("ja", "en"):
        name = write_notebook(temporary, f"shots_{lang}.ipynb", [SETUP.replace("{lang}", lang), KINDS, GUESS])
        page = browser.new_page(viewport={"width": 1100, "height": 1300})
        opened(page, address, name)
        page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        page.locator(".tl-quiz").nth(1).wait_for(timeout=60_000)
        card, guess = page.locator(".tl-quiz").first, page.locator(".tl-quiz").nth(1)
        cards = card.locator(".tl-quiz-jump option").count()
        for theme in ("Light", "Dark"):
            page.evaluate(f"() => window.jupyterapp.commands.execute('apputils:change-theme', {{theme: 'JupyterLab {theme}'}})")
            page.wait_for_function(f"() => document.body.dataset.jpThemeName === 'JupyterLab {theme}'")
            page.wait_for_function("() => !document.querySelector('#jupyterlab-splash')")  # the curtain while a theme loads
            for place in range(cards):
                card.locator(".tl-quiz-jump").select_option(str(place))
                shot = f"quiz_{place + 1}_{lang}_{theme.lower()}"
                if theme == "Light":
                    card.screenshot(path=folder / f"{shot}_open.png")
                    answer(card)
                card.locator(".tl-quiz-verdict strong").wait_for()
                card.screenshot(path=folder / f"{shot}.png")
            if theme == "Light":
                guess.screenshot(path=folder / f"guess_{lang}_light_open.png")
                guess.get_by_role("button").first.click()
            guess.locator(".tl-quiz-verdict strong").wait_for()
            guess.screenshot(path=folder / f"guess_{lang}_{theme.lower()}.png")
            page.screenshot(path=folder / f"quiz_page_{lang}_{theme.lower()}.png")
        page.close()


def answer(card: object) -> None:
    """Answer whatever is asked with the first thing at hand."""
    body = card.locator(".tl-quiz-body")
    for control in body.locator("input[type=radio], input[type=checkbox]").all()[:1]:
        control.check()
    for control in body.locator("input[type=text]").all():
        control.fill("0.5")
    for control in body.locator("select").all():
        control.select_option(index=1)
    for control in body.locator("textarea").all():
        control.fill("softmax")
    body.locator("button[type=submit]").click()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shots", type=Path, help="save screenshots in this folder")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    first, again = [], []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        names = [write_notebook(folder, f"{i}.ipynb", [SETUP.replace("{lang}", "ja"), CALL]) for i in range(FRESH)]
        with jupyterlab(folder) as address:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            for i, name in enumerate(names):
                page = browser.new_page(viewport={"width": 1280, "height": 1000})
                opened(page, address, name)
                first.append(page.evaluate(CLOCK, 1))
                for _ in range(AGAIN if i == 0 else 0):
                    page.wait_for_function(IDLE)
                    again.append(page.evaluate(CLOCK, 1))
                page.close()
            if arguments.shots:
                screenshots(browser, address, arguments.shots, folder)
            browser.close()
    within = report("30 questions, first in a kernel", first)
    within &= report("30 questions, again", again)
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
