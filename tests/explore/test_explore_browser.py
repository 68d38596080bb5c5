"""The bench's JavaScript: its maths under node, and its page in Chromium with a model of ten lines."""

import json
import re

import explore_support as support
import numpy as np
import pytest

from transformer_lite.explore import controls, maths, qkv


def in_node(expression):
    return support.in_node("qkv_bench", expression)


def test_the_browsers_attention_is_numpys():
    rng = np.random.default_rng(11)
    cases = []
    for n, d_k, d_v in ((1, 2, 2), (3, 2, 2), (10, 2, 3), (7, 5, 1)):
        for size in (1.0, 30.0):  # 30: exp would overflow without subtracting the largest score
            arrays = size * rng.standard_normal(d_k), size * rng.standard_normal((n, d_k)), rng.standard_normal((n, d_v))
            cases.append([array.tolist() for array in arrays])
    for scaled in (True, False):
        found = in_node(f"{json.dumps(cases)}.map(([q, k, v]) => bench.attention(q, k, v, {json.dumps(scaled)}))")
        assert len(found) == len(cases)
        for case, one in zip(cases, found, strict=True):
            expected = maths.plane_attention(*case, scaled=scaled)
            for name in expected._fields:
                assert one[name] == pytest.approx(getattr(expected, name), rel=1e-12, abs=1e-12)


def test_the_browsers_hull_is_numpys():
    points = np.round(np.random.default_rng(2).uniform(-4, 4, (9, 2)), 1)
    assert in_node(f"bench.hull({json.dumps(points.tolist())})") == qkv._hull(points).tolist()


def test_numbers_and_limits_in_the_browser():
    assert in_node("[bench.number(-0.001), bench.number(-1.5), bench.number(2, 0)]") == ["0.00", "−1.50", "2"]
    assert in_node("[bench.clampQuery(1.23456, -0.00001), bench.clampQuery(0, 9)]") == [[1.235, 0], [0, 4]]
    assert in_node("bench.fill('{a} {b} {c}', {a: 1, b: '{a}'})") == "1 {a} {c}"


def test_the_modules_fetch_nothing():
    for path in controls.JS.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*import\b|import\(|fetch\(|innerHTML|https?://(?!www\.w3\.org)", text, re.MULTILINE), path.name
    assert "url(" not in controls.style_sheet()


# --- The page ---


@pytest.fixture
def show(show_module):
    def open_bench(lang="ja", tokens=None, **options):
        first = qkv.start(lang, tokens)
        initial = {"query": first.query.tolist(), "scaled": True}
        state = {**qkv._texts(first), **initial, "preset": -1, "initial": initial}
        return show_module("qkv_bench", state, **options)

    return open_bench


def plane(page):
    return page.locator(".tl-movable")


def query(page):
    return page.evaluate("() => model.get('query')")


def weights(page):
    return [float(text) for text in page.locator(".tl-weight").all_text_contents()]


def test_the_page_shows_numpys_numbers(show):
    page = show()
    expected = maths.plane_attention(qkv.QUERY, qkv.KEYS, qkv.VALUES)
    assert weights(page) == pytest.approx(expected.weights, abs=0.005)
    cells = page.locator("tbody tr").nth(1).locator("td").all_text_contents()
    assert cells[1:3] == [f"{expected.products[1]:.2f}", f"{expected.scores[1]:.2f}"]
    assert page.locator("table caption").count() == 1
    assert page.locator("tbody th[scope=row]").count() == 3
    assert page.locator(".tl-output-cell").text_content() == f"({expected.output[0]:.2f}, −{abs(expected.output[1]):.2f})"


def test_an_arrow_key_moves_the_query_by_a_tenth_and_the_picture_changes(show):
    page = show()
    before, spoken = plane(page).screenshot(), plane(page).get_attribute("aria-label")
    plane(page).focus()
    page.keyboard.press("ArrowUp")
    assert query(page) == [2.4, -0.3]
    page.keyboard.press("Shift+ArrowLeft")
    assert query(page) == [1.9, -0.3]
    assert "q = (1.90, −0.30)" in plane(page).get_attribute("aria-label") != spoken
    assert plane(page).screenshot() != before
    assert weights(page) == pytest.approx(maths.plane_attention([1.9, -0.3], qkv.KEYS, qkv.VALUES).weights, abs=0.005)
    assert page.evaluate("() => window.saved") == 2


def test_dragging_moves_the_query_and_stops_at_the_longest(show):
    page = show()
    box = plane(page).bounding_box()

    def at(x, y):  # the plane's coordinates -> the page's; 32 of the drawing's 300 units are 1
        unit = box["width"] / 300
        return box["x"] + (150 + 32 * x) * unit, box["y"] + (150 - 32 * y) * unit

    page.mouse.move(*at(2.4, -0.4))
    page.mouse.down()
    page.mouse.move(*at(-1.0, 2.0), steps=4)
    assert query(page) == pytest.approx([-1.0, 2.0], abs=0.11)
    page.mouse.move(*at(-3.9, 3.9))
    assert np.hypot(*query(page)) == pytest.approx(4, abs=0.002)
    page.mouse.up()
    page.mouse.move(*at(1.0, 1.0))
    assert np.hypot(*query(page)) == pytest.approx(4, abs=0.002)  # let go: it no longer follows


def test_a_finger_moves_it_too(show):
    page = show(has_touch=True)
    box = plane(page).bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 182 / 300, box["y"] + box["width"] * 118 / 300)
    assert query(page) == pytest.approx([1.0, 1.0], abs=0.11)


def test_sliders_turn_and_stretch(show):
    page = show()
    direction, length = page.locator(".tl-direction"), page.locator(".tl-length")
    ratio = query(page)[1] / query(page)[0]
    length.focus()
    before = np.hypot(*query(page))
    page.keyboard.press("ArrowRight")
    assert np.hypot(*query(page)) > before and query(page)[1] / query(page)[0] == pytest.approx(ratio, abs=0.01)
    direction.fill("90")
    assert query(page)[0] == pytest.approx(0, abs=0.002) and query(page)[1] > 2
    length.fill("0")
    assert query(page) == [0, 0] and weights(page) == pytest.approx([1 / 3] * 3, abs=0.005)
    length.fill("2")
    assert query(page) == pytest.approx([0, 2], abs=0.002)  # the direction was remembered


def test_the_switch_takes_the_scaling_away(show):
    page = show()
    page.locator(".tl-scale").uncheck()
    assert page.evaluate("() => model.get('scaled')") is False
    expected = maths.plane_attention(qkv.QUERY, qkv.KEYS, qkv.VALUES, scaled=False)
    assert weights(page) == pytest.approx(expected.weights, abs=0.005)


def test_presets_and_reset(show):
    page = show("en")
    note = page.locator(".tl-note")
    hint = note.text_content()
    page.get_by_role("button", name="Set q = 0").click()
    assert query(page) == [0, 0] and "mean of the values" in note.text_content()
    page.get_by_role("button", name="Reset").click()
    assert query(page) == list(qkv.QUERY) and note.text_content() == hint


def test_ten_tokens_and_wicked_names_are_text(show):
    wicked = "<img src=x onerror=alert(1)>"
    page = show(tokens=[wicked, *"bcdefghij"])
    assert page.locator("tbody tr").count() == 10 and page.locator(".tl-root img").count() == 0
    assert wicked in page.locator("tbody tr").first.text_content()
