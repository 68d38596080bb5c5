"""A learner's hour with chapter 2, in a real JupyterLab and a real browser: the Japanese chapter from first run to next day."""

import io
import json
import re

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e
CHAPTER = "02_scaled_dot_product_attention.ipynb"
NO_SCALE = '''@lab.exercise("attention")
def attention(queries, keys, values):
    scores = queries @ np.swapaxes(keys, -1, -2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ values, weights
lab.check()'''
RIGHT = NO_SCALE.replace("np.swapaxes(keys, -1, -2)", "np.swapaxes(keys, -1, -2) / np.sqrt(keys.shape[-1])")


def differs(before: bytes, after: bytes) -> bool:
    first, second = (Image.open(io.BytesIO(shot)).convert("RGB") for shot in (before, after))
    return first.size != second.size or ImageChops.difference(first, second).getbbox() is not None


@pytest.fixture(scope="module")
def japanese(notebook):
    """The Japanese chapter, opened and run from top to bottom."""
    opened = notebook("ja")
    opened.open(f"ja/{CHAPTER}")
    opened.run_all()
    return opened


@pytest.fixture(scope="module")
def english(notebook):
    opened = notebook("en")
    opened.open(f"en/{CHAPTER}")
    opened.run_all()
    return opened


def test_the_japanese_chapter_runs_blank_without_an_error(japanese):
    assert japanese.errors() == []
    japanese.show(0)
    japanese.picture("chapter-ja-light.png")
    assert japanese.page.script_errors == []


def test_jupyterlab_itself_speaks_japanese(japanese):
    expect(japanese.page.locator("#jp-MainMenu")).to_contain_text("ファイル")


def test_the_english_chapter_runs_blank_without_an_error(english):
    assert english.errors() == []
    english.picture("chapter-en-light.png")
    english.show(english.cell('lab.explore("qkv-bench")'))
    english.picture("bench-en-light.png")
    english.theme(True)
    for name, text in (("bench", 'lab.explore("qkv-bench")'), ("slider", 'lab.explore("scaling")'), ("quiz", "lab.quiz("),
                       ("exam", "lab.exam_view("), ("experiment", "lab.experiment("), ("summary", "lab.summary(")):  # fmt: skip
        english.show(english.cell(text))
        english.picture(f"{name}-en-dark.png")
    expect(english.page.locator("#jp-MainMenu")).to_contain_text("File")


def test_moving_the_slider_changes_the_picture(japanese):
    place = japanese.run(japanese.cell('lab.explore("scaling")'))
    handle = place.locator(".noUi-handle").first
    image = place.locator("img.widget-image, .widget-image").first
    image.wait_for(timeout=20_000)
    before_source = image.get_attribute("src")
    before = image.screenshot()
    handle.focus()
    japanese.page.keyboard.press("ArrowLeft")
    japanese.page.keyboard.press("ArrowLeft")
    expect(image).not_to_have_attribute("src", before_source, timeout=10_000)
    assert differs(before, image.screenshot())
    japanese.picture("slider-ja-light.png")


def test_turning_the_query_changes_the_weights(japanese):
    place = japanese.run(japanese.cell('lab.explore("qkv-bench")'))
    bench = place.locator(".tl-bench").first
    bench.wait_for(timeout=20_000)
    before, numbers = bench.screenshot(), bench.locator("table").first.inner_text()
    bench.locator(".tl-keys .tl-plane").focus()
    for _ in range(5):
        japanese.page.keyboard.press("ArrowUp")
    expect(bench.locator("table").first).not_to_have_text(numbers, timeout=5_000)
    assert differs(before, bench.screenshot())
    japanese.picture("bench-ja-light.png")


@pytest.mark.parametrize("dark", [True, False])
def test_both_themes_can_be_looked_at(japanese, dark):
    japanese.theme(dark)
    japanese.show(japanese.cell('lab.explore("qkv-bench")'))
    japanese.picture(f"bench-ja-{'dark' if dark else 'light'}.png")
    japanese.show(japanese.cell('lab.explore("scaling")'))
    japanese.picture(f"slider-ja-{'dark' if dark else 'light'}.png")
    japanese.show(japanese.cell("lab.quiz("))
    japanese.picture(f"quiz-ja-{'dark' if dark else 'light'}.png")
    japanese.show(japanese.cell("lab.exam_view("))
    japanese.picture(f"exam-ja-{'dark' if dark else 'light'}.png")
    assert japanese.errors() == []


def test_an_answer_is_explained(japanese):
    number = japanese.cell("lab.quiz(")
    place = japanese.show(number)
    card = place.locator(".tl-quiz").first
    card.wait_for(timeout=20_000)
    for _ in range(40):  # to the first question with options
        if card.locator(".tl-quiz-body input[type=radio]").count():
            break
        card.locator(".tl-quiz-forward").click()
    card.locator(".tl-quiz-body input[type=radio]").first.check()
    card.get_by_role("button", name="解答する").click()
    expect(card.locator(".tl-quiz-verdict")).to_have_text(re.compile("^(正解|不正解)"), timeout=10_000)
    expect(card.locator(".tl-quiz-told details[open] .tl-quiz-why")).to_be_visible()
    japanese.picture("quiz-answered-ja.png")


def test_attention_without_the_scale_is_named(japanese):
    number = japanese.cell('@lab.exercise("attention")')
    japanese.run(number, NO_SCALE)
    said = japanese.text(number)
    assert "AT1" in said and "まだ正解ではありません" in said
    japanese.picture("trap-ja.png")


def test_written_right_it_passes(japanese):
    number = japanese.cell('@lab.exercise("attention")')
    japanese.run(number, RIGHT)
    assert "正解" in japanese.text(number).split("\n")[0] and "AT1" not in japanese.text(number)


def test_after_a_restart_everything_is_kept(japanese):
    japanese.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")
    japanese.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    japanese.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'", timeout=60_000
    )
    japanese.run(japanese.cell("lab.start("))
    number = japanese.cell("lab.summary(")
    japanese.run(number, "lab.progress()")
    said = japanese.text(number)
    assert "AT1" in said
    saved = json.loads((japanese.server.workspace / "ja" / CHAPTER).read_text("utf-8"))
    assert any("np.sqrt(keys.shape[-1])" in "".join(cell["source"]) for cell in saved["cells"])
    japanese.picture("progress-ja.png")
    quiz = japanese.run(japanese.cell("lab.quiz("))
    expect(quiz.locator(".tl-quiz-summary").first).to_contain_text("解答済み 1", timeout=20_000)


def test_a_script_in_a_question_shows_as_text(japanese):
    number = japanese.cell("lab.start(")
    source = japanese.source(number)
    attack = "\n".join(
        [
            source,
            "from transformer_lite import content, quiz as q",
            "question = content.questions('scaled-dot-product-attention')[0]",
            "bad = '<img src=x onerror=\"window.attacked = 1\">'",
            "evil = question.model_copy(update={'stem': type(question.stem)(ja=bad, en=bad)})",
            "q.form([evil], lambda *a: None, 'ja')",
        ]
    )
    place = japanese.run(number, attack)
    expect(place.locator(".tl-quiz").first).to_contain_text("<img src=x", timeout=20_000)
    assert japanese.page.evaluate("() => window.attacked") is None
