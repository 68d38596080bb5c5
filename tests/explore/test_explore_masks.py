"""The mask painter: its numbers against the equations, the browser's against NumPy's, its page, and its static twin."""

import json
import re

import explore_support as support
import numpy as np
import pytest

from transformer_lite.equations import causal_mask, influence_matrix, self_attention
from transformer_lite.explore import explorer, masks

EVERYTHING = np.ones((5, 5), dtype=bool)


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


# --- The numbers ---


def test_the_right_way_is_the_papers_self_attention():
    x, (first, _) = masks.world()
    mask = causal_mask(7)
    found, expected = masks.painted_layer(x, first, mask), self_attention(x, first, mask)
    assert (found.output == expected.output).all() and (found.weights == expected.weights).all()


def test_the_wrong_ways_are_the_traps_of_the_catalogue():
    from transformer_lite.traps.attention import core

    x, (first, _) = masks.world()
    mask = causal_mask(7)
    for way, knobs in (("after", {"hide": "after"}), ("zero", {"hide": "fill", "constant": 0.0})):
        output, weights = core(x @ first.w_q, x @ first.w_k, x @ first.w_v, mask, **knobs)
        found = masks.painted_layer(x, first, mask, way)
        assert found.weights == pytest.approx(weights) and found.output == pytest.approx(output @ first.w_o)


def test_influence_through_two_layers_is_that_of_the_stacked_equations():
    x, stack = masks.world()
    mask = masks.START[0]

    def two(start):
        return self_attention(self_attention(start, stack[0], mask).output, stack[1], mask).output

    assert (masks.influence(mask, 2) == influence_matrix(two, x[:5])).all()


def test_one_open_cell_m_steps_ahead_leaks_2m_minus_1_pairs_and_none_leaks_nothing():
    assert masks.leaks(masks.influence(*masks.START)) == (7, 0)
    for i in range(5):
        for j in range(i + 1, 5):
            mask = causal_mask(5)
            mask[i, j] = True
            assert masks.leaks(masks.influence(mask, 2))[0] == 2 * (j - i) - 1
    assert masks.leaks(masks.influence(causal_mask(5), 2)) == (0, 0)


def test_leaks_counts_real_rows_only():
    moved = np.zeros((7, 7), dtype=bool)
    moved[0, 4] = moved[3, 5] = moved[6, 5] = moved[5, 6] = moved[4, 0] = True
    assert masks.leaks(moved) == (1, 1)


def test_the_presets_do_what_their_notes_say():
    found = {name: masks.leaks(masks.influence(*setting)) for name, setting in masks.PRESETS.items()}
    assert found == {
        "encoder": (10, 0), "causal": (0, 0), "cm1": (0, 0), "cm2": (10, 0), "cm3": (7, 0), "cm7": (0, 0), "at11": (10, 0),
        "at12": (10, 0), "pm1": (10, 10), "padding": (10, 0), "both": (0, 0),
    }  # fmt: skip
    x, (first, _) = masks.world()
    weights = {
        name: masks.painted_layer(x[: len(mask)], first, mask, way).weights for name, (mask, _, way) in masks.PRESETS.items()
    }
    assert (weights["cm1"][0] == 0).all() and weights["cm1"][1:].sum(axis=1) == pytest.approx(np.ones(4))
    assert not masks.influence(*masks.PRESETS["cm1"])[:2].any()  # rows 1 and 2 hang on nothing
    assert masks.leaks(masks.influence(masks.PRESETS["cm3"][0], 1))[0] == 4  # one step; two layers: also two steps
    two_back = masks.influence(*masks.PRESETS["cm7"])[4]
    assert two_back.tolist() == [False, False, True, True, True]
    assert (np.triu(weights["at11"], 1) == 0).all() and (weights["at11"][:-1].sum(axis=1) < 0.99).all()
    assert (weights["at12"] > 0).all() and weights["at12"].sum(axis=1) == pytest.approx(np.ones(5))
    both, causal = masks.influence(*masks.PRESETS["both"]), masks.influence(causal_mask(7), 2)
    assert (both[:5] == causal[:5]).all() and (both[5:] != causal[5:]).any()  # only PAD's rows differ


# --- The browser's numbers ---


def test_the_browsers_layers_and_influence_are_numpys():
    x, stack = masks.world()
    rng = np.random.default_rng(4)
    random = rng.random((7, 7)) < 0.6
    random[2] = False  # a row with nobody to look at
    cases = [[len(mask), mask.tolist(), layers, way] for mask, layers, way in (masks.START, *masks.PRESETS.values())]
    cases += [[7, random.tolist(), layers, way] for layers in (1, 2) for way in masks.WAYS]
    matrices = [[matrix.tolist() for matrix in layer] for layer in stack]
    found = support.in_node(
        "mask_painter",
        f"((x, stack) => {json.dumps(cases)}.map(([n, mask, layers, way]) => {{ const here = x.slice(0, n);"
        "const moved = bench.influence(here, stack.slice(0, layers), mask, way);"
        "return { ...bench.layer(here, stack[0], mask, way), moved, leaks: bench.leaks(moved, 5) }; }))"
        f"({json.dumps(x.tolist())}, {json.dumps(matrices)})",
    )
    assert len(found) == len(cases)
    for (n, mask, layers, way), one in zip(cases, found, strict=True):
        expected = masks.painted_layer(x[:n], stack[0], np.array(mask), way)
        assert np.array(one["weights"]) == pytest.approx(expected.weights, abs=1e-12)
        assert np.array(one["output"]) == pytest.approx(expected.output, abs=1e-12)
        moved = masks.influence(mask, layers, way)
        assert one["moved"] == moved.tolist()
        assert (one["leaks"]["future"], one["leaks"]["pad"]) == masks.leaks(moved)


def test_the_browsers_shades_are_cividis_and_readable():
    from matplotlib import colormaps

    values = [0, 0.03, 0.2, 0.371, 0.5, 0.88, 1, 7]
    for value, one in zip(values, support.in_node("mask_painter", f"{values}.map(bench.shade)"), strict=True):
        rgb = [int(part) for part in one["paper"][4:-1].split(",")]
        assert rgb == pytest.approx([255 * c for c in colormaps["cividis"](min(float(value), 1.0))[:3]], abs=9)
        linear = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        contrast = 1.05 / (luminance + 0.05) if one["ink"] == "white" else (luminance + 0.05) / 0.05
        assert contrast >= 4.5


def test_two_pad_more_keep_what_was_painted():
    found = support.in_node(
        "mask_painter", "[bench.resize([[true, false], [false, true]], 3), bench.resize([[false, true], [true, true]], 1)]"
    )
    assert found == [[[True, False, True], [False, True, True], [True, True, True]], [[False]]]


# --- The page ---


@pytest.fixture
def show(show_module):
    return lambda lang="ja", **options: show_module("mask_painter", masks.state(lang), **options)


def cell(page, i, j):
    return page.locator(f'button[data-row="{i}"][data-column="{j}"]')


def mask(page):
    return np.array(page.evaluate("() => model.get('mask')"))


def shown_weights(page):
    rows = page.locator(".tl-shown-weights tbody tr").count()
    return np.array([float(text) for text in page.locator(".tl-shown-weights .tl-cell").all_text_contents()]).reshape(rows, -1)


def test_the_page_shows_numpys_numbers_and_the_leak(show):
    page = show()
    x, (first, _) = masks.world()
    assert shown_weights(page) == pytest.approx(masks.painted_layer(x[:5], first, masks.START[0]).weights, abs=0.0051)
    moved = masks.influence(*masks.START)
    assert [text != "" for text in page.locator(".tl-reach .tl-cell").all_text_contents()] == moved.ravel().tolist()
    assert page.locator(".tl-leaking").count() == 7
    assert page.locator(".tl-future").text_content() == "!未来が見える組: 7。" and page.locator(".tl-pad").is_hidden()


def test_the_keyboard_paints(show):
    page = show("en")
    assert page.locator(".tl-paint tbody th").first.text_content() == "the冠詞"
    cell(page, 0, 4).focus()
    picture = page.locator(".tl-matrices").screenshot()
    page.keyboard.press("Space")
    assert (mask(page) == causal_mask(5)).all() and page.locator(".tl-future").text_content() == "✓No token sees the future."
    assert page.locator(".tl-matrices").screenshot() != picture
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "query dog to key the: hidden"
    page.keyboard.press("Enter")
    assert mask(page)[1, 3] and page.evaluate("() => window.saved") == 2
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "query dog to key the: may attend"
    assert page.locator(".tl-paint button[tabindex='0']").count() == 1
    for key in ("Home", "ArrowUp", "ArrowUp", "ArrowLeft"):  # the edge holds
        page.keyboard.press(key)
    assert page.evaluate("() => [document.activeElement.dataset.row, document.activeElement.dataset.column]") == ["0", "0"]


def test_a_drag_paints_every_cell_on_its_way_with_the_first_ones_new_value(show):
    page = show()
    centres = [cell(page, 3, j).bounding_box() for j in range(5)]
    centres = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in centres]
    page.mouse.move(*centres[0])
    page.mouse.down()
    for centre in centres[1:]:
        page.mouse.move(*centre, steps=4)
    page.mouse.up()
    assert not mask(page)[3].any()  # the last cell was closed already, and stays so
    assert page.locator(".tl-empty").text_content() == "見える相手のいない行（重みは全部 0）: を。"
    page.mouse.move(*centres[0])
    assert not mask(page)[3].any()  # let go: it paints no more
    page.mouse.click(*centres[1])
    assert mask(page)[3].tolist() == [False, True, False, False, False]


def test_pad_layers_and_way(show):
    page = show("en")
    page.get_by_role("checkbox", name="add two PAD").check()
    assert mask(page).shape == (7, 7) and page.locator(".tl-pad").text_content() == "!Pairs of a real token that sees PAD: 10."
    page.get_by_role("checkbox", name="add two PAD").uncheck()
    assert (mask(page) == masks.START[0]).all()
    page.get_by_role("radio", name="1", exact=True).check()
    assert page.locator(".tl-leaking").count() == masks.leaks(masks.influence(masks.START[0], 1))[0] == 1
    page.get_by_role("combobox", name="Hidden by").select_option("after")
    assert page.locator(".tl-off").count() >= 3 and shown_weights(page)[0, 1] == 0
    page.get_by_role("combobox", name="Hidden by").select_option("zero")
    assert (shown_weights(page) > 0).all()


@pytest.mark.parametrize("number", range(len(masks.PRESETS)))
def test_every_preset_shows_its_mask_its_light_and_its_note(show, number):
    page = show("en")
    page.locator(".tl-preset").nth(number).click()
    name, setting = list(masks.PRESETS.items())[number]
    assert (mask(page) == setting[0]).all()
    assert page.locator(".tl-note").text_content() == masks.presets("en")[number]["note"]
    future, pad = masks.leaks(masks.influence(*setting))
    assert page.locator(".tl-leaking").count() == future + pad
    assert ("tl-lit" in page.locator(".tl-future").get_attribute("class")) == (future > 0), name
    assert ("tl-lit" in page.locator(".tl-pad").get_attribute("class")) == (pad > 0), name
    page.get_by_role("button", name="Reset").click()
    assert (mask(page) == masks.START[0]).all() and "Click or drag" in page.locator(".tl-note").text_content()


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_a_wrong_mask_is_refused():
    painter = explorer("mask-painter")("ja")
    painter.set_state({"mask": causal_mask(7).tolist(), "layers": 1, "way": "zero"})
    title, table, text = painter.twin()
    assert "49 マスのうち 28" in text and "AT12" in text and title.startswith("マスクを塗る")
    assert len(table) == 3 * 8 and table[8][0] == "② 注意の重み"
    with pytest.raises(Exception, match="mask must be"):
        painter.mask = [[True]]
    painter.lang = "en"
    assert painter.tokens[1] == "dog" and painter.strings["reset"] == "Reset" and "are open" in painter.twin()[2]


def test_the_twin_follows_the_mask_and_names_the_empty_row():
    first = masks.twin("ja", *masks.START)
    assert "未来が見える組: 7。" in first[2] and "PAD" not in first[2]
    _, table, text = masks.twin("en", *masks.PRESETS["cm1"])
    assert "Rows with nobody to look at (weights all 0): the." in text
    assert table[7] == ["the 冠詞", "0.00", "0.00", "0.00", "0.00", "0.00", "0.00"]


def test_the_picture_follows_the_state():
    first = masks.picture("ja", *masks.START)
    assert first.png != masks.picture("ja", EVERYTHING, 2, "before").png
    assert first.table[1][:3] == ["犬 dog", "1", "0"] and first.lang == "ja"


def test_a_trap_is_shown_by_its_name_and_its_code_is_a_tooltip(show):
    from transformer_lite.content import traps

    for lang in ("ja", "en"):
        for name, preset in zip(masks.PRESETS, masks.presets(lang), strict=True):
            code = name.upper() if name[:2] in ("cm", "at", "pm") else ""
            assert preset["title"] == (f"{code}: {traps()[code].title(lang)}" if code else "")
        shown = [*masks.words(lang).values(), *(preset[key] for preset in masks.presets(lang) for key in ("label", "note"))]
        assert [text for text in shown if re.search(r"\b(CM|AT|PM)\d", text)] == []
    titles = show("en").locator(".tl-preset").evaluate_all("all => all.map((one) => one.title)")
    assert titles == [preset["title"] for preset in masks.presets("en")]
