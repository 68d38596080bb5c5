"""The wiring board: its numbers against the equations and the traps, the browser's against NumPy's, its page, its static twin."""

import itertools
import json

import explore_support as support
import numpy as np
import pytest

from transformer_lite.equations import causal_mask, cross_attention, self_attention
from transformer_lite.explore import explorer, wiring
from transformer_lite.explore.wiring import SOURCES, Wiring

WIRINGS = [
    Wiring(goal, q, k, v, causal)
    for goal, q, k, v, causal in itertools.product(wiring.GOALS, SOURCES, SOURCES, SOURCES, (False, True))
]


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


# --- The numbers ---


@pytest.mark.parametrize("direction", wiring.DIRECTIONS)
def test_the_right_wirings_are_the_papers_three_attentions(direction):
    given, w = wiring.sources(direction), wiring.projections()
    x, memory, y = given.values()
    for name, expected in (
        ("right_encoder", self_attention(x, w)),
        ("right_decoder", self_attention(y, w, causal_mask(len(y)))),
        ("right_cross", cross_attention(y, memory, w)),
    ):
        found = wiring.attend(given, wiring.PRESETS[name])
        assert found.output == pytest.approx(expected.output) and found.weights == pytest.approx(expected.weights)


def test_wrong_wirings_are_the_traps_of_the_catalogue():
    from transformer_lite.traps.heads import cross_family

    given, w = wiring.sources("ja-en"), wiring.projections()
    for name in ("ca1", "ca2", "ca3"):
        knobs = cross_family.traps[name.upper()].settings[0]
        output, weights = cross_family.core(given["y"], given["memory"], w, **knobs)
        found = wiring.attend(given, wiring.PRESETS[name]._replace(causal=name == "ca3"))
        assert found.weights == pytest.approx(weights) and found.output == pytest.approx(output)


@pytest.mark.parametrize("direction", wiring.DIRECTIONS)
def test_weights_need_no_values_and_an_output_needs_as_many_values_as_keys(direction):
    given = wiring.sources(direction)
    for plugged in WIRINGS:
        found, weights = wiring.attend(given, plugged), wiring.weights_of(given, plugged)
        n_q, n_k, n_v = (len(given[name]) for name in plugged[1:4])
        assert weights.shape == (n_q, n_k) and weights.sum(axis=1) == pytest.approx(np.ones(n_q))
        assert (
            (found is None) == (n_k != n_v) == (wiring.unit(plugged) == "impossible") == (wiring.verdict(plugged) == "impossible")
        )
        if found is not None:
            assert found.weights == pytest.approx(weights) and found.output.shape == (n_q, wiring.D_MODEL)


def test_the_map_crosses_and_the_verb_finds_the_verb():
    weights = wiring.weights_of(wiring.sources("ja-en"), wiring.PRESETS["right_cross"])
    assert weights.argmax(axis=1).tolist() == [0, 0, 4, 2, 2, 4]  # the dog chased the cat <EOS> -> 犬 が 猫 を 追いかけた
    back = wiring.weights_of(wiring.sources("en-ja"), wiring.PRESETS["right_cross"])
    assert back.argmax(axis=1).tolist() == [1, 1, 4, 4, 2, 4]  # 犬 が 猫 を 追いかけた <EOS> -> the dog chased the cat
    itself = wiring.weights_of(wiring.sources("ja-en"), wiring.PRESETS["right_encoder"])[4]
    assert itself[1] > itself[0] and itself[3] > itself[2]  # the verb asks for が and を


def test_influence_is_a_rectangle_a_triangle_or_a_diagonal():
    given = wiring.sources("ja-en")

    def parts(name):
        return np.split(wiring.influence(given, wiring.PRESETS[name]), [5, 10], axis=1)

    x, memory, y = parts("right_cross")
    assert not x.any() and memory.all() and (y == np.eye(6, dtype=bool)).all()
    x, memory, y = parts("right_encoder")
    assert x.all() and not memory.any() and not y.any()
    x, memory, y = parts("right_decoder")
    assert not x.any() and not memory.any() and (y == causal_mask(6)).all()
    x, memory, y = parts("ca1")
    assert y.all() and y.shape == (5, 6) and (memory == np.eye(5, dtype=bool)).all()
    for name in ("ca2", "ca4"):
        assert not parts(name)[1].any()  # memory is never looked at
    x, memory, y = parts("ca3")
    assert (memory[:5] == causal_mask(5)).all() and not memory[2, 4]  # chased cannot see 追いかけた
    assert wiring.influence(given, wiring.PRESETS["mc31"]) is None
    x, memory, y = parts("cm4")
    assert y.all()


def test_every_preset_is_what_its_name_says():
    for name, plugged in wiring.PRESETS.items():
        expected = {"mc31": "impossible"}.get(name, name)
        assert wiring.verdict(plugged) == expected, name
    assert {wiring.verdict(plugged) for plugged in WIRINGS} == set(wiring._VERDICTS)
    assert {wiring.unit(plugged) for plugged in WIRINGS} == set(wiring._UNITS)
    right = [plugged for plugged in WIRINGS if wiring.verdict(plugged) in wiring.RIGHT]
    assert len(right) == 4 and {plugged.goal for plugged in right} == set(wiring.GOALS)


def test_the_traps_that_verdicts_name_exist():
    from transformer_lite.content import traps

    for lang in ("ja", "en"):
        for name in wiring._VERDICTS:
            text = wiring.words(lang)[f"verdict_{name}"]
            key = text.split(":")[0]
            if name[:2] in ("ca", "mc", "cm"):
                assert key == name.upper() and key in traps()


# --- The browser's numbers ---


@pytest.mark.parametrize("direction", wiring.DIRECTIONS)
def test_the_browser_computes_numpys_attention_influence_and_verdict(direction):
    given = wiring.sources(direction)
    vectors = {name: rows.tolist() for name, rows in given.items()}
    matrices = [matrix.tolist() for matrix in wiring.projections()]
    cases = [plugged._asdict() for plugged in WIRINGS]
    found = support.in_node(
        "wiring_board",
        f"((vectors, w) => {json.dumps(cases)}.map((wiring) => ({{ ...bench.attend(vectors, w, wiring),"
        " moved: bench.influence(vectors, w, wiring), unit: bench.unit(wiring), verdict: bench.verdict(wiring) })))"
        f"({json.dumps(vectors)}, {json.dumps(matrices)})",
    )
    assert len(found) == len(WIRINGS) == 162
    for plugged, one in zip(WIRINGS, found, strict=True):
        assert (one["unit"], one["verdict"]) == (wiring.unit(plugged), wiring.verdict(plugged))
        assert np.array(one["weights"]) == pytest.approx(wiring.weights_of(given, plugged), abs=1e-12)
        expected, moved = wiring.attend(given, plugged), wiring.influence(given, plugged)
        if expected is None:
            assert one["output"] is None and one["moved"] is None
        else:
            assert np.array(one["output"]) == pytest.approx(expected.output, abs=1e-12)
            assert one["moved"] == moved.tolist()


# --- The page ---


@pytest.fixture
def show(show_module):
    return lambda lang="ja", direction="ja-en", **options: show_module("wiring_board", wiring.state(lang, direction), **options)


def plugged(page):
    return Wiring(
        **page.evaluate(f"() => Object.fromEntries({json.dumps(Wiring._fields)}.map((name) => [name, model.get(name)]))")
    )


def shown_weights(page):
    rows = page.locator(".tl-shown-weights tbody tr").count()
    return np.array([float(text) for text in page.locator(".tl-shown-weights .tl-cell").all_text_contents()]).reshape(rows, -1)


def shown_influence(page):
    rows = page.locator(".tl-thin tbody tr").count()
    return (np.array(page.locator(".tl-thin .tl-cell").all_text_contents()) == "●").reshape(rows, -1)


def test_the_page_starts_in_its_surprise_and_shows_numpys_numbers(show):
    page = show()
    given = wiring.sources("ja-en")
    assert shown_weights(page) == pytest.approx(wiring.weights_of(given, wiring.START), abs=0.0051)
    assert (shown_influence(page) == wiring.influence(given, wiring.START)).all()
    assert "CA1" in page.locator(".tl-why").text_content() and "(5, 6)" in page.locator(".tl-shapes").text_content()
    assert page.locator(".tl-verdict").get_attribute("class").endswith("tl-lit")


def test_the_keyboard_moves_the_plugs(show):
    page = show("en")
    picture = page.locator(".tl-wires").screenshot()
    page.get_by_role("radio", name="Q comes from memory: encoder output").focus()
    page.keyboard.press("ArrowRight")
    assert plugged(page).query_from == "y" and "CA2" in page.locator(".tl-why").text_content()
    assert page.locator(".tl-wires").screenshot() != picture
    page.get_by_role("radio", name="K comes from memory").check()
    assert "cannot be multiplied: 5 ≠ 6" in page.locator(".tl-shapes").text_content()
    assert page.locator(".tl-thin").count() == 0 and "no influence matrix" in page.locator(".tl-influences").text_content()
    page.get_by_role("radio", name="V comes from memory").check()
    assert plugged(page) == wiring.PRESETS["right_cross"]
    assert page.locator(".tl-is").text_content() == "✓This is the decoder's cross-attention."
    assert shown_weights(page).shape == (6, 5)


def test_the_keyboard_and_the_pointer_choose_a_row(show):
    page = show("en")
    page.locator(".tl-preset").first.click()
    lines = page.locator(".tl-lines")
    lines.focus()
    page.keyboard.press("Home")
    expected = wiring.weights_of(wiring.sources("ja-en"), wiring.PRESETS["right_cross"])
    assert page.locator(".tl-end").all_text_contents() == [f"{weight:.2f}" for weight in expected[0]]
    picture = lines.screenshot()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => model.get('row')") == 2 and lines.screenshot() != picture
    assert f"追いかけた {expected[2, 4]:.2f}" in lines.get_attribute("aria-label")
    assert "chased" in page.locator(".tl-shown-weights tr.tl-on th").text_content()
    page.locator(".tl-hit").nth(4).hover()  # a preview: the chosen row stays
    assert page.locator(".tl-end").all_text_contents() == [f"{weight:.2f}" for weight in expected[4]]
    assert page.evaluate("() => model.get('row')") == 2
    page.mouse.move(5, 5)
    assert page.locator(".tl-end").all_text_contents() == [f"{weight:.2f}" for weight in expected[2]]
    page.locator(".tl-hit").nth(5).click()
    assert page.evaluate("() => model.get('row')") == 5
    lines.focus()
    page.keyboard.press("ArrowDown")  # the edge holds
    assert page.evaluate("() => model.get('row')") == 5
    page.keyboard.press("Escape")
    assert page.evaluate("() => model.get('row')") == -1 and "all queries" in lines.get_attribute("aria-label")
    assert page.locator(".tl-dim").count() == 0


def test_a_chosen_row_that_the_new_wiring_lacks_chooses_none(show):
    page = show("en")
    page.locator(".tl-preset").first.click()
    page.evaluate("() => model.set('row', 5)")
    page.locator(".tl-preset").nth(3).click()  # CA1: five queries
    assert page.locator(".tl-dim").count() == 0
    page.locator(".tl-lines").focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("() => model.get('row')") == 4


@pytest.mark.parametrize("index", range(len(wiring.PRESETS)))
@pytest.mark.parametrize("direction", wiring.DIRECTIONS)
def test_every_preset_shows_its_wiring_and_its_verdict(show, index, direction):
    page = show("en", direction)
    page.locator(".tl-preset").nth(index).click()
    name, expected = list(wiring.PRESETS.items())[index]
    assert plugged(page) == expected
    assert page.locator(".tl-why").text_content() == wiring.words("en")[f"verdict_{wiring.verdict(expected)}"]
    given = wiring.sources(direction)
    assert shown_weights(page) == pytest.approx(wiring.weights_of(given, expected), abs=0.0051), name
    moved = wiring.influence(given, expected)
    assert (shown_influence(page) == moved).all() if moved is not None else page.locator(".tl-thin").count() == 0
    page.get_by_role("button", name="Reset").click()
    assert plugged(page) == wiring.START


def test_the_direction_goal_and_mask_are_controls(show):
    page = show("en")
    page.locator(".tl-preset").first.click()
    page.get_by_role("combobox", name="Translating").select_option("en-ja")
    assert page.locator(".tl-shown-weights tbody th").first.text_content() == "犬dog"
    assert shown_weights(page) == pytest.approx(
        wiring.weights_of(wiring.sources("en-ja"), wiring.PRESETS["right_cross"]), abs=0.0051
    )
    page.get_by_role("checkbox", name="causal mask").check()
    assert "CA3" in page.locator(".tl-why").text_content() and (shown_weights(page)[0, 1:] == 0).all()
    page.get_by_role("combobox", name="Wanted").select_option("decoder")
    assert "other sublayer" in page.locator(".tl-why").text_content()


def test_every_word_carries_its_language(show):
    page = show("en")
    page.locator(".tl-preset").first.click()
    rows = page.locator(".tl-shown-weights tbody th .tl-token")
    assert rows.first.get_attribute("lang") == "en" and rows.first.locator(".tl-gloss").get_attribute("lang") == "ja"
    columns = page.locator(".tl-shown-weights thead th .tl-token")
    assert columns.first.get_attribute("lang") == "ja" and columns.first.locator(".tl-gloss").get_attribute("lang") == "en"


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_a_wrong_plug_is_refused():
    board = explorer("wiring-board")("ja", direction="en-ja")
    board.set_state({"query_from": "y", "key_from": "memory", "value_from": "memory", "direction": "ja-en", "row": 2})
    title, table, text = board.twin()
    assert board.wiring == wiring.PRESETS["right_cross"] and title.startswith("配線盤")
    assert "重みは (6, 5)" in text and "になっています" in text and table[3][0] == "chased 追いかけた" and len(table) == 14
    assert table[10][:4] == ["chased 追いかけた", "00000", "11111", "001000"]
    with pytest.raises(Exception, match="query_from"):
        board.query_from = "z"
    board.lang = "en"
    assert board.strings["reset"] == "Reset" and "This is the decoder's cross-attention." in board.twin()[2]
    with pytest.raises(ValueError, match="direction must be one of ja-en, en-ja"):
        explorer("wiring-board")("ja", direction="en-fr")


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_picture_follows_the_state_even_where_nothing_can_be_computed(lang):
    pictures = [wiring.picture(lang, "ja-en", wiring.PRESETS[name]) for name in ("right_cross", "mc31")]
    assert pictures[0].png != pictures[1].png
    assert "5 ≠ 6" in pictures[1].text and "K = memory, V = y" in pictures[1].text
    for shown in pictures:
        assert ".." not in shown.text and "。。" not in shown.text and "。." not in shown.text
