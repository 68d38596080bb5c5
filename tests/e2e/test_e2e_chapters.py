"""The chapters on the components in a real JupyterLab: each runs blank in both languages, its explorer obeys the keyboard, and
its quiz answers. With SHOTS set, what a learner sees is kept: Japanese in the light theme, English in the dark one."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e
EXPLORERS = {  # the explorers of each chapter, what to focus in them, and a key that moves them
    "01_why_the_transformer": [("path-race", ".tl-strip", "ArrowLeft")],
    "03_self_and_cross_attention": [("wiring-board", "input[type=radio]:checked", "ArrowLeft")],
    "04_masks": [("mask-painter", "button[data-row][tabindex='0']", " ")],
    "05_multi_head_attention": [("head-explorer", "input[type=range]", "ArrowRight")],
    "06_embedding_and_positional_encoding": [("positional-encoding", ".tl-pe-map", "ArrowLeft")],
    "07_ffn_residual_layer_norm": [("normalisation-cube", ".tl-slices", "ArrowRight")],
    "08_assembling_encoder_and_decoder": [("block-builder", ".tl-stack", "1"), ("parameter-ledger", ".tl-vocab", "ArrowRight")],
    "09_training": [("shift-viewer", ".tl-rows", "ArrowRight")],
    "10_inference": [("generator", ".tl-nav .tl-next", "ArrowRight"), ("attention-map", ".tl-large", "ArrowUp")],
    "11_cost_and_scale": [("crossover", ".tl-cross-plot", "ArrowRight")],
    "12_bert_gpt_vit_and_the_exam_map": [("family-switch", ".tl-flow", "ArrowRight")],
}
SHOWN = ("lab.experiment(", "lab.train(", "lab.translate(", "lab.exam_map(", "lab.handout(", "lab.exam_view(", "lab.summary(")
ANSWER = {"ja": "解答する", "en": "Check my answer"}


@pytest.fixture(scope="module")
def japanese(notebook):
    return notebook("ja")


@pytest.fixture(scope="module")
def english(notebook):
    return notebook("en")


@pytest.mark.parametrize("lang", ["ja", "en"])
@pytest.mark.parametrize("chapter", EXPLORERS)
def test_a_chapter_runs_blank_and_its_explorer_and_quiz_answer(chapter, lang, request):
    book = request.getfixturevalue("japanese" if lang == "ja" else "english")
    book.open(f"{lang}/{chapter}.ipynb")
    book.theme(lang == "en")
    book.run_all()
    assert book.errors() == []
    shot = lambda what: book.picture(f"{chapter[:2]}-{what}-{lang}.png")  # noqa: E731
    book.show(0)
    shot("1-top")

    for explorer, control, key in EXPLORERS[chapter]:
        place = book.show(book.cell(f'lab.explore("{explorer}")'))
        bench = place.locator(".tl-root").first
        bench.wait_for(timeout=20_000)
        shot(f"2-{explorer}")
        cells = book.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.length")
        bench.locator(control).first.focus()
        before = bench.evaluate("element => element.outerHTML")
        book.page.keyboard.press(key)
        bench.evaluate(
            """(element, before) => new Promise((done, fail) => { const end = performance.now() + 10000;
                 const look = () => element.outerHTML !== before ? done() : performance.now() > end
                   ? fail(new Error('no key changed the explorer')) : requestAnimationFrame(look); look(); })""",
            before,
        )
        assert book.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.length") == cells
        shot(f"3-{explorer}-moved")

    for what in SHOWN:
        for number, cell in enumerate(book.cells(what)):
            book.show(cell)
            shot(f"4-{what.strip('(')}-{number}")
    place = book.show(book.cell("lab.quiz("))
    card = place.locator(".tl-quiz").first
    card.wait_for(timeout=20_000)
    shot("6-quiz")
    for _ in range(40):  # to the first question with options
        if card.locator(".tl-quiz-body input[type=radio]").count():
            break
        card.locator(".tl-quiz-forward").click()
    card.locator(".tl-quiz-body input[type=radio]").first.check()
    card.get_by_role("button", name=ANSWER[lang], exact=True).click()
    expect(card.locator(".tl-quiz-verdict")).not_to_be_empty(timeout=10_000)
    shot("7-quiz-answered")
    assert book.page.script_errors == []
